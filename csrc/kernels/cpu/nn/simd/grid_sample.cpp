#include "kernels/cpu/nn/simd/grid_sample.h"

#include "kernels/cpu/simd/vec.h"
#include "kernels/functors_elementary.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// What one coordinate reads along its dimension: `many` elements (-1: none), with their weights and
// the derivatives of these.
template <class T> struct Axis {
  int many;
  int64_t index[4];
  T weight[4], slope[4];
};

// A place, and how fast it moves with the coordinate.
template <class T> struct Place {
  T at, speed;
};

template <class T> FN Place<T> bring_inside(Place<T> p, int64_t n, Outside outside, bool corners) {
  if (outside == Outside::Zeros) return p;
  if (outside == Outside::Reflection) {
    const T low = corners ? T(0) : T(-0.5), span = static_cast<T>(corners ? n - 1 : n);
    if (span == 0) return {0, 0};
    T past = p.at - low;
    if (past < 0) {
      past = -past;
      p.speed = -p.speed;
    }
    const T turns = floor(past / span), rest = fmod(past, span);
    if (fmod(turns, T(2)) == 0) {
      p.at = rest + low;
    } else {
      p.at = span - rest + low;
      p.speed = -p.speed;
    }
  }
  const T high = static_cast<T>(n - 1);
  if (p.at <= 0) return {0, 0};
  if (p.at >= high) return {high, 0};
  return p;
}

template <class T> FN int64_t index_of(T place, int64_t n) {
  return place >= 0 && place <= static_cast<T>(n - 1) ? static_cast<int64_t>(place) : -1;
}

// The kernel of cubic convolution (Keys, 1981) with a = -3/4, and its derivative.
template <class T> FN void cubic(T offset, T speed, T& weight, T& slope) {
  const T a = T(-0.75), d = abs(offset);
  if (d <= 1) {
    weight = ((a + 2) * d - (a + 3)) * d * d + 1;
    slope = (3 * (a + 2) * d - 2 * (a + 3)) * d;
  } else if (d < 2) {
    weight = ((d - 5) * d + 8) * d * a - 4 * a;
    slope = ((3 * d - 10) * d + 8) * a;
  } else {
    weight = slope = 0;
  }
  slope *= offset < 0 ? -speed : speed;
}

template <class T> FN Axis<T> axis_of(const Sampler& s, int64_t n, T coordinate) {
  const T count = static_cast<T>(n);
  Place<T> p = s.corners ? Place<T>{(coordinate + 1) / 2 * (count - 1), (count - 1) / 2}
                         : Place<T>{((coordinate + 1) * count - 1) / 2, count / 2};
  if (s.how != Sampling::Cubic) p = bring_inside(p, n, s.outside, s.corners);
  if (s.how == Sampling::Nearest) return {1, {index_of(round(p.at), n)}, {1}, {0}};
  const T low = floor(p.at);
  if (s.how == Sampling::Linear) {
    return {2,
            {index_of(low, n), index_of(low + 1, n)},
            {low + 1 - p.at, p.at - low},
            {-p.speed, p.speed}};
  }
  Axis<T> axis{4, {}, {}, {}};
  for (int o = 0; o < 4; ++o) {
    const T tap = low + static_cast<T>(o - 1);
    axis.index[o] = index_of(bring_inside<T>({tap, 0}, n, s.outside, s.corners).at, n);
    cubic(p.at - tap, p.speed, axis.weight[o], axis.slope[o]);
  }
  return axis;
}

template <class T>
int64_t taps(const Sampler& s, const T* grid, int64_t* first, int32_t* place, T* weight,
             T* slopes) {
  int64_t n = 0;
  first[0] = 0;
  for (int64_t p = 0; p < s.points; ++p, grid += s.spatial) {
    // Axis 0 is the slowest; two dimensions have one more before them that reads its only element.
    Axis<T> z{1, {0}, {1}, {0}};
    if (s.spatial == 3) z = axis_of(s, s.in[0], grid[2]);
    const Axis<T> y = axis_of(s, s.in[s.spatial - 2], grid[1]),
                  x = axis_of(s, s.in[s.spatial - 1], grid[0]);
    for (int i = 0; i < z.many; ++i) {
      for (int j = 0; j < y.many; ++j) {
        for (int k = 0; k < x.many; ++k) {
          if (z.index[i] < 0 || y.index[j] < 0 || x.index[k] < 0) continue;
          place[n] = static_cast<int32_t>(
              (z.index[i] * s.in[s.spatial - 2] + y.index[j]) * s.in[s.spatial - 1] + x.index[k]);
          weight[n] = z.weight[i] * y.weight[j] * x.weight[k];
          if (slopes) {
            T* slope = slopes + n * s.spatial;
            slope[0] = z.weight[i] * y.weight[j] * x.slope[k];
            slope[1] = z.weight[i] * y.slope[j] * x.weight[k];
            if (s.spatial == 3) slope[2] = z.slope[i] * y.weight[j] * x.weight[k];
          }
          ++n;
        }
      }
    }
    first[p + 1] = n;
  }
  return n;
}

template <Sampling How>
constexpr int kEach = How == Sampling::Nearest  ? 1
                      : How == Sampling::Linear ? 2
                                                : 4;

// As many points at once as make whole registers of what they read.
constexpr int kPoints = 16;

// What the coordinates of these points read along one dimension, of which one step is `apart`
// elements: -1 for nothing.
template <class T> struct Axes {
  int32_t index[4][kPoints];
  T weight[4][kPoints];
};

// As many indices as a register holds elements.
template <class T> using Indices = Vec<int32_t, kLanes<T>>;

// To the nearest whole number, half to even, of numbers below 2^22.
template <class T, class V> FN V nearest_whole(V v) {
  constexpr T shift = sizeof(T) == 4 ? T(12582912) : T(6755399441055744);  // 1.5 * 2^23, 2^52
  return (v + shift) - shift;
}
template <class T, class V> FN V below(V v) {
  const V whole = nearest_whole<T>(v);
  return whole > v ? whole - 1 : whole;
}
template <class V, class T> FN V within(V v, T low, T high) {  // leaves NaN as it is
  v = v <= low ? V{} + low : v;
  return v >= high ? V{} + high : v;
}

// Of an image of less than 2^20 elements a side, with nothing or its border outside.
template <class T, Sampling How, bool Border>
FN void axes_of(int64_t size, int64_t apart, bool corners, const T* coordinate, Axes<T>& axes) {
  using V = Vec<T>;
  constexpr int each = kEach<How>;
  const T count = static_cast<T>(size), last = count - 1;
  const auto step = static_cast<int32_t>(apart);
  for (int p = 0; p < kPoints; p += kLanes<T>) {
    const V c = load(coordinate + p);
    V at = corners ? (c + 1) / 2 * last : ((c + 1) * count - 1) / 2;
    at = Border && How != Sampling::Cubic ? within(at, T(0), last)
                                          : within(at, T(-(1 << 21)), T(1 << 21));
    const V low = How == Sampling::Nearest ? nearest_whole<T>(at) : below<T>(at);
    for (int o = 0; o < each; ++o) {
      V place = low + static_cast<T>(How == Sampling::Cubic ? o - 1 : o), weight{};
      if constexpr (How == Sampling::Nearest) {
        weight += 1;
      } else if constexpr (How == Sampling::Linear) {
        weight = o == 0 ? low + 1 - at : at - low;
      } else {
        const T a = T(-0.75);
        const V d = o < 2 ? at - place : place - at;
        weight = o == 1 || o == 2 ? ((a + 2) * d - (a + 3)) * d * d + 1
                                  : ((d - 5) * d + 8) * d * a - 4 * a;
        if (Border) place = within(place, T(0), last);
      }
      V near = place >= 0 ? place : V{};
      near = near <= last ? near : V{} + last;
      const auto outside = near != place;
      store(axes.index[o] + p, convert<int32_t>(near) * step | convert<int32_t>(outside));
      store(axes.weight[o] + p, weight);
    }
  }
}

// The same, point by point, of reflections.
template <class T>
void axes_of(const Sampler& s, int64_t size, int64_t apart, const T* coordinate, Axes<T>& axes) {
  for (int p = 0; p < kPoints; ++p) {
    const Axis<T> one = axis_of(s, size, coordinate[p]);
    for (int t = 0; t < one.many; ++t) {
      axes.index[t][p] = static_cast<int32_t>(one.index[t] < 0 ? -1 : one.index[t] * apart);
      axes.weight[t][p] = one.weight[t];
    }
  }
}

template <class T, Sampling How>
void axes_by(const Sampler& s, int64_t size, int64_t apart, const T* coordinate, Axes<T>& axes) {
  switch (s.outside) {
    case Outside::Zeros: return axes_of<T, How, false>(size, apart, s.corners, coordinate, axes);
    case Outside::Border: return axes_of<T, How, true>(size, apart, s.corners, coordinate, axes);
    case Outside::Reflection: return axes_of(s, size, apart, coordinate, axes);
  }
}

template <Sampling How, int Spatial>
constexpr int kTaps = (Spatial == 3 ? kEach<How> : 1) * kEach<How> * kEach<How>;

// Where the taps of `many` points lie, and their weights. Those that lie outside have none, and
// read what lies at `nothing`.
template <class T, Sampling How, int Spatial>
void taps_of(const Sampler& s, const T* grid, int many, int64_t width, int32_t nothing,
             int32_t (*place)[kPoints], T (*weight)[kPoints]) {
  using V = Vec<T>;
  using Mask = decltype(V{} < V{});
  constexpr int each = kEach<How>;
  Axes<T> axes[Spatial];  // the slowest dimension first
  T coordinate[Spatial][kPoints] = {};
  for (int p = 0; p < many; ++p) {
    for (int d = 0; d < Spatial; ++d) coordinate[d][p] = grid[p * Spatial + Spatial - 1 - d];
  }
  int64_t apart = width;
  for (int d = Spatial - 1; d >= 0; --d) {
    axes_by<T, How>(s, s.in[d], apart, coordinate[d], axes[d]);
    apart *= s.in[d];
  }
  const auto index = [&](int d, int t, int p) { return load<kLanes<T>>(axes[d].index[t] + p); };
  const auto share = [&](int d, int t, int p) { return load(axes[d].weight[t] + p); };
  for (int t = 0; t < kTaps<How, Spatial>; ++t) {
    const int i = t / (each * each), j = t / each % each, k = t % each;
    for (int p = 0; p < kPoints; p += kLanes<T>) {
      const Indices<T> y = index(Spatial - 2, j, p), x = index(Spatial - 1, k, p);
      Indices<T> sign = y | x, at = y + x;
      V w = share(Spatial - 2, j, p);
      if constexpr (Spatial == 3) {
        sign |= index(0, i, p);
        at += index(0, i, p);
        w = share(0, i, p) * w;
      }
      w *= share(Spatial - 1, k, p);
      const Indices<T> outside = sign < 0;
      store(place[t] + p, outside ? broadcast<Indices<T>>(nothing) : at);
      store(weight[t] + p, (Mask)convert<ElementOf<Mask>>(outside) ? V{} : w);
    }
  }
}

// N channels of one point.
template <int64_t N, int Taps, class T>
FN void sum_channels(const T* x, const int32_t (*place)[kPoints], const T (*weight)[kPoints], int p,
                     T* y) {
  Vec<T, N> sum{};
  for (int t = 0; t < Taps; ++t) sum += load<N>(x + place[t][p]) * broadcast_to<T, N>(weight[t][p]);
  store(y, sum);
}

template <class T, Sampling How, int Spatial>
void rows_by(const Sampler& s, const T* x, int64_t width, const T* grid, int64_t begin, int64_t end,
             T* y) {
  constexpr int taps = kTaps<How, Spatial>;
  constexpr int64_t small = 16 / sizeof(T), large = kLanes<T>;
  int64_t elements = width;
  for (int d = 0; d < Spatial; ++d) elements *= s.in[d];
  int32_t place[taps][kPoints];
  T weight[taps][kPoints];
  for (int64_t first = begin; first < end; first += kPoints) {
    const auto many = static_cast<int>(end - first < kPoints ? end - first : kPoints);
    taps_of<T, How, Spatial>(s, grid + first * Spatial, many, width, static_cast<int32_t>(elements),
                             place, weight);
    for (int p = 0; p < many; ++p, y += width) {
      int64_t c = 0;
      for (; c + large <= width; c += large)
        sum_channels<large, taps>(x + c, place, weight, p, y + c);
      for (; c < width; c += small) sum_channels<small, taps>(x + c, place, weight, p, y + c);
    }
  }
}

template <class T>
void rows(const Sampler& s, const T* x, int64_t width, const T* grid, int64_t begin, int64_t end,
          T* y) {
  if (s.how == Sampling::Cubic) rows_by<T, Sampling::Cubic, 2>(s, x, width, grid, begin, end, y);
  else if (s.spatial == 2) rows_by<T, Sampling::Linear, 2>(s, x, width, grid, begin, end, y);
  else rows_by<T, Sampling::Linear, 3>(s, x, width, grid, begin, end, y);
}

template <class T, int Spatial>
void nearest_by(const Sampler& s, const T* x, const T* grid, int64_t begin, int64_t end, T* y) {
  int64_t step = 1;
  for (int d = 0; d < Spatial; ++d) step *= s.in[d];
  int32_t place[1][kPoints];
  T weight[1][kPoints];
  for (int64_t first = begin; first < end; first += kPoints) {
    const auto many = static_cast<int>(end - first < kPoints ? end - first : kPoints);
    taps_of<T, Sampling::Nearest, Spatial>(s, grid + first * Spatial, many, 1, -1, place, weight);
    for (int64_t c = 0; c < s.channels; ++c) {
      const T* plane = x + c * step;
      T* to = y + c * s.points + first;
      for (int p = 0; p < many; ++p) to[p] = place[0][p] < 0 ? T(0) : plane[place[0][p]];
    }
  }
}

template <class T>
void nearest(const Sampler& s, const T* x, const T* grid, int64_t begin, int64_t end, T* y) {
  if (s.spatial == 2) nearest_by<T, 2>(s, x, grid, begin, end, y);
  else nearest_by<T, 3>(s, x, grid, begin, end, y);
}

template <class T> constexpr GridLoops<T> kLoops{taps<T>, rows<T>, nearest<T>};

}  // namespace

extern const GridKernels grid_kernels{kLoops<float>, kLoops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
