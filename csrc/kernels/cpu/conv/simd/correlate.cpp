#include "kernels/cpu/conv/simd/correlate.h"

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Sums are kept in registers: kOutputs x kTaps, beside kTaps of x and one of g.
constexpr int kSideBySide = 4;  // registers of channels
constexpr int kTaps = 3, kOutputs = kBytes == 64 ? 8 : 3;

template <class T> struct Whole {
  using V = typename Vector<T>::type;
  FN V operator()(const T* p) const { return at(p); }
};

// Zero outside of the lanes [first, last).
template <class T> struct Part {
  using V = typename Vector<T>::type;
  decltype(V{} > V{}) kept;

  FN Part(int64_t first, int64_t last) {
    for (int64_t i = 0; i < kLanes<T>; ++i) kept[i] = i >= first && i < last ? -1 : 0;
  }
  FN V operator()(const T* p) const { return kept ? at(p) : V{}; }
};

// Keeps a value in a register, where the compiler would read it from memory for every use.
template <class V> FN void in_register([[maybe_unused]] V& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#endif
}

template <class T, int M, class Load>
FN void add_places(const Load& load, const T* g, int64_t g_plane, const T* const (&x)[kTaps],
                   int64_t j, typename Vector<T>::type (&sum)[M][kTaps]) {
  typename Vector<T>::type seen[kTaps];
#pragma GCC unroll 8
  for (int k = 0; k < kTaps; ++k) seen[k] = load(x[k] + j);
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
    typename Vector<T>::type grad = load(g + m * g_plane + j);
    in_register(grad);
#pragma GCC unroll 8
    for (int k = 0; k < kTaps; ++k) sum[m][k] += grad * seen[k];
  }
}

template <class T, int M> void add_of(const Places<T>& p, const int64_t* offset, T* sums) {
  constexpr int64_t lanes = kLanes<T>;
  typename Vector<T>::type sum[M][kTaps];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int k = 0; k < kTaps; ++k) sum[m][k] = at(sums + (m * kTaps + k) * lanes);
  }
  const T* g = p.g;
  const T* x[kTaps];
  for (int k = 0; k < kTaps; ++k) x[k] = p.x + offset[k];
  const int64_t whole = p.width / lanes * lanes, rest = p.width - whole;
  // The rest of a row is the end of a register that overlaps the one before.
  const bool shorter = p.width < lanes;
  const Part<T> part(shorter ? 0 : lanes - rest, shorter ? rest : lanes);
  const int64_t last = shorter ? 0 : p.width - lanes, g_plane = p.g_plane;
  for (int64_t row = 0; row < p.height; ++row) {
    for (int64_t j = 0; j < whole; j += lanes) add_places<T, M>(Whole<T>{}, g, g_plane, x, j, sum);
    if (rest != 0) add_places<T, M>(part, g, g_plane, x, last, sum);
    g += p.g_row;
    for (int k = 0; k < kTaps; ++k) x[k] += p.x_row;
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int k = 0; k < kTaps; ++k) at(sums + (m * kTaps + k) * lanes) = sum[m][k];
  }
}

template <class T, int M = kOutputs>
void add(int64_t outputs, const Places<T>& p, const int64_t* offset, T* sums) {
  if constexpr (M > 1) {
    if (outputs < M) return add<T, M - 1>(outputs, p, offset, sums);
  }
  add_of<T, M>(p, offset, sums);
}

template <class T> void add_runs(const Run* runs, int64_t many, const T* w, const T* x, T* y) {
  constexpr int64_t lanes = kLanes<T>, width = kSideBySide * lanes;
  for (int64_t i = 0; i < many;) {
    const int64_t output = runs[i].output;
    T* to = y + output * width;
    typename Vector<T>::type sum[kSideBySide];
#pragma GCC unroll 8
    for (int r = 0; r < kSideBySide; ++r) sum[r] = at(to + r * lanes);
    for (; i < many && runs[i].output == output; ++i) {
      const T *a = w + runs[i].tap * width, *b = x + runs[i].place * width;
      for (int64_t t = 0; t < runs[i].taps; ++t, a += width, b += width) {
#pragma GCC unroll 8
        for (int r = 0; r < kSideBySide; ++r) sum[r] += at(a + r * lanes) * at(b + r * lanes);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kSideBySide; ++r) at(to + r * lanes) = sum[r];
  }
}

template <class T>
constexpr CorrelateLoops<T> correlate_loops = {
    kLanes<T>, kOutputs, kTaps, add<T>, kSideBySide * kLanes<T>, add_runs<T>};

}  // namespace

extern constinit const CorrelateKernels correlate_kernels = {correlate_loops<float>,
                                                             correlate_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
