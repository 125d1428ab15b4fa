// The same element of several matrices side by side, one in each lane of a register.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// to = `count` elements, each `step` behind the one before; lanes beyond them repeat the last one.
template <class T>
FN void gather(typename Vector<T>::type& to, const T* from, int64_t step, int64_t count) {
  constexpr int64_t lanes = kLanes<T>;
  T* const lane = reinterpret_cast<T*>(&to);
  if (count >= lanes) {
    for (int64_t l = 0; l < lanes; ++l) lane[l] = from[l * step];
  } else {
    for (int64_t l = 0; l < lanes; ++l) lane[l] = from[(l < count ? l : count - 1) * step];
  }
}

template <class T> FN void scatter(typename Vector<T>::type x, T* to, int64_t step, int64_t count) {
  constexpr int64_t lanes = kLanes<T>;
  alignas(kBytes) T from[lanes];
  at(from) = x;
  if (count >= lanes) {
    for (int64_t l = 0; l < lanes; ++l) to[l * step] = from[l];
  } else {
    for (int64_t l = 0; l < count; ++l) to[l * step] = from[l];
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
