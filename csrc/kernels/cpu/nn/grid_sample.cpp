#include "kernels/grid_sample.h"

#include <algorithm>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/common/transpose.h"
#include "kernels/cpu/nn/simd/grid_sample.h"
#include "kernels/cpu/nn/taps.h"

namespace taeda::cpu {
namespace {

template <class T> const simd::GridLoops<T>& grid_loops(const GridSampler& s) {
  return typed<T>(TAEDA_PICK(grid_kernels)).of(s);
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
      grid_loops<T>(s).taps(s, grid, taps.first.data(), taps.index.data(), taps.weight.data(),
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
  else parallel_for(s.images, 2048 / std::max<int64_t>(s.points, 1), run);
}

int64_t image_size(const GridSampler& s) {
  int64_t n = s.channels;
  for (int d = 0; d < s.spatial; ++d) n *= s.in[d];
  return n;
}

// Of images that a cache of a core's own holds.
template <class T> bool is_near(const GridSampler& s) {
  return (image_size(s) + s.channels) * static_cast<int64_t>(sizeof(T)) <= (1 << 18);
}
// Few channels make no long rows: then points of a plane, side by side, are faster.
template <class T> bool prefers_planes(const GridSampler& s, bool gradient) {
  return s.channels <= 8 || (!gradient && is_near<T>(s));
}

// Some points of an image.
struct Part {
  static constexpr int64_t kPoints = 256;
  int64_t image, first, last;
};
// f(numbers of the first part and behind the last one), `least` of an image at once.
template <class F> void for_parts(const GridSampler& s, int64_t least, F&& f) {
  const int64_t parts = (s.points + Part::kPoints - 1) / Part::kPoints;
  const int64_t work = std::min(Part::kPoints, s.points) * (s.channels + 16);
  const int64_t grain = std::max<int64_t>(16384 / work, std::min(parts, least));
  parallel_for(s.images * parts, grain, std::forward<F>(f));
}
Part part_of(const GridSampler& s, int64_t number) {
  const int64_t parts = (s.points + Part::kPoints - 1) / Part::kPoints;
  const int64_t first = number % parts * Part::kPoints;
  return {number / parts, first, std::min(first + Part::kPoints, s.points)};
}

// By rows of all channels, into which each thread transposes the images.
template <class T> void sample_by_rows(const GridSampler& s, const T* x, const T* grid, T* y) {
  constexpr int64_t piece = 16 / sizeof(T);  // channels
  const int64_t size = image_size(s), elements = size / s.channels;
  const int64_t width = (s.channels + piece - 1) / piece * piece, volume = (elements + 1) * width;
  for_parts(s, 1 + elements / Part::kPoints, [&](int64_t begin, int64_t end) {
    const Scratch<T> rows(volume), sums(Part::kPoints * width);
    for (int64_t t = begin; t < end; ++t) {
      const auto [i, first, last] = part_of(s, t);
      T* to = y + i * s.points * s.channels;
      if (t == begin || first == 0) {
        std::fill(rows.data() + (width == s.channels ? elements * width : 0), rows.data() + volume,
                  T(0));
        transpose(x + i * size, elements, s.channels, elements, rows.data(), width);
      }
      grid_loops<T>(s).rows(s, rows.data(), width, grid + i * s.points * s.spatial, first, last,
                            sums.data());
      transpose(sums.data(), width, last - first, s.channels, to + first, s.points);
    }
  });
}

template <class T> void sample(const GridSampler& s, const T* x, const T* grid, T* y) {
  if (s.planes && s.channels > 4 && s.how != GridSampling::Nearest && is_near<T>(s))
    return sample_by_rows(s, x, grid, y);
  const int64_t size = image_size(s), in = s.points * s.spatial, out = s.points * s.channels;
  if (s.planes) {
    for_parts(s, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const auto [i, first, last] = part_of(s, t);
        grid_loops<T>(s).planes(s, x + i * size, grid + i * in, first, last, y + i * out);
      }
    });
    return;
  }
  each_image(s, [&](int64_t i) {
    taps_of<T>(s, grid + i * in, nullptr).apply(1, s.channels, x + i * size, y + i * out);
  });
}

template <class T> void input_gradient(const GridSampler& s, const T* gy, const T* grid, T* gx) {
  const int64_t size = image_size(s), in = s.points * s.spatial, out = s.points * s.channels;
  if (s.planes) {
    const int64_t plane = size / s.channels;
    const int64_t grain = std::max<int64_t>(1, 16384 / (plane + s.points));
    parallel_for(s.images * s.channels, grain, [&](int64_t begin, int64_t end) {
      std::fill(gx + begin * plane, gx + end * plane, T(0));
      while (begin < end) {  // the planes of one image together
        const int64_t i = begin / s.channels, stop = std::min(end, (i + 1) * s.channels);
        grid_loops<T>(s).planes_input(s, gy + i * out, grid + i * in, begin - i * s.channels,
                                      stop - i * s.channels, gx + i * size);
        begin = stop;
      }
    });
    return;
  }
  each_image(s, [&](int64_t i) {
    const Taps<T> taps = taps_of<T>(s, grid + i * in, nullptr).transposed();
    taps.apply(1, s.channels, gy + i * out, gx + i * size);
  });
}

template <class T>
void grid_gradient(const GridSampler& s, const T* gy, const T* x, const T* grid, T* ggrid) {
  const int64_t size = image_size(s), in = s.points * s.spatial, out = s.points * s.channels;
  if (s.planes) {
    for_parts(s, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const auto [i, first, last] = part_of(s, t);
        grid_loops<T>(s).planes_grid(s, gy + i * out, x + i * size, grid + i * in, first, last,
                                     ggrid + i * in);
      }
    });
    return;
  }
  each_image(s, [&](int64_t i) {
    std::vector<T> derivatives;
    const Taps<T> taps = taps_of(s, grid + i * in, &derivatives);
    std::vector<T> products(taps.index.size());
    taps.multiply(s.channels, x + i * size, gy + i * out, products.data());
    T* g = ggrid + i * in;
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

TAEDA_FLOAT_KERNELS(GridSampleKernels, cpu::sample<T>, cpu::input_gradient<T>,
                    cpu::grid_gradient<T>, cpu::prefers_planes<T>)
