// One row of a recurrent cell: Elman (1990), LSTM (Hochreiter & Schmidhuber 1997) with a forget
// gate (Gers et al. 2000), GRU (Cho et al. 2014) with the reset gate after the product.
#include "kernels/cpu/nn/simd/rnn.h"

#include "kernels/functors/scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using taeda::TAEDA_ISA::sigmoid;
using taeda::TAEDA_ISA::tanh;

// Calls f with a function that gives element i of b, or zero where there is none.
template <class T, class F> FN void with_bias(const T* b, F&& f) {
  if (b) f([b](int64_t i) { return b[i]; });
  else f([](int64_t) { return T(0); });
}

template <class T>
void elman(bool relu, int64_t n, const T* __restrict x, const T* __restrict g, const T* b,
           T* __restrict act) {
  with_bias(b, [&](auto bias) {
    if (relu) {
      for (int64_t i = 0; i < n; ++i) {
        const T v = x[i] + g[i] + bias(i);
        act[i] = v < T(0) ? T(0) : v;  // keeps nan
      }
    } else {
      for (int64_t i = 0; i < n; ++i) act[i] = tanh(x[i] + g[i] + bias(i));
    }
  });
}

template <class T>
void lstm(int64_t n, const T* __restrict x, const T* __restrict g, const T* b, T* __restrict c,
          T* __restrict acts, T* __restrict h) {
  with_bias(b, [&](auto bias) {
    for (int64_t i = 0; i < n; ++i) {
      const T in = sigmoid(x[i] + g[i] + bias(i));
      const T forget = sigmoid(x[n + i] + g[n + i] + bias(n + i));
      const T fresh = tanh(x[2 * n + i] + g[2 * n + i] + bias(2 * n + i));
      const T out = sigmoid(x[3 * n + i] + g[3 * n + i] + bias(3 * n + i));
      const T cell = forget * c[i] + in * fresh;
      acts[i] = in;
      acts[n + i] = forget;
      acts[2 * n + i] = fresh;
      acts[3 * n + i] = out;
      c[i] = cell;
      h[i] = out * tanh(cell);
    }
  });
}

template <class T>
void gru(int64_t n, const T* __restrict x, const T* __restrict g, const T* b, T* __restrict h,
         T* __restrict acts, T* __restrict extra) {
  with_bias(b, [&](auto bias) {
    for (int64_t i = 0; i < n; ++i) {
      const T reset = sigmoid(x[i] + g[i] + bias(i));
      const T update = sigmoid(x[n + i] + g[n + i] + bias(n + i));
      const T from_state = g[2 * n + i] + bias(2 * n + i);
      const T fresh = tanh(x[2 * n + i] + reset * from_state);
      acts[i] = reset;
      acts[n + i] = update;
      acts[2 * n + i] = fresh;
      extra[i] = from_state;
      h[i] = fresh + update * (h[i] - fresh);
    }
  });
}

template <class T>
void elman_backward(bool relu, int64_t n, const T* __restrict act, const T* __restrict dh,
                    T* __restrict dx) {
  if (relu) {
    for (int64_t i = 0; i < n; ++i) dx[i] = act[i] > T(0) ? dh[i] : T(0);
  } else {
    for (int64_t i = 0; i < n; ++i) dx[i] = dh[i] * (T(1) - act[i] * act[i]);
  }
}

template <class T>
void lstm_backward(int64_t n, const T* __restrict acts, const T* __restrict c,
                   const T* __restrict before, const T* __restrict dh, T* __restrict dc,
                   T* __restrict dx) {
  for (int64_t i = 0; i < n; ++i) {
    const T in = acts[i], forget = acts[n + i], fresh = acts[2 * n + i], out = acts[3 * n + i];
    const T t = tanh(c[i]);
    const T dcell = dc[i] + dh[i] * out * (T(1) - t * t);
    dx[i] = dcell * fresh * in * (T(1) - in);
    dx[n + i] = dcell * before[i] * forget * (T(1) - forget);
    dx[2 * n + i] = dcell * in * (T(1) - fresh * fresh);
    dx[3 * n + i] = dh[i] * t * out * (T(1) - out);
    dc[i] = dcell * forget;
  }
}

template <class T>
void gru_backward(int64_t n, const T* __restrict acts, const T* __restrict extra,
                  const T* __restrict before, T* __restrict dh, T* __restrict dx,
                  T* __restrict dg) {
  for (int64_t i = 0; i < n; ++i) {
    const T reset = acts[i], update = acts[n + i], fresh = acts[2 * n + i];
    const T dfresh = dh[i] * (T(1) - update) * (T(1) - fresh * fresh);
    const T dupdate = dh[i] * (before[i] - fresh) * update * (T(1) - update);
    const T dreset = dfresh * extra[i] * reset * (T(1) - reset);
    dx[i] = dg[i] = dreset;
    dx[n + i] = dg[n + i] = dupdate;
    dx[2 * n + i] = dfresh;
    dg[2 * n + i] = dfresh * reset;
    dh[i] *= update;
  }
}

template <class T>
void lstm_output(int64_t n, const T* __restrict acts, const T* __restrict c, T* __restrict h) {
  for (int64_t i = 0; i < n; ++i) h[i] = acts[3 * n + i] * tanh(c[i]);
}

template <class T>
constexpr RnnLoops<T> loops = {elman<T>,         lstm<T>,         gru<T>,        elman_backward<T>,
                               lstm_backward<T>, gru_backward<T>, lstm_output<T>};

}  // namespace

extern constinit const ForFloats<RnnLoops> rnn_kernels = {loops<float>, loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
