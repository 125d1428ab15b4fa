// Losses over classes: nll_loss and cross_entropy.
#include "kernels/nll.h"

#include "autograd/backward.h"
#include "ops/core/half.h"
#include "ops/core/memory.h"

namespace taeda {
namespace {

void check_reduction(const char* what, int64_t r) {
  check<ValueError>(r >= kUnreduced && r <= kSum, what,
                    "(): reduction must be 0 (none), 1 (mean) or 2 (sum), got ", r);
}

NllShape shape_of(DimsRef x, int64_t ignore_index) {
  NllShape s{1, x[x.size() == 1 ? 0 : 1], 1, ignore_index};
  if (x.size() > 1) s.batch = x[0];
  for (size_t d = 2; d < x.size(); ++d) s.inner *= x[d];
  return s;
}

Dims target_sizes(DimsRef x) {
  Dims d(x);
  d.erase(x.size() == 1 ? 0 : 1);
  return d;
}

void check_nll(const Tensor& self, const Tensor& target, const Tensor& weight) {
  check<ValueError>(
      self.dim() > 0,
      "nll_loss(): input tensor should be 1D, (N, C) or (N, C, *), got a zero-dim tensor");
  check(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8,
        "expected scalar type Long but found ", target.dtype());
  if (self.dim() > 1 && target.dim() > 0) {
    check<ValueError>(self.size(0) == target.size(0), "Expected input batch_size (", self.size(0),
                      ") to match target batch_size (", target.size(0), ").");
  }
  check<ValueError>(
      self.dim() != 1 || target.dim() > 1 || target.numel() == 1,
      "For 1D input, 1D target must have size 1, but got target size: ", target.numel());
  check(same(target.sizes(), target_sizes(self.sizes())),
        "size mismatch (got input: ", to_string(self.sizes()),
        ", target: ", to_string(target.sizes()), ")");
  int64_t classes = self.size(self.dim() == 1 ? 0 : 1);
  if (!weight.defined()) return;
  check(weight.dtype() == self.dtype(), "nll_loss(): weight: expected scalar type ", self.dtype(),
        " but found ", weight.dtype());
  check(weight.dim() == 1 && weight.numel() == classes,
        "weight tensor should be defined either for all ", classes,
        " classes or no classes but got weight tensor of shape: ", to_string(weight.sizes()));
}

template <class T> void check_targets(const NllShape& s, const Tensor& target) {
  const int64_t bad =
      kernels<NllKernels<T>>(target.device()).bad_target(s, target.data_as<int64_t>());
  check<IndexError>(bad == s.ignore_index, "Target ", bad, " is out of bounds: there are ",
                    s.classes, " classes");
}

TensorList nll(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
               int64_t ignore_index) {
  check_reduction("nll_loss", reduction);
  check_nll(self, target, weight);
  DType compute = compute_dtype(self.dtype(), "nll_loss_out_frame");
  Tensor x = prepared(self, compute), w = prepared(weight, compute),
         t = prepared(target, DType::Int64);
  Tensor loss = empty(reduction == kUnreduced ? target_sizes(self.sizes()) : Dims{},
                      {compute, self.device()});
  Tensor total = empty({}, {DType::Float64, self.device()});
  if (loss.is_meta()) return {finished(loss, self.dtype()), total};
  auto s = shape_of(self.sizes(), ignore_index);
  visit_floating(compute, "nll_loss", [&](auto tag) {
    using T = typename decltype(tag)::type;
    check_targets<T>(s, t);
    kernels<NllKernels<T>>(x.device())
        .nll(s, static_cast<Reduction>(reduction), x.data_as<T>(), t.data_as<int64_t>(),
             memory<T>(w), loss.data_as<T>(), total.data_as<double>());
  });
  return {finished(loss, self.dtype()), total};
}

Tensor nll_gradient(const Tensor& grad, const Tensor& target, const Tensor& weight,
                    const Tensor& total, const Dims& sizes, int64_t reduction,
                    int64_t ignore_index) {
  check_reduction("nll_loss_backward", reduction);
  check(!sizes.empty(), "nll_loss_backward(): expected sizes of at least one dimension");
  Dims each(target.sizes());
  auto s = shape_of(sizes, ignore_index);
  check(target.numel() == s.batch * s.inner,
        "nll_loss_backward(): expected one target for each of ", s.batch * s.inner,
        " rows, but got shape ", to_string(each));
  check(grad.numel() == (reduction == kUnreduced ? target.numel() : 1) &&
            grad.is_meta() == target.is_meta(),
        "nll_loss_backward(): grad of shape ", to_string(grad.sizes()),
        " does not fit a target of shape ", to_string(each));
  check(!weight.defined() || weight.numel() == s.classes,
        "nll_loss_backward(): expected weight to have ", s.classes, " elements");
  check(total.numel() == 1 && total.dtype() == DType::Float64,
        "nll_loss_backward(): expected total_weight to be one "
        "float64");
  DType compute = compute_dtype(grad.dtype(), "nll_loss_backward");
  Tensor gx = zeros(sizes, {compute, grad.device()});
  if (gx.is_meta() || gx.numel() == 0) return finished(gx, grad.dtype());
  Tensor g = prepared(grad, compute), w = prepared(weight, compute),
         t = prepared(target, DType::Int64);
  visit_floating(compute, "nll_loss_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    check_targets<T>(s, t);
    kernels<NllKernels<T>>(t.device())
        .nll_backward(s, g.data_as<T>(), reduction == kUnreduced ? 1 : 0,
                      reduction == kMean ? total.data_as<double>() : nullptr, t.data_as<int64_t>(),
                      memory<T>(w), gx.data_as<T>());
  });
  return finished(gx, grad.dtype());
}

void nll_backward(Backward& b) {
  if (!b.grad().defined()) return;
  b.set(0, op<"_nll_loss_backward">(b.grad(), b.arg<Tensor>(1), b.arg<Tensor>(2), b.out(1),
                                    b.sizes(0), b.arg<int64_t>(3), b.arg<int64_t>(4)));
}
void nll_second(Backward& b) {  // the loss is linear in its input
  b.set(0, ops<"_nll_loss">(b.grad(), b.arg<Tensor>(1), b.arg<Tensor>(2), b.arg<int64_t>(5),
                            b.arg<int64_t>(6))[0]);
}

// Returns the loss of logits (N, C), the numbers from which a row's softmax is recomputed, and the
// sum of weights.
TensorList entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                   int64_t reduction, int64_t ignore_index) {
  check_reduction("cross_entropy", reduction);
  check(self.dim() == 2, "cross_entropy(): expected logits of two dimensions, got ", self.dim());
  check_nll(self, target, weight);
  DType compute = compute_dtype(self.dtype(), "cross_entropy");
  const Options real{DType::Float64, self.device()};
  Tensor stats = empty(Dims{self.size(0), 2}, real), total = empty({}, real);
  Tensor loss =
      empty(reduction == kUnreduced ? Dims{self.size(0)} : Dims{}, {compute, self.device()});
  if (loss.is_meta()) return {finished(loss, self.dtype()), stats, total};
  Tensor x = prepared(self, compute), w = prepared(weight, compute),
         t = prepared(target, DType::Int64);
  auto s = shape_of(self.sizes(), ignore_index);
  visit_floating(compute, "cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    check_targets<T>(s, t);
    kernels<NllKernels<T>>(x.device())
        .entropy(s, static_cast<Reduction>(reduction), x.data_as<T>(), t.data_as<int64_t>(),
                 memory<T>(w), loss.data_as<T>(), stats.data_as<double>(), total.data_as<double>());
  });
  return {finished(loss, self.dtype()), stats, total};
}

Tensor entropy_gradient(const Tensor& grad, const Tensor& self, const Tensor& target,
                        const Tensor& weight, const Tensor& stats, const Tensor& total,
                        int64_t reduction, int64_t ignore_index) {
  check_reduction("cross_entropy_backward", reduction);
  check_nll(self, target, weight);
  check(self.dim() == 2 && grad.numel() == (reduction == kUnreduced ? self.size(0) : 1) &&
            grad.is_meta() == self.is_meta(),
        "cross_entropy_backward(): grad of shape ", to_string(grad.sizes()),
        " does not fit logits of shape ", to_string(self.sizes()));
  check(stats.numel() == 2 * self.size(0) && total.numel() == 1 &&
            stats.dtype() == DType::Float64 && total.dtype() == DType::Float64,
        "cross_entropy_backward(): expected the forward's float64 stats and total_weight");
  DType compute = compute_dtype(self.dtype(), "cross_entropy_backward");
  Tensor gx = empty(self.sizes(), {compute, self.device()});
  if (gx.is_meta() || gx.numel() == 0) return finished(gx, self.dtype());
  Tensor g = prepared(grad, compute), x = prepared(self, compute), w = prepared(weight, compute),
         t = prepared(target, DType::Int64), rows = prepared(stats, DType::Float64);
  auto s = shape_of(self.sizes(), ignore_index);
  visit_floating(compute, "cross_entropy_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    check_targets<T>(s, t);
    kernels<NllKernels<T>>(x.device())
        .entropy_backward(s, g.data_as<T>(), reduction == kUnreduced ? 1 : 0,
                          reduction == kMean ? total.data_as<double>() : nullptr, x.data_as<T>(),
                          rows.data_as<double>(), t.data_as<int64_t>(), memory<T>(w),
                          gx.data_as<T>());
  });
  return finished(gx, self.dtype());
}

void entropy_backward(Backward& b) {
  if (!b.grad().defined()) return;
  b.set(0, op<"_cross_entropy_backward">(b.grad(), b.arg<Tensor>(0), b.arg<Tensor>(1),
                                         b.arg<Tensor>(2), b.out(1), b.out(2), b.arg<int64_t>(3),
                                         b.arg<int64_t>(4)));
}
// The gradient of row i is grad_i w_i (softmax(x_i) - onehot(t_i)), w_i the row's weight over the
// total weight.
void entropy_second(Backward& b) {
  Tensor grad = b.arg<Tensor>(0), x = b.arg<Tensor>(1), target = b.arg<Tensor>(2),
         weight = b.arg<Tensor>(3), v = b.grad();
  const int64_t reduction = b.arg<int64_t>(6);
  Tensor ignored = op<"eq">(target, Tensor(Scalar(b.arg<int64_t>(7))));
  Tensor at = op<"masked_fill">(to(target, DType::Int64), ignored, Tensor(0));
  Tensor share = to(!ignored, x.dtype());
  if (weight.defined()) share = share * op<"index_select">(weight, 0, at);
  if (reduction == kMean) share = share / to(b.arg<Tensor>(5), x.dtype());
  Tensor p = op<"softmax">(x, 1), mean = sum(p * v, Dims{1}, true);
  if (b.needs(1)) b.set(1, unsqueeze(grad * share, 1) * p * (v - mean));
  if (b.needs(0)) {
    Tensor each = share * op<"squeeze">(mean - op<"gather">(v, 1, unsqueeze(at, 1)), 1);
    b.set(0, reduction == kUnreduced ? each : op<"sum">(each));
  }
}

Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  return ops<"_nll_loss">(self, target, weight, reduction, ignore_index)[0];
}

Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == kUnreduced) return loss;
  return reduction == kMean ? op<"mean">(loss) : op<"sum">(loss);
}

// Targets that are probabilities, one for each class.
Tensor soft_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, double smoothing) {
  int64_t dim = self.dim() == 1 ? 0 : 1, classes = self.size(dim);
  check(is_floating(target.dtype()),
        "Expected floating point type for target with class probabilities, got ", target.dtype());
  Tensor t =
      smoothing > 0 ? target * (1 - smoothing) + smoothing / static_cast<double>(classes) : target;
  Tensor terms = op<"log_softmax">(self, dim) * t;
  if (weight.defined()) {
    Dims shape(self.sizes().size(), 1);
    shape[static_cast<size_t>(dim)] = classes;
    terms = terms * reshape(weight, shape);
  }
  Tensor loss = -sum(terms, Dims{dim});
  if (reduction == kUnreduced) return loss;
  Tensor total = op<"sum">(loss);
  int64_t count = classes ? self.numel() / classes : 0;
  return reduction == kMean ? total / static_cast<double>(count) : total;
}

Tensor smoothed_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                              int64_t reduction, int64_t ignore_index, double smoothing) {
  int64_t dim = self.dim() == 1 ? 0 : 1, classes = self.size(dim);
  Tensor logp = op<"log_softmax">(self, dim);
  Tensor hard = op<"nll_loss">(logp, target, weight, reduction, ignore_index);
  Tensor terms = logp;
  if (weight.defined()) {
    Dims shape(self.sizes().size(), 1);
    shape[static_cast<size_t>(dim)] = classes;
    terms = logp * reshape(weight, shape);
  }
  Tensor ignored = op<"eq">(target, Tensor(Scalar(ignore_index)));
  Tensor soft = op<"masked_fill">(-sum(terms, Dims{dim}), ignored, Tensor(0));
  if (reduction == kMean) {
    // The mean is over the weights of the counted targets, as for class indices.
    Tensor kept = to(!ignored, self.dtype());
    if (weight.defined()) {
      Tensor safe = op<"masked_fill">(target, ignored, Tensor(0));
      kept = kept * reshape(op<"index_select">(weight, 0, reshape(safe, Dims{-1})), safe.sizes());
    }
    soft = op<"sum">(soft) / op<"sum">(kept);
  } else {
    soft = reduced(soft, reduction);
  }
  return hard * (1 - smoothing) + soft * (smoothing / static_cast<double>(classes));
}

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, double smoothing) {
  check_reduction("cross_entropy", reduction);
  check(self.dim() > 0,
        "cross_entropy(): input must have at least one dimension, got a zero-dim tensor");
  check(smoothing >= 0 && smoothing <= 1,
        "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
  int64_t dim = self.dim() == 1 ? 0 : 1;
  if (same(self.sizes(), target.sizes()) &&
      (is_floating(target.dtype()) || self.dim() != target.dim() + 1)) {
    check(ignore_index < 0,
          "cross_entropy(): ignore_index is not supported for floating point target, got ",
          ignore_index);
    return soft_cross_entropy(self, target, weight, reduction, smoothing);
  }
  if (smoothing > 0) {
    check_nll(self, target, weight);
    return smoothed_cross_entropy(self, target, weight, reduction, ignore_index, smoothing);
  }
  if (self.dim() == 2 && is_floating(self.dtype())) {
    return ops<"_cross_entropy">(self, target, weight, reduction, ignore_index)[0];
  }
  return op<"nll_loss">(op<"log_softmax">(self, dim), target, weight, reduction, ignore_index);
}

const Define nll_ops[] = {
    {"nll_loss(self: Tensor, target: Tensor, weight: Tensor? = None, reduction: int = 1, "
     "ignore_index: int = -100) -> "
     "Tensor",
     "Negative log-likelihood of the classes `target` (N, *) under log-probabilities (N, C, *). "
     "`reduction`: 0 none, 1 "
     "mean weighted by `weight`, 2 sum.",
     kernel(nll_loss),
     {.forms = kFunction,
      .composite = true,
      .module = "nn.functional",
      .autocast = Precision::Float32}},
    {"_nll_loss(self: Tensor, target: Tensor, weight: Tensor?, reduction: int, ignore_index: int) "
     "-> (Tensor, Tensor)",
     "nll_loss and the sum of the weights it counted.",
     kernel(nll),
     {.backward = nll_backward,
      .saves = saves_arg(1) | saves_arg(2) | saves_out(1),
      .forms = 0,
      .non_differentiable = 0b10,
      .autocast = kFloat32OnCuda}},
    {"_nll_loss_backward(grad: Tensor, target: Tensor, weight: Tensor?, total_weight: Tensor, "
     "sizes: int[], reduction: "
     "int, ignore_index: int) -> Tensor",
     "Gradient of nll_loss.",
     kernel(nll_gradient),
     {.backward = nll_second, .saves = saves_arg(1) | saves_arg(2), .forms = 0}},
    {"_cross_entropy(self: Tensor, target: Tensor, weight: Tensor?, reduction: int, ignore_index: "
     "int) -> (Tensor, Tensor, Tensor)",
     "cross_entropy_loss of logits (N, C) and classes (N,), with a row's largest logit and its sum "
     "of exponentials, and the sum of the weights that counted.",
     kernel(entropy),
     {.backward = entropy_backward,
      .saves = saves_arg(0) | saves_arg(1) | saves_arg(2) | saves_out(1) | saves_out(2),
      .forms = 0,
      .non_differentiable = 0b110,
      .autocast = kFloat32OnCpu}},
    {"_cross_entropy_backward(grad: Tensor, self: Tensor, target: Tensor, weight: Tensor?, stats: "
     "Tensor, total_weight: Tensor, reduction: int, ignore_index: int) -> Tensor",
     "Gradient of cross_entropy_loss.",
     kernel(entropy_gradient),
     {.backward = entropy_second,
      .saves = saves_arg(0) | saves_arg(1) | saves_arg(2) | saves_arg(3) | saves_arg(5),
      .forms = 0}},
    {"cross_entropy_loss(self: Tensor, target: Tensor, weight: Tensor? = None, reduction: int = 1, "
     "ignore_index: int = "
     "-100, label_smoothing: float = 0.0) -> Tensor",
     "Cross entropy of logits (N, C, *) and classes (N, *) or class probabilities (N, C, *).",
     kernel(cross_entropy_loss),
     {.forms = 0, .composite = true, .autocast = kFloat32OnCuda}},
};

}  // namespace
}  // namespace taeda
