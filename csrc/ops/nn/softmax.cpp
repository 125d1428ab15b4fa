// softmax and log_softmax along one dimension.
#include "kernels/softmax.h"

#include "autograd/backward.h"
#include "ops/core/half.h"

namespace taeda {
namespace {

SoftmaxShape shape_of(const Tensor& x, int64_t dim) {
  if (x.dim() == 0) return {1, 1, 1};
  SoftmaxShape s{1, x.size(dim), 1};
  for (int64_t d = 0; d < dim; ++d) s.outer *= x.size(d);
  for (int64_t d = dim + 1; d < x.dim(); ++d) s.inner *= x.size(d);
  return s;
}

template <bool Log> Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  constexpr const char* what = Log ? "log_softmax" : "softmax";
  dim = wrap_dim(dim, self.dim(), what);
  DType result = dtype.value_or(self.dtype());
  DType compute = kernel_dtype<SoftmaxKernels>(result, self.device(), what);
  Tensor x = prepared(self, compute), y = empty(self.sizes(), {compute, self.device()});
  if (y.numel() && !y.is_meta()) {
    visit_kernel_dtype(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<SoftmaxKernels<T>>(x.device())
          .softmax(shape_of(x, dim), Log, x.data_as<T>(), y.data_as<T>());
    });
  }
  return finished(y, result);
}

template <bool Log> Tensor softmax_gradient(const Tensor& grad, const Tensor& out, int64_t dim) {
  constexpr const char* what = Log ? "log_softmax" : "softmax";
  check(same(grad.sizes(), out.sizes()) && grad.is_meta() == out.is_meta(), what,
        "_backward(): expected grad of shape ", to_string(out.sizes()), ", but got ",
        to_string(grad.sizes()));
  dim = wrap_dim(dim, out.dim(), what);
  DType compute = kernel_dtype<SoftmaxKernels>(out.dtype(), out.device(), what);
  Tensor g = prepared(grad, compute), y = prepared(out, compute),
         gx = empty(out.sizes(), {compute, out.device()});
  if (gx.numel() && !gx.is_meta()) {
    visit_kernel_dtype(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<SoftmaxKernels<T>>(y.device())
          .backward(shape_of(y, dim), Log, g.data_as<T>(), y.data_as<T>(), gx.data_as<T>());
    });
  }
  return finished(gx, out.dtype());
}

int64_t dim_of(Backward& b, int arg, int tensor) {
  return wrap_dim(b.arg<int64_t>(arg), static_cast<int64_t>(b.sizes(tensor).size()));
}

void softmax_backward(Backward& b) {
  b.set(0, to(op<"_softmax_backward">(b.grad(), b.out(), dim_of(b, 1, 0)), b.dtype(0)));
}
void log_softmax_backward(Backward& b) {
  b.set(0, to(op<"_log_softmax_backward">(b.grad(), b.out(), dim_of(b, 1, 0)), b.dtype(0)));
}

// d/d(g, y) of y * (g - sum(g y)).
void softmax_second(Backward& b) {
  Tensor gg = b.grad(), g = b.arg<Tensor>(0), y = b.arg<Tensor>(1);
  Dims dim{b.arg<int64_t>(2)};
  if (b.needs(0)) b.set(0, y * (gg - sum(gg * y, dim, true)));
  if (b.needs(1)) b.set(1, gg * (g - sum(g * y, dim, true)) - g * sum(gg * y, dim, true));
}
// d/d(g, y) of g - exp(y) sum(g).
void log_softmax_second(Backward& b) {
  Tensor gg = b.grad(), g = b.arg<Tensor>(0), p = op<"exp">(b.arg<Tensor>(1));
  Dims dim{b.arg<int64_t>(2)};
  if (b.needs(0)) b.set(0, gg - sum(gg * p, dim, true));
  if (b.needs(1)) b.set(1, -(gg * p * sum(g, dim, true)));
}

const Define softmax_ops[] = {
    {"softmax(self: Tensor, dim: int, dtype: dtype? = None) -> Tensor",
     "Exponentials of the elements divided by their sum along `dim`, so that every slice along "
     "`dim` sums to one.\n\n"
     "`dtype`, if given, is the type to which the input is cast first.",
     kernel(softmax<false>),
     {.backward = softmax_backward,
      .saves = saves_out(),
      .forms = kPublic | kOut,
      .autocast = kFloat32OnCuda,
      .vmap = vmap::along,
      .out_dtype = OutDtype::Exact}},
    {"log_softmax(self: Tensor, dim: int, dtype: dtype? = None) -> Tensor",
     "Logarithm of softmax along `dim`, computed without leaving the range of the dtype.",
     kernel(softmax<true>),
     {.backward = log_softmax_backward,
      .saves = saves_out(),
      .forms = kPublic | kOut,
      .autocast = kFloat32OnCuda,
      .vmap = vmap::along,
      .out_dtype = OutDtype::Exact}},
    {"_softmax_backward(grad: Tensor, out: Tensor, dim: int) -> Tensor",
     "Gradient of softmax from its result.",
     kernel(softmax_gradient<false>),
     {.backward = softmax_second,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = 0,
      .vmap = vmap::along}},
    {"_log_softmax_backward(grad: Tensor, out: Tensor, dim: int) -> Tensor",
     "Gradient of log_softmax from its result.",
     kernel(softmax_gradient<true>),
     {.backward = log_softmax_second,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = 0,
      .vmap = vmap::along}},
};

}  // namespace
}  // namespace taeda
