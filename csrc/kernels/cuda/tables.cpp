#include "kernels/cuda/tables.h"

#include "kernels/pointwise.h"
#include "kernels/reduce.h"

namespace taeda::cuda {

extern const PointwiseKernels pointwise_table;
extern const ReduceKernels reduce_table;

std::vector<DeviceTable> all_tables() {
  std::vector<DeviceTable> all{device_table(pointwise_table), device_table(reduce_table)};
  add_conv_tables(all);
  add_fft_tables(all);
  add_gemm_tables(all);
  add_linalg_tables(all);
  add_nn_tables(all);
  add_index_tables(all);
  add_random_tables(all);
  return all;
}

}  // namespace taeda::cuda
