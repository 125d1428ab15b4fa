#include "kernels/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/nn/simd/ctc.h"

namespace taeda::cpu {
namespace {

template <class T> const auto& ctc_loops() { return typed<T>(TAEDA_PICK(ctc_kernels)); }

template <class T> constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T> T log_add(T a, T b) {
  const T most = std::max(a, b);
  if (most == kNever<T>) return most;
  return most + std::log1p(std::exp(std::min(a, b) - most));
}

// The states of one target, and what is known of them at one step.
template <class T> class States {
 public:
  States(const CtcShape& b, int64_t n)
      : labels_(b.targets + b.target_begin[n]),
        blank_(b.blank),
        count_(2 * b.target_lengths[n] + 1),
        gate_(size()),
        log_prob_(size()),
        last_(size(), kNever<T>) {
    for (int64_t s = 0; s < count_ + 2; ++s)
      gate_[static_cast<size_t>(s)] = skips(s) ? 0 : kNever<T>;
  }
  int64_t count() const { return count_; }
  int64_t label(int64_t s) const { return s % 2 ? labels_[s / 2] : blank_; }

  // The log probabilities of the states' labels, from those of all classes.
  const T* look_up(const T* p) {
    for (int64_t s = 0; s < count_; ++s) log_prob_[static_cast<size_t>(s)] = p[label(s)];
    return log_prob_.data();
  }
  // To `now`, from what `remember` was given last: the states before, or those behind.
  void forward(const T* p, T* now) const {
    ctc_loops<T>().step(last() + 2, last() + 1, last(), gate_.data(), p, count_, now);
  }
  void backward(const T* p, T* now) const {
    ctc_loops<T>().step(last(), last() + 1, last() + 2, gate_.data() + 2, p, count_, now);
  }
  void remember(const T* now, int64_t behind) { std::copy_n(now, count_, last_.data() + behind); }

 private:
  size_t size() const { return static_cast<size_t>(count_) + 2; }
  const T* last() const { return last_.data(); }
  // Whether a path may go from state s - 2 to s: over a blank between two different labels.
  bool skips(int64_t s) const {
    return s >= 2 && s < count_ && s % 2 && labels_[s / 2] != labels_[s / 2 - 1];
  }

  const int64_t* labels_;
  int64_t blank_, count_;
  // last_: the states of the step before, with two in front, or behind, that no path is in.
  std::vector<T> gate_, log_prob_, last_;
};

template <class T> T forward_one(const CtcShape& b, int64_t n, const T* log_probs, T* alpha) {
  States<T> states(b, n);
  const int64_t count = states.count(), steps = b.input_lengths[n];
  const int64_t row = b.batch * b.classes;
  const T* p = log_probs + n * b.classes;
  if (steps == 0) return count == 1 ? T(0) : -kNever<T>;
  std::fill_n(alpha, count, kNever<T>);
  alpha[0] = p[b.blank];
  if (count > 1) alpha[1] = p[states.label(1)];
  for (int64_t t = 1; t < steps; ++t) {
    states.remember(alpha + (t - 1) * b.width, 2);
    states.forward(states.look_up(p + t * row), alpha + t * b.width);
  }
  const T* last = alpha + (steps - 1) * b.width;
  return -(count > 1 ? log_add(last[count - 1], last[count - 2]) : last[0]);
}

template <class T>
void backward_one(const CtcShape& b, int64_t n, const T* log_probs, const T* alpha, T loss,
                  T upstream, T* grad) {
  States<T> states(b, n);
  const int64_t count = states.count(), steps = b.input_lengths[n];
  const int64_t row = b.batch * b.classes;
  const T* p = log_probs + n * b.classes;
  std::vector<T> beta(static_cast<size_t>(count)), share(beta),
      through(static_cast<size_t>(b.classes));
  for (int64_t t = steps - 1; t >= 0; --t) {
    const T* here = states.look_up(p + t * row);
    if (t == steps - 1) {
      for (int64_t s = 0; s < count; ++s)
        beta[static_cast<size_t>(s)] = s >= count - 2 ? here[s] : kNever<T>;
    } else {
      states.backward(here, beta.data());
    }
    states.remember(beta.data(), 0);
    // The probability of all paths through each class at this step.
    ctc_loops<T>().through(alpha + t * b.width, beta.data(), here, loss, count, share.data());
    std::fill(through.begin(), through.end(), T(0));
    for (int64_t s = 0; s < count; ++s)
      through[static_cast<size_t>(states.label(s))] += share[static_cast<size_t>(s)];
    ctc_loops<T>().differences(p + t * row, through.data(), loss, upstream, b.classes,
                               grad + t * row + n * b.classes);
  }
}

int64_t bad_label(const CtcShape& b) {
  for (int64_t n = 0; n < b.batch; ++n) {
    const int64_t* labels = b.targets + b.target_begin[n];
    for (int64_t i = 0; i < b.target_lengths[n]; ++i) {
      if (labels[i] < 0 || labels[i] >= b.classes) return labels[i];
    }
  }
  return b.blank;
}

template <class T>
void ctc_forward(const CtcShape& b, const T* log_probs, bool zero_infinity, T* alpha, T* loss) {
  parallel_each(b.batch, 1, [&](int64_t n) {
    loss[n] = forward_one(b, n, log_probs, alpha + n * b.steps * b.width);
    if (zero_infinity && std::isinf(loss[n])) loss[n] = 0;
  });
}

template <class T>
void ctc_backward(const CtcShape& b, const T* log_probs, const T* alpha, const T* loss,
                  const T* upstream, bool skip_infinite, T* grad) {
  parallel_each(b.batch, 1, [&](int64_t n) {
    if (skip_infinite && loss[n] == -kNever<T>) return;
    backward_one(b, n, log_probs, alpha + n * b.steps * b.width, loss[n], upstream[n], grad);
  });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(CtcKernels, cpu::bad_label, cpu::ctc_forward<T>, cpu::ctc_backward<T>)
