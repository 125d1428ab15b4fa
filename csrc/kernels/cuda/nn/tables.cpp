#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {

void add_nn_tables(std::vector<DeviceTable>& to) {
  add_amp_tables(to);
  add_attention_tables(to);
  add_ctc_tables(to);
  add_distance_tables(to);
  add_fold_tables(to);
  add_grid_sample_tables(to);
  add_margin_tables(to);
  add_softmax_tables(to);
  add_nll_tables(to);
  add_norm_tables(to);
  add_optim_tables(to);
  add_pool_tables(to);
  add_resample_tables(to);
  add_rnn_tables(to);
}

}  // namespace taeda::cuda
