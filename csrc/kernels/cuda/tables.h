// The tables of kernels that CUDA has. What is not among them runs on the CPU, or is an error
// (docs/devices.md).
#pragma once

#include <vector>

#include "kernels/device_plugin.h"

namespace taeda::cuda {

std::vector<DeviceTable> all_tables();

// Of each family.
void add_conv_tables(std::vector<DeviceTable>& to);
void add_fft_tables(std::vector<DeviceTable>& to);
void add_gemm_tables(std::vector<DeviceTable>& to);
void add_index_tables(std::vector<DeviceTable>& to);
void add_linalg_tables(std::vector<DeviceTable>& to);
void add_nn_tables(std::vector<DeviceTable>& to);
void add_random_tables(std::vector<DeviceTable>& to);

}  // namespace taeda::cuda
