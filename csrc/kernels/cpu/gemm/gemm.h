// Matrix products, as other kernels call them.
//
// How a product is computed is chosen by its sizes and layout (gemm.cpp), and work is cut into
// tasks by sizes alone: the same product has the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/gemm/simd/gemm_kernels.h"
#include "kernels/gemm.h"

namespace taeda::cpu {

using taeda::Trans;

// As in GemmKernels. S: what T is summed to.
template <class S, class T = S>
void gemm(int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a, MatrixRef<T> b, S beta, S* c,
          int64_t ldc);
// `Rows`: start[i] (m elements, real numbers) is added to every element of row i instead.
template <class T, bool Rows = false>
void gemm_onto(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
               T* c, int64_t ldc);
template <class S, class T = S>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a,
                  int64_t a_step, MatrixRef<T> b, int64_t b_step, S beta, S* c, int64_t ldc,
                  int64_t c_step);

// Of integers, with alpha = 1 and beta = 0.
template <class T>
void gemm_integer(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, T* c,
                  int64_t ldc);

// ---- for benchmarks/tune.py and tests ----

// A way to compute a float32 product of contiguous matrices, its estimated nanoseconds, and the
// amounts of work (GemmWork) that the estimate weighs by the rates of tuning.h.
struct GemmCandidate {
  const char* name;
  double cost;
  double work[8];
};
std::vector<GemmCandidate> gemm_candidates(int64_t m, int64_t n, int64_t k, bool a_transposed,
                                           bool b_transposed);

// Makes every product that this algorithm can compute use it; null: back to the estimates. False if
// there is no such name.
bool force_gemm_algorithm(const char* name);

}  // namespace taeda::cpu
