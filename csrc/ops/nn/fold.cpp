// unfold (im2col): the windows of a convolution as columns; fold: sums of such columns.
#include "kernels/fold.h"

#include "autograd/backward.h"
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

void check_window(const char* what, const char* name, const Dims& numbers, int64_t least) {
  check(numbers.size() == 2 && numbers[0] >= least && numbers[1] >= least, what, ": ", name,
        " should be two numbers, none below ", least, ", but got ", to_string(numbers));
}

// Of an image of `in` with `planes` planes.
FoldShape shape_of(const char* what, int64_t planes, DimsRef in, const Dims& kernel,
                   const Dims& dilation, const Dims& padding, const Dims& stride) {
  check_window(what, "kernel_size", kernel, 1);
  check_window(what, "dilation", dilation, 1);
  check_window(what, "padding", padding, 0);
  check_window(what, "stride", stride, 1);
  FoldShape s{planes, {}, {}, {}, {}, {}, {}};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t room = in[d] + 2 * padding[d], reach = dilation[d] * (kernel[d] - 1) + 1;
    check(reach <= room, what, ": a window of ", reach, " elements does not fit into ", room,
          " along dimension ", d, " of the image");
    s.in[d] = in[d];
    s.kernel[d] = kernel[d];
    s.dilation[d] = dilation[d];
    s.padding[d] = padding[d];
    s.stride[d] = stride[d];
    s.out[d] = (room - reach) / stride[d] + 1;
  }
  return s;
}

Tensor im2col(const Tensor& x, const Dims& kernel, const Dims& dilation, const Dims& padding,
              const Dims& stride) {
  check(x.dim() == 4, "unfold: expected a 3D or 4D input, got ", x.dim(), "D");
  const auto s = shape_of("unfold", x.size(0) * x.size(1), x.sizes().last(2), kernel, dilation,
                          padding, stride);
  Tensor out =
      empty(Dims{x.size(0), x.size(1) * kernel[0] * kernel[1], s.out[0] * s.out[1]}, x.options());
  if (out.is_meta() || out.numel() == 0) return out;
  kernels<FoldKernels>(x.device()).to_columns(s, raw_contiguous(x).data(), out.data(), x.dtype());
  return out;
}

Tensor col2im(const Tensor& columns, const Dims& size, const Dims& kernel, const Dims& dilation,
              const Dims& padding, const Dims& stride) {
  check(columns.dim() == 3, "fold: expected a 2D or 3D input, got ", columns.dim(), "D");
  check_window("fold", "output_size", size, 1);
  auto s = shape_of("fold", 0, size, kernel, dilation, padding, stride);
  const int64_t taps = kernel[0] * kernel[1], positions = s.out[0] * s.out[1];
  check(columns.size(1) % taps == 0 && columns.size(2) == positions,
        "fold: for these sizes, the input should be of shape (N, C * ", taps, ", ", positions,
        "), got ", to_string(columns.sizes()));
  Tensor out =
      empty(Dims{columns.size(0), columns.size(1) / taps, size[0], size[1]}, columns.options());
  if (out.is_meta() || out.numel() == 0) return out;
  need_arithmetic("fold", columns.dtype());
  s.planes = out.size(0) * out.size(1);
  kernels<FoldKernels>(out.device())
      .from_columns(s, raw_contiguous(columns).data(), out.data(), columns.dtype());
  return out;
}

void im2col_backward(Backward& b) {
  const Dims& sizes = b.sizes(0);
  b.set(0, op<"_col2im">(b.grad(), Dims{sizes[2], sizes[3]}, b.arg<Dims>(1), b.arg<Dims>(2),
                         b.arg<Dims>(3), b.arg<Dims>(4)));
}
void col2im_backward(Backward& b) {
  b.set(0, op<"_im2col">(b.grad(), b.arg<Dims>(2), b.arg<Dims>(3), b.arg<Dims>(4), b.arg<Dims>(5)));
}

const Define kFoldOps[] = {
    {"_im2col(self: Tensor, kernel_size: int[], dilation: int[], padding: int[], stride: int[]) -> "
     "Tensor",
     "The windows of `self` (N, C, H, W): (N, C * window size, number of windows).",
     kernel(im2col),
     {.backward = im2col_backward, .forms = kFunction, .vmap = vmap::folded(2)}},
    {"_col2im(self: Tensor, output_size: int[], kernel_size: int[], dilation: int[], padding: "
     "int[], stride: int[]) -> Tensor",
     "The sum of windows put back where `_im2col` took them from.",
     kernel(col2im),
     {.backward = col2im_backward, .forms = kFunction, .vmap = vmap::folded(1)}},
};

}  // namespace
}  // namespace taeda
