#include "ops/linalg/product.h"

#include "kernels/gemm.h"
#include "ops/core/half.h"

namespace taeda {
namespace {

template <class F> void visit_product(DType d, F&& f) {
  switch (d) {
    case DType::UInt8: return f(Tag<uint8_t>{});
    case DType::Int8: return f(Tag<int8_t>{});
    case DType::Int16: return f(Tag<int16_t>{});
    case DType::Int32: return f(Tag<int32_t>{});
    case DType::Int64: return f(Tag<int64_t>{});
    case DType::Float16: return f(Tag<Half>{});
    case DType::BFloat16: return f(Tag<BFloat16>{});
    default: return visit_inexact(d, "addmm_impl_cpu_", std::forward<F>(f));
  }
}

// Whether the kernels can read the matrices in place: unit stride along rows or columns, no
// overlap.
bool is_readable(const Tensor& t) {
  const size_t d = t.sizes().size();
  const int64_t m = t.sizes()[d - 2], n = t.sizes()[d - 1];
  const int64_t r = t.strides()[d - 2], c = t.strides()[d - 1];
  const bool by_rows = (c == 1 || n == 1) && (r >= std::max<int64_t>(n, 1) || m == 1);
  const bool by_columns = (r == 1 || m == 1) && c >= std::max<int64_t>(m, 1);
  return (by_rows && (n != 1 || r > 0)) || by_columns;
}

// The tensor itself if a product can read it, else a contiguous copy, stored in `copy`.
const Tensor& readable(const Tensor& t, DType compute, Tensor& copy) {
  if (t.dtype() == compute && is_readable(t)) return t;
  copy = empty(t.sizes(), {compute, t.device()});
  copy_into(copy, t);
  return copy;
}

template <class T> MatrixRef<T> matrix(const Tensor& t) {
  const size_t d = t.sizes().size();
  const int64_t rows = t.strides()[d - 2], cols = t.strides()[d - 1];
  if (cols == 1 || t.sizes()[d - 1] == 1) return {t.data_as<T>(), std::max<int64_t>(rows, 1)};
  return {t.data_as<T>(), std::max<int64_t>(cols, 1), Trans::Yes};
}

int64_t batch_step(const Tensor& t) { return t.dim() == 3 ? t.strides()[0] : 0; }

}  // namespace

void multiply(const Tensor& a_in, const Tensor& b_in, const Tensor& out, Scalar alpha, Scalar beta,
              bool b_transposed) {
  if (out.numel() == 0) return;
  const DType dtype = is_half(a_in.dtype()) ? a_in.dtype() : out.dtype();
  Tensor a_copy, b_copy;
  const Tensor& a = readable(a_in, dtype, a_copy);
  const Tensor& b = readable(b_in, dtype, b_copy);
  const int64_t k = a.sizes().back(), batch = out.dim() == 3 ? out.sizes()[0] : 1;
  const int64_t m = out.sizes()[out.sizes().size() - 2], n = out.sizes().back();
  const int64_t a_step = batch_step(a), b_step = batch_step(b);
  visit_product(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Out = GemmOut<T>;
    const auto ra = matrix<T>(a);
    auto rb = matrix<T>(b);
    if (b_transposed) rb = rb.transposed();
    if constexpr (std::is_integral_v<T>) {
      kernels<IntegerGemmKernels<T>>(out.device())
          .batched(batch, m, n, k, ra, a_step, rb, b_step, out.data_as<T>(), n, m * n);
    } else if (is_half(out.dtype())) {
      kernels<GemmKernels<T>>(out.device())
          .rounded(batch, m, n, k, alpha.to<Out>(), ra, a_step, rb, b_step, beta.to<Out>(),
                   out.data_as<T>(), n, m * n, nullptr);
    } else if (batch == 1) {
      kernels<GemmKernels<T>>(out.device())
          .gemm(m, n, k, alpha.to<Out>(), ra, rb, beta.to<Out>(), out.data_as<Out>(), n);
    } else {
      kernels<GemmKernels<T>>(out.device())
          .batched(batch, m, n, k, alpha.to<Out>(), ra, a_step, rb, b_step, beta.to<Out>(),
                   out.data_as<Out>(), n, m * n);
    }
  });
}

void multiply_onto(const Tensor& a_in, const Tensor& b_in, const Tensor& bias, const Tensor& out) {
  const int64_t m = out.sizes()[0], n = out.sizes()[1];
  if (out.dtype() != bias.dtype() || bias.numel() != n || out.numel() == 0) {
    copy_into(out, bias);
    return multiply(a_in, b_in, out, 1, 1, true);
  }
  Tensor a_copy, b_copy;
  const Tensor& a = readable(a_in, out.dtype(), a_copy);
  const Tensor& b = readable(b_in, out.dtype(), b_copy);
  const Tensor row = contiguous(bias);
  const int64_t k = a.sizes()[1];
  visit_product(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) {
      const auto& device = kernels<GemmKernels<T>>(out.device());
      const auto left = matrix<T>(a), right = matrix<T>(b).transposed();
      if (is_half(out.dtype()))
        device.rounded(1, m, n, k, 1, left, 0, right, 0, 0, out.data_as<T>(), n, 0,
                       row.data_as<T>());
      else device.onto(m, n, k, left, right, row.data_as<T>(), out.data_as<T>(), n);
    }
  });
}

DType product_dtype(DType d, Device device) {
  if (d == DType::Bool) unsupported_dtype("addmm_impl_cpu_", d);
  if (d == DType::Complex32) return DType::Complex64;
  if (!is_half(d)) return d;
  const bool rounds = device.type != DeviceType::CPU && has_kernels<GemmKernels<Half>>(device) &&
                      kernels<GemmKernels<Half>>(device).rounded;
  return rounds ? d : DType::Float32;
}

Tensor product(const Tensor& a, const Tensor& b, DimsRef sizes) {
  Tensor out = empty(sizes, {product_dtype(a.dtype(), a.device()), a.device()});
  if (!out.is_meta()) multiply(a, b, out, 1, 0);
  return finished(out, a.dtype());
}

void check_product_dtypes(const char* what, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), what,
        "(): expected both matrices to have the same dtype, but got: ", name(a.dtype()),
        " != ", name(b.dtype()));
  check(a.device() == b.device(), what,
        "(): expected both matrices to be on the same device, but got: ", a.device(), " and ",
        b.device());
}

void check_product(const char* what, const Tensor& a, const Tensor& b) {
  check(a.dim() == 2, what, "(): self must be a matrix, got shape ", to_string(a.sizes()));
  check(b.dim() == 2, what, "(): mat2 must be a matrix, got shape ", to_string(b.sizes()));
  check(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x",
        a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  check_product_dtypes(what, a, b);
}

}  // namespace taeda
