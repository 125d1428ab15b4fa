// The vector type itself, compiled for every instruction set: loads, tails, reductions,
// conversions.
#include <algorithm>
#include <numeric>

#include "base/half.h"
#include "kernels.h"
#include "simd/vec_loops.h"

namespace taeda::test {
namespace {

using namespace cpu::simd;

template <class T>
void add_lanes(std::vector<Kernel>& list, const std::string& of, const LaneLoops<T>& loops) {
  const bool real = std::is_floating_point_v<T>;
  // Integers small enough that no sum of 1000 overflows 32 bits; those of fewer bits wrap around.
  const Options o{.tolerance = real ? 1e-4 : 0, .low = -100, .high = 100, .specials = false};
  Options some = o;
  some.sizes.erase(some.sizes.begin());
  list.push_back(Map<T, T>::kernel(
      "vec sum " + of, [&](const T* x, int64_t n, T* y) { *y = loops.sum(x, n); },
      [real](const Numbers& x) {
        const double sum = std::accumulate(x.begin(), x.end(), 0.0);
        return Numbers{real ? sum : static_cast<double>(static_cast<T>(static_cast<int64_t>(sum)))};
      },
      o));
  list.push_back(Map<T, T>::kernel(
      "vec largest " + of, [&](const T* x, int64_t n, T* y) { *y = loops.largest(x, n); },
      [](const Numbers& x) { return Numbers{*std::max_element(x.begin(), x.end())}; }, some));
  const auto same = each([](double v) { return v; });
  list.push_back(Map<T, T>::kernel("vec copy " + of, loops.copy, same, {.tolerance = 0}));
  list.push_back(Map<T, double>::kernel("vec to_double " + of, loops.to_double, same,
                                        {.tolerance = 0, .low = -100, .high = 100}));
  list.push_back(Map<T, float>::kernel("vec to_float " + of, loops.to_float, same,
                                       {.tolerance = 1e-7, .low = -100, .high = 100}));
  list.push_back(Map<float, T>::kernel(
      "vec from_float " + of, loops.from_float,
      each([](double v) { return static_cast<double>(static_cast<T>(v)); }), o));
}

std::vector<Kernel> lanes() {
  std::vector<Kernel> list;
  for (const auto& [set, table] : TAEDA_SETS(cpu::simd, vec_loops)) {
    add_lanes(list, "float32 " + set, table->f32);
    add_lanes(list, "float64 " + set, table->f64);
    add_lanes(list, "int32 " + set, table->i32);
    add_lanes(list, "int64 " + set, table->i64);
    add_lanes(list, "int16 " + set, table->i16);
    add_lanes(list, "int8 " + set, table->i8);
  }
  return list;
}

const RegisterFamily family("vec", lanes);

// All 65536 values of a half-precision type, and a million floats of all sizes.
template <class H> void check_halves(const std::string& of, const HalfLoops& loops) {
  constexpr int64_t n = 65536;
  std::vector<uint16_t> bits(n), back(n), one(n);
  std::vector<float> wide(n);
  std::vector<double> wider(n);
  std::iota(bits.begin(), bits.end(), uint16_t{0});
  const auto number = [](uint16_t b) {
    H h{};
    h.bits = b;
    return static_cast<float>(h);
  };
  const auto equal = [](double a, double b) {
    return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
  };
  loops.widen(bits.data(), n, wide.data());
  loops.widen_double(bits.data(), n, wider.data());
  for (size_t i = 0; i < n; ++i) {
    const float want = number(bits[i]);
    expect(equal(wide[i], want) && equal(wider[i], want), str(of, ": widening ", bits[i]));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    if (round > 0) {
      for (float& f : wide) {  // every other time near the limits of float16
        uint32_t u = random();
        if (round % 2) u = (u & 0x807fffffu) | (100 + (u >> 23) % 50) << 23;
        std::memcpy(&f, &u, sizeof f);
      }
    }
    loops.narrow(wide.data(), n - 1, back.data());  // one less: a tail
    loops.narrow_each(wide.data(), n - 1, one.data());
    for (size_t i = 0; i < n - 1; ++i) {
      const float want = number(H(wide[i]).bits);
      expect(equal(number(back[i]), want) && equal(number(one[i]), want),
             str(of, ": narrowing ", wide[i]));
    }
  }
}

const Register halves[] = {{"kernels: conversions of half precision", [] {
                              for (const auto& [set, table] : TAEDA_SETS(cpu::simd, vec_loops)) {
                                check_halves<Half>("float16 " + set, table->f16);
                                check_halves<BFloat16>("bfloat16 " + set, table->bf16);
                              }
                            }}};

}  // namespace
}  // namespace taeda::test
