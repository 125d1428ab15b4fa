#pragma once

#include "kernels/cuda/tables.h"

namespace taeda::cuda {

void add_histogram_tables(std::vector<DeviceTable>& to);
void add_list_tables(std::vector<DeviceTable>& to);
void add_run_tables(std::vector<DeviceTable>& to);
void add_scatter_tables(std::vector<DeviceTable>& to);
void add_search_tables(std::vector<DeviceTable>& to);
void add_sort_tables(std::vector<DeviceTable>& to);
void add_sparse_tables(std::vector<DeviceTable>& to);

}  // namespace taeda::cuda
