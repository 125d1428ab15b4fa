// The loss of connectionist temporal classification.
#include "kernels/ctc.h"

#include "ops/core/half.h"
#include "ops/index/util.h"

namespace taeda {
namespace {

// Validated labels and lengths, owned while a kernel runs.
struct Alignment {
  Tensor targets;
  Dims begin, target_lengths, input_lengths;
  int64_t longest = 0;
  Dims ways(const Tensor& log_probs) const {
    return {log_probs.size(1), log_probs.size(0), 2 * longest + 1};
  }
};

Alignment alignment(const Tensor& log_probs, const Tensor& targets, const Dims& input_lengths,
                    const Dims& target_lengths, int64_t blank) {
  const char* what = "ctc_loss(): ";
  check(log_probs.dim() == 3, what, "log_probs must be (T, N, C), got shape ",
        to_string(log_probs.sizes()));
  const int64_t steps = log_probs.size(0), batch = log_probs.size(1), classes = log_probs.size(2);
  check(is_index_dtype(targets.dtype()), what, "targets must be int32 or int64, got ",
        targets.dtype());
  check(blank >= 0 && blank < classes, what, "blank must be in label range");
  check(static_cast<int64_t>(input_lengths.size()) == batch, what,
        "input_lengths must be of size batch_size ", batch, ", got ", input_lengths.size());
  check(static_cast<int64_t>(target_lengths.size()) == batch, what,
        "target_lengths must be of size batch_size ", batch, ", got ", target_lengths.size());
  Alignment a{index_values(targets), {}, target_lengths, input_lengths};
  const bool joined = targets.dim() == 1;
  check(joined || (targets.dim() == 2 && targets.size(0) == batch), what,
        "targets must be (N, S) or (sum of target_lengths), got shape ",
        to_string(targets.sizes()));
  int64_t at_label = 0;
  for (size_t n = 0; n < target_lengths.size(); ++n) {
    const int64_t length = target_lengths[n];
    check(length >= 0, what, "Expected target_lengths to have value at least 0, but got ", length);
    check(joined || length <= targets.size(1), what, "Expected targets to have at least ", length,
          " labels, got ", to_string(targets.sizes()));
    check(input_lengths[n] >= 0 && input_lengths[n] <= steps, what,
          "Expected input_lengths to have value between 0 and ", steps, ", but got ",
          input_lengths[n]);
    a.begin.push_back(joined ? at_label : static_cast<int64_t>(n) * targets.size(1));
    at_label += length;
    a.longest = std::max(a.longest, length);
  }
  check(!joined || at_label <= targets.numel(), what, "Expected ", at_label,
        " labels in targets, but got ", targets.numel());
  return a;
}

CtcShape shape_of(const Tensor& log_probs, const Alignment& a, int64_t blank) {
  return {log_probs.size(0),     log_probs.size(1),
          log_probs.size(2),     blank,
          2 * a.longest + 1,     a.targets.data_as<int64_t>(),
          a.begin.data(),        a.target_lengths.data(),
          a.input_lengths.data()};
}

// Refuses labels that are no classes.
template <class T> void check_labels(const CtcKernels<T>& f, const CtcShape& s) {
  const int64_t bad = f.bad_label(s);
  check(bad >= 0 && bad < s.classes, "ctc_loss(): label ", bad, " is out of the range of ",
        s.classes, " classes");
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Dims& input_lengths,
                const Dims& target_lengths, int64_t blank, bool zero_infinity) {
  const DType d = log_probs.dtype();
  compute_dtype(d, "ctc_loss");
  Alignment a = alignment(log_probs, targets, input_lengths, target_lengths, blank);
  Tensor p = prepared(log_probs, d), loss = empty(Dims{log_probs.size(1)}, log_probs.options());
  if (log_probs.is_meta()) return loss;
  visit_floating(d, "ctc_loss", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor alpha = empty(a.ways(log_probs), log_probs.options());
    const auto& f = kernels<CtcKernels<T>>(p.device());
    const CtcShape s = shape_of(p, a, blank);
    check_labels(f, s);
    f.forward(s, p.data_as<T>(), zero_infinity, alpha.data_as<T>(), loss.data_as<T>());
  });
  return loss;
}

// Recomputes the forward variables: saving them would take more memory than the input.
Tensor ctc_gradient(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                    const Dims& input_lengths, const Dims& target_lengths, int64_t blank,
                    bool zero_infinity) {
  const DType d = log_probs.dtype();
  Alignment a = alignment(log_probs, targets, input_lengths, target_lengths, blank);
  check(same(grad.sizes(), Dims{log_probs.size(1)}), "_ctc_loss_backward(): grad must have shape [",
        log_probs.size(1), "], got ", to_string(grad.sizes()));
  Tensor p = prepared(log_probs, d), g = prepared(grad, d), out = raw_zeros(p.sizes(), p.options());
  if (p.is_meta()) return out;
  visit_floating(d, "ctc_loss", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto& f = kernels<CtcKernels<T>>(p.device());
    const CtcShape s = shape_of(p, a, blank);
    check_labels(f, s);
    Tensor alpha = empty(a.ways(p), p.options()), loss = empty(grad.sizes(), p.options());
    f.forward(s, p.data_as<T>(), false, alpha.data_as<T>(), loss.data_as<T>());
    f.backward(s, p.data_as<T>(), alpha.data_as<T>(), loss.data_as<T>(), g.data_as<T>(),
               zero_infinity, out.data_as<T>());
  });
  return out;
}
void ctc_backward(Backward& b) {
  b.set(0, op<"_ctc_loss_backward">(b.grad(), b.arg<Tensor>(0), b.arg<Tensor>(1), b.arg<Dims>(2),
                                    b.arg<Dims>(3), b.arg<int64_t>(4), b.arg<bool>(5)));
}

const Define kCtcOps[] = {
    {"_ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: int[], target_lengths: int[], "
     "blank: int, zero_infinity: bool) -> Tensor",
     "Minus the log probability of each target (N): the sum over all its alignments with log_probs "
     "(T, N, C).",
     kernel(ctc_loss),
     {.backward = ctc_backward, .saves = saves_arg(0) | saves_arg(1), .autocast = kFloat32OnCuda}},
    {"_ctc_loss_backward(grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: int[], "
     "target_lengths: int[], blank: int, zero_infinity: bool) -> Tensor",
     "The gradient of `_ctc_loss` by log_probs that log_softmax has made.", kernel(ctc_gradient)},
};

}  // namespace
}  // namespace taeda
