#include "tensor/tensor.h"

#include <cstring>

#include "base/checked.h"
#include "base/device_runtime.h"
#include "tensor/dispatched.h"
#include "tensor/inference.h"
#include "tensor/readable.h"
#include "tensor/reshape.h"

namespace taeda {

// ---- Storage ----

// Up to this many bytes are allocated in one block with their Storage.
constexpr size_t kInlineBytes = cpu::kPlainMalloc ? 0 : 4096;

Ref<Storage> Storage::make(size_t inline_bytes) {
  auto* s = ::new (cpu::allocate(sizeof(Storage) + inline_bytes)) Storage;
  s->inline_bytes = static_cast<uint32_t>(inline_bytes);
  if (inline_bytes) s->data = s + 1;
  return Ref<Storage>::first(s);
}

// Of no bytes there is no block, and on the meta device none at all.
static void* allocate_on(Device device, size_t nbytes) {
  if (is_host(device)) return cpu::allocate(nbytes);
  const DeviceRuntime* runtime = device_runtime(device.type);
  return runtime && nbytes ? runtime->allocate(nbytes, device.index) : nullptr;
}
static void deallocate_on(Device device, void* block, size_t nbytes) {
  if (is_host(device)) cpu::deallocate(block, nbytes);
  else device_runtime(device.type)->deallocate(block, nbytes, device.index);
}

TAEDA_FAST_TLS static thread_local constinit size_t most_pinned = 0;  // bytes
PinnedScope::PinnedScope(bool on, size_t most)
    : before_(std::exchange(most_pinned, on ? most : most_pinned)) {}
PinnedScope::~PinnedScope() { most_pinned = before_; }

Ref<Storage> Storage::allocate(size_t nbytes, Device device) {
  require_available(device);
  const bool here = is_host(device);
  if (here && most_pinned > 0 && nbytes <= most_pinned) [[unlikely]]
    return pinned(nbytes);
  auto s = make(here && nbytes <= kInlineBytes ? nbytes : 0);
  s->device = with_index(device);
  if (!s->data) s->data = allocate_on(s->device, nbytes);
  s->nbytes = s->capacity = nbytes;
  return s;
}

Ref<Storage> Storage::borrow(void* data, size_t nbytes, void (*release)(void*), void* context) {
  auto s = make(0);
  s->data = data;
  s->nbytes = nbytes;
  s->release = release;
  s->context = context;
  s->resizable = false;
  return s;
}

Ref<Storage> Storage::pinned(size_t nbytes) {
  if (!pinned_memory()) {
    if (const auto load = cuda_loader.load()) load();
  }
  const PinnedMemory* memory = pinned_memory();
  check(memory,
        "pinned memory (pin_memory(), pin_memory=True) needs a CUDA device, and this build "
        "of taeda has no CUDA support without the package taeda-cuda");
  auto s = make(0);
  s->data = s->context = memory->allocate(nbytes);
  s->release = [](void* block) { pinned_memory()->deallocate(block); };
  s->nbytes = nbytes;
  s->resizable = false;
  return s;
}

Ref<Storage> Storage::without_memory(size_t nbytes, Device device) {
  require_available(device);
  auto s = make(0);
  s->device = with_index(device);
  s->nbytes = nbytes;
  s->capacity = 0;
  s->resizable = false;
  s->placeholder = true;
  return s;
}

void Storage::resize(size_t n) {
  check(resizable, "Trying to resize storage that is not resizable");
  check(exports == 0,
        "Trying to resize storage that is not resizable: an array or a buffer refers to it");
  if (device.type != DeviceType::Meta && n > capacity) {
    void* fresh = allocate_on(device, n);
    if (data) {
      copy_memory(fresh, device, data, device, std::min(n, nbytes));
      if (data != this + 1) deallocate_on(device, data, capacity);
    }
    data = fresh;
    capacity = n;
  } else if (is_host(device)) {
    cpu::discard(static_cast<char*>(data) + n, capacity - n);
  }
  nbytes = n;
}

void Storage::destroy(Storage* s) {
  if (s->release) s->release(s->context);
  else if (s->data && s->data != s + 1) deallocate_on(s->device, s->data, s->capacity);
  const size_t bytes = sizeof(Storage) + s->inline_bytes;
  s->~Storage();
  cpu::deallocate(s, bytes);
}

// ---- TensorImpl ----

TAEDA_FAST_TLS thread_local constinit bool making_inference_tensors = false;

void (*TensorImpl::release_python)(TensorImpl*) = nullptr;

void* TensorImpl::operator new(size_t n) { return cpu::allocate(n); }
void TensorImpl::operator delete(void* p) { cpu::deallocate(p, sizeof(TensorImpl)); }

void TensorImpl::destroy(TensorImpl* t) {
  if (t->python_owned) release_python(t);
  delete t;
}

namespace {

uint32_t flags_of(Device d) {
  if (is_host(d)) return 0;
  return d.type == DeviceType::Meta ? kMeta : kOffHost;
}
uint32_t flags_of(const Storage& s) {
  return flags_of(s.device) | (s.placeholder ? uint32_t{kNoMemory} : 0);
}

Ref<TensorImpl> make_impl(Ref<Storage> storage, DimsRef sizes, DimsRef strides, int64_t offset,
                          DType dtype) {
  auto t = make_ref<TensorImpl>();
  t->dtype = dtype;
  t->offset = offset;
  t->sizes.assign(sizes.data(), sizes.size());
  t->strides.assign(strides.data(), strides.size());
  int64_t n = 1, expected = 1;
  bool contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    n *= sizes[i];
    if (sizes[i] != 1) {
      contiguous &= strides[i] == expected;
      expected *= std::max<int64_t>(sizes[i], 1);
    }
  }
  t->numel = n;
  t->contiguous = contiguous || n == 0;
  t->flags |= flags_of(*storage);
  if (making_inference_tensors) t->flags |= kInference;
  t->storage = std::move(storage);
  return t;
}

size_t checked_nbytes(int64_t numel, DType dtype) {
  size_t bytes;
  check(!__builtin_mul_overflow(static_cast<size_t>(numel), itemsize(dtype), &bytes) &&
            bytes < (size_t(1) << 62),
        "Storage size calculation overflowed: ", numel, " elements of ", name(dtype));
  return bytes;
}

// One past the largest storage index that this geometry refers to.
int64_t reach(DimsRef sizes, DimsRef strides, int64_t offset) {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    int64_t span;
    check(!__builtin_mul_overflow(sizes[i] - 1, strides[i], &span) &&
              !__builtin_add_overflow(last, span, &last),
          "Storage size calculation overflowed with sizes=", to_string(sizes),
          " and strides=", to_string(strides));
  }
  check(last < INT64_MAX, "Storage size calculation overflowed with sizes=", to_string(sizes));
  return last + 1;
}

void check_bounds(const Storage& s, DimsRef sizes, DimsRef strides, int64_t offset, DType dtype) {
  check(offset >= 0, "Tensor: invalid storage offset ", offset);
  for (int64_t st : strides) {
    check(st >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ",
          to_string(strides));
  }
  int64_t need = reach(sizes, strides, offset);
  const size_t bytes = checked_nbytes(need, dtype);
  check(bytes <= s.nbytes, "setStorage: sizes ", to_string(sizes), ", strides ", to_string(strides),
        ", storage offset ", offset, ", and itemsize ", itemsize(dtype),
        " requiring a storage size of ", bytes, " are out of bounds for storage of size ",
        s.nbytes);
}

}  // namespace

// ---- Tensor ----

Tensor::Tensor(Scalar s) {
  // A Python number promotes by category; float64 keeps its full precision until the op picks a
  // dtype.
  DType d = s.is_bool()       ? DType::Bool
            : s.is_integral() ? DType::Int64
            : s.is_float()    ? DType::Float64
                              : DType::Complex128;
  *this = empty({}, {d, Device{}});
  impl_->flags |= kWrapped;
  switch (d) {
    case DType::Bool: *data_as<bool>() = s.to<bool>(); break;
    case DType::Int64: *data_as<int64_t>() = s.to_int(); break;
    case DType::Float64: *data_as<double>() = s.to_double(); break;
    default: *data_as<cdouble>() = s.to<cdouble>(); break;
  }
}

int64_t Tensor::size(int64_t d) const {
  d = wrap_dim(d, dim());
  check<IndexError>(dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
  return sizes()[static_cast<size_t>(d)];
}

int64_t Tensor::stride(int64_t d) const {
  d = wrap_dim(d, dim());
  check<IndexError>(dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
  return strides()[static_cast<size_t>(d)];
}

bool Tensor::is_contiguous(MemoryFormat f) const {
  if (f == MemoryFormat::Contiguous || f == MemoryFormat::Preserve) return is_contiguous();
  size_t want = f == MemoryFormat::ChannelsLast ? 4 : 5;
  if (sizes().size() != want) return false;
  Dims expected = channels_last_strides(sizes());
  for (size_t i = 0; i < want; ++i) {
    if (sizes()[i] != 1 && strides()[i] != expected[i]) return false;
  }
  return true;
}

MemoryFormat Tensor::memory_format() const {
  const size_t n = sizes().size();
  if ((n != 4 && n != 5) || strides()[1] == 0) return MemoryFormat::Contiguous;
  int64_t least = 0;  // the stride of the next dimension, from the innermost one on
  for (size_t k = 0; k < n; ++k) {
    const size_t d = k == 0 ? 1 : k == n - 1 ? 0 : n - k;
    if (sizes()[d] == 0 || strides()[d] < least || (d == 0 && least == strides()[1]))
      return MemoryFormat::Contiguous;
    least = strides()[d] * sizes()[d];
  }
  return n == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

void (*check_readable)(const Tensor& t) = nullptr;
DispatchedAnswers dispatched;

Scalar Tensor::item() const {
  if ((flags() & kOverride) && check_readable) check_readable(*this);
  if (flags() & kDispatch) {
    if (std::optional<Scalar> number = dispatched.item(*this)) return *number;
  }
  check(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
  check(!is_placeholder(), kPlaceholderText);
  check(!is_meta(), "Tensor.item() cannot be called on meta tensors");
  if (is_off_host()) {
    const Tensor host = empty({}, {dtype(), Device{}});
    copy_memory(host.data(), {}, data(), device(), itemsize());
    return host.item();
  }
  if (is_storage_only(dtype())) {
    return visit_storage_only(dtype(), [&](auto tag) -> Scalar {
      using T = typename decltype(tag)::type;
      const T& v = *static_cast<const T*>(data());
      if constexpr (is_complex_type<T>) return Scalar(cdouble(cfloat(v)));
      else if constexpr (!std::is_integral_v<T>) return Scalar(static_cast<double>(v));
      else {
        check(uint64_t(v) <= uint64_t(std::numeric_limits<int64_t>::max()),
              "value cannot be converted to type int64_t without overflow");
        return Scalar(static_cast<int64_t>(v));
      }
    });
  }
  return visit_all(dtype(), [&](auto tag) -> Scalar {
    using T = typename decltype(tag)::type;
    const T& v = *data_as<T>();
    if constexpr (std::is_same_v<T, bool>)
      return Scalar(reinterpret_cast<const unsigned char&>(v) != 0);
    else if constexpr (std::is_integral_v<T>) return Scalar(static_cast<int64_t>(v));
    else if constexpr (is_complex_type<T>) return Scalar(cdouble(v));
    else return Scalar(static_cast<double>(v));
  });
}

// ---- making tensors ----

// Sets sizes and contiguous strides, and returns the number of elements.
static int64_t lay_out(TensorImpl* t, DimsRef sizes) {
  t->sizes.assign(sizes.data(), sizes.size());
  t->strides.assign(sizes.data(), sizes.size());
  int64_t* strides = t->strides.data();
  int64_t step = 1;
  bool refused = sizes.size() > kMostDims, zero = false;
  for (size_t i = sizes.size(); i-- > 0;) {
    const int64_t n = sizes[i];
    strides[i] = step;
    zero |= n == 0;
    refused |= n < 0;
    refused |= __builtin_mul_overflow(step, n + (n == 0), &step);
  }
  if (refused) [[unlikely]]
    numel_of(sizes);  // throws
  return zero ? 0 : step;
}

Tensor empty(DimsRef sizes, const Options& o) {
  auto t = make_ref<TensorImpl>();
  t->numel = lay_out(t.get(), sizes);
  t->storage = Storage::allocate(checked_nbytes(t->numel, o.dtype), o.device);
  t->dtype = o.dtype;
  t->flags |= flags_of(o.device);
  if (making_inference_tensors) t->flags |= kInference;
  return Tensor(std::move(t));
}

Tensor empty_strided(DimsRef sizes, DimsRef strides, Options o) {
  check(sizes.size() == strides.size(),
        "empty_strided(): sizes and strides must have the same length, got ", to_string(sizes),
        " and ", to_string(strides));
  numel_of(sizes);
  for (int64_t s : strides)
    check(s >= 0, "empty_strided(): negative strides are not supported, got ", to_string(strides));
  size_t bytes = checked_nbytes(reach(sizes, strides, 0), o.dtype);
  return Tensor(make_impl(Storage::allocate(bytes, o.device), sizes, strides, 0, o.dtype));
}

Tensor empty_like(const Tensor& like, DType dtype) {
  Options o{dtype, like.device()};
  if (like.is_contiguous() || !is_dense_nonoverlapping(like.sizes(), like.strides()))
    return empty(like.sizes(), o);
  return empty_strided(like.sizes(), like.strides(), o);
}

Tensor make_placeholder(DimsRef sizes, DimsRef strides, int64_t offset, Options o) {
  check(sizes.size() == strides.size(), "expected as many strides as sizes, got ",
        to_string(strides), " for ", to_string(sizes));
  numel_of(sizes);
  check(offset >= 0, "Tensor: invalid storage offset ", offset);
  for (int64_t s : strides)
    check(s >= 0, "negative strides are not supported, got ", to_string(strides));
  const size_t bytes = checked_nbytes(reach(sizes, strides, offset), o.dtype);
  return Tensor(
      make_impl(Storage::without_memory(bytes, o.device), sizes, strides, offset, o.dtype));
}

Tensor make_view(const Tensor& base, DimsRef sizes, DimsRef strides, int64_t offset) {
  numel_of(sizes);
  check_bounds(*base.storage(), sizes, strides, offset, base.dtype());
  auto t = make_impl(base.storage(), sizes, strides, offset, base.dtype());
  TensorImpl* b = base.impl();
  t->flags = (t->flags & ~uint32_t(kInference)) | kIsView | (b->flags & (kInference | kWrapped));
  t->own_version = b->own_version;
  t->base = b->base ? b->base : base.ref();
  t->no_grad_view = b->no_grad_view;
  return Tensor(std::move(t));
}

Tensor alias(const Tensor& t) { return t.flags() & kDispatch ? dispatched.alias(t) : raw_alias(t); }

Tensor raw_alias(const Tensor& t) {
  auto a = make_impl(t.storage(), t.sizes(), t.strides(), t.offset(), t.dtype());
  a->flags = (a->flags & ~uint32_t(kInference)) | (t.flags() & (kWrapped | kInference));
  a->own_version = t.impl()->own_version;
  return Tensor(std::move(a));
}

Tensor from_storage(Ref<Storage> s, DimsRef sizes, DimsRef strides, int64_t offset, DType dtype) {
  numel_of(sizes);
  check_bounds(*s, sizes, strides, offset, dtype);
  return Tensor(make_impl(std::move(s), sizes, strides, offset, dtype));
}

void (*before_reshape)(const TensorImpl* t) = nullptr;

void set_geometry(const Tensor& t, DimsRef sizes, DimsRef strides, int64_t offset) {
  numel_of(sizes);
  check_bounds(*t.storage(), sizes, strides, offset, t.dtype());
  auto fresh = make_impl(t.storage(), sizes, strides, offset, t.dtype());
  TensorImpl* p = t.impl();
  if (p->autograd) before_reshape(p);
  p->sizes = std::move(fresh->sizes);
  p->strides = std::move(fresh->strides);
  p->offset = offset;
  p->numel = fresh->numel;
  p->contiguous = fresh->contiguous;
  ++p->reshapes;
}

void resize(const Tensor& t, DimsRef sizes) {
  if (same(t.sizes(), sizes)) return;
  int64_t n = numel_of(sizes);
  size_t bytes = checked_nbytes(checked_add(n, t.offset()), t.dtype());
  if (n > 0 && bytes > t.storage()->nbytes) t.storage()->resize(bytes);
  set_geometry(t, sizes, contiguous_strides(sizes), t.offset());
}

}  // namespace taeda
