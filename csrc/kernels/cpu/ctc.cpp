#include "kernels/cpu/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

template <class T> constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T> T log_add(T a, T b) {
  const T most = std::max(a, b);
  if (most == kNever<T>) return most;
  return most + std::log1p(std::exp(std::min(a, b) - most));
}

// The states of one target.
template <class T> class States {
 public:
  States(const CtcBatch<T>& b, int64_t n)
      : labels_(b.targets + b.target_begin[n]),
        blank_(b.blank),
        count_(2 * b.target_lengths[n] + 1) {}
  int64_t count() const { return count_; }
  int64_t label(int64_t s) const { return s % 2 ? labels_[s / 2] : blank_; }
  // Whether a path may go from state s - 2 to s: over a blank between two different labels.
  bool skips(int64_t s) const { return s >= 2 && s % 2 && labels_[s / 2] != labels_[s / 2 - 1]; }

 private:
  const int64_t* labels_;
  int64_t blank_, count_;
};

template <class T> T forward_one(const CtcBatch<T>& b, int64_t n, T* alpha) {
  const States<T> states(b, n);
  const int64_t count = states.count(), steps = b.input_lengths[n];
  const int64_t row = b.batch * b.classes;
  const T* p = b.log_probs + n * b.classes;
  std::fill_n(alpha, b.steps * b.width, kNever<T>);
  if (steps == 0) return count == 1 ? T(0) : -kNever<T>;
  alpha[0] = p[b.blank];
  if (count > 1) alpha[1] = p[states.label(1)];
  for (int64_t t = 1; t < steps; ++t) {
    const T* before = alpha + (t - 1) * b.width;
    T* now = alpha + t * b.width;
    for (int64_t s = 0; s < count; ++s) {
      T sum = before[s];
      if (s > 0) sum = log_add(sum, before[s - 1]);
      if (states.skips(s)) sum = log_add(sum, before[s - 2]);
      now[s] = sum + p[t * row + states.label(s)];
    }
  }
  const T* last = alpha + (steps - 1) * b.width;
  return -(count > 1 ? log_add(last[count - 1], last[count - 2]) : last[0]);
}

template <class T>
void backward_one(const CtcBatch<T>& b, int64_t n, const T* alpha, T loss, T upstream, T* grad) {
  const States<T> states(b, n);
  const int64_t count = states.count(), steps = b.input_lengths[n];
  const int64_t row = b.batch * b.classes;
  const T* p = b.log_probs + n * b.classes;
  std::vector<T> beta(static_cast<size_t>(count)), next(beta),
      through(static_cast<size_t>(b.classes));
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t s = 0; s < count; ++s) {
      const auto i = static_cast<size_t>(s);
      T sum;
      if (t == steps - 1) {
        sum = s >= count - 2 ? T(0) : kNever<T>;
      } else {
        sum = next[i];
        if (s + 1 < count) sum = log_add(sum, next[i + 1]);
        if (s + 2 < count && states.skips(s + 2)) sum = log_add(sum, next[i + 2]);
      }
      beta[i] = sum + p[t * row + states.label(s)];
    }
    // The log probability of all paths through each class at this step, that class counted twice.
    std::fill(through.begin(), through.end(), kNever<T>);
    for (int64_t s = 0; s < count; ++s) {
      T& sum = through[static_cast<size_t>(states.label(s))];
      sum = log_add(sum, alpha[t * b.width + s] + beta[static_cast<size_t>(s)]);
    }
    for (int64_t c = 0; c < b.classes; ++c) {
      const T lp = p[t * row + c];
      grad[t * row + n * b.classes + c] =
          (std::exp(lp) - std::exp(through[static_cast<size_t>(c)] + loss - lp)) * upstream;
    }
    std::swap(beta, next);
  }
}

}  // namespace

template <class T> void ctc_forward(const CtcBatch<T>& b, T* alpha, T* loss) {
  parallel_for(b.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      loss[n] = forward_one(b, n, alpha + n * b.steps * b.width);
  });
}

template <class T>
void ctc_backward(const CtcBatch<T>& b, const T* alpha, const T* loss, const T* upstream,
                  bool skip_infinite, T* grad) {
  parallel_for(b.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      if (skip_infinite && loss[n] == -kNever<T>) continue;
      backward_one(b, n, alpha + n * b.steps * b.width, loss[n], upstream[n], grad);
    }
  });
}

template void ctc_forward(const CtcBatch<float>&, float*, float*);
template void ctc_forward(const CtcBatch<double>&, double*, double*);
template void ctc_backward(const CtcBatch<float>&, const float*, const float*, const float*, bool,
                           float*);
template void ctc_backward(const CtcBatch<double>&, const double*, const double*, const double*,
                           bool, double*);

}  // namespace taeda::cpu
