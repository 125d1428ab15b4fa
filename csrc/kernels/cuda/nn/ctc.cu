// Connectionist temporal classification (Graves et al. 2006): a block has a target, and its threads
// the target's states, step by step.
#include "kernels/ctc.h"

#include "kernels/cuda/common/fault.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/nn/tables.h"
#include "kernels/functors/elementary.h"

namespace taeda::cuda {
namespace {

// Where a target's labels begin, how many there are, and how many steps.
struct Extent {
  int64_t begin, labels, steps;
};
// Some neighbouring targets. Their extents are arguments of kernels, so that the host need not wait
// for a copy.
struct Batch {
  static constexpr int64_t kMost = 128;
  int64_t steps, batch, classes, blank, width;
  const int64_t* targets;
  int64_t first;
  Extent extents[kMost];
};
// run(batch, how many) for all targets.
template <class F> void each_batch(const CtcShape& s, F run) {
  Batch b{s.steps, s.batch, s.classes, s.blank, s.width, s.targets, 0, {}};
  for (; b.first < s.batch; b.first += Batch::kMost) {
    const int64_t count = std::min(Batch::kMost, s.batch - b.first);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t n = b.first + i;
      b.extents[i] = {s.target_begin[n], s.target_lengths[n], s.input_lengths[n]};
    }
    run(b, static_cast<unsigned>(count));
  }
}

// The states of one target: blank, label, blank, ..., label, blank.
struct States {
  const int64_t* labels;
  int64_t blank, classes, count, steps;

  __device__ explicit States(const Batch& b)
      : labels(b.targets + b.extents[blockIdx.x].begin),
        blank(b.blank),
        classes(b.classes),
        count(2 * b.extents[blockIdx.x].labels + 1),
        steps(b.extents[blockIdx.x].steps) {}
  __device__ int64_t label(int64_t s) const {
    const int64_t own = s % 2 ? labels[s / 2] : blank;
    return own >= 0 && own < classes ? own : blank;  // it has been reported
  }
  // Whether a path may go from state s - 2 to s: over a blank between two different labels.
  __device__ bool skips(int64_t s) const {
    return s >= 2 && s < count && s % 2 && label(s) != label(s - 2);
  }
};

template <class T> __device__ T never() { return -static_cast<T>(portable::kInf); }
template <class T> __device__ T log_sum(T a, T b, T c) {
  const T most = ::fmax(a, ::fmax(b, c));
  if (most == never<T>()) return most;
  return most + ::log(::exp(a - most) + ::exp(b - most) + ::exp(c - most));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    run_forward(const __grid_constant__ Batch b, const T* log_probs, bool zero_infinity, T* alpha,
                T* loss) {
  const int64_t n = b.first + blockIdx.x, row = b.batch * b.classes;
  const States states(b);
  const T* p = log_probs + n * b.classes;
  alpha += n * b.steps * b.width;
  for (int64_t t = 0; t < states.steps; ++t) {
    const T *before = alpha + (t - 1) * b.width, *here = p + t * row;
    for (int64_t s = threadIdx.x; s < states.count; s += blockDim.x) {
      T ways = s < 2 ? T(0) : never<T>();  // to the first step's states
      if (t > 0)
        ways = log_sum(before[s], s > 0 ? before[s - 1] : never<T>(),
                       states.skips(s) ? before[s - 2] : never<T>());
      alpha[t * b.width + s] = ways + here[states.label(s)];
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const T* last = alpha + (states.steps - 1) * b.width;
  T all = states.count == 1 ? T(0) : never<T>();  // of no steps
  if (states.steps > 0)
    all = states.count == 1 ? last[0]
                            : log_sum(last[states.count - 1], last[states.count - 2], never<T>());
  loss[n] = zero_infinity && ::isinf(all) ? T(0) : -all;
}

// What the states of one step have: the log probability of all ways from them to the end, which
// two steps take turns in, and their share in all paths.
template <class T> struct Memory {
  T *beta, *share;
  int32_t* next;   // the next state of the same label, or -1
  bool* is_first;  // of its label
};

// (exp(p) - sum) * scale; NaN where there is no such gradient.
template <class T> __device__ T difference(T p, T sum, T loss, T scale) {
  if (::isinf(p) || ::isinf(loss)) return static_cast<T>(portable::kNan);
  return (::exp(p) - sum) * scale;
}
template <class T>
__global__ void __launch_bounds__(kThreads)
    run_backward(const __grid_constant__ Batch b, const T* log_probs, const T* alpha,
                 const T* losses, const T* upstream, bool skip_infinite, Memory<T> memory,
                 T* grad) {
  const int64_t n = b.first + blockIdx.x, row = b.batch * b.classes;
  const States states(b);
  const T loss = losses[n], scale = upstream[n];
  if (skip_infinite && loss == -never<T>()) return;
  T *beta = memory.beta + n * 2 * b.width, *share = memory.share + n * b.width;
  int32_t* next = memory.next + n * b.width;
  bool* is_first = memory.is_first + n * b.width;
  for (int64_t s = threadIdx.x; s < states.count; s += blockDim.x) {
    const auto is_alike = [&](int64_t k) { return states.label(k) == states.label(s); };
    int64_t behind = s + 1, before = s - 1;
    while (behind < states.count && !is_alike(behind)) ++behind;
    while (before >= 0 && !is_alike(before)) --before;
    next[s] = behind < states.count ? static_cast<int32_t>(behind) : -1;
    is_first[s] = before < 0;
  }
  for (int64_t t = states.steps - 1; t >= 0; --t) {
    const T *behind = beta + (t + 1) % 2 * b.width, *here = log_probs + n * b.classes + t * row;
    const bool is_last = t == states.steps - 1;
    T *now = beta + t % 2 * b.width, *to = grad + n * b.classes + t * row;
    T blanks = 0;
    for (int64_t s = threadIdx.x; s < states.count; s += blockDim.x) {
      T ways = s >= states.count - 2 ? T(0) : never<T>();
      if (!is_last)
        ways = log_sum(behind[s], s + 1 < states.count ? behind[s + 1] : never<T>(),
                       states.skips(s + 2) ? behind[s + 2] : never<T>());
      const T own = here[states.label(s)];
      now[s] = ways + own;
      share[s] = ::exp(alpha[(n * b.steps + t) * b.width + s] + now[s] - own + loss);
      if (states.label(s) == b.blank) blanks += share[s];
    }
    const T of_blank = group_sum(blanks);
    __syncthreads();
    for (int64_t c = threadIdx.x; c < b.classes; c += blockDim.x)
      to[c] = difference(here[c], c == b.blank ? of_blank : T(0), loss, scale);
    __syncthreads();
    for (int64_t s = 2 * threadIdx.x + 1; s < states.count; s += 2 * blockDim.x) {
      const int64_t c = states.label(s);
      if (c == b.blank || !is_first[s]) continue;
      T sum = 0;
      for (int64_t k = s; k >= 0; k = next[k]) sum += share[k];
      to[c] = difference(here[c], sum, loss, scale);
    }
    __syncthreads();
  }
}

// Labels that are no classes are reported, and read as blanks; the host need not wait.
__global__ void report_labels(const __grid_constant__ Batch b, Fault* fault) {
  const Extent extent = b.extents[blockIdx.x];
  for (int64_t i = threadIdx.x; i < extent.labels; i += blockDim.x) {
    const int64_t label = b.targets[extent.begin + i];
    if (label < 0 || label >= b.classes) report(fault, label, b.classes);
  }
}
unsigned block_for(int64_t states) {
  unsigned threads = kWarp;
  while (threads < kThreads && threads < states) threads *= 2;
  return threads;
}
int64_t bad_label(const CtcShape& s) {
  each_batch(s, [&](const Batch& b, unsigned count) {
    launch(report_labels, count, block_for(s.width), 0, b, used_device().fault);
  });
  return s.blank;
}

template <class T>
void forward(const CtcShape& s, const T* log_probs, bool zero_infinity, T* alpha, T* loss) {
  each_batch(s, [&](const Batch& b, unsigned count) {
    launch(run_forward<T>, count, block_for(s.width), 0, b, log_probs, zero_infinity, alpha, loss);
  });
}
template <class T>
void backward(const CtcShape& s, const T* log_probs, const T* alpha, const T* loss,
              const T* upstream, bool skip_infinite, T* grad) {
  const int64_t states = s.batch * s.width;
  const Workspace numbers(static_cast<size_t>(3 * states) * sizeof(T)),
      lists(static_cast<size_t>(states) * (sizeof(int32_t) + sizeof(bool)));
  auto* next = lists.as<int32_t>();
  const Memory<T> memory{numbers.as<T>(), numbers.as<T>() + 2 * states, next,
                         reinterpret_cast<bool*>(next + states)};
  each_batch(s, [&](const Batch& b, unsigned count) {
    launch(run_backward<T>, count, block_for(s.width), 0, b, log_probs, alpha, loss, upstream,
           skip_infinite, memory, grad);
  });
}

template <class T> const CtcKernels<T> table{bad_label, forward<T>, backward<T>};

}  // namespace

void add_ctc_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
