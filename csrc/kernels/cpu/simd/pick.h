// Dispatch: how one table of kernels is chosen among those of the instruction sets.
//
// A kernel file under simd/ ends with one constant table of function pointers in its own namespace,
// taeda::cpu::simd::TAEDA_ISA. Its header declares the table's type and, by TAEDA_TABLES(Type,
// table) in namespace taeda::cpu::simd, its instances. TAEDA_PICK(table) names the best one that
// this machine can run, anywhere.
#pragma once

#include "base/cpu_features.h"

#define TAEDA_TABLE_OF(isa, Type, table) \
  namespace isa {                        \
  extern const Type table;               \
  }
#if defined(__x86_64__)
#define TAEDA_PICK(table)                                                          \
  (::taeda::cpu_level() >= ::taeda::CpuLevel::v4   ? ::taeda::cpu::simd::v4::table \
   : ::taeda::cpu_level() >= ::taeda::CpuLevel::v3 ? ::taeda::cpu::simd::v3::table \
                                                   : ::taeda::cpu::simd::v2::table)
#define TAEDA_TABLES(Type, table) \
  TAEDA_TABLE_OF(v2, Type, table) TAEDA_TABLE_OF(v3, Type, table) TAEDA_TABLE_OF(v4, Type, table)
// For a file that is not compiled for v4, which gains too little there (a list in CMakeLists.txt):
// v3's table serves v4 too.
#define TAEDA_TABLES_UP_TO_V3(Type, table) \
  TAEDA_TABLE_OF(v2, Type, table) TAEDA_TABLE_OF(v3, Type, table) TAEDA_TABLE_OF_V3(table)
#define TAEDA_TABLE_OF_V3(table) \
  namespace v4 {                 \
  using v3::table;               \
  }
#else
#define TAEDA_PICK(table) (::taeda::cpu::simd::base::table)
#define TAEDA_TABLES_UP_TO_V3(Type, table) TAEDA_TABLES(Type, table)
#define TAEDA_TABLES(Type, table) TAEDA_TABLE_OF(base, Type, table)
#endif

namespace taeda::cpu {

namespace simd {
// A table of loops for float and for double.
template <template <class> class Loops> struct ForFloats {
  Loops<float> f32;
  Loops<double> f64;
};
}  // namespace simd

// The part for T of such a table, or of another one with f32 and f64.
template <class T, class Tables> const auto& typed(const Tables& tables) {
  if constexpr (sizeof(T) == 4) return tables.f32;
  else return tables.f64;
}

}  // namespace taeda::cpu
