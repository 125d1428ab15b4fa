#include "kernels/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

#include "base/half.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/ordered_section.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/random/simd/random.h"
#include "kernels/deviates.h"

namespace taeda::cpu {
namespace {

const simd::RandomKernels& kernels() { return TAEDA_PICK(random_kernels); }

template <class T> void uniform(const uint32_t* bits, T* out, int64_t n, T low, T range) {
  typed<T>(kernels()).uniform(bits, out, n, low, range);
}

constexpr int64_t kBuffer = 2048;  // elements worked on at a time
constexpr int64_t kGrain = 32768;  // elements that are worth a thread's attention
constexpr uint64_t kWide =
    uint64_t{1} << 28;  // ranges from here on take 64-bit draws: the modulo's bias stays small

template <class T> constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The type a fill computes in: float for the half types.
template <class T> using Wide = std::conditional_t<kIsHalf<T>, float, T>;

// A number as T; the half types round it from float.
template <class T> T to(auto x) { return static_cast<T>(static_cast<Wide<T>>(x)); }

// f(words, first element, how many), for the elements 0 .. n-1 of a fill that takes `draws` raw
// words for each. The stream is drawn in order; all else is shared out.
template <class F> void in_order(Engine& engine, int64_t n, int draws, F&& f) {
  constexpr int64_t piece = 8 * kBuffer;
  OrderedSection section;
  parallel_ordered((n + piece - 1) / piece, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * piece, count = std::min(piece, n - first);
      OrderedSection::Ticket ticket(section, p);
      const Scratch<uint32_t> room(Engine::raw_room(count * draws));
      ticket.enter();
      const uint32_t* words = engine.raw(room.data(), count * draws);
      ticket.leave();
      for (int64_t i = 0; i < count; i += kBuffer)
        f(words + i * draws, first + i, std::min(kBuffer, count - i));
    }
  });
}

// Rounding may reach `high`, which is outside of the interval: that becomes `low`.
template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void store_below(const Wide<T>* values, T* out, int64_t n,
                                                        T low, T high) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = static_cast<T>(values[i]);
    out[i] = static_cast<Wide<T>>(value) >= static_cast<Wide<T>>(high) ? low : value;
  }
}

template <class T, class F> void each(T* out, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) out[i] = f();
}

// f(uniforms, first element, how many), for one double in [0, 1) for each element.
template <class F> void from_uniforms(Engine& engine, int64_t n, F&& f) {
  in_order(engine, n, 2, [&](const uint32_t* bits, int64_t first, int64_t count) {
    double u[kBuffer];
    uniform<double>(bits, u, count, 0, 1);
    f(u, first, count);
  });
}

// out[i] = f(the next normal number of the engine).
template <class T, class F> void from_normals(Engine& engine, T* out, int64_t n, F&& f) {
  constexpr int64_t few = 64;  // for which the stream is not worth laying out
  if (n < few) return each(out, n, [&] { return f(engine.normal()); });
  const int64_t kept = engine.normal_is_kept() ? 1 : 0;
  if (kept) out[0] = f(engine.normal());
  from_uniforms(engine, (n - kept) / 2 * 2, [&](const double* u, int64_t first, int64_t count) {
    T* to = out + kept + first;
    for (int64_t i = 0; i < count; i += 2) {
      const auto [a, b] = Engine::normals(u[i], u[i + 1]);
      to[i] = f(a);
      to[i + 1] = f(b);
    }
  });
  if ((n - kept) % 2) out[n - 1] = f(engine.normal());
}

// out[i] = f(word), for 64 bits of the stream for each element.
template <class T, class F> void from_words64(Engine& engine, T* out, int64_t n, F&& f) {
  in_order(engine, n, 2, [&](const uint32_t* bits, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t high = Engine::temper(bits[2 * i]);
      out[first + i] = f(high << 32 | Engine::temper(bits[2 * i + 1]));
    }
  });
}

// out[i] = f(a draw modulo range).
template <class T, class F>
void from_remainders(Engine& engine, T* out, int64_t n, uint32_t range, F&& f) {
  in_order(engine, n, 1, [&](const uint32_t* bits, int64_t first, int64_t count) {
    uint32_t rest[kBuffer];
    kernels().remainder(bits, rest, count, range);
    for (int64_t i = 0; i < count; ++i) out[first + i] = f(rest[i]);
  });
}

// out[i] = exact(i), a number of the C library that is value(log x[i]) but for rounding. The
// logarithms of vectors serve wherever they leave no doubt about the result once it is rounded to
// T.
template <class T, class F, class G>
void round_logs(double* x, T* out, int64_t n, F&& value, G&& exact) {
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t i = 0; i < n; ++i) out[i] = exact(i);
  } else {
    constexpr double doubt = 0x1p-48;  // many times their error and the library's
    kernels().log(x, n);
    for (int64_t i = 0; i < n; ++i) {
      const T low = to<T>(value(x[i] * (1 - doubt))), high = to<T>(value(x[i] * (1 + doubt)));
      out[i] = low == high ? low : to<T>(exact(i));
    }
  }
}

template <class T> void fill_uniform(Engine& engine, T* out, int64_t n, double from, double to_) {
  using W = Wide<T>;
  constexpr int draws = sizeof(W) / sizeof(uint32_t);
  const W low = static_cast<W>(from);
  const W range = static_cast<W>(to_) - low;
  const T low_out = to<T>(from);
  const T high_out = to<T>(to_);
  in_order(engine, n, draws, [&](const uint32_t* bits, int64_t first, int64_t count) {
    W values[kBuffer];
    uniform<W>(bits, values, count, low, range);
    store_below(values, out + first, count, low_out, high_out);
  });
}

template <class T>
void fill_normal_serial(Engine& engine, T* out, int64_t n, double mean, double std) {
  from_normals(engine, out, n, [&](double x) { return to<T>(std::fma(x, std, mean)); });
}

template <class T> void fill_normal(Engine& engine, T* out, int64_t n, double mean, double std) {
  if (n < 16) return fill_normal_serial(engine, out, n, mean, std);
  using W = Wide<T>;
  constexpr int draws = sizeof(W) / sizeof(uint32_t);
  const W m = static_cast<W>(mean), s = static_cast<W>(std);
  const auto blocks = [&](T* to, int64_t n) {
    in_order(engine, n, draws, [&](const uint32_t* bits, int64_t first, int64_t count) {
      W values[kBuffer];
      uniform<W>(bits, values, count, 0, 1);
      typed<W>(kernels()).normal(values, count / 16, m, s);
      for (int64_t j = 0; j < count; ++j) to[first + j] = static_cast<T>(values[j]);
    });
  };
  const int64_t whole = n / 16 * 16;
  blocks(out, whole);
  if (whole == n) return;
  // The rest has used up draws too, though the last 16 elements are all drawn anew (not so for the
  // half types).
  for (int64_t i = 0; !kIsHalf<T> && i < (n - whole) * draws; ++i) engine.random();
  blocks(out + n - 16, 16);
}

template <class T> void fill_exponential(Engine& engine, T* out, int64_t n, double rate) {
  const double scale = -1.0 / rate;
  from_uniforms(engine, n, [&](const double* u, int64_t first, int64_t count) {
    double x[kBuffer];
    for (int64_t i = 0; i < count; ++i) x[i] = 1.0 - u[i];  // exact
    round_logs(
        x, out + first, count, [&](double log) { return scale * log + 0.0; },  // no -0
        [&](int64_t i) { return scale * std::log1p(-u[i]); });
  });
}

template <class T>
void fill_cauchy(Engine& engine, T* out, int64_t n, double median, double sigma) {
  from_uniforms(engine, n, [&](const double* u, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out[first + i] = to<T>(std::fma(sigma, std::tan(std::numbers::pi * (u[i] - 0.5)), median));
    }
  });
}

template <class T>
void fill_log_normal(Engine& engine, T* out, int64_t n, double mean, double std) {
  from_normals(engine, out, n, [&](double x) { return to<T>(std::exp(std::fma(x, std, mean))); });
}

template <class T> void fill_geometric(Engine& engine, T* out, int64_t n, double p) {
  const double scale = std::log1p(-p);
  auto value = [scale](double log) { return std::ceil(log / scale); };
  from_uniforms(engine, n, [&](const double* u, int64_t first, int64_t count) {
    double x[kBuffer];
    std::copy_n(u, count, x);
    round_logs(x, out + first, count, value, [&](int64_t i) { return value(std::log(u[i])); });
  });
}

// A draw is a whole number of 2^-53: it is below p where that number is below p 2^53 rounded up.
uint64_t bernoulli_limit(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p53)); }

template <class T> void fill_bernoulli(Engine& engine, T* out, int64_t n, double p) {
  const uint64_t limit = bernoulli_limit(p);
  in_order(engine, n, 2, [&](const uint32_t* bits, int64_t first, int64_t count) {
    if constexpr (std::is_same_v<T, bool>) {
      kernels().bernoulli(bits, out + first, count, limit);
    } else {
      bool keep[kBuffer];
      kernels().bernoulli(bits, keep, count, limit);
      for (int64_t j = 0; j < count; ++j) out[first + j] = to<T>(static_cast<int>(keep[j]));
    }
  });
}

void dropout(Engine& engine, int64_t n, double p, const float* x, double scale, bool* keep,
             float* y) {
  const uint64_t limit = bernoulli_limit(p);
  in_order(engine, n, 2, [&](const uint32_t* bits, int64_t first, int64_t count) {
    kernels().dropout_float(bits, limit, x + first, static_cast<float>(scale), keep + first,
                            y + first, count);
  });
}

template <class T> void scale_kept(int64_t n, const T* x, const bool* keep, double scale, T* y) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    typed<T>(kernels()).scale_kept(x + begin, keep + begin, static_cast<T>(scale), y + begin,
                                   end - begin);
  });
}

template <class T, class P> void fill_bernoulli(Engine& engine, T* out, const P* p, int64_t n) {
  constexpr int draws = sizeof(P) / sizeof(uint32_t);
  in_order(engine, n, draws, [&](const uint32_t* bits, int64_t first, int64_t count) {
    P u[kBuffer];
    uniform<P>(bits, u, count, 0, 1);
    for (int64_t i = 0; i < count; ++i) out[first + i] = to<T>(u[i] < p[first + i]);
  });
}

template <class T>
void fill_range(Engine& engine, T* out, int64_t n, uint64_t range, int64_t base) {
  auto shift = [base](uint64_t x) {
    return to<T>(static_cast<int64_t>(x + static_cast<uint64_t>(base)));
  };
  if (range == 0) return from_words64(engine, out, n, shift);
  if (range >= kWide)
    return from_words64(engine, out, n, [&](uint64_t x) { return shift(x % range); });
  from_remainders(engine, out, n, static_cast<uint32_t>(range), shift);
}

template <class T> void fill_random(Engine& engine, T* out, int64_t n) {
  if constexpr (std::is_same_v<T, int64_t>) {
    from_words64(engine, out, n,
                 [](uint64_t x) { return static_cast<int64_t>(x & (~uint64_t{0} >> 1)); });
  } else if constexpr (std::is_same_v<T, double>) {
    from_words64(engine, out, n,
                 [](uint64_t x) { return static_cast<double>(x % ((uint64_t{1} << 53) + 1)); });
  } else if constexpr (std::is_integral_v<T>) {  // bool: 2 values
    const uint32_t range = static_cast<uint32_t>(std::numeric_limits<T>::max()) + 1;
    from_remainders(engine, out, n, range, [](uint32_t x) { return static_cast<T>(x); });
  } else {
    constexpr int digits = std::is_same_v<T, float> ? 24 : std::is_same_v<T, Half> ? 11 : 8;
    from_remainders(engine, out, n, (1u << digits) + 1,
                    [](uint32_t x) { return T(static_cast<float>(x)); });
  }
}

template <class T> std::optional<T> find_improbable(const T* p, int64_t n) {
  const T* bad = std::find_if(p, p + n, [](T v) { return !(v >= 0 && v <= 1); });
  return bad == p + n ? std::nullopt : std::optional(*bad);
}

template <class T> bool fill_poisson(Engine& engine, T* out, const T* rates, int64_t n) {
  if (!std::all_of(rates, rates + n, [](T rate) { return rate >= 0; })) return false;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<T>(poisson_deviate(engine, static_cast<double>(rates[i])));
  }
  return true;
}

void fill_permutation(Engine& engine, int64_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = i;
  const bool narrow = n < static_cast<int64_t>(std::numeric_limits<uint32_t>::max() / 20);
  for (int64_t i = 0; i < n - 1; ++i) {
    const auto left = static_cast<uint64_t>(n - i);
    const uint64_t z =
        narrow ? engine.random() % static_cast<uint32_t>(left) : engine.random64() % left;
    std::swap(out[i], out[i + static_cast<int64_t>(z)]);
  }
}

template <class T> [[gnu::optimize("O3")]] void divide_all(T* x, int64_t n, T by) {
  for (int64_t i = 0; i < n; ++i) x[i] /= by;
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] std::pair<bool, bool> look_at_row(const T* p, int64_t n) {
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Word fine = 1, some = 0;
  for (int64_t i = 0; i < n; ++i) {
    fine &= static_cast<Word>(p[i] >= 0) & static_cast<Word>(p[i] <= std::numeric_limits<T>::max());
    some |= static_cast<Word>(p[i] > 0);
  }
  return {fine != 0, some != 0};
}
template <class T>
std::pair<bool, bool> look_at_weights(const T* weights, int64_t rows, int64_t n) {
  std::pair<bool, bool> all{true, true};
  for (int64_t r = 0; r < rows; ++r) {
    const auto [fine, some] = look_at_row(weights + r * n, n);
    all = {all.first && fine, all.second && some};
  }
  return all;
}

// sums (Rows, n): of each row of x (Rows, n), the sum up to each element.
template <int64_t Rows, class T>
[[gnu::optimize("O3")]] void add_up(const T* __restrict x, int64_t n, T* __restrict sums) {
  T sum[Rows] = {};
  for (int64_t j = 0; j < n; ++j) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < Rows; ++r) sums[r * n + j] = sum[r] += x[r * n + j];
  }
}
template <class T>
void fill_multinomial(Engine& engine, int64_t* out, const T* weights, int64_t rows,
                      int64_t categories, int64_t samples) {
  // The sums of some rows are made side by side, as each waits for the one before it.
  constexpr int64_t together = 4;
  std::vector<T> cumulative(static_cast<size_t>(std::min(together, rows) * categories));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row % together;
    T* const begin = cumulative.data() + place * categories;
    if (place == 0) {
      const T* w = weights + row * categories;
      const int64_t left = rows - row;
      if (left >= together) add_up<together>(w, categories, begin);
      for (int64_t r = 0; left < together && r < left; ++r)
        add_up<1>(w + r * categories, categories, begin + r * categories);
    }
    T* const end = begin + categories;
    divide_all(begin, categories, end[-1]);
    end[-1] = 1;
    for (int64_t s = 0; s < samples; ++s) {
      const double u = engine.uniform();
      const auto at =
          std::lower_bound(begin, end, u, [](T c, double u) { return static_cast<double>(c) < u; });
      out[row * samples + s] = std::min<int64_t>(at - begin, categories - 1);
    }
  }
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(RandomKernels, cpu::fill_geometric<T>, cpu::fill_bernoulli<T>,
                    cpu::fill_bernoulli<T, float>, cpu::fill_bernoulli<T, double>,
                    cpu::fill_range<T>, cpu::fill_random<T>)
template struct taeda::RandomKernels<taeda::Half>;
template struct taeda::RandomKernels<taeda::BFloat16>;
template struct taeda::RandomKernels<bool>;
template struct taeda::RandomKernels<uint8_t>;
template struct taeda::RandomKernels<int8_t>;
template struct taeda::RandomKernels<int16_t>;
template struct taeda::RandomKernels<int32_t>;
template struct taeda::RandomKernels<int64_t>;
TAEDA_FLOAT_KERNELS(ContinuousKernels, cpu::fill_uniform<T>, cpu::fill_normal<T>,
                    cpu::fill_normal_serial<T>, cpu::fill_exponential<T>, cpu::fill_cauchy<T>,
                    cpu::fill_log_normal<T>)
template struct taeda::ContinuousKernels<taeda::Half>;
template struct taeda::ContinuousKernels<taeda::BFloat16>;
TAEDA_FLOAT_KERNELS(SampleKernels, cpu::find_improbable<T>, cpu::fill_poisson<T>,
                    cpu::look_at_weights<T>, cpu::fill_multinomial<T>)
namespace taeda {
template <>
const DropoutKernels<float> DropoutKernels<float>::cpu = {cpu::dropout, cpu::scale_kept<float>};
template <>
const DropoutKernels<double> DropoutKernels<double>::cpu = {nullptr, cpu::scale_kept<double>};
template <> const DropoutKernels<Half> DropoutKernels<Half>::cpu = {};
template <> const DropoutKernels<BFloat16> DropoutKernels<BFloat16>::cpu = {};
const DrawKernels DrawKernels::cpu = {cpu::fill_permutation};
}  // namespace taeda
