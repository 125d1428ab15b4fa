// Resizing by weighted sums, and the gradient of that. Small tables say, for each dimension, which
// inputs every output is made of; both directions read them, so that each element of a result is
// summed by one thread in a fixed order.
#include "kernels/resample.h"

#include <cmath>

#include "kernels/cuda/common/find.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/nn/tables.h"
#include "kernels/resample_taps.h"

namespace taeda::cuda {
namespace {

// Output o of a dimension is the sum of weight[o * width + k] * input[first[o] + k] for k <
// count[o]; input i is read by the outputs from readers[i] up to readers_end[i].
template <class T> struct Axis {
  int64_t in, out, width;
  int32_t *first, *count, *readers, *readers_end;
  T* weight;

  __device__ T weight_of(int64_t o, int64_t i) const { return weight[o * width + (i - first[o])]; }
};
template <class T> struct Axes {
  Axis<T> of[3];
};

// The most inputs that an output is made of.
int64_t most_taps(const ResampleShape& s, int d) {
  switch (s.how) {
    case Resampling::Nearest:
    case Resampling::NearestExact: return 1;
    case Resampling::Linear: return std::min<int64_t>(2, s.in[d]);
    case Resampling::Cubic: return std::min<int64_t>(4, s.in[d]);
    default: {
      const double reach = (s.how == Resampling::CubicSmooth ? 2 : 1) * std::max(s.step[d], 1.0);
      return std::min(static_cast<int64_t>(std::ceil(2 * reach)) + 2, s.in[d]);
    }
  }
}

template <class T>
__device__ void write_taps_of(const ResampleShape& s, int d, const Axis<T>& axis, int64_t o) {
  int64_t first = -1, last = -1;  // inputs come in ascending order, at the edges repeatedly
  T* weight = axis.weight + o * axis.width;
  for_each_tap<T>(s, d, o, [&](int64_t input, T w) {
    if (first < 0) first = input;
    if (input == last) weight[input - first] += w;
    else weight[input - first] = w;
    last = input;
  });
  axis.first[o] = static_cast<int32_t>(first < 0 ? 0 : first);
  axis.count[o] = static_cast<int32_t>(first < 0 ? 0 : last - first + 1);
}
template <class T> __device__ void write_readers_of(const Axis<T>& axis, int64_t i) {
  const auto put = [&](int32_t* to, auto is_behind) {
    to[i] = static_cast<int32_t>(first_behind(axis.out, is_behind));
  };
  put(axis.readers, [&](int64_t o) { return int64_t{axis.first[o]} + axis.count[o] > i; });
  put(axis.readers_end, [&](int64_t o) { return axis.first[o] > i; });
}

template <class T> void write_taps(const ResampleShape& given, const Axes<T>& to) {
  const ResampleShape s = given;
  const Axes<T> axes = to;
  const int64_t n0 = s.out[0], n1 = s.out[1];
  each(n0 + n1 + s.out[2], [=] __device__(int64_t i) {
    const int d = i < n0 ? 0 : i < n0 + n1 ? 1 : 2;
    write_taps_of(s, d, axes.of[d], i - (d > 0 ? n0 : 0) - (d > 1 ? n1 : 0));
  });
}
template <class T> void write_readers(const ResampleShape& s, const Axes<T>& to) {
  const Axes<T> axes = to;
  const int64_t n0 = s.in[0], n1 = s.in[1];
  each(n0 + n1 + s.in[2], [=] __device__(int64_t i) {
    const int d = i < n0 ? 0 : i < n0 + n1 ? 1 : 2;
    write_readers_of(axes.of[d], i - (d > 0 ? n0 : 0) - (d > 1 ? n1 : 0));
  });
}

// A shape of always three dimensions, and its tables.
template <class T> class Tables {
 public:
  Tables(const ResampleShape& given, bool with_readers)
      : s_(widened(given)),
        memory_(static_cast<size_t>(lay_out(nullptr))) {
    lay_out(memory_.as<char>());
    write_taps(s_, axes_);
    if (with_readers) write_readers(s_, axes_);
  }
  const Axes<T>& axes() const { return axes_; }
  const ResampleShape& shape() const { return s_; }

 private:
  static ResampleShape widened(ResampleShape s) {
    for (int d = 2; d >= 0; --d) {
      const int from = d - (3 - s.spatial);
      s.in[d] = from < 0 ? 1 : s.in[from];
      s.out[d] = from < 0 ? 1 : s.out[from];
      s.step[d] = from < 0 ? 1 : s.step[from];
    }
    s.spatial = 3;
    return s;
  }
  // Where the tables begin, behind one another; returns how many bytes they take.
  int64_t lay_out(char* memory) {
    int64_t bytes = 0;
    const auto take = [&]<class N>(N*& to, int64_t n) {
      to = reinterpret_cast<N*>(memory + bytes);
      bytes += (n * static_cast<int64_t>(sizeof(N)) + 7) / 8 * 8;
    };
    for (int d = 0; d < 3; ++d) {
      Axis<T>& a = axes_.of[d];
      a.in = s_.in[d];
      a.out = s_.out[d];
      a.width = most_taps(s_, d);
      take(a.weight, a.out * a.width);
      take(a.first, a.out);
      take(a.count, a.out);
      take(a.readers, a.in);
      take(a.readers_end, a.in);
    }
    return bytes;
  }

  Axes<T> axes_;
  ResampleShape s_;
  Workspace memory_;
};

// An element of (outer, n0, n1, n2, inner).
struct Place {
  int64_t at[3], outer, inner;
};
struct Places {
  Divisor sizes[3], by_inner;
  Places(const int64_t (&n)[3], int64_t inner)
      : sizes{Divisor(n[0]), Divisor(n[1]), Divisor(n[2])},
        by_inner(inner) {}
  __device__ Place of(int64_t i) const {
    Place p;
    p.inner = by_inner.divide(i);
    for (int d = 2; d >= 0; --d) p.at[d] = sizes[d].divide(i);
    p.outer = i;
    return p;
  }
};

template <class T> void resample(const ResampleShape& given, const T* x, T* y) {
  const Tables<T> tables(given, false);
  const ResampleShape& s = tables.shape();
  const Axes<T> axes = tables.axes();
  const Places places(s.out, s.inner);
  const int64_t rows = s.in[1], columns = s.in[2], inner = s.inner;
  const int64_t volume = s.in[0] * rows * columns * inner;
  each(s.outer * s.out[0] * s.out[1] * s.out[2] * inner, [=] __device__(int64_t i) {
    const auto [at, outer, k] = places.of(i);
    const Axis<T>&a = axes.of[0], &b = axes.of[1], &c = axes.of[2];
    const T* plane = x + outer * volume + k;
    T sum = 0;
    for (int32_t p = 0; p < a.count[at[0]]; ++p) {
      T of_rows = 0;
      for (int32_t q = 0; q < b.count[at[1]]; ++q) {
        const int64_t row = (a.first[at[0]] + int64_t{p}) * rows + b.first[at[1]] + q;
        const T* line = plane + (row * columns + c.first[at[2]]) * inner;
        T of_columns = 0;
        for (int32_t r = 0; r < c.count[at[2]]; ++r)
          of_columns += c.weight[at[2] * c.width + r] * line[r * inner];
        of_rows += b.weight[at[1] * b.width + q] * of_columns;
      }
      sum += a.weight[at[0] * a.width + p] * of_rows;
    }
    y[i] = sum;
  });
}

template <class T> void resample_backward(const ResampleShape& given, const T* gy, T* gx) {
  const Tables<T> tables(given, true);
  const ResampleShape& s = tables.shape();
  const Axes<T> axes = tables.axes();
  const Places places(s.in, s.inner);
  const int64_t rows = s.out[1], columns = s.out[2], inner = s.inner;
  const int64_t volume = s.out[0] * rows * columns * inner;
  each(s.outer * s.in[0] * s.in[1] * s.in[2] * inner, [=] __device__(int64_t i) {
    const auto [at, outer, k] = places.of(i);
    const Axis<T>&a = axes.of[0], &b = axes.of[1], &c = axes.of[2];
    const T* plane = gy + outer * volume + k;
    T sum = 0;
    for (int64_t p = a.readers[at[0]]; p < a.readers_end[at[0]]; ++p) {
      T of_rows = 0;
      for (int64_t q = b.readers[at[1]]; q < b.readers_end[at[1]]; ++q) {
        const T* line = plane + (p * rows + q) * columns * inner;
        T of_columns = 0;
        for (int64_t r = c.readers[at[2]]; r < c.readers_end[at[2]]; ++r)
          of_columns += c.weight_of(r, at[2]) * line[r * inner];
        of_rows += b.weight_of(q, at[1]) * of_columns;
      }
      sum += a.weight_of(p, at[0]) * of_rows;
    }
    gx[i] = sum;
  });
}

template <class T> const ResampleKernels<T> table{resample<T>, resample_backward<T>};

}  // namespace

void add_resample_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
