// Reductions: one kernel for all functions, dtypes and layouts.
//
//   struct Op {
//     using Acc = ...;                                   // trivial, at most 24 bytes
//     __device__ static Acc start();
//     __device__ static void add(Acc& acc, T x, int64_t index);  // the index within the reduced
//     __device__ static Acc merge(Acc a, Acc b);         // what b saw may come before what a saw
//     __device__ static void finish(const Results& y, int64_t i, Acc acc);
//     static constexpr bool kVectors;                    // whether there are kernels for packs
//     using Batch = ...;  // as Acc in a cheaper type, of up to kMostInBatch elements; made for the
//                         // first of them by begin(x), and given them by add(x, index)
//     __device__ static void fold(Acc& acc, const Batch& batch, int count);
//   };
#pragma once

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/vector.h"
#include "kernels/reduce.h"

namespace taeda::cuda {

// Dimensions in the order of a flat index, the fastest first. The last one is not divided by.
struct Walk {
  int dims = 0;
  int64_t first = 0;  // elements of the first dimension
  Divisor sizes[kMostDims];
  int64_t strides[kMostDims] = {};  // in elements

  __device__ int64_t offset(int64_t i) const {
    int64_t offset = 0;
#pragma unroll 1
    for (int d = 0; d + 1 < dims; ++d) offset += sizes[d].divide(i) * strides[d];
    return dims ? offset + i * strides[dims - 1] : 0;
  }
};

struct ReduceShape {
  int64_t kept_count = 1, reduced_count = 1;
  Walk kept, reduced;
};
// Dimensions joined where they continue one another. False where more remain than a Walk has.
bool shape_of(const ReduceInput& x, ReduceShape* s);

struct Results {
  DType dtype;
  char* values;
  char* second;
  double divisor, root;
};

// A result that was computed in double or int64.
template <class A> __device__ inline void store_result(const Results& y, int64_t i, A v) {
  char* p = y.values + i * size_of(y.dtype);
  const auto put = [p](auto x) { *reinterpret_cast<decltype(x)*>(p) = x; };
  switch (y.dtype) {
    case DType::Bool: return put(convert<bool>(v));
    case DType::UInt8: return put(convert<uint8_t>(v));
    case DType::Int8: return put(convert<int8_t>(v));
    case DType::Int16: return put(convert<int16_t>(v));
    case DType::Int32: return put(convert<int32_t>(v));
    case DType::Int64: return put(convert<int64_t>(v));
    case DType::Float16: return put(convert<Half>(v));
    case DType::BFloat16: return put(convert<BFloat16>(v));
    case DType::Float32: return put(convert<float>(v));
    case DType::Complex64: return put(convert<Complex<float>>(v));
    case DType::Complex128: return put(convert<Complex<double>>(v));
    default: return put(convert<double>(v));
  }
}
__device__ inline double root_of(double v, double root) {
  return root == 1 ? v : root == 2 ? ::sqrt(v) : ::pow(v, 1 / root);
}

inline constexpr int kAhead = 4;  // packs that a thread loads before it uses any
inline constexpr int kMostInBatch = 64;
inline constexpr int kBlocks = 3;  // of those that fit on a multiprocessor
// What is reduced often enough for kernels that read packs; and elements of a pack.
template <class T>
inline constexpr bool kIsCommon = !same_type<T, int8_t> && !same_type<T, int16_t>;
template <class T> inline constexpr int kReducePack = kPack<T> < 8 ? kPack<T> : 8;

// The batch of an Op whose elements are as cheap to add one by one.
template <class Op, class T> struct PlainBatch {
  typename Op::Acc acc = Op::start();
  __device__ void begin(T) {}
  __device__ __forceinline__ void add(T x, int64_t index) { Op::add(acc, x, index); }
};

template <class Op>
__device__ void store_acc(const Results& y, typename Op::Acc* partial, int64_t results, int64_t i,
                          typename Op::Acc acc) {
  if (gridDim.y == 1) Op::finish(y, i, acc);
  else partial[blockIdx.y * results + i] = acc;
}

// threadIdx.x counts the threads of one result, threadIdx.y results; blockIdx.y parts of the
// reduced elements, `part` to each. With several parts, accumulators go to `partial`, part by part.
// N > 1: packs along the reduced elements.
template <class Op, class T, int N>
__global__ void __launch_bounds__(kThreads, kBlocks)
    reduce_rows(const T* x, const __grid_constant__ ReduceShape s,
                const __grid_constant__ Results y, int64_t part, typename Op::Acc* partial) {
  const int64_t result = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int64_t begin = part * blockIdx.y, step = int64_t{blockDim.x} * N;
  int64_t end = begin + part < s.reduced_count ? begin + part : s.reduced_count;
  if (result >= s.kept_count) end = begin;
  auto acc = Op::start();
  const T* from = x + s.kept.offset(result < s.kept_count ? result : 0);
  int64_t i = begin + int64_t{threadIdx.x} * N;
  for (; i + N <= end; i += kAhead * step) {
    Pack<T, N> held[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i + k * step + N <= end) held[k] = load_pack<T, N>(from + s.reduced.offset(i + k * step));
    typename Op::Batch batch;
    batch.begin(held[0].v[0]);
    int count = 0;
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (i + k * step + N > end) continue;
      count += N;
#pragma unroll
      for (int j = 0; j < N; ++j) batch.add(held[k].v[j], i + k * step + j);
    }
    Op::fold(acc, batch, count);
  }
  if constexpr (N > 1) {  // what is left of the last pack
    int64_t last = begin + (end - begin) / N * N + threadIdx.x;
    for (; last < end; last += blockDim.x) Op::add(acc, from[s.reduced.offset(last)], last);
  }
  acc = group_all(acc, Op::merge);
  if (threadIdx.x == 0 && result < s.kept_count)
    store_acc<Op>(y, partial, s.kept_count, result, acc);
}

// Threads of one threadIdx.x share N neighbouring results.
template <class Op, class T, int N>
__global__ void __launch_bounds__(kThreads, 2)
    reduce_columns(const T* x, const __grid_constant__ ReduceShape s,
                   const __grid_constant__ Results y, int64_t part, typename Op::Acc* partial) {
  using Acc = typename Op::Acc;
  using Batch = typename Op::Batch;
  __shared__ Acc accs[kThreads];
  const int64_t result = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
  const int64_t begin = part * blockIdx.y;
  int64_t end = begin + part < s.reduced_count ? begin + part : s.reduced_count;
  if (result >= s.kept_count) end = begin;
  const T* from = x + s.kept.offset(result < s.kept_count ? result : 0);
  Acc acc[N];
#pragma unroll
  for (int j = 0; j < N; ++j) acc[j] = Op::start();
  const auto load = [&](int64_t i) { return load_pack<T, N>(from + s.reduced.offset(i)); };
  const int64_t step = blockDim.y, chunk = kMostInBatch * step;
  for (int64_t first = begin + threadIdx.y; first < end; first += chunk) {
    const int64_t stop = first + chunk < end ? first + chunk : end;
    const auto firsts = load(first);
    Batch batch[N];
#pragma unroll
    for (int j = 0; j < N; ++j) batch[j].begin(firsts.v[j]);
    int64_t i = first;
    for (; i + (kAhead - 1) * step < stop; i += kAhead * step) {
      Pack<T, N> held[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) held[k] = load(i + k * step);
#pragma unroll
      for (int k = 0; k < kAhead; ++k)
#pragma unroll
        for (int j = 0; j < N; ++j) batch[j].add(held[k].v[j], i + k * step);
    }
    for (; i < stop; i += step) {
      const auto row = load(i);
#pragma unroll
      for (int j = 0; j < N; ++j) batch[j].add(row.v[j], i);
    }
    const int count = static_cast<int>((stop - first + step - 1) / step);
#pragma unroll
    for (int j = 0; j < N; ++j) Op::fold(acc[j], batch[j], count);
  }
  const unsigned self = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    accs[self] = acc[j];
#pragma unroll 1
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y < half) accs[self] = Op::merge(accs[self], accs[self + half * blockDim.x]);
    }
    if (threadIdx.y == 0 && result < s.kept_count)
      store_acc<Op>(y, partial, s.kept_count, result + j, accs[self]);
    __syncthreads();
  }
}

// A group for each result.
template <class Op>
__global__ void merge_parts(int64_t count, int parts, const typename Op::Acc* partial,
                            const __grid_constant__ Results y) {
  const int64_t i = group_index();
  auto acc = Op::start();
  // nvcc 13.0 unrolls this for accumulators of three doubles into loads from wrong addresses.
#pragma unroll 1
  for (int part = threadIdx.x; i < count && part < parts; part += blockDim.x)
    acc = Op::merge(acc, partial[part * count + i]);
  acc = group_all(acc, Op::merge);
  if (threadIdx.x == 0 && i < count) Op::finish(y, i, acc);
}

// ---- which kernel ----
// Whether packs of N elements lie along the first dimension of one walk, and begin at multiples of
// N wherever the other one goes.
inline bool has_packs(const void* data, const Walk& along, const Walk& other, int64_t size, int N) {
  bool fits = along.dims > 0 && along.strides[0] == 1 && aligned(data) &&
              (along.dims == 1 || along.first % N == 0) && size >= N;
  for (int d = 1; d < along.dims; ++d) fits = fits && along.strides[d] % N == 0;
  for (int d = 0; d < other.dims; ++d) fits = fits && other.strides[d] % N == 0;
  return fits;
}

struct ReduceGrid {
  dim3 block;
  unsigned blocks, parts;
  int64_t part;  // elements of a part

  // `least`: elements that a part should have; parts begin at multiples of N.
  ReduceGrid(dim3 block, int64_t blocks, const ReduceShape& s, int64_t least, int N)
      : block(block),
        blocks(static_cast<unsigned>(blocks)) {
    const int64_t wanted =
        int64_t{used_device().multiprocessors} * 2 * kBlocks / std::max<int64_t>(blocks, 1);
    const int64_t most = std::min<int64_t>(wanted, s.reduced_count / least);
    const int64_t n = std::clamp<int64_t>(most, 1, 4096);
    part = ((s.reduced_count + n - 1) / n + N - 1) / N * N;
    parts =
        static_cast<unsigned>(std::max<int64_t>(part ? (s.reduced_count + part - 1) / part : 1, 1));
  }
};
inline ReduceGrid row_grid(const ReduceShape& s, int N) {
  const int64_t packs = (s.reduced_count + N - 1) / N;
  unsigned width = 1;
  while (width < kThreads && (width < kWarp ? width < packs : width * kAhead < packs)) width *= 2;
  const dim3 block(width, kThreads / width);
  return {block, (s.kept_count + block.y - 1) / block.y, s, int64_t{width} * N * kAhead, N};
}
inline ReduceGrid column_grid(const ReduceShape& s, int N) {
  unsigned across = 1;
  while (across < kWarp && int64_t{across} * N < s.kept_count) across *= 2;
  const dim3 block(across, kThreads / across);
  const int64_t blocks = (s.kept_count + across * N - 1) / (across * N);
  return {block, blocks, s, int64_t{block.y} * kAhead, 1};
}
// Neighbouring threads have neighbouring results, each element by itself.
inline ReduceGrid strided_grid(const ReduceShape& s) {
  unsigned width = 1;
  while (width < 16 && s.kept_count * width < 4096 && width * 16 < s.reduced_count) width *= 2;
  const dim3 block(width, kThreads / width);
  return {block, (s.kept_count + block.y - 1) / block.y, s, int64_t{width} * 16, 1};
}

template <class Op, class T, class Kernel>
void run_reduce(Kernel kernel, const ReduceGrid& g, const T* x, const ReduceShape& s,
                const Results& y) {
  using Acc = typename Op::Acc;
  const dim3 grid(g.blocks, g.parts);
  if (g.parts == 1)
    return launch(kernel, grid, g.block, 0, x, s, y, g.part, static_cast<Acc*>(nullptr));
  const Workspace partial(static_cast<size_t>(s.kept_count) * g.parts * sizeof(Acc));
  launch(kernel, grid, g.block, 0, x, s, y, g.part, partial.as<Acc>());
  const dim3 block = groups_for(g.parts);
  launch(merge_parts<Op>, blocks_of(s.kept_count, block), block, 0, s.kept_count,
         static_cast<int>(g.parts), partial.as<Acc>(), y);
}

template <class Op, class T>
void run_reduce(const ReduceInput& input, const ReduceShape& s, const Results& y) {
  const auto* x = static_cast<const T*>(input.data);
  if constexpr (Op::kVectors) {
    constexpr int N = kReducePack<T>;
    if (has_packs(x, s.reduced, s.kept, s.reduced_count, N))
      return run_reduce<Op>(reduce_rows<Op, T, N>, row_grid(s, N), x, s, y);
    if (has_packs(x, s.kept, s.reduced, s.kept_count, N) && s.kept_count % N == 0)
      return run_reduce<Op>(reduce_columns<Op, T, N>, column_grid(s, N), x, s, y);
  }
  // Neighbouring threads read neighbouring memory: of one result, or of several.
  const bool rows =
      s.reduced.dims == 0 || s.kept.dims == 0 || s.reduced.strides[0] <= s.kept.strides[0];
  run_reduce<Op>(reduce_rows<Op, T, 1>, rows ? row_grid(s, 1) : strided_grid(s), x, s, y);
}

void reduce_order(ReduceOp op, const ReduceInput& x, const ReduceShape& s, const Results& y);
void reduce_sum(ReduceOp op, const ReduceInput& x, const ReduceShape& s, const Results& y);

}  // namespace taeda::cuda
