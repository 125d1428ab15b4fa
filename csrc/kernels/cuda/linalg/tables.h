#pragma once

#include "kernels/cuda/tables.h"

namespace taeda::cuda {

void add_hermitian_tables(std::vector<DeviceTable>& to);
void add_matrix_tables(std::vector<DeviceTable>& to);
void add_qr_tables(std::vector<DeviceTable>& to);
void add_solve_tables(std::vector<DeviceTable>& to);
void add_svd_tables(std::vector<DeviceTable>& to);

}  // namespace taeda::cuda
