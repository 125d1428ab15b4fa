#include "kernels/cpu/gemm/simd/gemm_long_k.h"

#include <utility>

#include "kernels/cpu/gemm/simd/pairs.h"
#include "kernels/cpu/reduce/simd/lanes.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int kChains = 8;  // sums at once, so that none is waited for

// ---- both sides along the sum ----

// What products of parts add up to: of both real ones, of both imaginary ones, of a's real and b's
// imaginary ones, and the other way round.
template <class T> struct Sums {
  T real = 0, imaginary = 0, real_imaginary = 0, imaginary_real = 0;

  void store(const LongProduct<T>& x, T* to) const {
    const T a = x.conjugate_a ? T(-1) : T(1), b = x.conjugate_b ? T(-1) : T(1);
    to[0] = real - a * b * imaginary;
    to[1] = b * real_imaginary + a * imaginary_real;
  }
};

template <class T, bool Complex, int M, int N>
FN void dots(const LongProduct<T>& x, const T* a, const T* b, T* c) {
  using V = typename Vector<T>::type;
  constexpr int64_t parts = Complex ? 2 : 1, lanes = kLanes<T>;
  constexpr int steps = M * N * parts >= kChains ? 1 : 2;
  const int64_t row = parts * x.a_row, col = parts * x.b_col, k = parts * x.k;
  V sum[steps][M][N] = {}, cross[Complex ? steps : 1][M][N] = {};
  auto add = [&](int64_t p, int s) {
    V right[N], other[N];
    for (int j = 0; j < N; ++j) {
      right[j] = at(b + j * col + p);
      if constexpr (Complex) other[j] = turned(right[j], std::make_index_sequence<lanes>());
    }
    for (int i = 0; i < M; ++i) {
      const V left = at(a + i * row + p);
      for (int j = 0; j < N; ++j) {
        sum[s][i][j] += left * right[j];
        if constexpr (Complex) cross[s][i][j] += left * other[j];
      }
    }
  };
  int64_t p = 0;
  for (; p + steps * lanes <= k; p += steps * lanes) {
    for (int s = 0; s < steps; ++s) add(p + s * lanes, s);
  }
  for (; p + lanes <= k; p += lanes) add(p, 0);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const T *left = a + i * row, *right = b + j * col;
      V all = sum[0][i][j];
      for (int s = 1; s < steps; ++s) all += sum[s][i][j];
      if constexpr (Complex) {
        V all_cross = cross[0][i][j];
        for (int s = 1; s < steps; ++s) all_cross += cross[s][i][j];
        Sums<T> sums;
        for (int l = 0; l < lanes; l += 2) {
          sums.real += all[l], sums.imaginary += all[l + 1];
          sums.real_imaginary += all_cross[l], sums.imaginary_real += all_cross[l + 1];
        }
        for (int64_t q = p; q < k; q += 2) {
          sums.real += left[q] * right[q], sums.imaginary += left[q + 1] * right[q + 1];
          sums.real_imaginary += left[q] * right[q + 1];
          sums.imaginary_real += left[q + 1] * right[q];
        }
        sums.store(x, c + 2 * (i * x.n + j));
      } else {
        T total = add_lanes<T, T, lanes>(all);
        for (int64_t q = p; q < k; ++q) total += left[q] * right[q];
        c[i * x.n + j] = total;
      }
    }
  }
}

// f.template operator()<M>(first) for blocks of 4, 2 and 1.
template <class F> FN void blocks(int64_t count, const F& f) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) f.template operator()<4>(i);
  if (i + 2 <= count) f.template operator()<2>(i), i += 2;
  if (i < count) f.template operator()<1>(i);
}

// ---- rows of the right side, each times one number of the left side ----

// The first `size` numbers of T of W.
template <class T, bool Complex, int W, int M>
FN void rows(const LongProduct<T>& x, const T* a, const T* b, int64_t size, T* c) {
  using V = typename Row<T, W>::type;
  constexpr int64_t parts = Complex ? 2 : 1;
  constexpr int steps = kChains / (M * parts) > 1 ? kChains / (M * parts) : 1;
  const int64_t row = parts * x.a_row, along = parts * x.a_step, down = parts * x.b_step;
  V sum[steps][M] = {}, cross[Complex ? steps : 1][M] = {};
  auto add = [&](const T* left, V right, int s) {
    for (int i = 0; i < M; ++i) {
      sum[s][i] += left[i * row] * right;
      if constexpr (Complex) cross[s][i] += left[i * row + 1] * right;
    }
  };
  int64_t p = 0;
  for (; p + steps < x.k; p += steps, a += steps * along, b += steps * down) {
    for (int s = 0; s < steps; ++s)
      add(a + s * along, *reinterpret_cast<const V*>(b + s * down), s);
  }
  for (; p + 1 < x.k; ++p, a += along, b += down) add(a, *reinterpret_cast<const V*>(b), 0);
  V last = {};  // behind which nothing may be read
  __builtin_memcpy(&last, b, size * sizeof(T));
  add(a, last, 0);
  for (int i = 0; i < M; ++i) {
    V result = sum[0][i];
    for (int s = 1; s < steps; ++s) result += sum[s][i];
    if constexpr (Complex) {
      V other = cross[0][i], of_sum, of_cross;
      for (int s = 1; s < steps; ++s) other += cross[s][i];
      const T left = x.conjugate_a ? T(-1) : T(1), right = x.conjugate_b ? T(-1) : T(1);
      for (int w = 0; w < W; w += 2) {
        of_sum[w] = 1, of_sum[w + 1] = right;
        of_cross[w] = -left * right, of_cross[w + 1] = left;
      }
      result = result * of_sum + turned(other, std::make_index_sequence<W>()) * of_cross;
    }
    __builtin_memcpy(c + parts * i * x.n, &result, size * sizeof(T));
  }
}

template <class T, bool Complex, int W>
FN void some_columns(const LongProduct<T>& x, int64_t j, int64_t size, T* c) {
  constexpr int64_t parts = Complex ? 2 : 1;
  blocks(x.m, [&]<int M>(int64_t i) {
    rows<T, Complex, W, M>(x, x.a + parts * i * x.a_row, x.b + j, size, c + parts * i * x.n + j);
  });
}

template <class T, bool Complex> void product(const LongProduct<T>& x, T* c) {
  constexpr int64_t parts = Complex ? 2 : 1, lanes = kLanes<T>;
  if (x.a_step == 1 && x.b_step == 1) {
    blocks(x.m, [&]<int M>(int64_t i) {
      blocks(x.n, [&]<int N>(int64_t j) {
        constexpr int most = kBytes == 64 && !Complex ? 4 : 2;
        constexpr int wide = N < most ? N : most;
        for (int64_t first = j; first < j + N; first += wide)
          dots<T, Complex, M, wide>(x, x.a + parts * i * x.a_row, x.b + parts * first * x.b_col,
                                    c + parts * (i * x.n + first));
      });
    });
    return;
  }
  const int64_t all = parts * x.n;
  for (int64_t j = 0; j < all;) {
    const int64_t left = all - j;
    if (left > lanes / 2) {
      const int64_t size = left < lanes ? left : lanes;
      some_columns<T, Complex, lanes>(x, j, size, c);
      j += size;
    } else if (lanes > 8 && left > 4) {
      some_columns<T, Complex, 8>(x, j, left, c);
      break;
    } else if (lanes > 4 && left > 2) {
      some_columns<T, Complex, 4>(x, j, left, c);
      break;
    } else if (lanes > 2 && left > 1) {
      some_columns<T, Complex, 2>(x, j, left, c);
      break;
    } else {
      if constexpr (!Complex) some_columns<T, Complex, 1>(x, j, left, c);
      break;
    }
  }
}

}  // namespace

extern constinit const LongGemmKernels long_gemm_kernels = {
    product<float, false>, product<float, true>, product<double, false>, product<double, true>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
