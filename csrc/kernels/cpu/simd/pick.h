// How one table of kernels is chosen among those that the files in this folder were compiled to.
//
// A kernel file under simd/ ends with one constant table of function pointers in its own namespace
// (TAEDA_ISA); a header declares the table's type and its instances, and TAEDA_PICK(table) names
// the best one that this machine can run.
#pragma once

#include "base/cpu_features.h"

#if defined(__x86_64__)
#define TAEDA_PICK(table)                                      \
  (::taeda::cpu_level() >= ::taeda::CpuLevel::v4   ? v4::table \
   : ::taeda::cpu_level() >= ::taeda::CpuLevel::v3 ? v3::table \
                                                   : v2::table)
#else
#define TAEDA_PICK(table) (base::table)
#endif
