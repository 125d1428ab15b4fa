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
  const auto loop = loop_of<2>(part, 1);
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
    case DType::Complex32:
    case DType::Complex64: return run_convert<Complex<float>>;
    case DType::Complex128: return run_convert<Complex<double>>;
    default: return run_convert<float>;
  }
}

// ---- transposed copies ----
constexpr int kSide = 32, kRows = 8;  // tiles of kSide^2 elements, kSide * kRows threads

// What is contiguous along dimension 0 where it is written, along dimension `across` where it is
// read. The other dimensions are those of a loop.
struct Transposed {
  int64_t size, across_size;
  int64_t to_stride, from_stride;  // in elements: along `across`, along dimension 0
  uint32_t tiles;                  // along dimension 0
};

template <class T>
__global__ void copy_tiles(const __grid_constant__ PointwiseLoop<2> others,
                           const __grid_constant__ Transposed t) {
  __shared__ T tile[kSide][kSide + 1];
  const int64_t first = int64_t{blockIdx.x % t.tiles} * kSide,
                first_across = int64_t{blockIdx.x / t.tiles} * kSide;
  for (uint32_t k = blockIdx.y; k < others.n; k += gridDim.y) {
    const PointwiseOperand &to = others.operand[0], &from = others.operand[1];
    auto* written = reinterpret_cast<T*>(to.data + others.offset(to, k));
    const auto* read = reinterpret_cast<const T*>(from.data + others.offset(from, k));
    for (int r = static_cast<int>(threadIdx.y); r < kSide; r += kRows) {
      const int64_t i = first + r, j = first_across + threadIdx.x;
      if (i < t.size && j < t.across_size) tile[r][threadIdx.x] = read[i * t.from_stride + j];
    }
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < kSide; r += kRows) {
      const int64_t i = first + threadIdx.x, j = first_across + r;
      if (i < t.size && j < t.across_size) written[j * t.to_stride + i] = tile[threadIdx.x][r];
    }
    __syncthreads();
  }
}

// The dimension along which the input is contiguous, where that is not the output's, and tiles are
// worth it; else 0.
size_t dimension_across(const Plan& p, int64_t size) {
  if (p.sizes.size() < 2 || p.strides[0][0] != size || p.strides[1][0] == size) return 0;
  for (size_t d = 1; d < p.sizes.size(); ++d)
    if (p.strides[1][d] == size && p.sizes[d] >= kSide / 2 && p.sizes[0] >= kSide / 2) return d;
  return 0;
}

// False where copies element by element are as good.
template <class T> bool copy_transposed(const Plan& plan) {
  constexpr int64_t size = sizeof(T);
  const size_t across = dimension_across(plan, size);
  if (across == 0) return false;
  Plan others = plan;
  Transposed t{plan.sizes[0], plan.sizes[across], plan.strides[0][across] / size,
               plan.strides[1][0] / size, 0};
  t.tiles = static_cast<uint32_t>((t.size + kSide - 1) / kSide);
  const int64_t tiles = t.tiles * ((t.across_size + kSide - 1) / kSide);
  others.numel /= t.size * t.across_size;
  for (const size_t d : {across, size_t{0}}) {
    others.sizes.erase(d);
    for (int k = 0; k < 2; ++k) others.strides[k].erase(d);
  }
  if (others.sizes.size() > kMostDims || others.numel >= kMostElements || tiles >= kMostElements)
    return false;
  const PlanPart part{
      others, others.sizes.size(), others.sizes.empty() ? 1 : others.sizes.back(), {}, nullptr};
  const dim3 grid(static_cast<unsigned>(tiles),
                  static_cast<unsigned>(std::min<int64_t>(others.numel, 65535)));
  launch(copy_tiles<T>, grid, dim3(kSide, kRows), 0, loop_of<2>(part, 1), t);
  return true;
}

bool is_float_or_half(DType d) { return d == DType::Float32 || is_half(d); }

template <class T> void move(Plan plan) {
  plan.dtype[0] = plan.dtype[1] = element_dtype<T>;
  if (plan.host_numbers >> 1 & 1) {
    HostNumber numbers[2]{};
    std::memcpy(numbers[1].bytes, plan.data[1], sizeof(T));
    plan.data[1] = nullptr;
    return run_in_parts(plan, numbers, Runner<Same<T>>::run);
  }
  if (!copy_transposed<T>(plan)) run_in_parts(plan, nullptr, Runner<Same<T>>::run);
}

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
    return run_in_parts(plan, nullptr, Runner<Same<float>>::run);
  run_in_parts(plan, nullptr, conversion(to, from));
}

}  // namespace taeda::cuda
