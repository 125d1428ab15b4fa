#include "kernels/cuda/fft/cufft.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/libraries.h"
#include "kernels/cuda/runtime/plans.h"

namespace taeda::cuda {
namespace {

// ---- the library: what is used of cufft.h (CUDA 13) ----
constexpr const char* kLibrary = "libcufft.so.12";

using Handle = int;
enum Type : int {
  kFloatToComplex = 0x2a,
  kComplexToFloat = 0x2c,
  kComplex = 0x29,
  kDoubleToComplex = 0x6a,
  kComplexToDouble = 0x6c,
  kComplexDoubles = 0x69
};
constexpr int kForward = -1, kBackward = 1;

struct Library {
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*set_own_workspace)(Handle, int own);
  int (*make)(Handle, int rank, long long* n, long long* in_sizes, long long in_step,
              long long in_batch, long long* out_sizes, long long out_step, long long out_batch,
              Type, long long batch, size_t* workspace);
  int (*set_stream)(Handle, StreamHandle);
  int (*set_workspace)(Handle, void*);
  int (*complex)(Handle, void* in, void* out, int direction);
  int (*complex_doubles)(Handle, void* in, void* out, int direction);
  int (*from_float)(Handle, void* in, void* out);
  int (*from_double)(Handle, void* in, void* out);
  int (*to_float)(Handle, void* in, void* out);
  int (*to_double)(Handle, void* in, void* out);
};

const Library& library() {
  static const auto found = bind_library<Library>(kLibrary, [](Library& l, auto find) {
    find(l.create, "cufftCreate");
    find(l.destroy, "cufftDestroy");
    find(l.set_own_workspace, "cufftSetAutoAllocation");
    find(l.make, "cufftMakePlanMany64");
    find(l.set_stream, "cufftSetStream");
    find(l.set_workspace, "cufftSetWorkArea");
    find(l.complex, "cufftExecC2C");
    find(l.complex_doubles, "cufftExecZ2Z");
    find(l.from_float, "cufftExecR2C");
    find(l.from_double, "cufftExecD2Z");
    find(l.to_float, "cufftExecC2R");
    find(l.to_double, "cufftExecZ2D");
  });
  if (!found) missing_package("cuFFT (pip install nvidia-cufft)");
  return *found;
}

void succeed_fft(int status, const char* what) {
  check(status == 0, "cuda: cuFFT: ", what, " failed (status ", status, ")");
}

// ---- plans ----
// What transforms of one plan have in common. All of it is compared, so there is no padding.
struct Key {
  int64_t device, type, rank, batch, n[3];

  bool operator==(const Key&) const = default;
};

class FftPlan {
 public:
  FftPlan(const Library& l, const Key& key) {
    Handle handle;
    succeed_fft(l.create(&handle), "a plan");
    handle_ = handle;
    succeed_fft(l.set_own_workspace(handle, 0), "a plan");
    long long n[3];
    std::ranges::copy(key.n, n);
    // Without sizes of arrays, these are what the signals take.
    succeed_fft(l.make(handle, static_cast<int>(key.rank), n, nullptr, 1, 1, nullptr, 1, 1,
                       static_cast<Type>(key.type), key.batch, &workspace_),
                "a plan");
  }
  FftPlan(FftPlan&& other) noexcept
      : handle_(std::exchange(other.handle_, std::nullopt)),
        workspace_(other.workspace_) {}
  FftPlan& operator=(FftPlan&&) = delete;
  ~FftPlan() {
    if (handle_) library().destroy(*handle_);
  }
  Handle handle() const { return *handle_; }
  size_t workspace() const { return workspace_; }

 private:
  std::optional<Handle> handle_;
  size_t workspace_ = 0;
};

Type type_of(const Transform& t) {
  switch (t.kind) {
    case FftKind::FromReal: return t.doubles ? kDoubleToComplex : kFloatToComplex;
    case FftKind::ToReal: return t.doubles ? kComplexToDouble : kComplexToFloat;
    default: return t.doubles ? kComplexDoubles : kComplex;
  }
}

Key key_of(const Transform& t, int device) {
  Key key{device, type_of(t), 0, t.block.batch, {}};
  // Dimensions of one element change nothing.
  for (int d = 0; d < t.block.rank; ++d)
    if (t.block.n[d] != 1) key.n[key.rank++] = t.block.n[d];
  return key;
}

const FftPlan& plan_for(const Library& l, const Key& key) {
  constexpr size_t most = 256;
  static thread_local std::unordered_map<Key, FftPlan, KeyHash> plans;
  auto known = plans.find(key);
  if (known == plans.end()) {
    if (plans.size() >= most) plans.clear();
    known = plans.emplace(key, FftPlan(l, key)).first;
  }
  return known->second;
}

}  // namespace

void transform_by_cufft(const Transform& t) {
  const Library& l = library();
  const int device = used_device().index;
  const FftPlan& plan = plan_for(l, key_of(t, device));
  const Workspace workspace(plan.workspace());
  succeed_fft(l.set_stream(plan.handle(), current_stream(device)), "choosing a stream");
  if (plan.workspace() > 0)
    succeed_fft(l.set_workspace(plan.handle(), workspace.as<void>()), "a workspace");
  void* in = const_cast<void*>(t.in);
  const int direction = t.forward ? kForward : kBackward;
  switch (t.kind) {
    case FftKind::Complex:
      succeed_fft((t.doubles ? l.complex_doubles : l.complex)(plan.handle(), in, t.out, direction),
                  "a transform");
      break;
    case FftKind::FromReal:
      succeed_fft((t.doubles ? l.from_double : l.from_float)(plan.handle(), in, t.out),
                  "a transform");
      break;
    case FftKind::ToReal:
      succeed_fft((t.doubles ? l.to_double : l.to_float)(plan.handle(), in, t.out), "a transform");
      break;
  }
}

}  // namespace taeda::cuda
