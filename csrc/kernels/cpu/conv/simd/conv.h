// The inner loops of convolution: copying windows to columns and back, and depthwise planes.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// Always three dimensions; a convolution over fewer has leading sizes of 1. `padding` may be
// negative.
struct Window {
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

constexpr int64_t kPlaneMore = 64;

template <class T> struct ConvLoops {
  // Columns [begin, end) of the matrix (channels * kernel volume) x (out volume) whose column is
  // what the kernel sees at one place; its rows lie `ld` apart in `col`.
  void (*im2col)(const Window& w, int64_t channels, const T* x, int64_t begin, int64_t end, T* col,
                 int64_t ld);
  // The transpose: adds every column to the elements of x that it came from.
  void (*col2im)(const Window& w, int64_t channels, const T* col, int64_t ld, int64_t begin,
                 int64_t end, T* x);
  // One plane with one kernel, and its gradient. `memory` has room for four of the plane that is
  // read with its padding, or that is written with what windows reach beyond it, and kPlaneMore
  // elements. It is fresh, or as another plane of this window has left it.
  void (*plane)(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh, T* y);
  void (*plane_grad_input)(const Window& w, const T* gy, const T* weight, T* memory, bool fresh,
                           T* gx);
  // sums[column][row of taps][lane] += the products of one plane, where that fits; `lane` tells the
  // places of a row apart.
  int64_t lanes;
  bool (*fits_plane_weight)(const Window& w);
  void (*plane_grad_weight)(const Window& w, const T* x, const T* gy, T* memory, bool fresh,
                            T* sums);
};

struct ConvKernels {
  ConvLoops<float> f32;
  ConvLoops<double> f64;
};

namespace v2 {
extern const ConvKernels conv_kernels;
}
namespace v3 {
extern const ConvKernels conv_kernels;
}
namespace v4 {
extern const ConvKernels conv_kernels;
}
namespace base {
extern const ConvKernels conv_kernels;
}

}  // namespace taeda::cpu::simd
