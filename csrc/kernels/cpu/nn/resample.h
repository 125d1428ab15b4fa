// Resizing by weighted sums along one dimension after the other, and the transpose of that.
#pragma once

#include <cstdint>
#include <vector>

namespace taeda::cpu {

// Smooth: over as many inputs as lie below an output, where there are fewer outputs.
enum class Resampling { Nearest, NearestExact, Linear, Cubic, LinearSmooth, CubicSmooth };

// Which inputs each output of one dimension is made of: see simd/resample.h.
template <class T> struct Taps {
  int64_t in = 0, out = 0, each = 0;
  std::vector<int64_t> first;
  std::vector<int32_t> index, each_index;
  std::vector<T> weight, each_weight;

  // `step`: how far apart two neighbouring outputs lie in the input. `corners`: the first and the
  // last ones lie on the first and the last input. At least one input, less than 2^31.
  static Taps make(Resampling how, int64_t in, int64_t out, double step, bool corners);
  Taps transposed() const;

  // x (before, in, after) to y (before, out, after).
  void apply(int64_t before, int64_t after, const T* x, T* y) const;
  // For x (in, after) and g (out, after): the product, for each tap, of its output's row of g and
  // its input's row of x.
  void multiply(int64_t after, const T* x, const T* g, T* products) const;

  // x (outer, in of dims[0], in of dims[1], ..., inner) to y (outer, out of dims[0], ..., inner).
  // T: float or double.
  static void resample(int64_t outer, const std::vector<Taps>& dims, int64_t inner, const T* x,
                       T* y);

 private:
  void add(int64_t input, T w);
  void add_smooth(bool cubic, T center, T stretch);
  void arrange();
};

}  // namespace taeda::cpu
