// Neighbouring numbers as one vector, of any length; complex ones are pairs, the real part first.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include <utility>

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// W numbers of T, which need not be aligned.
template <class T, int W> struct Row {
  typedef T type __attribute__((vector_size(W * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T> struct Row<T, 1> {
  using type = T;
};

// Real and imaginary parts exchanged.
template <class V, size_t... I> FN V turned(V v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, (I ^ 1)...);
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
