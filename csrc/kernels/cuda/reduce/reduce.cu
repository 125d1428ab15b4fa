#include "kernels/cuda/reduce/reduce_kernel.h"

namespace taeda::cuda {

bool shape_of(const ReduceInput& x, ReduceShape* s) {
  int64_t sizes[2][kMostDims];
  for (size_t d = x.sizes.size(); d-- > 0;) {
    const bool gone = x.reduced >> d & 1;
    (gone ? s->reduced_count : s->kept_count) *= x.sizes[d];
    if (x.sizes[d] == 1) continue;
    Walk& w = gone ? s->reduced : s->kept;
    int64_t* all = sizes[gone];
    if (w.dims && x.strides[d] == w.strides[w.dims - 1] * all[w.dims - 1]) {
      all[w.dims - 1] *= x.sizes[d];
      continue;
    }
    if (w.dims == kMostDims) return false;
    w.strides[w.dims] = x.strides[d];
    all[w.dims++] = x.sizes[d];
  }
  for (int gone = 0; gone < 2; ++gone) {
    Walk& w = gone ? s->reduced : s->kept;
    if (s->reduced_count == 0) w.dims = 0;  // nothing is read
    if (w.dims) w.first = sizes[gone][0];
    for (int d = 0; d + 1 < w.dims; ++d) {
      if (sizes[gone][d] >= kMostElements) return false;
      w.sizes[d] = Divisor(sizes[gone][d]);
    }
  }
  return true;
}

namespace {

void reduce_to(ReduceOp op, const ReduceInput& x, const ReduceResults& y) {
  if (!taeda::is_complex(y.dtype))
    visit_real(y.dtype, "reduce", [](auto) {});  // what can be stored
  ReduceShape s;
  int64_t kept = 1;
  for (size_t d = 0; d < x.sizes.size(); ++d) kept *= x.reduced >> d & 1 ? 1 : x.sizes[d];
  if (kept == 0) return;
  if (!shape_of(x, &s)) missing_kernel();
  const Results results{y.dtype, static_cast<char*>(y.values), static_cast<char*>(y.second),
                        y.divisor, y.root};
  if (op >= ReduceOp::Prod) reduce_sum(op, x, s, results);
  else reduce_order(op, x, s, results);
}

// ---- products of complex numbers ----
template <class T>
__global__ void multiply_rows(int64_t rows, int64_t n, const Complex<T>* x, Complex<T>* y) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  Complex<T> v(T(1));
  for (int64_t j = 0; j < n; ++j) v = v * x[i * n + j];
  y[i] = v;
}
void complex_prod(DType dtype, int64_t rows, int64_t n, const void* x, void* y) {
  if (rows == 0) return;
  const auto run = [&]<class T>(Tag<T>) {
    launch(multiply_rows<T>, static_cast<unsigned>((rows + kThreads - 1) / kThreads), kThreads, 0,
           rows, n, static_cast<const Complex<T>*>(x), static_cast<Complex<T>*>(y));
  };
  dtype == DType::Complex64 ? run(Tag<float>()) : run(Tag<double>());
}

// ---- equality ----
template <class T>
__global__ void find_different(int64_t n, const T* a, const T* b, int* different) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    if (a[i] != b[i]) *different = 1;
}
bool all_equal(DType dtype, int64_t n, const void* a, const void* b) {
  if (n == 0) return true;
  const Workspace memory(sizeof(int));
  each(1, [different = memory.as<int>()] __device__(int64_t) { *different = 0; });
  visit_real(dtype, "equal", [&]<class T>(Tag<T>) {
    launch(find_different<T>, blocks_for(n), kThreads, 0, n, static_cast<const T*>(a),
           static_cast<const T*>(b), memory.as<int>());
  });
  return read_back(memory.as<int>()) == 0;
}

}  // namespace

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* y);
void scan_extreme(bool largest, DType dtype, const ScanShape& s, const void* x, void* values,
                  int64_t* indices);

extern const ReduceKernels reduce_table{reduce_to, complex_prod, all_equal, scan, scan_extreme};

}  // namespace taeda::cuda
