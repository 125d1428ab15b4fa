#include "kernels/cpu/nn/optim.h"

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {

namespace simd {
namespace v2 {
extern const OptimTable optim_table;
}
namespace v3 {
extern const OptimTable optim_table;
}
namespace v4 {
extern const OptimTable optim_table;
}
namespace base {
extern const OptimTable optim_table;
}
}  // namespace simd

const OptimTable& optim_table() {
  using namespace simd;
  return TAEDA_PICK(optim_table);
}

}  // namespace taeda::cpu
