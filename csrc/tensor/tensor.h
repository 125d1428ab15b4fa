// Tensor: a counted handle to storage seen through sizes and strides. No mathematics and no
// autograd here.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/allocator.h"
#include "base/device.h"
#include "base/dims.h"
#include "base/dtype.h"
#include "base/ref.h"
#include "base/scalar.h"

namespace taeda {

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

// Bytes that tensors share, with the version counter that finds in-place changes to saved values.
struct alignas(cpu::kAlignment) Storage : RefCounted {
  void* data = nullptr;
  size_t nbytes = 0;
  Device device;
  uint32_t version = 0;
  bool resizable = true;
  bool placeholder = false;  // no memory: a Python class with __torch_dispatch__ holds the values
  std::atomic<uint32_t> exports{0};  // arrays and buffers outside taeda that refer to the memory
  // Frees memory with another owner (NumPy, DLPack); replaces the allocator.
  void (*release)(void* context) = nullptr;
  union {
    void* context = nullptr;
    size_t capacity;  // allocated bytes of data if `release` is not set
  };
  uint32_t inline_bytes = 0;  // of small data, which follows this header in the same block

  static Ref<Storage> allocate(size_t nbytes, Device device);
  static Ref<Storage> pinned(size_t nbytes);  // of the host, where a device copies from by itself
  static Ref<Storage> without_memory(size_t nbytes, Device device);  // a placeholder
  static Ref<Storage> borrow(void* data, size_t nbytes, void (*release)(void*), void* context);
  // Keeps the common prefix. Shrinking keeps the block in place, since tensors of the old size may
  // still refer to it; unused pages go back to the system.
  void resize(size_t nbytes);
  static void destroy(Storage* s);

 private:
  static Ref<Storage> make(size_t inline_bytes);
};

// While one lives with `on`, what its thread allocates on the CPU, up to `most` bytes, is pinned.
class PinnedScope {
 public:
  explicit PinnedScope(bool on = true, size_t most = SIZE_MAX);
  PinnedScope(const PinnedScope&) = delete;
  PinnedScope& operator=(const PinnedScope&) = delete;
  ~PinnedScope();

 private:
  size_t before_;
};

// A storage exported to NumPy, a buffer or DLPack: kept alive and pinned (never resized) while this
// object exists.
class ExportedStorage {
 public:
  explicit ExportedStorage(Ref<Storage> storage) : storage_(std::move(storage)) {
    ++storage_->exports;
  }
  ExportedStorage(const ExportedStorage&) = delete;
  ExportedStorage& operator=(const ExportedStorage&) = delete;
  ~ExportedStorage() { --storage_->exports; }

 private:
  Ref<Storage> storage_;
};

// A tensor's flags. The dispatcher ("the door", ops/core/dispatch.cpp) ORs those of all arguments
// into one word.
enum TensorFlag : uint32_t {
  kRequiresGrad = 1,  // a leaf that wants a gradient, or a result with a grad_fn
  kIsView = 2,        // has a base, from whose history its own may have to be derived
  kMeta = 4,          // no data
  kOverride = 8,      // a Python type with __torch_function__
  kWrapped = 16,      // a Python number: takes part in promotion as a number, not as a tensor
  kInference = 32,    // made in inference mode
  kOffHost = 64,      // its memory is a device's, which the host cannot read
  kDispatch = 128,    // a Python type with __torch_dispatch__
  kNoMemory = 256,    // a placeholder: only its Python class knows its values
};

constexpr uint32_t kPlaceFlags = kMeta | kOffHost | kNoMemory;  // they follow from the storage

struct AutogradData {  // csrc/autograd derives from it
  virtual ~AutogradData() = default;
};

struct TensorImpl : RefCounted {
  Ref<Storage> storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  Dims sizes, strides;
  DType dtype = DType::Float32;
  uint32_t flags = 0;
  Ref<TensorImpl> base;       // the tensor that this is a view of
  bool no_grad_view = false;  // made as a view under no_grad
  bool own_version = false;   // `.data`: in-place changes do not increment the storage's version
  bool python_owned = false;  // this tensor owns `python` (no Python references are left)
  bool contiguous = true;
  uint32_t reshapes = 0;  // how often its sizes or its storage were replaced in place
  std::unique_ptr<AutogradData> autograd;
  void* python = nullptr;  // the one PyObject of this tensor; only csrc/python touches it

  static void destroy(TensorImpl* t);
  static void (*release_python)(TensorImpl* t);  // set by csrc/python
  static void* operator new(size_t n);  // pooled: tensors are created and destroyed by the million
  static void operator delete(void* p);
};

struct Options {
  DType dtype = default_dtype();
  Device device = {};
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  // A Python number as a zero-dim tensor that promotes as a number.
  explicit Tensor(Scalar s);
  explicit Tensor(double s) : Tensor(Scalar(s)) {}
  explicit Tensor(int s) : Tensor(Scalar(s)) {}

  bool defined() const { return bool(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  bool is(const Tensor& o) const { return impl_ == o.impl_; }

  DimsRef sizes() const { return impl_->sizes; }
  DimsRef strides() const { return impl_->strides; }
  int64_t dim() const { return static_cast<int64_t>(impl_->sizes.size()); }
  int64_t size(int64_t d) const;  // negative counts from the end; IndexError
  int64_t stride(int64_t d) const;
  int64_t numel() const { return impl_->numel; }
  int64_t offset() const { return impl_->offset; }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->storage->device; }
  Options options() const { return {dtype(), device()}; }
  uint32_t flags() const { return impl_->flags; }
  bool is_meta() const { return impl_->flags & kMeta; }
  bool is_off_host() const { return impl_->flags & kOffHost; }
  bool is_placeholder() const { return impl_->flags & kNoMemory; }
  bool is_wrapped_number() const { return impl_->flags & kWrapped; }
  bool requires_grad_flag() const { return impl_->flags & kRequiresGrad; }
  bool is_contiguous() const { return impl_->contiguous; }
  bool is_contiguous(MemoryFormat f) const;
  // ChannelsLast or ChannelsLast3d where the strides of 4 or 5 dimensions are in that order, dense
  // or not; Contiguous for all others, also where the sizes of 1 leave both possible.
  MemoryFormat memory_format() const;
  size_t itemsize() const { return taeda::itemsize(dtype()); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }

  const Ref<Storage>& storage() const { return impl_->storage; }
  void* data() const {
    return static_cast<char*>(impl_->storage->data) +
           impl_->offset * static_cast<int64_t>(itemsize());
  }
  template <class T> T* data_as() const { return static_cast<T*>(data()); }
  uint32_t version() const { return impl_->storage->version; }
  void bump_version() const {
    if (!impl_->own_version) ++impl_->storage->version;
  }
  // The only element, read without autograd; RuntimeError unless numel() == 1 and the tensor has
  // data.
  Scalar item() const;

 private:
  Ref<TensorImpl> impl_;
};

// ---- making tensors ----
Tensor empty(DimsRef sizes, const Options& o);
Tensor empty_strided(DimsRef sizes, DimsRef strides, Options o);
// Same sizes; keeps the strides if `like` is dense and non-overlapping (permuted layouts stay
// permuted), else contiguous.
Tensor empty_like(const Tensor& like, DType dtype);
inline Tensor empty_like(const Tensor& like) { return empty_like(like, like.dtype()); }
// A tensor without memory, for a Python class that answers in place of kernels.
Tensor make_placeholder(DimsRef sizes, DimsRef strides, int64_t offset, Options o);
// A view of `base`'s storage: shares version counter, remembers the base. Bounds are checked.
Tensor make_view(const Tensor& base, DimsRef sizes, DimsRef strides, int64_t offset);
// Shares storage but no history and no base (detach, saved values). A class with
// __torch_dispatch__ is asked for one; `raw_alias` gives a plain tensor of its storage.
Tensor alias(const Tensor& t);
Tensor raw_alias(const Tensor& t);
Tensor from_storage(Ref<Storage> s, DimsRef sizes, DimsRef strides, int64_t offset, DType dtype);
// Changes sizes in place to contiguous `sizes`, growing the storage where it is too small (out=,
// resize_).
void resize(const Tensor& t, DimsRef sizes);
// In-place change of geometry and storage; for set_data, resize_, unsqueeze_ and the like.
void set_geometry(const Tensor& t, DimsRef sizes, DimsRef strides, int64_t offset);

// ---- layout helpers (tensor/layout.cpp) ----
Dims contiguous_strides(DimsRef sizes);
Dims channels_last_strides(DimsRef sizes);
int64_t numel_of(DimsRef sizes);  // RuntimeError on overflow or a negative size
bool is_dense_nonoverlapping(DimsRef sizes, DimsRef strides);
Dims broadcast_sizes(DimsRef a, DimsRef b);           // RuntimeError with PyTorch's message
Dims broadcast_strides(const Tensor& t, DimsRef to);  // strides with 0 along expanded dimensions
int64_t wrap_dim(int64_t dim, int64_t ndim,
                 const char* what = nullptr);  // IndexError; zero-dim counts as 1
// Computes the strides of a view of (old_sizes, old_strides) with `sizes`; false if only a copy
// will do.
bool view_strides(DimsRef old_sizes, DimsRef old_strides, DimsRef sizes, Dims* strides);
Dims infer_size(DimsRef sizes, int64_t numel);  // resolves one -1; RuntimeError

}  // namespace taeda
