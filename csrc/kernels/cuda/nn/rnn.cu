// Recurrent cells over whole sequences: for each step a product with the weights, and a kernel for
// everything else, in which a thread has one element of the state. Elman (1990), LSTM (Hochreiter &
// Schmidhuber 1997) with a forget gate (Gers et al. 2000), GRU (Cho et al. 2014) with the reset
// gate after the product.
#include "kernels/rnn.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/nn/tables.h"
#include "kernels/functors/scalar.h"

namespace taeda::cuda {
namespace {

using portable::sigmoid, portable::tanh;

// ---- one step forwards: f(i) for each element of the rows of a state of `hidden` ----
// The gates' inputs: from the input, from the state, and a bias that may be null.
template <class T> struct GateInputs {
  Divisor by_hidden;
  int64_t hidden, gates;
  const T *x, *g, *b;

  // In a row and its element: the gate's first element, plus `gate` times hidden.
  __device__ T bias(int64_t gate, int64_t k) const { return b ? b[gate * hidden + k] : T(0); }
  __device__ T from_input(int64_t row, int64_t gate, int64_t k) const {
    return x[row * gates + gate * hidden + k];
  }
  __device__ T from_state(int64_t row, int64_t gate, int64_t k) const {
    return g[row * gates + gate * hidden + k] + bias(gate, k);
  }
  __device__ T sum(int64_t row, int64_t gate, int64_t k) const {
    return from_input(row, gate, k) + from_state(row, gate, k);
  }
};

template <class T> struct ElmanStep {
  GateInputs<T> in;
  bool relu;
  T *h, *output, *acts;

  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t k = in.by_hidden.divide(row);
    const T v = in.sum(row, 0, k);
    h[i] = output[i] = acts[i] = !relu ? tanh(v) : v < T(0) ? T(0) : v;  // keeps NaN
  }
};

// `raw`: where h goes before it is projected, or null; then h and the output are written.
template <class T> struct LstmStep {
  GateInputs<T> in;
  T *c, *extra, *acts, *raw, *h, *output;

  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t k = in.by_hidden.divide(row);
    const T enter = sigmoid(in.sum(row, 0, k)), forget = sigmoid(in.sum(row, 1, k));
    const T fresh = tanh(in.sum(row, 2, k)), out = sigmoid(in.sum(row, 3, k));
    const T cell = forget * c[i] + enter * fresh, state = out * tanh(cell);
    T* act = acts + row * in.gates + k;
    act[0] = enter;
    act[in.hidden] = forget;
    act[2 * in.hidden] = fresh;
    act[3 * in.hidden] = out;
    c[i] = extra[i] = cell;
    if (raw) raw[i] = state;
    else h[i] = output[i] = state;
  }
};

template <class T> struct GruStep {
  GateInputs<T> in;
  T *extra, *acts, *h, *output;

  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t k = in.by_hidden.divide(row);
    const T reset = sigmoid(in.sum(row, 0, k)), update = sigmoid(in.sum(row, 1, k));
    const T from_state = in.from_state(row, 2, k);
    const T fresh = tanh(in.from_input(row, 2, k) + reset * from_state);
    T* act = acts + row * in.gates + k;
    act[0] = reset;
    act[in.hidden] = update;
    act[2 * in.hidden] = fresh;
    extra[i] = from_state;
    h[i] = output[i] = fresh + update * (h[i] - fresh);
  }
};

template <class T> void copy_to(int64_t n, const T* from, T* to) {
  each(n, [=] __device__(int64_t i) { to[i] = from[i]; });
}

template <class T> void forward(const RnnShape& s, const RnnWeights<T>& w, const RnnForward<T>& f) {
  const int64_t n = s.hidden, p = s.state, gates = s.gates();
  const Workspace memory(static_cast<size_t>(s.batch * (gates + (w.r ? n : 0))) * sizeof(T));
  T *products = memory.as<T>(), *raw = w.r ? products + s.batch * gates : nullptr;
  const Divisor by_hidden(n);
  for (int64_t k = 0; k < s.steps; ++k) {
    const int64_t t = s.reverse ? s.steps - 1 - k : k, rows = s.sizes[t], first = s.offsets[t];
    if (rows == 0) continue;
    gemm_kernels<T>().gemm(rows, gates, p, T(1), {f.h, p}, {w.w, p, Trans::Yes}, T(0), products,
                           gates);
    const GateInputs<T> in{by_hidden, n, gates, f.x + first * gates, products, w.b};
    T *acts = f.acts + first * gates, *extra = f.extra + first * n, *output = f.output + first * p;
    switch (s.cell) {
      case RnnCell::Lstm:
        each(rows * n, LstmStep<T>{in, f.c, extra, acts, raw, f.h, output});
        break;
      case RnnCell::Gru: each(rows * n, GruStep<T>{in, extra, acts, f.h, output}); break;
      default: each(rows * n, ElmanStep<T>{in, s.cell == RnnCell::Relu, f.h, output, acts});
    }
    if (!w.r) continue;
    gemm_kernels<T>().gemm(rows, p, n, T(1), {raw, n}, {w.r, n, Trans::Yes}, T(0), output, p);
    copy_to(rows * p, output, f.h);
  }
}

// ---- one step backwards ----
// What a step started from: the rows of the step before it, where that has them, or the initial
// ones.
template <class T> struct Before {
  const T *kept, *initial;
  int64_t elements;  // of `kept`

  __device__ T operator()(int64_t i) const { return i < elements ? kept[i] : initial[i]; }
};

// The gradient of a step's h, with that of its output, and what the gates' weights are multiplied
// by. `dp`: where it is projected, a copy of that gradient.
template <class T> struct StateGradient {
  const T* grad;  // may be null
  Before<T> h;
  T *dh, *before, *dp;

  __device__ T operator()(int64_t i) const {
    const T d = grad ? dh[i] + grad[i] : dh[i];
    before[i] = h(i);
    if (dp) dh[i] = dp[i] = d;
    return d;
  }
};
template <class T> struct ProjectedGradient {
  StateGradient<T> state;
  __device__ void operator()(int64_t i) const { state(i); }
};

template <class T> struct ElmanGradient {
  StateGradient<T> state;
  bool relu;
  const T* acts;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const T d = state(i), act = acts[i];
    dx[i] = !relu ? d * (T(1) - act * act) : act > T(0) ? d : T(0);
  }
};

// `projected`: the gradient of h before it was projected, or null; `raw`, that h, is wanted then.
template <class T> struct LstmGradient {
  StateGradient<T> state;
  const T* projected;
  Divisor by_hidden;
  int64_t hidden;
  const T *acts, *c;
  Before<T> c_before;
  T *dc, *dx, *raw;

  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t k = by_hidden.divide(row), at = row * 4 * hidden + k;
    const T d = projected ? projected[i] : state(i);
    const T enter = acts[at], forget = acts[at + hidden], fresh = acts[at + 2 * hidden],
            out = acts[at + 3 * hidden];
    const T cell = tanh(c[i]), dcell = dc[i] + d * out * (T(1) - cell * cell);
    dx[at] = dcell * fresh * enter * (T(1) - enter);
    dx[at + hidden] = dcell * c_before(i) * forget * (T(1) - forget);
    dx[at + 2 * hidden] = dcell * enter * (T(1) - fresh * fresh);
    dx[at + 3 * hidden] = d * cell * out * (T(1) - out);
    dc[i] = dcell * forget;
    if (projected) raw[i] = out * cell;
  }
};

// dh becomes the part of the gradient that does not pass through the gates.
template <class T> struct GruGradient {
  StateGradient<T> state;
  Divisor by_hidden;
  int64_t hidden;
  const T *acts, *extra;
  T *dx, *dg;

  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t k = by_hidden.divide(row), at = row * 3 * hidden + k;
    const T d = state(i);
    const T reset = acts[at], update = acts[at + hidden], fresh = acts[at + 2 * hidden];
    const T dfresh = d * (T(1) - update) * (T(1) - fresh * fresh);
    const T dupdate = d * (state.h(i) - fresh) * update * (T(1) - update);
    const T dreset = dfresh * extra[i] * reset * (T(1) - reset);
    dx[at] = dg[at] = dreset;
    dx[at + hidden] = dg[at + hidden] = dupdate;
    dx[at + 2 * hidden] = dfresh;
    dg[at + 2 * hidden] = dfresh * reset;
    state.dh[i] = d * update;
  }
};

template <class T>
void backward(const RnnShape& s, const RnnWeights<T>& w, const RnnBackward<T>& b) {
  const int64_t n = s.hidden, p = s.state, gates = s.gates();
  const Workspace memory(static_cast<size_t>(w.r ? s.batch * n : 0) * sizeof(T));
  T* projected = w.r ? memory.as<T>() : nullptr;
  const Divisor by_hidden(n);
  for (int64_t k = s.steps - 1; k >= 0; --k) {
    const int64_t t = s.reverse ? s.steps - 1 - k : k, rows = s.sizes[t], first = s.offsets[t];
    if (rows == 0) continue;
    const int64_t earlier = s.reverse ? t + 1 : t - 1;
    const bool begins = earlier < 0 || earlier == s.steps;
    // A later step in memory may have fewer rows, an earlier one more.
    const int64_t rows_before = begins ? 0 : std::min(rows, s.sizes[earlier]);
    const int64_t at_before = begins ? 0 : s.offsets[earlier];
    const StateGradient<T> state{b.grad ? b.grad + first * p : nullptr,
                                 {b.output + at_before * p, b.h0, rows_before * p},
                                 b.dh,
                                 b.before + first * p,
                                 w.r ? b.dp + first * p : nullptr};
    const T* acts = b.acts + first * gates;
    T *dx = b.dx + first * gates, *dg = b.dg + first * gates;
    if (w.r) {
      each(rows * p, ProjectedGradient<T>{state});
      gemm_kernels<T>().gemm(rows, n, p, T(1), {b.dh, p}, {w.r, n}, T(0), projected, n);
    }
    switch (s.cell) {
      case RnnCell::Lstm:
        each(rows * n, LstmGradient<T>{state,
                                       projected,
                                       by_hidden,
                                       n,
                                       acts,
                                       b.extra + first * n,
                                       {b.extra + at_before * n, b.c0, rows_before * n},
                                       b.dc,
                                       dx,
                                       w.r ? b.raw + first * n : nullptr});
        break;
      case RnnCell::Gru:
        each(rows * n, GruGradient<T>{state, by_hidden, n, acts, b.extra + first * n, dx, dg});
        break;
      default: each(rows * n, ElmanGradient<T>{state, s.cell == RnnCell::Relu, acts, dx});
    }
    gemm_kernels<T>().gemm(rows, p, gates, T(1), {dg, gates}, {w.w, p},
                           s.cell == RnnCell::Gru ? T(1) : T(0), b.dh, p);
  }
}

template <class T> const RnnKernels<T> table{forward<T>, backward<T>};

}  // namespace

void add_rnn_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
