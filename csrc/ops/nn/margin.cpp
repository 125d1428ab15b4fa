// Margin losses: multi_margin_loss and multilabel_margin_loss.
#include "kernels/margin.h"

#include "autograd/backward.h"
#include "ops/core/half.h"
#include "ops/core/memory.h"
#include "ops/index/util.h"

namespace taeda {
namespace {

struct Scores {
  MarginShape shape;
  Dims each;  // the shape of the unreduced losses
};

// Interprets scores of shape (N, C), (C,) or (), a vector of one class.
Scores scores_of(const char* what, DimsRef x, int64_t reduction) {
  check<ValueError>(reduction >= kUnreduced && reduction <= kSum, what,
                    "(): reduction must be 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  check(x.size() <= 2 && (x.empty() || x.back() > 0), what,
        ": expected a vector or matrix of scores, not empty but for its rows, got shape ",
        to_string(x));
  const int64_t classes = x.empty() ? 1 : x.back();
  return {{x.size() == 2 ? x[0] : 1, classes}, x.size() == 2 ? Dims{x[0]} : Dims{}};
}

Tensor checked_targets(const char* what, const Tensor& target, int64_t low, int64_t classes) {
  return inside(prepared(target, DType::Int64), low, classes, [&](int64_t bad) {
    fail(what, ": target ", bad, " is out of range for ", classes, " classes");
  });
}

void check_gradient(const char* what, const Tensor& grad, const Tensor& self, int64_t expected) {
  check(grad.numel() == expected && grad.is_meta() == self.is_meta(), what,
        "_backward(): grad of shape ", to_string(grad.sizes()), " does not fit scores of shape ",
        to_string(self.sizes()));
}

// run(kernels, memory of the result) computes the loss, of one type.
template <class F>
Tensor loss_of(const Scores& s, int64_t reduction, const Tensor& self, DType compute, F&& run) {
  Tensor loss = empty(reduction == kUnreduced ? s.each : Dims{}, {compute, self.device()});
  if (loss.is_meta()) return finished(loss, self.dtype());
  visit_floating(compute, "margin_loss", [&](auto tag) {
    using T = typename decltype(tag)::type;
    run(kernels<MarginKernels<T>>(self.device()), loss.data_as<T>());
  });
  return finished(loss, self.dtype());
}

double share(int64_t reduction, int64_t rows) {
  return reduction == kMean ? 1 / static_cast<double>(rows) : 1;
}

// ---- one right class ----

void check_one_right(const Scores& s, const Tensor& self, const Tensor& target, double p,
                     const Tensor& weight) {
  check<ValueError>(p == 1 || p == 2, "multi_margin_loss: only p == 1 and p == 2 supported, got ",
                    p);
  check<ValueError>(!weight.defined() || weight.dim() == 1,
                    "multi_margin_loss: weight must be one-dimensional, got shape ",
                    to_string(weight.defined() ? weight.sizes() : DimsRef()));
  check(target.dtype() == DType::Int64, "multi_margin_loss: expected scalar type Long but found ",
        target.dtype());
  check(target.dim() <= 1 && target.numel() == s.shape.rows,
        "multi_margin_loss: expected one target for each of ", s.shape.rows,
        " rows of scores, but got shape ", to_string(target.sizes()));
  if (!weight.defined()) return;
  check(weight.numel() == s.shape.classes, "multi_margin_loss: inconsistent weight size, expected ",
        s.shape.classes, " but got ", to_string(weight.sizes()));
  check(weight.dtype() == self.dtype(), "multi_margin_loss: weight: expected scalar type ",
        self.dtype(), " but found ", weight.dtype());
}

template <class T>
OneRightClass<T> one_right(const Tensor& target, const Tensor& weight, double p, double margin) {
  return {target.data_as<int64_t>(), memory<T>(weight), static_cast<T>(margin), p == 2};
}

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, double p, double margin,
                         const Tensor& weight, int64_t reduction) {
  constexpr const char* name = "multi_margin_loss";
  Scores s = scores_of(name, self.sizes(), reduction);
  check_one_right(s, self, target, p, weight);
  if (self.dim() < 2) s.each = Dims(target.sizes());
  const DType compute = compute_dtype(self.dtype(), name);
  Tensor x = prepared(self, compute), w = prepared(weight, compute), t = target;
  if (!self.is_meta()) t = checked_targets(name, target, 0, s.shape.classes);
  return loss_of(s, reduction, self, compute,
                 [&]<class T>(const MarginKernels<T>& margins, T* loss) {
                   margins.one_right(s.shape, static_cast<Reduction>(reduction), x.data_as<T>(),
                                     one_right<T>(t, w, p, margin), loss);
                 });
}

Tensor multi_margin_gradient(const Tensor& grad, const Tensor& self, const Tensor& target, double p,
                             double margin, const Tensor& weight, int64_t reduction) {
  constexpr const char* name = "multi_margin_loss";
  const Scores s = scores_of(name, self.sizes(), reduction);
  check_one_right(s, self, target, p, weight);
  check_gradient(name, grad, self, reduction == kUnreduced ? s.shape.rows : 1);
  const DType compute = compute_dtype(self.dtype(), name);
  Tensor gx = empty(self.sizes(), {compute, self.device()});
  if (gx.is_meta() || gx.numel() == 0) return finished(gx, self.dtype());
  Tensor g = prepared(grad, compute), x = prepared(self, compute), w = prepared(weight, compute),
         t = checked_targets(name, target, 0, s.shape.classes);
  visit_floating(compute, name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<MarginKernels<T>>(x.device())
        .one_right_backward(s.shape, g.data_as<T>(), reduction == kUnreduced ? 1 : 0,
                            share(reduction, s.shape.rows), x.data_as<T>(),
                            one_right<T>(t, w, p, margin), gx.data_as<T>());
  });
  return finished(gx, self.dtype());
}

void multi_margin_backward(Backward& b) {
  const Tensor x = b.arg<Tensor>(0), target = b.arg<Tensor>(1), weight = b.arg<Tensor>(4);
  const double p = b.arg<double>(2), margin = b.arg<double>(3);
  const auto reduction = b.arg<int64_t>(5);
  if (!derivative_in_ops()) {
    b.set(0, op<"_multi_margin_loss_backward">(b.grad(), x, target, p, margin, weight, reduction));
    return;
  }
  const auto [rows, classes] = scores_of("multi_margin_loss", x.sizes(), reduction).shape;
  const Tensor scores = reshape(x, Dims{rows, classes}), at = reshape(target, Dims{rows, 1});
  const Tensor z = scores - op<"gather">(scores, 1, at) + margin;
  Tensor derivative = to(z > Tensor(0), x.dtype());
  if (p == 2) derivative = derivative * z * 2.0;
  derivative = op<"scatter">(derivative, 1, at, zeros(Dims{rows, 1}, x.options()));
  Tensor g = b.grad() * (share(reduction, rows) / static_cast<double>(classes));
  if (weight.defined()) g = g * op<"index_select">(weight, 0, reshape(target, Dims{rows}));
  g = reshape(expand(reduction == kUnreduced ? reshape(g, Dims{rows}) : g, Dims{rows}),
              Dims{rows, 1});
  const Tensor each = derivative * g;
  b.set(0, reshape(op<"scatter">(each, 1, at, -sum(each, Dims{1}, true)), x.sizes()));
}

// ---- any number of right classes ----

void check_many_right(const Tensor& self, const Tensor& target) {
  check(target.dtype() == DType::Int64,
        "multilabel_margin_loss: expected scalar type Long but found ", target.dtype());
  check(same(target.sizes(), self.sizes()) ||
            (self.dim() < 2 && target.dim() < 2 && self.numel() == 1 && target.numel() == 1),
        "multilabel_margin_loss: inconsistent target size: ", to_string(target.sizes()),
        " for input of size: ", to_string(self.sizes()));
}

Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  constexpr const char* name = "multilabel_margin_loss";
  const Scores s = scores_of(name, self.sizes(), reduction);
  check_many_right(self, target);
  const DType compute = compute_dtype(self.dtype(), name);
  Tensor x = prepared(self, compute), t = target;
  if (!self.is_meta()) t = checked_targets(name, target, -1, s.shape.classes);
  return loss_of(s, reduction, self, compute,
                 [&]<class T>(const MarginKernels<T>& margins, T* loss) {
                   margins.many_right(s.shape, static_cast<Reduction>(reduction), x.data_as<T>(),
                                      t.data_as<int64_t>(), loss);
                 });
}

Tensor multilabel_margin_gradient(const Tensor& grad, const Tensor& self, const Tensor& target,
                                  int64_t reduction) {
  constexpr const char* name = "multilabel_margin_loss";
  const Scores s = scores_of(name, self.sizes(), reduction);
  check_many_right(self, target);
  check_gradient(name, grad, self, reduction == kUnreduced ? s.shape.rows : 1);
  const DType compute = compute_dtype(self.dtype(), name);
  Tensor gx = empty(self.sizes(), {compute, self.device()});
  if (gx.is_meta() || gx.numel() == 0) return finished(gx, self.dtype());
  Tensor g = prepared(grad, compute), x = prepared(self, compute),
         t = checked_targets(name, target, -1, s.shape.classes);
  visit_floating(compute, name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<MarginKernels<T>>(x.device())
        .many_right_backward(s.shape, g.data_as<T>(), reduction == kUnreduced ? 1 : 0,
                             share(reduction, s.shape.rows), x.data_as<T>(), t.data_as<int64_t>(),
                             gx.data_as<T>());
  });
  return finished(gx, self.dtype());
}

void multilabel_margin_backward(Backward& b) {
  const auto reduction = b.arg<int64_t>(2);
  b.set(0, op<"_multilabel_margin_loss_backward">(b.grad(), b.arg<Tensor>(0), b.arg<Tensor>(1),
                                                  reduction));
}
// The gradient is that of the losses' sum, times grad for each row.
void multilabel_margin_second(Backward& b) {
  const Tensor grad = b.arg<Tensor>(0), x = b.arg<Tensor>(1), target = b.arg<Tensor>(2);
  const auto reduction = b.arg<int64_t>(3);
  const Tensor one = ones_like(grad);
  Tensor derivative = op<"_multilabel_margin_loss_backward">(one, x, target, reduction);
  if (b.needs(1)) b.set(1, zeros_like(x));
  derivative = b.grad() * derivative;
  if (reduction == kUnreduced && x.dim() == 2) b.set(0, sum(derivative, Dims{1}));
  else b.set(0, reshape(op<"sum">(derivative), grad.sizes()));
}

constexpr uint32_t kSavesBoth = saves_arg(0) | saves_arg(1);

const Define kMarginOps[] = {
    {"multi_margin_loss(self: Tensor, target: Tensor, p: float = 1.0, margin: float = 1.0, weight: "
     "Tensor? = None, reduction: int = 1) -> Tensor",
     "For each row of scores `self` (N, C) the sum over the classes but the right one, `target`, "
     "of "
     "`max(0, margin - self[right] + self[wrong]) ** p`, times `weight[right]`, over C; averaged "
     "(`reduction` 1), summed (2) or for each row (0). `p` is 1 or 2.",
     kernel(multi_margin_loss),
     {.backward = multi_margin_backward,
      .saves = kSavesBoth | saves_arg(4),
      .forms = 0,
      .autocast = kFloat32OnCuda}},
    {"_multi_margin_loss_backward(grad: Tensor, self: Tensor, target: Tensor, p: float, margin: "
     "float, weight: Tensor?, reduction: int) -> Tensor",
     "The gradient of `multi_margin_loss`.", kernel(multi_margin_gradient)},
    {"multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor",
     "For each row of scores `self` (N, C) the sum over right and wrong classes of `max(0, 1 - "
     "self[right] + self[wrong])`, over C. A row of `target` names the right classes, up to its "
     "first -1. Reduced as in multi_margin_loss.",
     kernel(multilabel_margin_loss),
     {.backward = multilabel_margin_backward,
      .saves = kSavesBoth,
      .forms = 0,
      .autocast = kFloat32OnCuda}},
    {"_multilabel_margin_loss_backward(grad: Tensor, self: Tensor, target: Tensor, reduction: int) "
     "-> Tensor",
     "The gradient of `multilabel_margin_loss`.",
     kernel(multilabel_margin_gradient),
     {.backward = multilabel_margin_second, .saves = saves_arg(0) | saves_arg(1) | saves_arg(2)}},
};

}  // namespace
}  // namespace taeda
