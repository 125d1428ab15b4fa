#include "kernels/cpu/nn/resample.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/nn/simd/resample.h"

namespace taeda::cpu {
namespace {

template <class T> const simd::ResampleLoops<T>& loops() {
  return typed<T>(TAEDA_PICK(resample_kernels));
}

constexpr int64_t kGrain = 16384;  // sums that are worth a thread's attention

// The kernel of cubic convolution (Keys, 1981) at a non-negative distance.
template <class T> T cubic_weight(T distance, T a) {
  if (distance <= 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  if (distance < 2) return ((distance - 5) * distance + 8) * distance * a - 4 * a;
  return 0;
}

template <class T> class Maker {
 public:
  explicit Maker(int64_t in) { taps_.in = in; }

  void begin() { taps_.first.push_back(static_cast<int64_t>(taps_.place.size())); }
  void add(int64_t place, T weight) {
    taps_.place.push_back(static_cast<int32_t>(std::clamp<int64_t>(place, 0, taps_.in - 1)));
    taps_.weight.push_back(weight);
  }
  Taps<T> finish() {
    taps_.out = static_cast<int64_t>(taps_.first.size());
    begin();
    arrange();
    return std::move(taps_);
  }

 private:
  // The same once more, tap by tap, where every output has as many.
  void arrange() {
    const int64_t each = taps_.out ? taps_.first[1] : 0;
    if (each != 1 && each != 2 && each != 4) return;
    for (int64_t i = 0; i <= taps_.out; ++i) {
      if (taps_.first[static_cast<size_t>(i)] != i * each) return;
    }
    taps_.each = each;
    for (int64_t t = 0; t < each; ++t) {
      for (int64_t i = 0; i < taps_.out; ++i) {
        taps_.each_place.push_back(taps_.place[static_cast<size_t>(i * each + t)]);
        taps_.each_weight.push_back(taps_.weight[static_cast<size_t>(i * each + t)]);
      }
    }
  }
  Taps<T> taps_;
};

// Over all inputs that the stretched kernel reaches from `center`; the weights have the sum 1.
template <class T> void add_smooth(Maker<T>& made, bool cubic, int64_t in, T center, T stretch) {
  const T reach = (cubic ? T(2) : T(1)) * stretch;
  const auto low = static_cast<int64_t>(std::max(std::trunc(center - reach + T(0.5)), T(0)));
  const auto high = static_cast<int64_t>(std::min(std::trunc(center + reach + T(0.5)), T(in)));
  auto weight = [&](int64_t place) {
    const T distance = std::abs((static_cast<T>(place) - center + T(0.5)) / stretch);
    return cubic ? cubic_weight(distance, T(-0.5)) : std::max(1 - distance, T(0));
  };
  T total = 0;
  for (int64_t p = low; p < high; ++p) total += weight(p);
  for (int64_t p = low; p < high; ++p) made.add(p, weight(p) / total);
}

}  // namespace

template <class T>
Taps<T> make_taps(Resampling how, int64_t in, int64_t out, double step, bool corners) {
  Maker<T> made(in);
  const T apart = static_cast<T>(step);
  for (int64_t i = 0; i < out; ++i) {
    made.begin();
    const T at = static_cast<T>(i), middle = (at + T(0.5)) * apart;
    switch (how) {
      case Resampling::Nearest:
      case Resampling::NearestExact: {
        const T place = std::floor(how == Resampling::Nearest ? at * apart : middle);
        made.add(static_cast<int64_t>(std::min(place, static_cast<T>(in - 1))), 1);
        break;
      }
      case Resampling::Linear: {
        const T place = corners ? at * apart : std::max(middle - T(0.5), T(0));
        const T low = std::min(std::floor(place), static_cast<T>(in - 1)), share = place - low;
        made.add(static_cast<int64_t>(low), 1 - share);
        made.add(static_cast<int64_t>(low) + 1, share);
        break;
      }
      case Resampling::Cubic: {
        const T place = corners ? at * apart : middle - T(0.5), low = std::floor(place);
        for (int o = -1; o <= 2; ++o) {
          const T distance = std::abs(place - (low + static_cast<T>(o)));
          made.add(static_cast<int64_t>(low) + o, cubic_weight(distance, T(-0.75)));
        }
        break;
      }
      default: add_smooth(made, how == Resampling::CubicSmooth, in, middle, std::max(apart, T(1)));
    }
  }
  return made.finish();
}

template <class T> Taps<T> transposed(const Taps<T>& taps) {
  // Where the taps of each input begin, then one output after the other.
  std::vector<int64_t> next(static_cast<size_t>(taps.in) + 1);
  for (int32_t p : taps.place) ++next[static_cast<size_t>(p) + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  Taps<T> back;
  back.in = taps.out;
  back.out = taps.in;
  back.first = next;
  back.place.resize(taps.place.size());
  back.weight.resize(taps.place.size());
  for (size_t i = 0; i + 1 < taps.first.size(); ++i) {
    for (auto t = static_cast<size_t>(taps.first[i]); t < static_cast<size_t>(taps.first[i + 1]);
         ++t) {
      const auto to = static_cast<size_t>(next[static_cast<size_t>(taps.place[t])]++);
      back.place[to] = static_cast<int32_t>(i);
      back.weight[to] = taps.weight[t];
    }
  }
  return back;
}

namespace {

template <class T> simd::TapTable<T> table_of(const Taps<T>& taps) {
  return {taps.in,
          taps.out,
          taps.first.data(),
          taps.place.data(),
          taps.weight.data(),
          taps.each,
          taps.each_place.data(),
          taps.each_weight.data()};
}

}  // namespace

template <class T>
void apply_taps(const Taps<T>& taps, int64_t before, int64_t after, const T* x, T* y) {
  const auto table = table_of(taps);
  if (after == 1) {
    parallel_for(before, std::max<int64_t>(1, kGrain / std::max<int64_t>(taps.out, 1)),
                 [&](int64_t begin, int64_t end) { loops<T>().lines(table, begin, end, x, y); });
  } else {
    parallel_for(
        before * taps.out, std::max<int64_t>(1, kGrain / after),
        [&](int64_t begin, int64_t end) { loops<T>().rows(table, begin, end, after, x, y); });
  }
}

template <class T>
void multiply_taps(const Taps<T>& taps, int64_t after, const T* x, const T* g, T* products) {
  const auto table = table_of(taps);
  parallel_for(taps.out, std::max<int64_t>(1, kGrain / after), [&](int64_t begin, int64_t end) {
    loops<T>().products(table, begin, end, after, x, g, products);
  });
}

template <class T>
void resample(int64_t outer, const std::vector<Taps<T>>& dims, int64_t inner, const T* x, T* y) {
  // Dimensions that shrink come first, and those that grow begin with the innermost: so most sums
  // are made of whole rows.
  std::vector<size_t> order;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].out < dims[d].in) order.push_back(d);
  }
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d].out >= dims[d].in) order.push_back(d);
  }
  int64_t plane_in = inner, plane_out = inner, largest = 0;
  for (const auto& t : dims) {
    plane_in *= t.in;
    plane_out *= t.out;
  }
  int64_t size = plane_in;
  for (size_t d : order) {
    size = size / dims[d].in * dims[d].out;
    largest = std::max(largest, size);
  }
  auto planes = [&](int64_t begin, int64_t end) {
    const Scratch<T> between(dims.size() > 1 ? 2 * largest : 0);
    for (int64_t p = begin; p < end; ++p) {
      const T* from = x + p * plane_in;
      std::vector<int64_t> sizes;
      for (const auto& t : dims) sizes.push_back(t.in);
      for (size_t s = 0; s < order.size(); ++s) {
        const size_t d = order[s];
        int64_t before = 1, after = inner;
        for (size_t i = 0; i < d; ++i) before *= sizes[i];
        for (size_t i = d + 1; i < dims.size(); ++i) after *= sizes[i];
        T* to = s + 1 == order.size() ? y + p * plane_out
                                      : between.data() + static_cast<int64_t>(s % 2) * largest;
        apply_taps(dims[d], before, after, from, to);
        sizes[d] = dims[d].out;
        from = to;
      }
    }
  };
  if (dims.size() == 1) {  // all planes at once
    apply_taps(dims[0], outer, inner, x, y);
  } else if (outer < 16) {
    planes(0, outer);
  } else {
    parallel_for(outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(largest, 1)), planes);
  }
}

template Taps<float> make_taps(Resampling, int64_t, int64_t, double, bool);
template Taps<double> make_taps(Resampling, int64_t, int64_t, double, bool);
template Taps<float> transposed(const Taps<float>&);
template Taps<double> transposed(const Taps<double>&);
template void apply_taps(const Taps<float>&, int64_t, int64_t, const float*, float*);
template void apply_taps(const Taps<double>&, int64_t, int64_t, const double*, double*);
template void multiply_taps(const Taps<float>&, int64_t, const float*, const float*, float*);
template void multiply_taps(const Taps<double>&, int64_t, const double*, const double*, double*);
template void resample(int64_t, const std::vector<Taps<float>>&, int64_t, const float*, float*);
template void resample(int64_t, const std::vector<Taps<double>>&, int64_t, const double*, double*);

}  // namespace taeda::cpu
