// Matrix products: mm, bmm, matmul and their fused forms with a sum (addmm, baddbmm, linear).
#include <algorithm>

#include "autograd/backward.h"
#include "ops/core/half.h"
#include "ops/core/promotion.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/product.h"

namespace taeda {
namespace {

// ---- mm, bmm ----

Tensor mm(const Tensor& self, const Tensor& mat2) {
  check_product("mm", self, mat2);
  return product(self, mat2, Dims{self.size(0), mat2.size(1)});
}

Tensor bmm(const Tensor& self, const Tensor& mat2) {
  check(self.dim() == 3, "batch1 must be a 3D tensor, got shape ", to_string(self.sizes()));
  check(mat2.dim() == 3, "batch2 must be a 3D tensor, got shape ", to_string(mat2.sizes()));
  check(self.size(0) == mat2.size(0) && self.size(2) == mat2.size(1),
        "Expected size for first two dimensions of batch2 tensor to be: [", self.size(0), ", ",
        self.size(2), "] but got: [", mat2.size(0), ", ", mat2.size(1), "].");
  check_product_dtypes("bmm", self, mat2);
  return product(self, mat2, Dims{self.size(0), self.size(1), mat2.size(2)});
}

void mm_backward(Backward& b) {
  Tensor g = b.grad();
  if (b.needs(0)) b.set(0, op<"mm">(g, adjoint(b.arg<Tensor>(1))));
  if (b.needs(1)) b.set(1, op<"mm">(adjoint(b.arg<Tensor>(0)), g));
}
void bmm_backward(Backward& b) {
  Tensor g = b.grad();
  if (b.needs(0)) b.set(0, op<"bmm">(g, adjoint(b.arg<Tensor>(1))));
  if (b.needs(1)) b.set(1, op<"bmm">(adjoint(b.arg<Tensor>(0)), g));
}

// ---- vectors ----

Tensor dot(const Tensor& self, const Tensor& other) {
  check(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ",
        other.dim(), "D tensors");
  check(self.dtype() == other.dtype(), "dot : expected both vectors to have same dtype, but found ",
        self.dtype(), " and ", other.dtype());
  check(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(),
        "] and src [", other.numel(), "] to have the same number of elements, but got ",
        self.numel(), " and ", other.numel(), " elements respectively");
  if (self.dtype() == DType::Bool) unsupported_dtype("dot", DType::Bool);
  Tensor row = make_view(self, Dims{1, self.numel()},
                         Dims{self.numel() * self.strides()[0], self.strides()[0]}, self.offset());
  Tensor column =
      make_view(other, Dims{other.numel(), 1}, Dims{other.strides()[0], 1}, other.offset());
  Tensor r = product(row, column, Dims{1, 1});
  return from_storage(r.storage(), {}, {}, 0, r.dtype());
}
void dot_backward(Backward& b) {
  Tensor g = b.grad();
  if (b.needs(0)) b.set(0, g * conj(b.arg<Tensor>(1)));
  if (b.needs(1)) b.set(1, g * conj(b.arg<Tensor>(0)));
}
Tensor vdot(const Tensor& self, const Tensor& other) { return op<"dot">(conj(self), other); }

Tensor mv(const Tensor& self, const Tensor& vec) {
  check(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got ", 1, ", ",
        self.dim(), ", ", vec.dim());
  check(self.size(1) == vec.size(0), "size mismatch, got input (", self.size(0), "), mat (",
        self.size(0), "x", self.size(1), "), vec (", vec.size(0), ")");
  check_product_dtypes("mv", self, vec);
  const Tensor column =
      make_view(vec, Dims{vec.numel(), 1}, Dims{vec.strides()[0], 1}, vec.offset());
  const Tensor r = product(self, column, Dims{self.size(0), 1});
  return from_storage(r.storage(), Dims{self.size(0)}, Dims{1}, 0, r.dtype());
}
void mv_backward(Backward& b) {
  const Tensor g = b.grad();
  if (b.needs(0)) b.set(0, unsqueeze(g, 1) * unsqueeze(conj(b.arg<Tensor>(1)), 0));
  if (b.needs(1)) b.set(1, op<"mv">(adjoint(b.arg<Tensor>(0)), g));
}

// ---- matmul ----

Tensor matmul_any(const Tensor& a, const Tensor& b) {
  check(a.dim() > 0 && b.dim() > 0,
        "both arguments to matmul need to be at least 1D, but they are ", a.dim(), "D and ",
        b.dim(), "D");
  if (a.dim() == 1 && b.dim() == 1) return op<"dot">(a, b);
  if (a.dim() == 2 && b.dim() == 2) return op<"mm">(a, b);
  if (a.dim() == 2 && b.dim() == 1) return op<"mv">(a, b);
  if (a.dim() == 1) return squeeze(op<"matmul">(unsqueeze(a, 0), b), -2);
  if (b.dim() == 1) return squeeze(op<"matmul">(a, unsqueeze(b, 1)), -1);
  check(a.size(-1) == b.size(-2), "mat1 and mat2 shapes cannot be multiplied: matmul() got shapes ",
        to_string(a.sizes()), " and ", to_string(b.sizes()));
  if (b.dim() == 2) {  // one matrix on the right: fold the batch into rows
    Dims out(a.sizes());
    out.back() = b.size(1);
    int64_t rows = 1;
    for (int64_t d = 0; d + 1 < a.dim(); ++d) rows *= a.size(d);
    return reshape(op<"mm">(reshape(a, Dims{rows, a.size(-1)}), b), out);
  }
  Dims batch =
      broadcast_sizes(a.sizes().first(a.sizes().size() - 2), b.sizes().first(b.sizes().size() - 2));
  auto stacked = [&](const Tensor& t) {
    Dims full = batch;
    full.push_back(t.size(-2));
    full.push_back(t.size(-1));
    return reshape(expand(t, full), Dims{numel_of(batch), t.size(-2), t.size(-1)});
  };
  Dims out = batch;
  out.push_back(a.size(-2));
  out.push_back(b.size(-1));
  return reshape(op<"bmm">(stacked(a), stacked(b)), out);
}

// ---- with a sum ----

// beta * self + alpha * product. If beta is 0, self is ignored, including its NaN.
Tensor scaled_sum(const Tensor& self, const Tensor& product, Scalar beta, Scalar alpha) {
  if (is_integral(product.dtype())) {  // integer products truncate both factors
    beta = Scalar(beta.to<int64_t>());
    alpha = Scalar(alpha.to<int64_t>());
  } else if (!is_complex(product.dtype())) {  // refuses an imaginary part
    if (beta.is_complex()) beta = Scalar(beta.to_double());
    if (alpha.is_complex()) alpha = Scalar(alpha.to_double());
  }
  Tensor p = alpha.equals(1) ? product : product * Tensor(alpha);
  if (beta.equals(0)) {
    // Ignores self, including NaN; but if it requires a gradient, that gradient is zeros.
    if (!self.requires_grad_flag() || !GradMode::enabled()) return p;
    return where(zeros(Dims{}, {DType::Bool, self.device()}), self, p);
  }
  return (beta.equals(1) ? self : self * Tensor(beta)) + p;
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
             Scalar alpha) {
  check_product("addmm", mat1, mat2);
  check_product_dtypes("addmm", self, mat1);
  Dims sizes{mat1.size(0), mat2.size(1)};
  Tensor start = expand(self, sizes);
  DType compute = product_dtype(mat1.dtype(), mat1.device());
  if (is_integral(compute)) return scaled_sum(start, product(mat1, mat2, sizes), beta, alpha);
  Tensor out = empty(sizes, {compute, mat1.device()});
  if (!out.is_meta()) {
    bool adds = !beta.equals(0);
    if (adds) copy_into(out, start);
    multiply(mat1, mat2, out, alpha, adds ? beta : Scalar(0));
  }
  return finished(out, mat1.dtype());
}

Tensor times(const Tensor& t, Scalar s) { return s.equals(1) ? t : t * Tensor(s); }
Scalar conjugate(Scalar s) { return s.is_complex() ? Scalar(std::conj(s.to<cdouble>())) : s; }

void addmm_backward(Backward& b) {
  Tensor g = b.grad();
  Scalar beta = conjugate(b.arg<Scalar>(3)), alpha = conjugate(b.arg<Scalar>(4));
  if (b.needs(0)) b.set(0, sum_to(times(g, beta), b.sizes(0)));
  if (b.needs(1)) b.set(1, times(op<"mm">(g, adjoint(b.arg<Tensor>(2))), alpha));
  if (b.needs(2)) b.set(2, times(op<"mm">(adjoint(b.arg<Tensor>(1)), g), alpha));
}

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
               Scalar alpha) {
  Tensor p = op<"bmm">(batch1, batch2);
  check(self.dtype() == p.dtype(), "Input dtypes must be the same, got: input ", name(self.dtype()),
        ", batch1: ", name(batch1.dtype()), ", batch2: ", name(batch2.dtype()));
  return scaled_sum(expand(self, p.sizes()), p, beta, alpha);
}
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
              Scalar alpha) {
  check_product_dtypes("addbmm", self, batch1);
  Tensor p = sum(op<"bmm">(batch1, batch2), Dims{0});
  return scaled_sum(expand(self, p.sizes()), p, beta, alpha);
}
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) {
  check_product_dtypes("addmv", self, mat);
  Tensor p = op<"mv">(mat, vec);
  return scaled_sum(expand(self, p.sizes()), p, beta, alpha);
}

// `factor` as a number that does not change the dtype of a result; `which` it is, for messages.
Scalar fitting(const char* which, Scalar factor, DType result) {
  check(!factor.is_bool() || result == DType::Bool, "addr(): Boolean ", which,
        " only supported for Boolean results.");
  check(is_inexact(result) || factor.is_integral(), "addr(): For integral input tensors, argument ",
        which, " must not be a floating point number.");
  // Refuses an imaginary part.
  return factor.is_complex() && !is_complex(result) ? Scalar(factor.to_double()) : factor;
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) {
  check(vec1.dim() == 1 && vec2.dim() == 1, "addr: Expected 1-D argument vec1 and vec2, but got ",
        vec1.dim(), "-D and ", vec2.dim(), "-D");
  Promotion all;
  for (const Tensor& t : {self, vec1, vec2}) all.add(t);
  const DType dtype = all.result();
  beta = fitting("beta", beta, dtype);
  alpha = fitting("alpha", alpha, dtype);
  if (dtype == DType::Bool) {
    Tensor p = unsqueeze(vec1, 1) & unsqueeze(vec2, 0) & Tensor(Scalar(alpha.to<bool>()));
    return (self & Tensor(Scalar(beta.to<bool>()))) | p;
  }
  const Tensor column = unsqueeze(to(vec1, dtype), 1), row = unsqueeze(to(vec2, dtype), 0);
  const Tensor start = expand(to(self, dtype), Dims{vec1.numel(), vec2.numel()});
  if (!beta.equals(0) && is_inexact(dtype)) {
    if (beta.equals(1)) return op<"addcmul">(start, column, row, alpha);
    return op<"add">(times(column, alpha) * row, start, beta);
  }
  return scaled_sum(start, column * row, beta, alpha);
}

// ---- linear ----

void check_linear(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t rows,
                  int64_t outs) {
  const int64_t in = weight.sizes().back();
  check(self.sizes().back() == in, "mat1 and mat2 shapes cannot be multiplied (", rows, "x",
        self.sizes().back(), " and ", in, "x", outs, "): linear() got input of shape ",
        to_string(self.sizes()), " and weight of shape ", to_string(weight.sizes()));
  check_product_dtypes("linear", self, weight);
  if (!bias.defined()) return;
  check_product_dtypes("linear", self, bias);
  check(bias.numel() == outs || bias.numel() == 1, "linear(): bias must have ", outs,
        " elements, got shape ", to_string(bias.sizes()));
}

Tensor linear(const Tensor& self, const Tensor& weight, const Tensor& bias) {
  check(self.dim() >= 1, "linear(): input must have at least one dimension, got a zero-dim tensor");
  check(weight.dim() == 2 || weight.dim() == 1,
        "linear(): weight must be (out_features, in_features) or (in_features), "
        "got shape ",
        to_string(weight.sizes()));
  const bool one = weight.dim() == 1, flat = self.dim() == 2;
  const int64_t in = weight.sizes().back(), outs = one ? 1 : weight.sizes()[0];
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < self.sizes().size(); ++d) rows *= self.sizes()[d];
  check_linear(self, weight, bias, rows, outs);
  const DType compute = product_dtype(self.dtype(), self.device());
  Tensor out = empty(Dims{rows, outs}, {compute, self.device()});
  if (!out.is_meta()) {
    Tensor x;
    if (!flat) {
      x = prepared(self, self.dtype());
      x = make_view(x, Dims{rows, in}, Dims{std::max<int64_t>(in, 1), 1}, x.offset());
    }
    Tensor w;
    if (one) w = make_view(weight, Dims{1, in}, Dims{in, weight.stride(0)}, weight.offset());
    const bool adds = bias.defined() && !is_integral(compute);
    if (adds) multiply_onto(flat ? self : x, one ? w : weight, bias, out);
    else multiply(flat ? self : x, one ? w : weight, out, 1, 0, true);
    if (bias.defined() && !adds) copy_into(out, out + bias);
  }
  out = finished(out, self.dtype());
  if (flat && !one) return out;
  Dims sizes(self.sizes());
  if (one) sizes.pop_back();
  else sizes.back() = outs;
  return from_storage(out.storage(), sizes, contiguous_strides(sizes), 0, out.dtype());
}

Tensor transposed(const Tensor& t) {
  return make_view(t, Dims{t.size(1), t.size(0)}, Dims{t.stride(1), t.stride(0)}, t.offset());
}

// Whether a gradient is such as the kernels expect: a mode may have given another kind of result.
bool is_of_linear(const Tensor& g, const Backward& b) {
  const Dims &input = b.sizes(0), &weight = b.sizes(1);
  return g.dtype() == b.dtype(1) && g.sizes().size() == input.size() && g.size(-1) == weight[0] &&
         std::equal(input.begin(), input.end() - 1, g.sizes().begin());
}

void linear_backward(Backward& b) {
  Tensor g = b.grad();
  const Dims& weight = b.sizes(1);
  if (weight.size() == 1) {
    if (b.needs(0)) b.set(0, unsqueeze(g, -1) * conj(b.arg<Tensor>(1)));
    if (b.needs(1)) b.set(1, sum_to(unsqueeze(g, -1) * conj(b.arg<Tensor>(0)), b.sizes(1)));
  } else {
    bool flat = g.dim() == 2;
    const bool known = is_floating(g.dtype()) && is_of_linear(g, b);
    int64_t rows = 1;
    for (int64_t d = 0; d + 1 < g.dim(); ++d) rows *= g.size(d);
    Tensor g2 = flat ? g : reshape(g, Dims{rows, weight[0]});
    if (b.needs(0)) {
      const Tensor w = b.arg<Tensor>(1);
      const bool direct = known && is_unwatched({&g2, &w});
      Tensor gx = direct ? product(g2, w, Dims{rows, weight[1]}) : op<"mm">(g2, conj(w));
      b.set(0, flat ? gx : reshape(gx, b.sizes(0)));
    }
    if (b.needs(1)) {
      Tensor x = b.arg<Tensor>(0);
      Tensor x2 = x.dim() == 2 ? x : reshape(x, Dims{rows, weight[1]});
      const bool direct = known && is_unwatched({&g2, &x2});
      b.set(1,
            direct ? product(transposed(g2), x2, weight) : op<"mm">(transpose(g2, 0, 1), conj(x2)));
    }
  }
  if (b.has(2) && b.needs(2)) b.set(2, sum_to(g, b.sizes(2)));
}

constexpr Traits kMatmulComposite{.composite = true};
constexpr Traits kSumForms{.forms = kPublic | kInplace | kOut,
                           .composite = true,
                           .out_memory = {.same_or_disjoint = 0b1},
                           .old_orders = "bsatt bstt"};

const Define matmul_ops[] = {
    {"mm(self: Tensor, mat2: Tensor) -> Tensor",
     "Product of two matrices (n, m) and (m, p).",
     kernel(mm),
     {.backward = mm_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kPublic | kOut,
      .saved_for_others = 0b11,
      .autocast = Precision::Lower,
      .flops = Flops::Product}},
    {"bmm(self: Tensor, mat2: Tensor) -> Tensor",
     "Products of two batches of matrices (b, n, m) and (b, m, p).",
     kernel(bmm),
     {.backward = bmm_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kPublic | kOut,
      .saved_for_others = 0b11,
      .autocast = Precision::Lower,
      .flops = Flops::Product}},
    {"dot(self: Tensor, tensor: Tensor) -> Tensor",
     "Inner product of two vectors of one length.",
     kernel(dot),
     {.backward = dot_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kPublic | kOut,
      .saved_for_others = 0b11,
      .autocast = kWidestOnCuda,
      .flops = Flops::Product}},
    {"vdot(self: Tensor, other: Tensor) -> Tensor",
     "Inner product of two vectors, the first one conjugated.",
     kernel(vdot),
     {.forms = kPublic | kOut, .composite = true, .autocast = kWidestOnCuda}},
    {"mv(self: Tensor, vec: Tensor) -> Tensor",
     "Product of a matrix (n, m) and a vector (m).",
     kernel(mv),
     {.backward = mv_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kPublic | kOut,
      .saved_for_others = 0b11,
      .autocast = kLowerOnCuda,
      .flops = Flops::Product}},
    {"matmul(self: Tensor, other: Tensor) -> Tensor",
     "Product of vectors, matrices or broadcast batches of matrices, by the number of dimensions.",
     kernel(matmul_any),
     {.forms = kPublic | kOut,
      .composite = true,
      .autocast = Precision::Lower,
      .flops = Flops::Product}},
    {"addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> "
     "Tensor",
     "beta * self + alpha * (mat1 @ mat2).",
     kernel(addmm),
     {.backward = addmm_backward,
      .saves = saves_arg(1) | saves_arg(2),
      .forms = kPublic | kInplace | kOut,
      .autocast = Precision::Lower,
      .flops = Flops::AddedProduct,
      .out_memory = {.same_or_disjoint = 0b1},
      .old_orders = "bsatt bstt"}},
    {"baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = "
     "1) -> Tensor",
     "beta * self + alpha * bmm(batch1, batch2).", kernel(baddbmm),
     kSumForms.with(Precision::Lower).with(Flops::AddedProduct)},
    {"addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) "
     "-> Tensor",
     "beta * self + alpha * the sum over the batch of batch1 @ batch2.", kernel(addbmm),
     kSumForms.with(Precision::Lower)},
    {"addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> "
     "Tensor",
     "beta * self + alpha * (mat @ vec).", kernel(addmv),
     kSumForms.with(Flops::AddedProduct).with(kInplaceFunction).with(kLowerOnCuda)},
    {"addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> "
     "Tensor",
     "beta * self + alpha * the outer product of two vectors.", kernel(addr),
     kSumForms.with(OutMemory{.same_or_disjoint = 0b111})
         .with(OutDtype::Castable)
         .with(kLowerOnCuda)},
    {"linear(input: Tensor, weight: Tensor, bias: Tensor? = None) -> Tensor",
     "input @ weight.T + bias. Input (*, in), weight (out, in), bias (out): (*, out).",
     kernel(linear),
     {.backward = linear_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kFunction | kOut,
      .saved_for_others = 0b11,
      .module = "nn.functional",
      .autocast = Precision::Lower,
      .flops = Flops::Product}},
};

}  // namespace
}  // namespace taeda
