#include "kernels/cuda/gemm/cublas.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/libraries.h"
#include "kernels/cuda/runtime/plans.h"

namespace taeda::cuda {
namespace {

// ---- the library: what is used of cublasLt.h (CUDA 13) ----
constexpr const char* kLibrary = "libcublasLt.so.13";

enum DataType : int {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kComplex64 = 4,
  kComplex128 = 5,
  kBFloat16 = 14
};
enum ComputeType : int { kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77 };
enum Operation : int32_t { kAsItIs = 0, kTransposed = 1, kAdjoint = 2 };
enum ProductAttribute : int { kTransA = 3, kTransB = 4, kEpilogue = 7, kBiasPointer = 8 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchOffset = 6 };
enum PreferenceAttribute : int {
  kMostWorkspace = 1,
  kReductionSchemes = 3,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};
constexpr uint32_t kAddBias = 4;
// How parts of long sums may be added up: in the type that is computed in, not in the result's, so
// that results of half precision are rounded once.
constexpr uint32_t kInComputeType = 2;

using Handle = struct OpaqueHandle*;
using Product = struct OpaqueProduct*;
using Layout = struct OpaqueLayout*;
using Preference = struct OpaquePreference*;
struct Algorithm {
  uint64_t data[8];
};
struct Candidate {
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

struct Library {
  int (*create)(Handle*);
  int (*destroy)(Handle), (*destroy_product)(Product), (*destroy_layout)(Layout),
      (*destroy_preference)(Preference);
  int (*make_product)(Product*, ComputeType, DataType scale);
  int (*set_product)(Product, ProductAttribute, const void*, size_t);
  int (*make_layout)(Layout*, DataType, uint64_t rows, uint64_t columns, int64_t stride);
  int (*set_layout)(Layout, LayoutAttribute, const void*, size_t);
  int (*make_preference)(Preference*);
  int (*set_preference)(Preference, PreferenceAttribute, const void*, size_t);
  int (*find_algorithm)(Handle, Product, Layout a, Layout b, Layout c, Layout d, Preference,
                        int wanted, Candidate*, int* found);
  int (*multiply)(Handle, Product, const void* alpha, const void* a, Layout, const void* b, Layout,
                  const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*,
                  void* workspace, size_t, StreamHandle);
};

// Null where it is not installed.
const Library* library() {
  static const auto found = bind_library<Library>(kLibrary, [](Library& l, auto find) {
    find(l.create, "cublasLtCreate");
    find(l.destroy, "cublasLtDestroy");
    find(l.destroy_product, "cublasLtMatmulDescDestroy");
    find(l.destroy_layout, "cublasLtMatrixLayoutDestroy");
    find(l.destroy_preference, "cublasLtMatmulPreferenceDestroy");
    find(l.make_product, "cublasLtMatmulDescCreate");
    find(l.set_product, "cublasLtMatmulDescSetAttribute");
    find(l.make_layout, "cublasLtMatrixLayoutCreate");
    find(l.set_layout, "cublasLtMatrixLayoutSetAttribute");
    find(l.make_preference, "cublasLtMatmulPreferenceCreate");
    find(l.set_preference, "cublasLtMatmulPreferenceSetAttribute");
    find(l.find_algorithm, "cublasLtMatmulAlgoGetHeuristic");
    find(l.multiply, "cublasLtMatmul");
  });
  return found ? &*found : nullptr;
}

struct Destroy {
  void operator()(Handle p) const { library()->destroy(p); }
  void operator()(Product p) const { library()->destroy_product(p); }
  void operator()(Layout p) const { library()->destroy_layout(p); }
  void operator()(Preference p) const { library()->destroy_preference(p); }
};
template <class P> using Owned = std::unique_ptr<std::remove_pointer_t<P>, Destroy>;

void succeed_lt(int status, const char* what) {
  check(status == 0, "cuda: cuBLASLt: ", what, " failed (status ", status, ")");
}

// ---- a product as the library knows it ----
std::atomic<bool> tf32_allowed = false;
thread_local bool tf32_avoided = false;

DataType data_type(DType d) {
  switch (d) {
    case DType::Float16: return kFloat16;
    case DType::BFloat16: return kBFloat16;
    case DType::Float64: return kFloat64;
    case DType::Complex64: return kComplex64;
    case DType::Complex128: return kComplex128;
    default: return kFloat32;
  }
}
// Of alpha and beta, and of the sums.
DataType scale_type(DType d) { return is_half(d) ? kFloat32 : data_type(d); }
ComputeType compute_type(DType d) {
  if (d == DType::Float64 || d == DType::Complex128) return kCompute64;
  return tf32_allowed && !tf32_avoided && !is_half(d) ? kComputeTf32 : kCompute32;
}

constexpr int64_t kMostAlignment = 256;

// What products of one plan have in common. All of it is compared, so there is no padding.
struct Key {
  int64_t device, in, out, compute, batch, m, n, k, a_stride, a_step, a_trans, b_stride, b_step,
      b_trans, ldc, c_step, a_aligned, b_aligned, c_aligned, bias_aligned;

  bool operator==(const Key&) const = default;
};
Key key_of(const LtProduct& p, int device) {
  return {device,
          static_cast<int64_t>(p.in),
          static_cast<int64_t>(p.out),
          compute_type(p.in),
          p.batch,
          p.m,
          p.n,
          p.k,
          p.a.stride,
          p.a.step,
          static_cast<int64_t>(p.a.trans),
          p.b.stride,
          p.b.step,
          static_cast<int64_t>(p.b.trans),
          p.ldc,
          p.c_step,
          alignment(p.a.data, kMostAlignment),
          alignment(p.b.data, kMostAlignment),
          alignment(p.c, kMostAlignment),
          p.bias ? alignment(p.bias, kMostAlignment) : 0};
}

struct LtPlan {
  bool works = false;
  Owned<Product> product;
  Owned<Layout> a, b, c;
  Candidate chosen{};
};

Owned<Layout> make_layout(const Library& l, DType dtype, int64_t rows, int64_t columns,
                          int64_t stride, int64_t batch, int64_t step) {
  Layout layout;
  succeed_lt(l.make_layout(&layout, data_type(dtype), static_cast<uint64_t>(rows),
                           static_cast<uint64_t>(columns), std::max(stride, rows)),
             "a matrix's layout");
  Owned<Layout> owned(layout);
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    succeed_lt(l.set_layout(layout, kBatchCount, &count, sizeof count), "a batch's size");
    succeed_lt(l.set_layout(layout, kBatchOffset, &step, sizeof step), "a batch's step");
  }
  return owned;
}

// op(x) is rows x columns; in memory, column by column, it is transposed once more.
Owned<Layout> layout_of(const Library& l, DType dtype, const LtMatrix& x, int64_t rows,
                        int64_t columns, int64_t batch) {
  if (x.trans != Trans::No) std::swap(rows, columns);
  return make_layout(l, dtype, columns, rows, x.stride, batch, x.step);
}

Operation operation(Trans t) {
  return t == Trans::No ? kAsItIs : t == Trans::Yes ? kTransposed : kAdjoint;
}

Handle handle_of(const Library& l, int device) {
  static thread_local std::unordered_map<int, Owned<Handle>> handles;
  Owned<Handle>& owned = handles[device];
  if (!owned) {
    Handle handle;
    succeed_lt(l.create(&handle), "starting");
    owned.reset(handle);
  }
  return owned.get();
}

Owned<Preference> preference_for(const Library& l, const Key& key) {
  Preference preference;
  succeed_lt(l.make_preference(&preference), "a preference");
  Owned<Preference> owned(preference);
  constexpr size_t workspace = size_t{32} << 20;
  succeed_lt(l.set_preference(preference, kMostWorkspace, &workspace, sizeof workspace),
             "the workspace's size");
  succeed_lt(
      l.set_preference(preference, kReductionSchemes, &kInComputeType, sizeof kInComputeType),
      "the ways to add up");
  const std::pair<PreferenceAttribute, int64_t> alignments[] = {{kAlignmentA, key.b_aligned},
                                                                {kAlignmentB, key.a_aligned},
                                                                {kAlignmentC, key.c_aligned},
                                                                {kAlignmentD, key.c_aligned}};
  for (const auto& [which, bytes] : alignments) {
    const auto least = static_cast<uint32_t>(bytes);
    succeed_lt(l.set_preference(preference, which, &least, sizeof least), "an alignment");
  }
  return owned;
}

// The library's matrices are column-major: it computes the transposed c, from the transposed b and
// a, which are those matrices as they lie in memory.
LtPlan make_plan(const Library& l, Handle handle, const LtProduct& p, const Key& key) {
  LtPlan plan;
  Product product;
  succeed_lt(l.make_product(&product, compute_type(p.in), scale_type(p.in)), "a product");
  plan.product.reset(product);
  const Operation left = operation(p.b.trans), right = operation(p.a.trans);
  succeed_lt(l.set_product(product, kTransA, &left, sizeof left), "an operand's order");
  succeed_lt(l.set_product(product, kTransB, &right, sizeof right), "an operand's order");
  if (p.bias) {
    succeed_lt(l.set_product(product, kEpilogue, &kAddBias, sizeof kAddBias), "an epilogue");
    succeed_lt(l.set_product(product, kBiasPointer, &p.bias, sizeof p.bias), "the bias");
  }
  plan.a = layout_of(l, p.in, p.b, p.k, p.n, p.batch);
  plan.b = layout_of(l, p.in, p.a, p.m, p.k, p.batch);
  plan.c = make_layout(l, p.out, p.n, p.m, p.ldc, p.batch, p.c_step);
  int found = 0;
  const int status =
      l.find_algorithm(handle, product, plan.a.get(), plan.b.get(), plan.c.get(), plan.c.get(),
                       preference_for(l, key).get(), 1, &plan.chosen, &found);
  plan.works = status == 0 && found > 0 && plan.chosen.status == 0;
  return plan;
}

const LtPlan& plan_for(const Library& l, Handle handle, const LtProduct& p, int device) {
  constexpr size_t most = 4096;
  static thread_local std::unordered_map<Key, LtPlan, KeyHash> plans;
  const Key key = key_of(p, device);
  auto known = plans.find(key);
  if (known == plans.end()) {
    if (plans.size() >= most) plans.clear();
    known = plans.emplace(key, make_plan(l, handle, p, key)).first;
  }
  return known->second;
}

}  // namespace

void allow_tf32(bool allowed) { tf32_allowed = allowed; }
WithoutTf32::WithoutTf32() : before_(std::exchange(tf32_avoided, true)) {}
WithoutTf32::~WithoutTf32() { tf32_avoided = before_; }

bool multiply_by_cublas(const LtProduct& p) {
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0 || p.batch > INT32_MAX) return false;
  const Library* l = library();
  if (!l) return false;
  const int device = used_device().index;
  const Handle handle = handle_of(*l, device);
  const LtPlan& plan = plan_for(*l, handle, p, device);
  if (!plan.works) return false;
  if (p.bias)
    succeed_lt(l->set_product(plan.product.get(), kBiasPointer, &p.bias, sizeof p.bias),
               "the bias");
  std::optional<Workspace> workspace;
  if (plan.chosen.workspace > 0) workspace.emplace(plan.chosen.workspace);
  const int status = l->multiply(
      handle, plan.product.get(), p.alpha, p.b.data, plan.a.get(), p.a.data, plan.b.get(), p.beta,
      p.c, plan.c.get(), p.c, plan.c.get(), &plan.chosen.algorithm,
      workspace ? workspace->as<void>() : nullptr, plan.chosen.workspace, current_stream(device));
  succeed_lt(status, "a product");
  return true;
}

}  // namespace taeda::cuda
