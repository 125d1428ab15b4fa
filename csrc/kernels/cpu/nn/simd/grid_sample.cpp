#include "kernels/cpu/nn/simd/grid_sample.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <GridSampling How>
constexpr int kEach = How == GridSampling::Nearest  ? 1
                      : How == GridSampling::Linear ? 2
                                                    : 4;
template <GridSampling How, int Spatial>
constexpr int kTaps = (Spatial == 3 ? kEach<How> : 1) * kEach<How> * kEach<How>;

// As many points at once as make whole registers of what they read.
constexpr int kPoints = 16;

// What the coordinates of these points read along one dimension: offsets, -1 for nothing; weights,
// and the derivatives of these by the coordinate.
template <class T> struct Axis {
  int32_t offset[4][kPoints];
  T weight[4][kPoints], derivative[4][kPoints];
};

// As many integers as a register holds elements.
template <class T> using Indices = Vec<int32_t, kLanes<T>>;

template <class T> FN Vec<T> floor_of(Vec<T> v) {
  for (int i = 0; i < kLanes<T>; ++i) v[i] = static_cast<T>(__builtin_floor(v[i]));
  return v;
}
// To the nearest whole number, half to even.
template <class T> FN Vec<T> round_of(Vec<T> v) {
  for (int i = 0; i < kLanes<T>; ++i) v[i] = static_cast<T>(__builtin_rint(v[i]));
  return v;
}

// One dimension of an image.
struct Side {
  int64_t size;
  bool corners;
};

// Positions that lie outside brought inside; `speed` is how fast they move with the coordinate.
template <class T, GridOutside How> FN Vec<T> bring_inside(Vec<T> at, Vec<T>& speed, Side side) {
  using V = Vec<T>;
  if constexpr (How == GridOutside::Zeros) return at;
  if constexpr (How == GridOutside::Reflection) {
    const T low = side.corners ? T(0) : T(-0.5);
    const T span = static_cast<T>(side.corners ? side.size - 1 : side.size);
    if (span == 0) return speed = V{};
    const V past = at < low ? low - at : at - low, reflections = floor_of<T>(past / span),
            rest = past - reflections * span, half = reflections * T(0.5);
    const auto odd = floor_of<T>(half) != half;
    speed = (at < low) ^ odd ? -speed : speed;
    at = (odd ? span - rest : rest) + low;
  }
  const T high = static_cast<T>(side.size - 1);
  speed = (at <= 0) | (at >= high) ? V{} : speed;
  at = at <= 0 ? V{} : at;
  return at >= high ? V{} + high : at;
}

// The kernel of cubic convolution (Keys, 1981) with a = -3/4, and its derivative.
template <class V> FN V cubic_weight(V d, bool inner) {
  using T = ElementOf<V>;
  const T a = T(-0.75);
  return inner ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((d - 5) * d + 8) * d * a - 4 * a;
}
template <class V> FN V cubic_derivative(V d, bool inner) {
  using T = ElementOf<V>;
  const T a = T(-0.75);
  return inner ? (3 * (a + 2) * d - 2 * (a + 3)) * d : ((3 * d - 10) * d + 8) * a;
}

// One step of the index is `apart` elements.
template <bool Derivatives, class T, GridSampling How, GridOutside Beyond>
FN void axis_of(Side side, int64_t apart, const T* coordinate, Axis<T>& axis) {
  using V = Vec<T>;
  const T count = static_cast<T>(side.size), last = count - 1;
  const auto step = static_cast<int32_t>(apart);
  for (int p = 0; p < kPoints; p += kLanes<T>) {
    const V c = load(coordinate + p);
    V at = side.corners ? (c + 1) / 2 * last : ((c + 1) * count - 1) / 2;
    V speed = V{} + (side.corners ? last : count) / 2;
    if constexpr (How != GridSampling::Cubic) at = bring_inside<T, Beyond>(at, speed, side);
    const V low = How == GridSampling::Nearest ? round_of<T>(at) : floor_of<T>(at);
    for (int o = 0; o < kEach<How>; ++o) {
      V position = low, weight = V{} + 1, derivative{};
      if constexpr (How == GridSampling::Linear) {
        position += static_cast<T>(o);
        weight = o == 0 ? low + 1 - at : at - low;
        derivative = o == 0 ? -speed : speed;
      } else if constexpr (How == GridSampling::Cubic) {
        position += static_cast<T>(o - 1);
        const bool inner = o == 1 || o == 2;
        const V d = o < 2 ? at - position : position - at;
        weight = cubic_weight(d, inner);
        derivative = cubic_derivative(d, inner) * (o < 2 ? speed : -speed);
        V unused{};
        position = bring_inside<T, Beyond>(position, unused, side);
      }
      const V near = min(max(position, V{}), V{} + last);  // 0 of NaN
      const auto outside = near != position;
      store(axis.offset[o] + p, convert<int32_t>(near) * step | convert<int32_t>(outside));
      store(axis.weight[o] + p, weight);
      if constexpr (Derivatives) store(axis.derivative[o] + p, derivative);
    }
  }
}

template <bool Derivatives, class T, GridSampling How>
void axis_of(const GridSampler& s, int64_t size, int64_t apart, const T* coordinate,
             Axis<T>& axis) {
  const Side side{size, s.corners};
  switch (s.outside) {
    case GridOutside::Zeros:
      return axis_of<Derivatives, T, How, GridOutside::Zeros>(side, apart, coordinate, axis);
    case GridOutside::Border:
      return axis_of<Derivatives, T, How, GridOutside::Border>(side, apart, coordinate, axis);
    case GridOutside::Reflection:
      return axis_of<Derivatives, T, How, GridOutside::Reflection>(side, apart, coordinate, axis);
  }
}

// What `many` points read: tap t of point p is at [t][p].
template <class T, GridSampling How, int Spatial, bool Derivatives = false> struct Block {
  static constexpr int kEach = TAEDA_ISA::kEach<How>;
  Axis<T> axes[Spatial];  // the slowest dimension first
  int32_t index[kTaps<How, Spatial>][kPoints], inside[kTaps<How, Spatial>][kPoints];
  T weight[kTaps<How, Spatial>][kPoints];

  // What lies outside has no weight, and is at `nothing`.
  void read(const GridSampler& s, const T* grid, int many, int64_t width, int32_t nothing) {
    using V = Vec<T>;
    using Mask = decltype(V{} < V{});
    T coordinate[Spatial][kPoints];
    // The last one repeated: fewer are no case of their own.
    const bool whole = Spatial == 2 && many == kPoints;
    for (int p = 0; !whole && p < kPoints; ++p) {
      const T* from = grid + (p < many ? p : many - 1) * Spatial;
      for (int d = 0; d < Spatial; ++d) coordinate[d][p] = from[Spatial - 1 - d];
    }
    // By whole registers: loads would wait long for what several stores wrote.
    for (int p = 0; whole && p < kPoints; p += kLanes<T>) {
      const V a = load(grid + 2 * p), b = load(grid + 2 * p + kLanes<T>);
      store(coordinate[0] + p, odd_lanes(a, b));
      store(coordinate[1] + p, even_lanes(a, b));
    }
    int64_t apart = width;
    for (int d = Spatial - 1; d >= 0; --d) {
      axis_of<Derivatives, T, How>(s, s.in[d], apart, coordinate[d], axes[d]);
      apart *= s.in[d];
    }
    for (int t = 0; t < kTaps<How, Spatial>; ++t) {
      for (int p = 0; p < kPoints; p += kLanes<T>) {
        Indices<T> sign{}, at{};
        V w = V{} + 1;
        for (int d = 0; d < Spatial; ++d) {
          const auto offset = load<kLanes<T>>(axes[d].offset[tap_of(t, d)] + p);
          sign |= offset;
          at += offset;
          w *= load(axes[d].weight[tap_of(t, d)] + p);
        }
        const Indices<T> outside = sign < 0;
        const Indices<T> kept = at & ~outside;
        store(index[t] + p, kept | (outside & nothing));
        store(inside[t] + p, kept);
        store(weight[t] + p, (Mask)convert<ElementOf<Mask>>(outside) ? V{} : w);
      }
    }
  }
  // The number along dimension d of tap t.
  FN static int tap_of(int t, int d) {
    for (int k = d + 1; k < Spatial; ++k) t /= kEach;
    return t % kEach;
  }
  // Of N points, the derivative of a weight by the coordinate of dimension d.
  template <int64_t N> FN Vec<T, N> derivative(int t, int p, int d) const {
    Vec<T, N> product = broadcast_to<T, N>(1);
    for (int k = 0; k < Spatial; ++k)
      product *= load<N>((k == d ? axes[k].derivative : axes[k].weight)[tap_of(t, k)] + p);
    return product;
  }
  // The elements of a plane that tap t of a register of points reads, where index is -1 for
  // nothing.
  FN Vec<T> elements(const T* plane, int t, int p) const {
    using Mask = ElementOf<decltype(Vec<T>{} < Vec<T>{})>;
    const auto outside = convert<Mask>(load<kLanes<T>>(index[t] + p) < 0);
    return (Vec<Mask, kLanes<T>>)outside ? Vec<T>{} : gather(plane, inside[t] + p);
  }
};

// f(the first of up to kPoints points, how many)
template <class F> FN void each_block(int64_t begin, int64_t end, F&& f) {
  for (int64_t first = begin; first < end; first += kPoints)
    f(first, static_cast<int>(end - first < kPoints ? end - first : kPoints));
}

template <class T, GridSampling How, int Spatial>
int64_t taps(const GridSampler& s, const T* grid, int64_t* first, int32_t* index, T* weight,
             T* derivatives) {
  Block<T, How, Spatial, true> block;
  int64_t n = 0;
  first[0] = 0;
  each_block(0, s.points, [&](int64_t begin, int many) {
    block.read(s, grid + begin * Spatial, many, 1, -1);
    for (int p = 0; p < many; ++p) {
      for (int t = 0; t < kTaps<How, Spatial>; ++t) {
        if (block.index[t][p] < 0) continue;
        index[n] = block.index[t][p];
        weight[n] = block.weight[t][p];
        for (int d = 0; derivatives && d < Spatial; ++d)
          derivatives[n * Spatial + d] = block.template derivative<1>(t, p, Spatial - 1 - d);
        ++n;
      }
      first[begin + p + 1] = n;
    }
  });
  return n;
}

// N channels of one point.
template <int64_t N, int Taps, class T>
FN void sum_channels(const T* x, const int32_t (*index)[kPoints], const T (*weight)[kPoints], int p,
                     T* y) {
  Vec<T, N> sum{};
  for (int t = 0; t < Taps; ++t) sum += load<N>(x + index[t][p]) * broadcast_to<T, N>(weight[t][p]);
  store(y, sum);
}

template <class T, GridSampling How, int Spatial>
void rows(const GridSampler& s, const T* x, int64_t width, const T* grid, int64_t begin,
          int64_t end, T* y) {
  constexpr int taps = kTaps<How, Spatial>;
  constexpr int64_t small = 16 / sizeof(T), large = kLanes<T>;
  int64_t elements = width;
  for (int d = 0; d < Spatial; ++d) elements *= s.in[d];
  Block<T, How, Spatial> block;
  each_block(begin, end, [&](int64_t first, int many) {
    block.read(s, grid + first * Spatial, many, width, static_cast<int32_t>(elements));
    for (int p = 0; p < many; ++p, y += width) {
      int64_t c = 0;
      for (; c + large <= width; c += large)
        sum_channels<large, taps>(x + c, block.index, block.weight, p, y + c);
      for (; c < width; c += small)
        sum_channels<small, taps>(x + c, block.index, block.weight, p, y + c);
    }
  });
}

int64_t volume_of(const GridSampler& s) {
  return s.in[0] * s.in[1] * (s.spatial == 3 ? s.in[2] : 1);
}

template <class T, GridSampling How, int Spatial>
void planes(const GridSampler& s, const T* x, const T* grid, int64_t begin, int64_t end, T* y) {
  const int64_t volume = volume_of(s);
  Block<T, How, Spatial> block;
  each_block(begin, end, [&](int64_t first, int many) {
    block.read(s, grid + first * Spatial, many, 1, -1);
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int p = 0; p < many; p += kLanes<T>) {
        Vec<T> sum{};
        for (int t = 0; t < kTaps<How, Spatial>; ++t)
          sum += block.elements(x + c * volume, t, p) * load(block.weight[t] + p);
        FirstLanes<T>(many - p < kLanes<T> ? many - p : kLanes<T>)
            .store(y + c * s.points + first + p, sum);
      }
    }
  });
}

template <class T, GridSampling How, int Spatial>
void planes_input(const GridSampler& s, const T* gy, const T* grid, int64_t begin, int64_t end,
                  T* gx) {
  const int64_t volume = volume_of(s);
  Block<T, How, Spatial> block;
  each_block(0, s.points, [&](int64_t first, int many) {
    block.read(s, grid + first * Spatial, many, 1, -1);
    for (int64_t c = begin; c < end; ++c) {
      const T* g = gy + c * s.points + first;
      T* plane = gx + c * volume;
      for (int p = 0; p < many; ++p) {
        for (int t = 0; t < kTaps<How, Spatial>; ++t) {
          if (block.index[t][p] >= 0) plane[block.inside[t][p]] += g[p] * block.weight[t][p];
        }
      }
    }
  });
}

template <class T, GridSampling How, int Spatial>
void planes_grid(const GridSampler& s, const T* gy, const T* x, const T* grid, int64_t begin,
                 int64_t end, T* ggrid) {
  const int64_t volume = volume_of(s);
  Block<T, How, Spatial, true> block;
  each_block(begin, end, [&](int64_t first, int many) {
    block.read(s, grid + first * Spatial, many, 1, -1);
    for (int p = 0; p < many; p += kLanes<T>) {
      const FirstLanes<T> lanes(many - p < kLanes<T> ? many - p : kLanes<T>);
      Vec<T> sums[Spatial] = {};
      for (int t = 0; t < kTaps<How, Spatial>; ++t) {
        Vec<T> product{};
        for (int64_t c = 0; c < s.channels; ++c)
          product +=
              block.elements(x + c * volume, t, p) * lanes.load(gy + c * s.points + first + p);
        for (int d = 0; d < Spatial; ++d)
          sums[d] += product * block.template derivative<kLanes<T>>(t, p, Spatial - 1 - d);
      }
      for (int i = p; i < many && i < p + kLanes<T>; ++i) {
        for (int d = 0; d < Spatial; ++d) ggrid[(first + i) * Spatial + d] = sums[d][i - p];
      }
    }
  });
}

template <class T, GridSampling How, int Spatial>
constexpr GridLoops<T> kLoops{taps<T, How, Spatial>, rows<T, How, Spatial>, planes<T, How, Spatial>,
                              planes_input<T, How, Spatial>, planes_grid<T, How, Spatial>};
template <class T>
constexpr GridTable<T> kTable{
    {{kLoops<T, GridSampling::Linear, 2>, kLoops<T, GridSampling::Linear, 3>},
     {kLoops<T, GridSampling::Nearest, 2>, kLoops<T, GridSampling::Nearest, 3>},
     {kLoops<T, GridSampling::Cubic, 2>, {}}}};

}  // namespace

extern const ForFloats<GridTable> grid_kernels{kTable<float>, kTable<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
