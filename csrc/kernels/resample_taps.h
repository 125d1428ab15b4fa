// Which inputs an output of a resized dimension is made of, and with what weights. T: float or
// double.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/anywhere.h"
#include "kernels/resample.h"

namespace taeda {

// The kernel of cubic convolution (Keys, 1981) at a non-negative distance.
template <class T> TAEDA_ANYWHERE T cubic_weight(T distance, T a) {
  if (distance <= 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  if (distance < 2) return ((distance - 5) * distance + 8) * distance * a - 4 * a;
  return 0;
}

// f(input, weight) for all inputs that a kernel, stretched, reaches from `center`; the weights have
// the sum 1.
template <class T, class F>
TAEDA_ANYWHERE void for_each_smooth_tap(int64_t in, bool cubic, T center, T stretch, F&& f) {
  const T reach = (cubic ? T(2) : T(1)) * stretch, end = static_cast<T>(in);
  const auto low = static_cast<int64_t>(std::max(std::trunc(center - reach + T(0.5)), T(0)));
  const auto high = static_cast<int64_t>(std::min(std::trunc(center + reach + T(0.5)), end));
  const auto weight_of = [&](int64_t input) {
    const T distance = std::abs((static_cast<T>(input) - center + T(0.5)) / stretch);
    return cubic ? cubic_weight(distance, T(-0.5)) : std::max(1 - distance, T(0));
  };
  T total = 0;
  for (int64_t i = low; i < high; ++i) total += weight_of(i);
  for (int64_t i = low; i < high; ++i) f(i, weight_of(i) / total);
}

// f(input, weight) for the inputs of output i of dimension d.
template <class T, class F>
TAEDA_ANYWHERE void for_each_tap(const ResampleShape& s, int d, int64_t i, F&& f) {
  const int64_t in = s.in[d];
  const auto add = [&](int64_t input, T weight) {
    f(std::clamp<int64_t>(input, 0, in - 1), weight);
  };
  const auto whole = [](T x) { return static_cast<int64_t>(x); };
  const T apart = static_cast<T>(s.step[d]), last = static_cast<T>(in - 1);
  const T at = static_cast<T>(i), middle = (at + T(0.5)) * apart;
  switch (s.how) {
    case Resampling::Nearest: return add(whole(std::min(std::floor(at * apart), last)), 1);
    case Resampling::NearestExact: return add(whole(std::min(std::floor(middle), last)), 1);
    case Resampling::Linear: {
      const T from = s.corners ? at * apart : std::max(middle - T(0.5), T(0));
      const T low = std::min(std::floor(from), last), share = from - low;
      add(whole(low), 1 - share);
      return add(whole(low) + 1, share);
    }
    case Resampling::Cubic: {
      const T from = s.corners ? at * apart : middle - T(0.5), low = std::floor(from);
      for (int o = -1; o <= 2; ++o) {
        const T distance = std::abs(from - (low + static_cast<T>(o)));
        add(whole(low) + o, cubic_weight(distance, T(-0.75)));
      }
      return;
    }
    default: {
      const bool cubic = s.how == Resampling::CubicSmooth;
      for_each_smooth_tap(in, cubic, middle, std::max(apart, T(1)), f);
    }
  }
}

}  // namespace taeda
