#include "kernels/grid_sample.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/nn/simd/grid_sample.h"
#include "kernels/cpu/nn/taps.h"
#include "kernels/cpu/pointwise/simd/transpose.h"

namespace taeda::cpu {
namespace {

template <class T> const simd::GridLoops<T>& grid_loops() {
  return typed<T>(TAEDA_PICK(grid_kernels));
}

template <class T>
Taps<T> taps_of(const GridSampler& s, const T* grid, std::vector<T>* derivatives) {
  const int64_t each = s.how == GridSampling::Nearest ? 1 : s.how == GridSampling::Linear ? 2 : 4;
  const auto most =
      static_cast<size_t>(s.points * (s.spatial == 2 ? each * each : each * each * each));
  Taps<T> taps;
  taps.in = s.in[0] * s.in[1] * (s.spatial == 3 ? s.in[2] : 1);
  taps.out = s.points;
  taps.first.resize(static_cast<size_t>(s.points) + 1);
  taps.index.resize(most);
  taps.weight.resize(most);
  if (derivatives) derivatives->resize(most * static_cast<size_t>(s.spatial));
  const auto count = static_cast<size_t>(
      grid_loops<T>().taps(s, grid, taps.first.data(), taps.index.data(), taps.weight.data(),
                           derivatives ? derivatives->data() : nullptr));
  taps.index.resize(count);
  taps.weight.resize(count);
  return taps;
}

// f(image), for several at once where there are enough of them; else what f does is cut up.
template <class F> void each_image(const GridSampler& s, F&& f) {
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  };
  if (s.images < 4) run(0, s.images);
  else parallel_for(s.images, std::max<int64_t>(1, 2048 / std::max<int64_t>(s.points, 1)), run);
}

int64_t image_size(const GridSampler& s) {
  int64_t n = s.channels;
  for (int d = 0; d < s.spatial; ++d) n *= s.in[d];
  return n;
}

template <class T> void sample(const GridSampler& s, const T* x, const T* grid, T* y) {
  each_image(s, [&](int64_t i) {
    const Taps<T> taps = taps_of<T>(s, grid + i * s.points * s.spatial, nullptr);
    taps.apply(1, s.channels, x + i * image_size(s), y + i * s.points * s.channels);
  });
}

// Of images that a cache of a core's own holds.
template <class T> bool prefers_planes(const GridSampler& s) {
  return (image_size(s) + s.channels) * static_cast<int64_t>(sizeof(T)) <= (1 << 18);
}

template <class T> void sample_planes(const GridSampler& s, const T* x, const T* grid, T* y) {
  constexpr int64_t part = 256, item = sizeof(T), piece = 16 / item;  // points; channels
  const int64_t parts = (s.points + part - 1) / part, size = image_size(s);
  const int64_t elements = size / s.channels;
  const int64_t width = (s.channels + piece - 1) / piece * piece, volume = (elements + 1) * width;
  const auto& loops = grid_loops<T>();
  const auto& kernels = TAEDA_PICK(transpose_kernels);
  const simd::Transpose transpose = item == 4 ? kernels.bytes4 : kernels.bytes8;
  // Each thread makes its own rows of an image's channels: for at least as many points as those.
  const int64_t work = std::min(part, s.points) * (s.channels + 16);
  const int64_t grain = std::max<int64_t>(16384 / work, std::min(parts, 1 + elements / part));
  parallel_for(s.images * parts, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    const bool direct = s.how == GridSampling::Nearest;
    const Scratch<T> rows(direct ? 0 : volume), sums(direct ? 0 : part * width);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / parts, first = t % parts * part,
                    last = std::min(first + part, s.points);
      const T *image = x + i * size, *grid_of = grid + i * s.points * s.spatial;
      T* to = y + i * s.points * s.channels;
      if (direct) {
        loops.nearest(s, image, grid_of, first, last, to);
        continue;
      }
      if (t == begin || first == 0) {
        std::fill(rows.data() + (width == s.channels ? elements * width : 0), rows.data() + volume,
                  T(0));
        transpose(reinterpret_cast<char*>(rows.data()), width * item,
                  reinterpret_cast<const char*>(image), elements * item, s.channels, elements);
      }
      loops.rows(s, rows.data(), width, grid_of, first, last, sums.data());
      transpose(reinterpret_cast<char*>(to + first), s.points * item,
                reinterpret_cast<const char*>(sums.data()), width * item, last - first, s.channels);
    }
  });
}

template <class T> void input_gradient(const GridSampler& s, const T* gy, const T* grid, T* gx) {
  each_image(s, [&](int64_t i) {
    const Taps<T> taps = taps_of<T>(s, grid + i * s.points * s.spatial, nullptr).transposed();
    taps.apply(1, s.channels, gy + i * s.points * s.channels, gx + i * image_size(s));
  });
}

template <class T>
void grid_gradient(const GridSampler& s, const T* gy, const T* x, const T* grid, T* ggrid) {
  each_image(s, [&](int64_t i) {
    std::vector<T> derivatives;
    const Taps<T> taps = taps_of(s, grid + i * s.points * s.spatial, &derivatives);
    std::vector<T> products(taps.index.size());
    taps.multiply(s.channels, x + i * image_size(s), gy + i * s.points * s.channels,
                  products.data());
    T* g = ggrid + i * s.points * s.spatial;
    for (size_t p = 0; p < static_cast<size_t>(s.points); ++p, g += s.spatial) {
      for (int d = 0; d < s.spatial; ++d) {
        T sum = 0;
        for (auto t = static_cast<size_t>(taps.first[p]);
             t < static_cast<size_t>(taps.first[p + 1]); ++t)
          sum += products[t] *
                 derivatives[t * static_cast<size_t>(s.spatial) + static_cast<size_t>(d)];
        g[d] = sum;
      }
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

namespace taeda {
template <class T>
const GridSampleKernels<T> GridSampleKernels<T>::cpu = {
    cpu::sample<T>, cpu::prefers_planes<T>, cpu::sample_planes<T>, cpu::input_gradient<T>,
    cpu::grid_gradient<T>};
template struct GridSampleKernels<float>;
template struct GridSampleKernels<double>;
}  // namespace taeda
