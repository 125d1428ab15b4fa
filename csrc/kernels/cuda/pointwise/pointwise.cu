#include "kernels/cuda/pointwise/pointwise.h"

#include <optional>

#include "kernels/cuda/common/vector.h"

namespace taeda::cuda {

int64_t PlanPart::numel() const {
  int64_t n = last;
  for (size_t d = 0; d + 1 < dims; ++d) n *= plan.sizes[d];
  return n;
}

namespace {

// Parts of the last dimension, or its elements one by one.
void run_part(PlanPart part, RunPart run) {
  const int64_t n = part.numel();
  if (part.dims <= kMostDims && n < kMostElements) return run(part);
  const size_t outer = part.dims - 1;
  const int64_t inner = n / part.last, all = part.last;
  const bool alone = part.dims > kMostDims || inner >= kMostElements;
  const int64_t step = alone ? 1 : (kMostElements - 1) / inner;
  const PlanPart whole = part;
  for (int64_t begin = 0; begin < all; begin += step) {
    for (int k = 0; k < part.plan.count; ++k)
      part.offsets[k] = whole.offsets[k] + begin * part.plan.strides[k][outer];
    part.last = std::min(step, all - begin);
    part.dims = whole.dims;
    if (alone) {
      part.dims = outer;
      part.last = part.plan.sizes[outer - 1];
    }
    run_part(part, run);
  }
}

}  // namespace

void run_in_parts(const Plan& plan, const HostNumber* numbers, RunPart run) {
  const int64_t last = plan.sizes.empty() ? 1 : plan.sizes.back();
  run_part({plan, plan.sizes.size(), last, {}, numbers}, run);
}

Access access_of(const PlanPart& part, int k, int64_t n) {
  const Plan& p = part.plan;
  const int64_t size = size_of(p.dtype[k]), vector = n * size;
  const int64_t inner = part.dims == 0 ? 1 : part.dims == 1 ? part.last : p.sizes[0];
  const bool whole = part.dims < 2 || inner % n == 0;  // no N neighbours are in two rows
  if (part.dims > 0 && p.strides[k][0] == 0) return whole ? Access::Same : Access::Any;
  if (!is_aligned(p.data[k] + part.offsets[k], n, size)) return Access::Any;
  int64_t step = size;
  bool flat = true, aligned = true;
  for (size_t d = 0; d < part.dims; ++d) {
    const int64_t stride = p.strides[k][d];
    flat &= stride == step;
    aligned &= d == 0 ? stride == size : stride % vector == 0;
    step *= p.sizes[d];
  }
  return flat ? Access::Flat : whole && aligned ? Access::Inner : Access::Any;
}

// ---- values and gradients ----

extern const FunctorKernels* const arithmetic_kernels;
extern const FunctorKernels* const rounding_kernels;
extern const FunctorKernels* const logic_kernels;
extern const FunctorKernels* const math_kernels;
extern const FunctorKernels* const special_kernels;
extern const FunctorKernels* const bessel_kernels;
extern const FunctorKernels* const polynomial_kernels;
extern const FunctorKernels* const activation_kernels;
extern const FunctorKernels* const loss_kernels;

namespace {

const FunctorKernel& find(const Functor& f, int part, DType compute) {
  const FunctorKernels* const lists[] = {arithmetic_kernels, rounding_kernels,   logic_kernels,
                                         math_kernels,       special_kernels,    bessel_kernels,
                                         polynomial_kernels, activation_kernels, loss_kernels};
  const FunctorKernels& all = lists[static_cast<size_t>(f.list)][f.index];
  const FunctorKernel& k = part == kValue
                               ? all.value[static_cast<size_t>(compute)]
                               : all.gradient[part - kDerivative][compute == DType::Float64];
  if (!k.run) missing_kernel();
  return k;
}

bool is_read_as(DType stored, DType wanted) {
  return stored == wanted || (wanted == DType::Float32 && is_half(stored)) ||
         (wanted == DType::Bool && stored == DType::UInt8);
}

HostNumber converted(const void* number, DType from, DType to) {
  HostNumber n{};
  const auto convert_to = [&]<class T>(Tag<T>) {
    const T v = load_as<T>(static_cast<const char*>(number), from);
    std::memcpy(n.bytes, &v, sizeof v);
  };
  if (to == DType::Complex64) convert_to(Tag<Complex<float>>());
  else if (to == DType::Complex128) convert_to(Tag<Complex<double>>());
  else visit_real(to, "number", convert_to);
  return n;
}

bool is_constant(const Plan& p, int k) {
  for (const int64_t stride : p.strides[k]) {
    if (stride != 0) return false;
  }
  return true;
}

// Operand k of a plan as memory of its own, contiguous and of another dtype. A constant operand is
// one element there.
struct Converted {
  Workspace memory;
  Plan copying;  // from it to the operand

  static int64_t count(const Plan& p, int k) { return is_constant(p, k) ? 1 : p.numel; }

  Converted(const Plan& p, int k, DType dtype)
      : memory(static_cast<size_t>(count(p, k) * size_of(dtype))),
        copying(p) {
    const bool constant = is_constant(p, k);
    copying.count = 2;
    copying.host_numbers = 0;
    copying.data[0] = p.data[k];
    copying.dtype[0] = p.dtype[k];
    copying.strides[0] = p.strides[k];
    copying.data[1] = memory.as<char>();
    copying.dtype[1] = dtype;
    int64_t step = size_of(dtype);
    for (size_t d = 0; d < p.sizes.size(); ++d) {
      copying.strides[1][d] = constant ? 0 : step;
      step *= p.sizes[d];
    }
  }
  void read() {
    Plan reading = copying;
    std::swap(reading.data[0], reading.data[1]);
    std::swap(reading.dtype[0], reading.dtype[1]);
    std::swap(reading.strides[0], reading.strides[1]);
    if (reading.strides[0] == Dims(reading.sizes.size(), 0)) {
      reading.sizes = reading.strides[0] = reading.strides[1] = Dims{};
      reading.numel = 1;
    }
    copy(reading);
  }
  void replace(Plan& p, int k) const {
    p.data[k] = copying.data[1];
    p.dtype[k] = copying.dtype[1];
    p.strides[k] = copying.strides[1];
  }
};

void run(const Plan& given, const Functor& f, int part, DType compute) {
  if (given.numel == 0) return;
  const FunctorKernel& kernel = find(f, part, compute);
  HostNumber numbers[Plan::kMaxOperands]{};
  std::optional<Converted> other[Plan::kMaxOperands];
  bool as_it_is = true;
  for (int k = 0; k < given.count; ++k)
    as_it_is &= !(given.host_numbers >> k & 1) && is_read_as(given.dtype[k], kernel.dtypes[k]);
  if (as_it_is) return run_in_parts(given, numbers, kernel.run);
  Plan plan = given;
  for (int k = 0; k < plan.count; ++k) {
    if (given.host_numbers >> k & 1) {
      numbers[k] = converted(plan.data[k], plan.dtype[k], kernel.dtypes[k]);
      plan.data[k] = nullptr;
      plan.dtype[k] = kernel.dtypes[k];
    } else if (!is_read_as(plan.dtype[k], kernel.dtypes[k])) {
      other[k].emplace(plan, k, kernel.dtypes[k]);
      other[k]->replace(plan, k);
      if (k > 0) other[k]->read();
    }
  }
  run_in_parts(plan, numbers, kernel.run);
  if (other[0]) copy(other[0]->copying);
}

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  const StreamHandle stream = current_stream(used_device().index);
  succeed(driver().copy(reinterpret_cast<DevicePointer>(to), reinterpret_cast<DevicePointer>(from),
                        static_cast<size_t>(bytes), stream),
          "copying");
}

void clear(void* to, int64_t bytes) {
  if (bytes == 0) return;
  const StreamHandle stream = current_stream(used_device().index);
  succeed(driver().fill_bytes(reinterpret_cast<DevicePointer>(to), 0, static_cast<size_t>(bytes),
                              stream),
          "clearing memory");
}

}  // namespace

extern const PointwiseKernels pointwise_table{run, nullptr, copy, copy_bytes, clear};

}  // namespace taeda::cuda
