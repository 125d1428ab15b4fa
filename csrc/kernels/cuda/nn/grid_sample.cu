// Values of images at given points, and the gradients of that. That of the image is gathered: the
// elements that points read are sorted by place, and one thread adds up what an element gets, in
// the order of the points.
#include "kernels/grid_sample.h"

#include <cmath>

#include "kernels/cuda/common/find.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

template <GridSampling How>
constexpr int kEach = How == GridSampling::Nearest  ? 1
                      : How == GridSampling::Linear ? 2
                                                    : 4;

// What a coordinate reads along one dimension: positions, -1 for nothing; weights, and the
// derivatives of these by the coordinate.
template <class T, int Each> struct Axis {
  int32_t position[Each];
  T weight[Each], derivative[Each];
};

// A position that lies outside, brought inside; `speed` is how fast it moves with the coordinate.
template <class T>
__device__ T bring_inside(T at, T& speed, int64_t size, GridOutside how, bool corners) {
  if (how == GridOutside::Zeros) return at;
  if (how == GridOutside::Reflection) {
    const T low = corners ? T(0) : T(-0.5), span = static_cast<T>(corners ? size - 1 : size);
    if (span == 0) return speed = T(0);
    const T past = ::fabs(at - low), reflections = ::floor(past / span),
            rest = past - reflections * span, half = reflections * T(0.5);
    const bool is_odd = ::floor(half) != half;
    if ((at < low) != is_odd) speed = -speed;
    at = (is_odd ? span - rest : rest) + low;
  }
  const T high = static_cast<T>(size - 1);
  if (at <= 0 || at >= high) speed = 0;
  return at <= 0 ? T(0) : at >= high ? high : at;
}

// The kernel of cubic convolution (Keys, 1981) with a = -3/4, and its derivative.
template <class T> __device__ T cubic_weight(T d, bool inner) {
  const T a = T(-0.75);
  return inner ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((d - 5) * d + 8) * d * a - 4 * a;
}
template <class T> __device__ T cubic_derivative(T d, bool inner) {
  const T a = T(-0.75);
  return inner ? (3 * (a + 2) * d - 2 * (a + 3)) * d : ((3 * d - 10) * d + 8) * a;
}

template <GridSampling How, class T>
__device__ Axis<T, kEach<How>> axis_of(const GridSampler& s, int d, T coordinate) {
  const int64_t size = s.in[d];
  const T count = static_cast<T>(size), last = count - 1;
  T at = s.corners ? (coordinate + 1) / 2 * last : ((coordinate + 1) * count - 1) / 2;
  T speed = (s.corners ? last : count) / 2;
  if constexpr (How != GridSampling::Cubic)
    at = bring_inside(at, speed, size, s.outside, s.corners);
  const T low = How == GridSampling::Nearest ? ::rint(at) : ::floor(at);
  Axis<T, kEach<How>> axis;
#pragma unroll
  for (int o = 0; o < kEach<How>; ++o) {
    T position = low, weight = 1, derivative = 0;
    if constexpr (How == GridSampling::Linear) {
      position += static_cast<T>(o);
      weight = o == 0 ? low + 1 - at : at - low;
      derivative = o == 0 ? -speed : speed;
    } else if constexpr (How == GridSampling::Cubic) {
      position += static_cast<T>(o - 1);
      const bool inner = o == 1 || o == 2;
      const T distance = o < 2 ? at - position : position - at;
      weight = cubic_weight(distance, inner);
      derivative = cubic_derivative(distance, inner) * (o < 2 ? speed : -speed);
      T unused = 0;
      position = bring_inside(position, unused, size, s.outside, s.corners);
    }
    const bool is_inside = position >= 0 && position <= last;  // not NaN
    axis.position[o] = is_inside ? static_cast<int32_t>(position) : -1;
    axis.weight[o] = weight;
    axis.derivative[o] = derivative;
  }
  return axis;
}

// The elements of a plane that a point reads.
template <class T, GridSampling How, int Spatial> struct Taps {
  static constexpr int kEach = cuda::kEach<How>;
  static constexpr int kCount = (Spatial == 3 ? kEach : 1) * kEach * kEach;
  Axis<T, kEach> axes[Spatial];  // the slowest dimension first
  int32_t index[kCount];         // -1 for nothing
  T weight[kCount];

  __device__ Taps(const GridSampler& s, const T* point) {
#pragma unroll
    for (int d = 0; d < Spatial; ++d) axes[d] = axis_of<How, T>(s, d, point[Spatial - 1 - d]);
#pragma unroll
    for (int t = 0; t < kCount; ++t) {
      int32_t at = 0;
      T w = 1;
      bool is_inside = true;
#pragma unroll
      for (int d = 0; d < Spatial; ++d) {
        const int o = tap_of(t, d);
        is_inside &= axes[d].position[o] >= 0;
        at = at * static_cast<int32_t>(s.in[d]) + axes[d].position[o];
        w *= axes[d].weight[o];
      }
      index[t] = is_inside ? at : -1;
      weight[t] = w;
    }
  }
  // The number along dimension d of tap t.
  __device__ static constexpr int tap_of(int t, int d) {
    for (int k = d + 1; k < Spatial; ++k) t /= kEach;
    return t % kEach;
  }
  // Of a weight by the coordinate of dimension d.
  __device__ T derivative(int t, int d) const {
    T product = 1;
#pragma unroll
    for (int k = 0; k < Spatial; ++k)
      product *= (k == d ? axes[k].derivative : axes[k].weight)[tap_of(t, k)];
    return product;
  }
};

int64_t volume_of(const GridSampler& s) {
  return s.in[0] * s.in[1] * (s.spatial == 3 ? s.in[2] : 1);
}

// ---- values ----
// A thread has one point, and some channels of it.
constexpr int64_t kChannels = 4;

template <class T, GridSampling How, int Spatial>
void sample_as(const GridSampler& given, const T* x, const T* grid, T* y) {
  const GridSampler s = given;
  const int64_t volume = volume_of(s), parts = (s.channels + kChannels - 1) / kChannels;
  const Divisor by_points(s.points), by_parts(parts);
  each(s.images * parts * s.points, [=] __device__(int64_t i) {
    const int64_t point = by_points.divide(i), first = by_parts.divide(i) * kChannels, image = i;
    const Taps<T, How, Spatial> taps(s, grid + (image * s.points + point) * Spatial);
    const int64_t last = first + kChannels < s.channels ? first + kChannels : s.channels;
    for (int64_t c = first; c < last; ++c) {
      const T* plane = x + (image * s.channels + c) * volume;
      T sum = 0;
#pragma unroll
      for (int t = 0; t < taps.kCount; ++t)
        if (taps.index[t] >= 0) sum += plane[taps.index[t]] * taps.weight[t];
      y[(image * s.channels + c) * s.points + point] = sum;
    }
  });
}

// ---- the gradient of the image ----
// Of some images, all elements that their points read: `key` is which one of all images it is, or
// behind them for nothing; its place in the list says which point reads it.
template <class T, GridSampling How, int Spatial>
void list_taps(const GridSampler& given, int64_t images, const T* grid, uint32_t* key,
               uint32_t* place, T* weight) {
  const GridSampler s = given;
  const int64_t volume = volume_of(s), points = images * s.points;
  const auto nothing = static_cast<uint32_t>(images * volume);
  each(points, [=] __device__(int64_t i) {
    const Taps<T, How, Spatial> taps(s, grid + i * Spatial);
    const auto base = static_cast<uint32_t>(i / s.points * volume);
#pragma unroll
    for (int t = 0; t < taps.kCount; ++t) {
      const int64_t to = i * taps.kCount + t;
      key[to] = taps.index[t] < 0 ? nothing : base + static_cast<uint32_t>(taps.index[t]);
      place[to] = static_cast<uint32_t>(to);
      weight[to] = taps.weight[t];
    }
  });
}
// Where the taps of each element begin in the sorted list.
void find_starts(int64_t elements, int64_t taps, const uint32_t* sorted, uint32_t* start) {
  each(elements + 1, [=] __device__(int64_t i) {
    const int64_t first = first_behind(taps, [=](int64_t t) { return sorted[t] >= i; });
    start[i] = static_cast<uint32_t>(first);
  });
}
template <class T>
void gather_taps(const GridSampler& given, int64_t images, int taps, const uint32_t* start,
                 const uint32_t* order, const T* weight, const T* gy, T* gx) {
  const GridSampler s = given;
  const int64_t volume = volume_of(s);
  const Divisor by_volume(volume), by_channels(s.channels);
  each(images * s.channels * volume, [=] __device__(int64_t i) {
    const int64_t own = i;
    const int64_t at = by_volume.divide(i), channel = by_channels.divide(i), image = i;
    const T* g = gy + (image * s.channels + channel) * s.points - image * s.points;
    const int64_t element = image * volume + at;
    T sum = 0;
    for (uint32_t t = start[element]; t < start[element + 1]; ++t)
      sum += weight[order[t]] * g[order[t] / static_cast<uint32_t>(taps)];
    gx[own] = sum;
  });
}

template <class T, GridSampling How, int Spatial>
void input_gradient_as(const GridSampler& s, const T* gy, const T* grid, T* gx) {
  constexpr int each_point = Taps<T, How, Spatial>::kCount;
  constexpr int64_t most = int64_t{1} << 24;  // taps whose lists lie in memory at once
  const int64_t volume = volume_of(s), taps = s.points * each_point;
  if (taps >= kMostElements) missing_kernel();
  const int64_t together = std::clamp(
      std::min(most / std::max<int64_t>(taps, 1), kMostElements / volume), int64_t{1}, s.images);
  const int64_t count = together * taps, elements = together * volume;
  const Workspace lists(static_cast<size_t>(4 * count + elements + 1) * sizeof(uint32_t)),
      weights(static_cast<size_t>(count) * sizeof(T));
  auto* key = lists.as<uint32_t>();
  uint32_t *place = key + count, *sorted = place + count, *order = sorted + count,
           *start = order + count;
  for (int64_t first = 0; first < s.images; first += together) {
    const int64_t images = std::min(together, s.images - first), n = images * taps;
    list_taps<T, How, Spatial>(s, images, grid + first * s.points * Spatial, key, place,
                               weights.as<T>());
    if (n > 0) {
      const int bits = std::bit_width(static_cast<uint32_t>(images * volume));
      sort_pairs(n, bits, key, sorted, place, order);
    }
    find_starts(images * volume, n, sorted, start);
    gather_taps(s, images, each_point, start, order, weights.as<T>(),
                gy + first * s.channels * s.points, gx + first * s.channels * volume);
  }
}

// ---- the gradient of the grid ----
template <class T, GridSampling How, int Spatial>
void grid_gradient_as(const GridSampler& given, const T* gy, const T* x, const T* grid, T* ggrid) {
  const GridSampler s = given;
  const int64_t volume = volume_of(s);
  const Divisor by_points(s.points);
  each(s.images * s.points, [=] __device__(int64_t i) {
    const Taps<T, How, Spatial> taps(s, grid + i * Spatial);
    int64_t image = i;
    const int64_t point = by_points.divide(image);
    T sums[Spatial] = {};
#pragma unroll
    for (int t = 0; t < taps.kCount; ++t) {
      if (taps.index[t] < 0) continue;
      T product = 0;
      for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c)
        product += x[c * volume + taps.index[t]] * gy[c * s.points + point];
#pragma unroll
      for (int d = 0; d < Spatial; ++d) sums[d] += product * taps.derivative(t, Spatial - 1 - d);
    }
#pragma unroll
    for (int d = 0; d < Spatial; ++d) ggrid[i * Spatial + d] = sums[d];
  });
}

// ---- of any kind ----
template <GridSampling How, int Spatial> struct Kind {};
// f(Kind)
template <class F> void visit_kind(const GridSampler& s, F&& f) {
  switch (s.how) {
    case GridSampling::Linear:
      return s.spatial == 2 ? f(Kind<GridSampling::Linear, 2>())
                            : f(Kind<GridSampling::Linear, 3>());
    case GridSampling::Nearest:
      return s.spatial == 2 ? f(Kind<GridSampling::Nearest, 2>())
                            : f(Kind<GridSampling::Nearest, 3>());
    case GridSampling::Cubic: return f(Kind<GridSampling::Cubic, 2>());
  }
}

template <class T> void sample(const GridSampler& s, const T* x, const T* grid, T* y) {
  visit_kind(s, [&]<GridSampling How, int Spatial>(Kind<How, Spatial>) {
    sample_as<T, How, Spatial>(s, x, grid, y);
  });
}
template <class T> void input_gradient(const GridSampler& s, const T* gy, const T* grid, T* gx) {
  visit_kind(s, [&]<GridSampling How, int Spatial>(Kind<How, Spatial>) {
    input_gradient_as<T, How, Spatial>(s, gy, grid, gx);
  });
}
template <class T>
void grid_gradient(const GridSampler& s, const T* gy, const T* x, const T* grid, T* ggrid) {
  visit_kind(s, [&]<GridSampling How, int Spatial>(Kind<How, Spatial>) {
    grid_gradient_as<T, How, Spatial>(s, gy, x, grid, ggrid);
  });
}
bool prefers_planes(const GridSampler&, bool) { return true; }

template <class T>
const GridSampleKernels<T> table{sample<T>, input_gradient<T>, grid_gradient<T>, prefers_planes};

}  // namespace

void add_grid_sample_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
