// Connectionist temporal classification (Graves et al. 2006): sums over all alignments of a target
// with a sequence.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// One batch. The states of a target of length s are blank, label, blank, ..., label, blank: 2 s
// + 1.
template <class T> struct CtcBatch {
  int64_t steps, batch, classes, blank;  // log_probs: (steps, batch, classes)
  int64_t width;                         // states that `alpha` has room for
  const T* log_probs;
  const int64_t* targets;         // all labels
  const int64_t* target_begin;    // where each one's begin
  const int64_t* target_lengths;  // how many
  const int64_t* input_lengths;
};

// alpha (batch, steps, width): the log probability of all ways to each state; loss (batch).
template <class T> void ctc_forward(const CtcBatch<T>& b, T* alpha, T* loss);

// grad (steps, batch, classes), zeroed before: by log_probs that come out of log_softmax, times
// `upstream` (batch). `skip_infinite`: a batch of infinite loss gets none.
template <class T>
void ctc_backward(const CtcBatch<T>& b, const T* alpha, const T* loss, const T* upstream,
                  bool skip_infinite, T* grad);

}  // namespace taeda::cpu
