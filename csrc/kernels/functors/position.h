// Where a functor stands in its List.
#pragma once

#include "kernels/functors/functors.h"

namespace taeda::TAEDA_ISA {

// -1 in a list of others.
template <class Op, class... Ops> constexpr int position(List<Ops...>) {
  int i = 0, found = -1;
  ((found = same_type<Op, Ops> ? i : found, ++i), ...);
  return found;
}

}  // namespace taeda::TAEDA_ISA
