// Scaled dot-product attention (Vaswani et al. 2017) without materialising the matrix of scores
// (after Dao et al. 2022: one block of queries at a time, recomputed for the gradients).
#include "kernels/attention.h"

#include <limits>

#include "autograd/backward.h"
#include "ops/core/half.h"

namespace taeda {
namespace {

enum Argument { kQ, kK, kV, kMask, kCausal, kScale };

// Of the dimensions before the last three one, which is what kernels take.
Tensor by_batch(const Tensor& t) {
  return t.defined() && t.dim() > 4 ? op<"flatten">(t, int64_t(0), int64_t(-4)) : t;
}

// `t` with contiguous rows, as the kernel requires.
Tensor rows_of(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype && t.stride(-1) == 1 && t.stride(-2) >= t.size(-1)) return by_batch(t);
  return by_batch(prepared(contiguous(t), dtype));
}

int64_t batch_step(const Tensor& t) { return t.dim() > 3 ? t.stride(-4) : 0; }
int64_t head_step(const Tensor& t) { return t.dim() > 2 ? t.stride(-3) : 0; }
template <class T> AttentionMatrices<T> matrices(const Tensor& t) {
  return {t.data_as<std::remove_const_t<T>>(), batch_step(t), head_step(t), t.stride(-2)};
}

// Zeros in (batch, token, head, feature) memory order, the layout of the linear layers before and
// after.
Tensor by_token(DimsRef sizes, Options o) {
  if (sizes.size() != 4) return zeros(sizes, o);
  return transpose(zeros(Dims{sizes[0], sizes[2], sizes[1], sizes[3]}, o), 1, 2);
}

// Zeros for the gradient of t, in t's layout if that is contiguous, to avoid a copy.
Tensor gradient_of(const Tensor& t, Options o) {
  return t.is_contiguous() ? zeros(t.sizes(), o) : by_token(t.sizes(), o);
}

// A mask as an additive term with the shape of the scores.
Tensor added(const Tensor& mask, DimsRef scores, DType dtype) {
  if (!mask.defined()) return mask;
  Options o{dtype, mask.device()};
  Tensor numbers = mask;
  if (mask.dtype() == DType::Bool) {
    const double none = -std::numeric_limits<double>::infinity();
    numbers = where(mask, full(Dims{}, Scalar(0.0), o), full(Dims{}, Scalar(none), o));
  }
  return expand(to(numbers, dtype), scores);
}

Dims scores_of(const Tensor& q, const Tensor& k) {
  Dims sizes(q.sizes());
  sizes.back() = k.size(-2);
  return sizes;
}

AttentionShape shape_of(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                        double scale) {
  const size_t rank = q.sizes().size();
  check(rank >= 2 && k.sizes().size() == rank && v.sizes().size() == rank &&
            same(q.sizes().first(rank - 2), k.sizes().first(rank - 2)) &&
            same(q.sizes().first(rank - 2), v.sizes().first(rank - 2)) &&
            q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2),
        "_attention(): q ", to_string(q.sizes()), ", k ", to_string(k.sizes()), " and v ",
        to_string(v.sizes()), " do not fit together");
  check(q.dtype() == k.dtype() && q.dtype() == v.dtype() && q.is_meta() == k.is_meta() &&
            q.is_meta() == v.is_meta(),
        "_attention(): expected q, k and v of one dtype and device, got ", q.dtype(), ", ",
        k.dtype(), " and ", v.dtype());
  const int64_t batch = rank > 3 ? numel_of(q.sizes().first(rank - 3)) : 1;
  const int64_t heads = rank > 2 ? q.size(-3) : 1;
  return {batch, heads, q.size(-2), k.size(-2), q.size(-1), v.size(-1), scale, causal};
}

template <class T> AttentionMask<T> mask_of(const Tensor& mask) {
  if (!mask.defined()) return {};
  return {mask.data_as<T>(), batch_step(mask), head_step(mask), mask.stride(-2), mask.stride(-1)};
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal,
                 double scale) {
  AttentionShape s = shape_of(q, k, v, causal, scale);
  DType compute = compute_dtype(q.dtype(), "scaled_dot_product_attention");
  Tensor numbers = by_batch(added(mask, scores_of(q, k), compute));
  Dims sizes(q.sizes());
  sizes.back() = v.size(-1);
  Tensor out = by_token(sizes, {compute, q.device()});
  if (out.numel() && s.keys && !out.is_meta()) {
    const Tensor query = rows_of(q, compute), key = rows_of(k, compute),
                 value = rows_of(v, compute), result = by_batch(out);
    visit_floating(compute, "scaled_dot_product_attention", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<AttentionKernels<T>>(q.device())
          .attention(s, matrices<const T>(query), matrices<const T>(key), matrices<const T>(value),
                     mask_of<T>(numbers), matrices<T>(result));
    });
  }
  return to(out, q.dtype());
}

TensorList gradients(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                     const Tensor& mask, bool causal, double scale) {
  AttentionShape s = shape_of(q, k, v, causal, scale);
  check(grad.sizes().size() == q.sizes().size() &&
            grad.numel() == s.batch * s.heads * s.queries * s.value_size &&
            grad.size(-1) == s.value_size && grad.dtype() == q.dtype(),
        "_attention_backward(): expected grad of the result's shape and dtype, got ",
        to_string(grad.sizes()), " and ", grad.dtype());
  DType compute = compute_dtype(q.dtype(), "scaled_dot_product_attention");
  Tensor numbers = by_batch(added(mask, scores_of(q, k), compute));
  Options o{compute, q.device()};
  Tensor dq = gradient_of(q, o), dk = gradient_of(k, o), dv = gradient_of(v, o);
  if (grad.numel() && s.keys && !grad.is_meta()) {
    const Tensor g = rows_of(grad, compute), query = rows_of(q, compute), key = rows_of(k, compute),
                 value = rows_of(v, compute), to_q = by_batch(dq), to_k = by_batch(dk),
                 to_v = by_batch(dv);
    visit_floating(compute, "scaled_dot_product_attention", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<AttentionKernels<T>>(q.device())
          .backward(s, matrices<const T>(g), matrices<const T>(query), matrices<const T>(key),
                    matrices<const T>(value), mask_of<T>(numbers), matrices<T>(to_q),
                    matrices<T>(to_k), matrices<T>(to_v));
    });
  }
  return {to(dq, q.dtype()), to(dk, q.dtype()), to(dv, q.dtype())};
}

// The attention weights composed of ops, for gradients that will be differentiated.
Tensor weights_in_ops(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal,
                      double scale) {
  Tensor scores = matmul(q * scale, transpose(k, -2, -1));
  Tensor none = full(Dims{}, Scalar(-std::numeric_limits<double>::infinity()), scores.options());
  if (mask.defined()) scores = scores + added(mask, scores.sizes(), scores.dtype());
  if (causal) {
    Tensor ones = full(Dims{q.size(-2), k.size(-2)}, Scalar(true), {DType::Bool, q.device()});
    scores = where(op<"tril">(ones, int64_t(0)), scores, none);
  }
  if (!mask.defined() || scores.size(-1) == 0) return op<"softmax">(scores, int64_t(-1));
  Tensor sees = op<"amax">(scores, Dims{-1}, true) != none;
  Tensor w = op<"softmax">(where(sees, scores, zeros_like(scores)), int64_t(-1));
  return where(sees, w, zeros_like(w));
}

void attention_gradient(Backward& b) {
  Tensor q = b.arg<Tensor>(kQ), k = b.arg<Tensor>(kK), v = b.arg<Tensor>(kV),
         mask = b.arg<Tensor>(kMask), g = b.grad();
  const bool causal = b.arg<bool>(kCausal);
  const double scale = b.arg<double>(kScale);
  if (!derivative_in_ops()) {
    TensorList r = ops<"_attention_backward">(g, q, k, v, mask, causal, scale);
    for (int i : {kQ, kK, kV}) b.set(i, r[static_cast<size_t>(i)]);
    return;
  }
  Tensor w = weights_in_ops(q, k, mask, causal, scale);
  Tensor dw = matmul(g, transpose(v, -2, -1));
  Tensor ds = w * (dw - sum(dw * w, Dims{-1}, true)) * scale;
  b.set(kQ, matmul(ds, k));
  b.set(kK, matmul(transpose(ds, -2, -1), q));
  b.set(kV, matmul(transpose(w, -2, -1), g));
}

const Define attention_ops[] = {
    {"_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor?, causal: bool, scale: float) -> "
     "Tensor",
     "softmax(scale q k^T + mask) v over the last two dimensions; `mask` is boolean or added and "
     "gets no gradient.",
     kernel(attention),
     {.backward = attention_gradient,
      .saves = saves_arg(kQ) | saves_arg(kK) | saves_arg(kV) | saves_arg(kMask),
      .forms = 0,
      .autocast = Precision::Lower,
      .vmap = vmap::leading(2),
      .flops = Flops::Attention}},
    {"_attention_backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor?, causal: "
     "bool, scale: float) -> (Tensor, Tensor, Tensor)",
     "Gradients of _attention.",
     kernel(gradients),
     {.forms = 0, .flops = Flops::AttentionGradient}},
};

}  // namespace
}  // namespace taeda
