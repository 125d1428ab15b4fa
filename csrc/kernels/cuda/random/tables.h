#pragma once

#include "kernels/cuda/tables.h"

namespace taeda::cuda {

void add_continuous_tables(std::vector<DeviceTable>& to);
void add_discrete_tables(std::vector<DeviceTable>& to);
void add_dropout_tables(std::vector<DeviceTable>& to);
void add_gamma_tables(std::vector<DeviceTable>& to);
void add_permutation_tables(std::vector<DeviceTable>& to);
void add_sample_tables(std::vector<DeviceTable>& to);

}  // namespace taeda::cuda
