// The sign of an eigenvector: the same for a matrix alone and for one of a batch.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/functors/scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// The sum of a vector's elements times these weights is positive. The weights are irrational, so
// that no vector of simple numbers makes the sum zero, where rounding would decide.
template <class T> FN T sign_weight(int64_t i) {
  const double x = static_cast<double>(i + 1) * 0.7548776662466927;
  return static_cast<T>(1 + x - static_cast<double>(static_cast<int64_t>(x)));
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
