#include "kernels/cuda/index/tables.h"

namespace taeda::cuda {

void add_index_tables(std::vector<DeviceTable>& to) {
  add_histogram_tables(to);
  add_list_tables(to);
  add_run_tables(to);
  add_scatter_tables(to);
  add_search_tables(to);
  add_sort_tables(to);
  add_sparse_tables(to);
}

}  // namespace taeda::cuda
