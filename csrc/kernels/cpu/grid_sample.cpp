#include "kernels/cpu/grid_sample.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/simd/grid_sample.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace simd {
namespace {
GridTaps<float> taps(const float*) { return TAEDA_PICK(grid_kernels).f32; }
GridTaps<double> taps(const double*) { return TAEDA_PICK(grid_kernels).f64; }
}  // namespace
}  // namespace simd

namespace {

template <class T> Taps<T> taps_of(const Sampler& s, const T* grid, std::vector<T>* slopes) {
  const int64_t each = s.how == Sampling::Nearest ? 1 : s.how == Sampling::Linear ? 2 : 4;
  const auto most =
      static_cast<size_t>(s.points * (s.spatial == 2 ? each * each : each * each * each));
  Taps<T> taps;
  taps.in = s.in[0] * s.in[1] * (s.spatial == 3 ? s.in[2] : 1);
  taps.out = s.points;
  taps.first.resize(static_cast<size_t>(s.points) + 1);
  taps.place.resize(most);
  taps.weight.resize(most);
  if (slopes) slopes->resize(most * static_cast<size_t>(s.spatial));
  const auto count =
      static_cast<size_t>(simd::taps(grid)(s, grid, taps.first.data(), taps.place.data(),
                                           taps.weight.data(), slopes ? slopes->data() : nullptr));
  taps.place.resize(count);
  taps.weight.resize(count);
  return taps;
}

// f(image), for several at once where there are enough of them; else what f does is cut up.
template <class F> void each_image(const Sampler& s, F&& f) {
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  };
  if (s.images < 4) run(0, s.images);
  else parallel_for(s.images, std::max<int64_t>(1, 2048 / std::max<int64_t>(s.points, 1)), run);
}

int64_t image_size(const Sampler& s) {
  int64_t n = s.channels;
  for (int d = 0; d < s.spatial; ++d) n *= s.in[d];
  return n;
}

}  // namespace

template <class T> void grid_sample(const Sampler& s, const T* x, const T* grid, T* y) {
  each_image(s, [&](int64_t i) {
    const Taps<T> taps = taps_of<T>(s, grid + i * s.points * s.spatial, nullptr);
    apply_taps(taps, 1, s.channels, x + i * image_size(s), y + i * s.points * s.channels);
  });
}

template <class T> void grid_sample_input(const Sampler& s, const T* gy, const T* grid, T* gx) {
  each_image(s, [&](int64_t i) {
    const Taps<T> taps = transposed(taps_of<T>(s, grid + i * s.points * s.spatial, nullptr));
    apply_taps(taps, 1, s.channels, gy + i * s.points * s.channels, gx + i * image_size(s));
  });
}

template <class T>
void grid_sample_places(const Sampler& s, const T* gy, const T* x, const T* grid, T* ggrid) {
  each_image(s, [&](int64_t i) {
    std::vector<T> slopes;
    const Taps<T> taps = taps_of(s, grid + i * s.points * s.spatial, &slopes);
    std::vector<T> products(taps.place.size());
    multiply_taps(taps, s.channels, x + i * image_size(s), gy + i * s.points * s.channels,
                  products.data());
    T* g = ggrid + i * s.points * s.spatial;
    for (size_t p = 0; p < static_cast<size_t>(s.points); ++p, g += s.spatial) {
      for (int d = 0; d < s.spatial; ++d) {
        T sum = 0;
        for (auto t = static_cast<size_t>(taps.first[p]);
             t < static_cast<size_t>(taps.first[p + 1]); ++t)
          sum += products[t] * slopes[t * static_cast<size_t>(s.spatial) + static_cast<size_t>(d)];
        g[d] = sum;
      }
    }
  });
}

template void grid_sample(const Sampler&, const float*, const float*, float*);
template void grid_sample(const Sampler&, const double*, const double*, double*);
template void grid_sample_input(const Sampler&, const float*, const float*, float*);
template void grid_sample_input(const Sampler&, const double*, const double*, double*);
template void grid_sample_places(const Sampler&, const float*, const float*, const float*, float*);
template void grid_sample_places(const Sampler&, const double*, const double*, const double*,
                                 double*);

}  // namespace taeda::cpu
