// How wide this instruction set's registers are, and vectors that fill one.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include <cstdint>

#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {

// kRows: as many rows of accumulators, two registers wide, as there are registers for, beside two
// columns and one broadcast element.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 8;
#elif defined(__AVX__)
constexpr int kBytes = 32, kRows = 6;
#else
constexpr int kBytes = 16, kRows = 4;
#endif

template <class T> struct Vector;
template <> struct Vector<float> {
  typedef float type __attribute__((vector_size(kBytes), aligned(4), may_alias));
};
template <> struct Vector<double> {
  typedef double type __attribute__((vector_size(kBytes), aligned(8), may_alias));
};
template <class T> constexpr int64_t kLanes = kBytes / sizeof(T);

template <class T> FN const typename Vector<T>::type& at(const T* p) {
  return *reinterpret_cast<const typename Vector<T>::type*>(p);
}
template <class T> FN typename Vector<T>::type& at(T* p) {
  return *reinterpret_cast<typename Vector<T>::type*>(p);
}

}  // namespace taeda::cpu::simd::TAEDA_ISA
