// Scaled dot-product attention (Vaswani et al. 2017) without materialising the matrix of scores
// (after Dao et al. 2022: one block of queries at a time, recomputed for the gradients).
#include "kernels/attention.h"

#include <limits>

#include "autograd/backward.h"
#include "ops/core/half.h"

namespace taeda {
namespace {

enum Argument { kQ, kK, kV, kMask, kCausal, kScale };
enum Result { kAttended, kLogSums };

template <class F> void visit_attention(DType d, F&& f) {
  if (d == DType::Float16) return f(Tag<Half>{});
  if (d == DType::BFloat16) return f(Tag<BFloat16>{});
  visit_floating(d, "scaled_dot_product_attention", std::forward<F>(f));
}

template <class T> bool has_flash(Device device) {
  using K = FlashAttentionKernels<T>;
  return device.type != DeviceType::CPU && has_kernels<K>(device) && kernels<K>(device).forward;
}
// How a device computes: in which dtype, and whether it keeps the rows' log-sum-exp.
struct Method {
  DType dtype;
  bool flash;
};
Method method_of(const Tensor& q) {
  const DType compute = compute_dtype(q.dtype(), "scaled_dot_product_attention");
  bool flash = false;
  visit_attention(q.dtype(),
                  [&](auto tag) { flash = has_flash<typename decltype(tag)::type>(q.device()); });
  return {flash ? q.dtype() : compute, flash};
}

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

Tensor made(DimsRef sizes, Options o, bool cleared) {
  return cleared ? zeros(sizes, o) : empty(sizes, o);
}

// Made in (batch, token, head, feature) memory order, the layout of the linear layers before and
// after.
Tensor by_token(DimsRef sizes, Options o, bool cleared) {
  if (sizes.size() != 4) return made(sizes, o, cleared);
  return transpose(made(Dims{sizes[0], sizes[2], sizes[1], sizes[3]}, o, cleared), 1, 2);
}

// For the gradient of t, in t's layout if that is contiguous, to avoid a copy.
Tensor gradient_of(const Tensor& t, Options o, bool cleared) {
  return t.is_contiguous() ? made(t.sizes(), o, cleared) : by_token(t.sizes(), o, cleared);
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

TensorList attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                     bool causal, double scale) {
  AttentionShape s = shape_of(q, k, v, causal, scale);
  const auto [dtype, flash] = method_of(q);
  const DType score = compute_dtype(dtype, "scaled_dot_product_attention");
  const Tensor numbers = by_batch(added(mask, scores_of(q, k), score));
  Dims sizes(q.sizes()), rows(q.sizes().first(q.sizes().size() - 1));
  sizes.back() = v.size(-1);
  if (!flash) rows.back() = 0;
  const Tensor log_sums = empty(rows, {score, q.device()});
  const bool any = numel_of(sizes) && s.keys && !q.is_meta();
  Tensor out = by_token(sizes, {dtype, q.device()}, !(flash && any));
  if (any) {
    const Tensor query = rows_of(q, dtype), key = rows_of(k, dtype), value = rows_of(v, dtype),
                 result = by_batch(out);
    visit_attention(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using S = AttentionScore<T>;
      const auto mq = matrices<const T>(query), mk = matrices<const T>(key),
                 mv = matrices<const T>(value);
      if (flash) {
        kernels<FlashAttentionKernels<T>>(q.device())
            .forward(s, mq, mk, mv, mask_of<S>(numbers), matrices<T>(result),
                     log_sums.data_as<S>());
      } else if constexpr (std::is_same_v<T, S>) {
        kernels<AttentionKernels<T>>(q.device())
            .attention(s, mq, mk, mv, mask_of<T>(numbers), matrices<T>(result));
      }
    });
  }
  return {to(out, q.dtype()), log_sums};
}

TensorList gradients(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                     const Tensor& mask, const Tensor& out, const Tensor& log_sums, bool causal,
                     double scale) {
  AttentionShape s = shape_of(q, k, v, causal, scale);
  const int64_t rows = s.batch * s.heads * s.queries;
  const auto fits = [&](const Tensor& t) {
    return t.sizes().size() == q.sizes().size() && t.numel() == rows * s.value_size &&
           t.size(-1) == s.value_size && t.dtype() == q.dtype();
  };
  check(fits(grad) && fits(out),
        "_attention_backward(): expected grad and out of the result's shape and dtype, got ",
        to_string(grad.sizes()), " and ", grad.dtype(), ", ", to_string(out.sizes()), " and ",
        out.dtype());
  const auto [dtype, flash] = method_of(q);
  const DType score = compute_dtype(dtype, "scaled_dot_product_attention");
  check(!flash || log_sums.numel() == rows, "_attention_backward(): expected log_sums of ", rows,
        " rows, got ", to_string(log_sums.sizes()));
  const Tensor numbers = by_batch(added(mask, scores_of(q, k), score));
  const Options o{dtype, q.device()};
  const bool any = grad.numel() && s.keys && !grad.is_meta();
  const bool cleared = !(flash && any);
  Tensor dq = gradient_of(q, o, cleared), dk = gradient_of(k, o, cleared),
         dv = gradient_of(v, o, cleared);
  if (any) {
    const Tensor g = rows_of(grad, dtype), query = rows_of(q, dtype), key = rows_of(k, dtype),
                 value = rows_of(v, dtype), result = rows_of(out, dtype),
                 sums = contiguous(log_sums), to_q = by_batch(dq), to_k = by_batch(dk),
                 to_v = by_batch(dv);
    visit_attention(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using S = AttentionScore<T>;
      const auto mg = matrices<const T>(g), mq = matrices<const T>(query),
                 mk = matrices<const T>(key), mv = matrices<const T>(value);
      const auto mdq = matrices<T>(to_q), mdk = matrices<T>(to_k), mdv = matrices<T>(to_v);
      if (flash) {
        kernels<FlashAttentionKernels<T>>(q.device())
            .backward(s, mg, mq, mk, mv, mask_of<S>(numbers), matrices<const T>(result),
                      sums.data_as<S>(), mdq, mdk, mdv);
      } else if constexpr (std::is_same_v<T, S>) {
        kernels<AttentionKernels<T>>(q.device())
            .backward(s, mg, mq, mk, mv, mask_of<T>(numbers), mdq, mdk, mdv);
      }
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
    TensorList r = ops<"_attention_backward">(g, q, k, v, mask, b.out(kAttended), b.out(kLogSums),
                                              causal, scale);
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
     "(Tensor, Tensor)",
     "softmax(scale q k^T + mask) v over the last two dimensions; `mask` is boolean or added and "
     "gets no gradient. Besides, the rows' log-sum-exp on devices that keep it, or nothing.",
     kernel(attention),
     {.backward = attention_gradient,
      .saves = saves_arg(kQ) | saves_arg(kK) | saves_arg(kV) | saves_arg(kMask) |
               saves_out(kAttended) | saves_out(kLogSums),
      .forms = 0,
      .non_differentiable = 1u << kLogSums,
      .autocast = Precision::Lower,
      .vmap = vmap::leading(2),
      .flops = Flops::Attention}},
    {"_attention_backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor?, out: "
     "Tensor, log_sums: Tensor, causal: bool, scale: float) -> (Tensor, Tensor, Tensor)",
     "Gradients of _attention, whose results are `out` and `log_sums`.",
     kernel(gradients),
     {.forms = 0, .flops = Flops::AttentionGradient}},
};

}  // namespace
}  // namespace taeda
