// The table of this instruction set.
#include "kernels/cpu/pointwise/pointwise.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const arithmetic_loops;
extern const Loops* const rounding_loops;
extern const Loops* const logic_loops;
extern const Loops* const math_loops;
extern const Loops* const special_loops;
extern const Loops* const bessel_loops;
extern const Loops* const polynomial_loops;
extern const Loops* const activation_loops;
extern const Loops* const loss_loops;
extern const Cast casts[kComputed][kComputed];
extern const StreamedCasts streamed_casts;

}  // namespace taeda::TAEDA_ISA

namespace taeda::cpu::simd::TAEDA_ISA {

using namespace taeda::TAEDA_ISA;

extern constinit const LoopTable loop_table{
    &arithmetic_loops, &rounding_loops,   &logic_loops, &math_loops, &special_loops, &bessel_loops,
    &polynomial_loops, &activation_loops, &loss_loops,  casts,       &streamed_casts};

}  // namespace taeda::cpu::simd::TAEDA_ISA
