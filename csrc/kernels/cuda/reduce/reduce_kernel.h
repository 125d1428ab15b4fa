// Reductions: one kernel for all functions, dtypes and layouts.
//
//   struct Op {
//     using Acc = ...;                                   // trivial, at most 24 bytes
//     __device__ static Acc start();
//     __device__ static void add(Acc& acc, T x, int64_t index);  // the index within the reduced
//     __device__ static Acc merge(Acc a, Acc b);         // what b saw may come before what a saw
//     __device__ static void finish(const Results& y, int64_t i, Acc acc);
//   };
#pragma once

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/index.h"
#include "kernels/reduce.h"

namespace taeda::cuda {

// Dimensions in the order of a flat index, the fastest first. The last one is not divided by.
struct Walk {
  int dims = 0;
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
    default: return put(convert<double>(v));
  }
}
__device__ inline double root_of(double v, double root) {
  return root == 1 ? v : root == 2 ? ::sqrt(v) : ::pow(v, 1 / root);
}

// threadIdx.x counts the threads of one result, threadIdx.y results; blockIdx.y parts of the
// reduced elements. With several parts, accumulators go to `partial`, part by part.
template <class Op, class T>
__global__ void reduce(const char* x, const __grid_constant__ ReduceShape s,
                       const __grid_constant__ Results y, typename Op::Acc* partial) {
  using Acc = typename Op::Acc;
  __shared__ Acc accs[kThreads];
  const int64_t result = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int64_t part = (s.reduced_count + gridDim.y - 1) / gridDim.y;
  const int64_t begin = part * blockIdx.y;
  const int64_t end = begin + part < s.reduced_count ? begin + part : s.reduced_count;
  Acc acc = Op::start();
  if (result < s.kept_count) {
    const char* from = x + s.kept.offset(result) * int64_t{sizeof(T)};
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
      Op::add(acc, element<T>(from + s.reduced.offset(i) * int64_t{sizeof(T)}), i);
  }
  const unsigned self = threadIdx.y * blockDim.x + threadIdx.x;
  if (blockDim.x > 1) {
    accs[self] = acc;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) accs[self] = Op::merge(accs[self], accs[self + half]);
    }
    acc = accs[self];
  }
  if (threadIdx.x != 0 || result >= s.kept_count) return;
  if (gridDim.y == 1) Op::finish(y, result, acc);
  else partial[blockIdx.y * s.kept_count + result] = acc;
}

template <class Op>
__global__ void merge_parts(int64_t count, int parts, const typename Op::Acc* partial,
                            const __grid_constant__ Results y) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  typename Op::Acc acc = partial[i];
  // nvcc 13.0 unrolls this for accumulators of three doubles into loads from wrong addresses.
#pragma unroll 1
  for (int part = 1; part < parts; ++part) acc = Op::merge(acc, partial[part * count + i]);
  Op::finish(y, i, acc);
}

struct ReduceGrid {
  unsigned width;  // threads of one result
  unsigned parts;
};
inline ReduceGrid grid_for(const ReduceShape& s) {
  // Neighbouring threads read neighbouring memory: of one result, or of several.
  const bool rows =
      s.reduced.dims == 0 || s.kept.dims == 0 || s.reduced.strides[0] <= s.kept.strides[0];
  unsigned width = 1;
  while (rows && width < kThreads && width < s.reduced_count) width *= 2;
  while (!rows && width < 16 && s.kept_count * width < 4096 && width * 16 < s.reduced_count)
    width *= 2;
  const int64_t blocks = (s.kept_count * width + kThreads - 1) / kThreads;
  const int64_t wanted = int64_t{used_device().multiprocessors} * 4;
  const int64_t least = int64_t{width} * 16;  // elements of a part
  int64_t parts = blocks >= wanted ? 1 : wanted / blocks;
  parts = std::min(parts, s.reduced_count / least);
  return {width, static_cast<unsigned>(std::clamp<int64_t>(parts, 1, 1024))};
}

template <class Op, class T>
void run_reduce(const ReduceInput& x, const ReduceShape& s, const Results& y) {
  const ReduceGrid g = grid_for(s);
  const unsigned per_block = kThreads / g.width;
  const dim3 block(g.width, per_block);
  const int64_t blocks = (s.kept_count + per_block - 1) / per_block;
  const dim3 grid(static_cast<unsigned>(blocks), g.parts);
  const auto* from = static_cast<const char*>(x.data);
  using Acc = typename Op::Acc;
  if (g.parts == 1)
    return launch(reduce<Op, T>, grid, block, 0, from, s, y, static_cast<Acc*>(nullptr));
  const Workspace partial(static_cast<size_t>(s.kept_count) * g.parts * sizeof(Acc));
  launch(reduce<Op, T>, grid, block, 0, from, s, y, partial.as<Acc>());
  launch(merge_parts<Op>, static_cast<unsigned>((s.kept_count + kThreads - 1) / kThreads), kThreads,
         0, s.kept_count, static_cast<int>(g.parts), partial.as<Acc>(), y);
}

void reduce_order(ReduceOp op, const ReduceInput& x, const ReduceShape& s, const Results& y);
void reduce_sum(ReduceOp op, const ReduceInput& x, const ReduceShape& s, const Results& y);

}  // namespace taeda::cuda
