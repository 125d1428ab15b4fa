#include "kernels/cuda/random/tables.h"

namespace taeda::cuda {

void add_random_tables(std::vector<DeviceTable>& to) {
  add_continuous_tables(to);
  add_discrete_tables(to);
  add_dropout_tables(to);
  add_gamma_tables(to);
  add_permutation_tables(to);
  add_sample_tables(to);
}

}  // namespace taeda::cuda
