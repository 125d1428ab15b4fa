#include "kernels/cpu/simd/grid_sample.h"

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

}  // namespace

extern const GridKernels grid_kernels{taps<float>, taps<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
