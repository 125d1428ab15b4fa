#pragma once

#include "kernels/cuda/tables.h"

namespace taeda::cuda {

void add_amp_tables(std::vector<DeviceTable>& to);
void add_attention_tables(std::vector<DeviceTable>& to);
void add_ctc_tables(std::vector<DeviceTable>& to);
void add_distance_tables(std::vector<DeviceTable>& to);
void add_fold_tables(std::vector<DeviceTable>& to);
void add_grid_sample_tables(std::vector<DeviceTable>& to);
void add_margin_tables(std::vector<DeviceTable>& to);
void add_softmax_tables(std::vector<DeviceTable>& to);
void add_nll_tables(std::vector<DeviceTable>& to);
void add_norm_tables(std::vector<DeviceTable>& to);
void add_optim_tables(std::vector<DeviceTable>& to);
void add_pool_tables(std::vector<DeviceTable>& to);
void add_resample_tables(std::vector<DeviceTable>& to);
void add_rnn_tables(std::vector<DeviceTable>& to);

}  // namespace taeda::cuda
