// Copies between any layouts and dtypes.
#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

template <> inline constexpr DType element_dtype<Bytes16> = DType::Complex128;

namespace {

template <class T> struct Same {
  using Type = T (*)(T);
  __device__ static T at(T x) { return x; }
};

// Of elements that are read as a T, whatever they are, and stored as one or narrower.
template <class T> __global__ void convert_to(const __grid_constant__ PointwiseLoop<2> l) {
  const PointwiseOperand &to = l.operand[0], &from = l.operand[1];
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < l.n; i += step)
    store_narrow<T>(to.data + l.offset(to, i), to.dtype,
                    load_as<T>(from.data + l.offset(from, i), from.dtype));
}
template <class T> void run_convert(const PlanPart& part) {
  const auto loop = loop_of<2>(part);
  launch(convert_to<T>, blocks_for(loop.n), kThreads, 0, loop);
}

// What elements of dtype `from` are on the way to `to`.
RunPart conversion(DType to, DType from) {
  switch (to) {
    case DType::Bool: return run_convert<bool>;
    case DType::UInt8: return run_convert<uint8_t>;
    case DType::Int8: return run_convert<int8_t>;
    case DType::Int16: return run_convert<int16_t>;
    case DType::Int32: return run_convert<int32_t>;
    case DType::Int64:
    case DType::UInt16:
    case DType::UInt32: return run_convert<int64_t>;
    case DType::UInt64: return is_inexact(from) ? run_convert<double> : run_convert<int64_t>;
    case DType::Float64: return run_convert<double>;
    case DType::Complex64: return run_convert<Complex<float>>;
    case DType::Complex128: return run_convert<Complex<double>>;
    default: return run_convert<float>;
  }
}

template <class T> void move(Plan plan) {
  plan.dtype[0] = plan.dtype[1] = element_dtype<T>;
  run_in_parts(plan, nullptr, Runner<Same<T>, 4>::run);
}

bool is_float_or_half(DType d) { return d == DType::Float32 || is_half(d); }

}  // namespace

void copy(const Plan& plan) {
  if (plan.numel == 0) return;
  const DType to = plan.dtype[0], from = plan.dtype[1];
  if (to == from) {
    switch (size_of(to)) {
      case 1: return move<uint8_t>(plan);
      case 2: return move<uint16_t>(plan);
      case 4: return move<uint32_t>(plan);
      case 8: return move<uint64_t>(plan);
      default: return move<Bytes16>(plan);
    }
  }
  if (is_float_or_half(to) && is_float_or_half(from))
    return run_in_parts(plan, nullptr, Runner<Same<float>, 4>::run);
  run_in_parts(plan, nullptr, conversion(to, from));
}

}  // namespace taeda::cuda
