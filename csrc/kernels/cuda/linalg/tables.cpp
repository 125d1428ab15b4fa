#include "kernels/cuda/linalg/tables.h"

namespace taeda::cuda {

void add_linalg_tables(std::vector<DeviceTable>& to) {
  add_hermitian_tables(to);
  add_matrix_tables(to);
  add_qr_tables(to);
  add_solve_tables(to);
  add_svd_tables(to);
}

}  // namespace taeda::cuda
