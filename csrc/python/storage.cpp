// taeda.UntypedStorage: the bytes that tensors share.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "autograd/forward.h"
#include "autograd/meta.h"
#include "base/allocator.h"
#include "base/device_runtime.h"
#include "ops/core/op.h"
#include "python/arguments.h"
#include "python/interop.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/tensor_type.h"
#include "tensor/dispatched.h"
#include "tensor/inference.h"
#include "tensor/reshape.h"

namespace taeda::py {
namespace {

PyTypeObject* StorageType = nullptr;

struct StorageObject {
  PyObject_HEAD Ref<Storage> storage;
};

Ref<Storage>& storage_of(PyObject* o) { return reinterpret_cast<StorageObject*>(o)->storage; }

PyObject* make(Ref<Storage> s) {
  PyObject* o = must(StorageType->tp_alloc(StorageType, 0));
  new (&storage_of(o)) Ref<Storage>(std::move(s));
  return o;
}

PyObject* storage_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", "device", nullptr};
  long long size = 0;
  PyObject* device = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L$O:UntypedStorage", const_cast<char**>(names),
                                   &size, &device))
    return nullptr;
  return guarded([&] {
    Device d;
    if (device != Py_None && !as_device(device, &d)) {
      fail<TypeError>("UntypedStorage(): argument 'device' must be taeda.device, not ",
                      type_name(device));
    }
    check(size >= 0, "UntypedStorage(): size must not be negative, got ", size);
    return make(Storage::allocate(static_cast<size_t>(size), d));
  });
}

void storage_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  storage_of(o).~Ref<Storage>();
  type->tp_free(o);
  Py_DECREF(type);
}

uint8_t* bytes_of(PyObject* o) {
  Storage& s = *storage_of(o);
  check(s.device.type == DeviceType::CPU, "UntypedStorage: there is no data on device ",
        to_string(s.device));
  return static_cast<uint8_t*>(s.data);
}

Py_ssize_t length(PyObject* o) { return static_cast<Py_ssize_t>(storage_of(o)->nbytes); }
PyObject* nbytes(PyObject* o, PyObject*) { return PyLong_FromSize_t(storage_of(o)->nbytes); }
PyObject* size_of(PyObject* o, PyObject*) {  // including the data, for sys.getsizeof()
  return PyLong_FromSize_t(static_cast<size_t>(Py_TYPE(o)->tp_basicsize) + storage_of(o)->nbytes);
}
PyObject* data_ptr(PyObject* o, PyObject*) { return PyLong_FromVoidPtr(storage_of(o)->data); }
PyObject* resizable(PyObject* o, PyObject*) { return PyBool_FromLong(storage_of(o)->resizable); }

// Shared memory: a mapped anonymous file, freed with the last process that maps it. The storage's
// previous memory is kept for arrays that refer to it.
struct SharedMemory {
  int fd = -1;
  void* data = MAP_FAILED;
  size_t size = 0;
  // The storage's previous memory, and how to free it.
  void* old_data = nullptr;
  size_t old_size = 0;
  void (*old_release)(void*) = nullptr;
  void* old_context = nullptr;

  ~SharedMemory() {
    if (old_release) old_release(old_context);
    else if (old_data) cpu::deallocate(old_data, old_size);
    if (data != MAP_FAILED) munmap(data, size);
    if (fd >= 0) close(fd);
  }
};
void release_shared(void* context) { delete static_cast<SharedMemory*>(context); }

SharedMemory* shared_memory(const Storage& s) {
  return s.release == release_shared ? static_cast<SharedMemory*>(s.context) : nullptr;
}

[[noreturn]] void fail_with_errno() {
  PyErr_SetFromErrno(PyExc_OSError);
  throw PythonError();
}

// Maps `nbytes` of `fd`, which the result then owns.
std::unique_ptr<SharedMemory> map_shared(int fd, size_t nbytes) {
  auto memory = std::make_unique<SharedMemory>();
  memory->fd = fd;
  memory->size = std::max<size_t>(nbytes, 1);
  memory->data = mmap(nullptr, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory->data == MAP_FAILED) fail_with_errno();
  return memory;
}

void share(Storage& s) {
  if (!is_host(s.device) || shared_memory(s)) return;
  const int fd = memfd_create("taeda", MFD_CLOEXEC);
  if (fd < 0) fail_with_errno();
  const size_t size = std::max<size_t>(s.nbytes, 1);
  if (ftruncate(fd, static_cast<off_t>(size)) < 0) {
    close(fd);
    fail_with_errno();
  }
  auto memory = map_shared(fd, s.nbytes);
  if (s.nbytes) std::memcpy(memory->data, s.data, s.nbytes);
  if (s.data != &s + 1) memory->old_data = s.data;  // small data is inside the storage's own block
  memory->old_size = s.capacity;
  memory->old_release = s.release;
  memory->old_context = s.context;
  s.data = memory->data;
  s.release = release_shared;
  s.context = memory.release();
  s.resizable = false;
}

PyObject* share_memory_(PyObject* o, PyObject*) {
  return guarded([&] {
    share(*storage_of(o));
    return Py_NewRef(o);
  });
}
PyObject* is_shared(PyObject* o, PyObject*) {
  return PyBool_FromLong(shared_memory(*storage_of(o)) != nullptr);
}

PyObject* shared_file(PyObject* o, PyObject*) {
  SharedMemory* memory = shared_memory(*storage_of(o));
  return PyLong_FromLong(memory ? memory->fd : -1);
}

PyObject* from_shared_file(PyObject*, PyObject* args) {
  int fd;
  Py_ssize_t nbytes;
  if (!PyArg_ParseTuple(args, "in:_from_shared_file", &fd, &nbytes)) return nullptr;
  return guarded([&] {
    struct stat status;
    if (fstat(fd, &status) < 0) fail_with_errno();
    check<ValueError>(nbytes >= 0 && nbytes <= status.st_size, "_from_shared_file(): the file has ",
                      status.st_size, " bytes, not ", nbytes);
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) fail_with_errno();
    auto memory = map_shared(own, static_cast<size_t>(nbytes));
    void* data = memory->data;
    return make(
        Storage::borrow(data, static_cast<size_t>(nbytes), release_shared, memory.release()));
  });
}

PyObject* get_byte(PyObject* o, Py_ssize_t i) {
  return guarded([&] {
    check<IndexError>(i >= 0 && i < length(o), "index ", i, " out of range for storage of size ",
                      length(o));
    return PyLong_FromLong(bytes_of(o)[i]);
  });
}

// ---- files ----

struct MappedFile {
  void* data;
  size_t size;
};
void release_mapped(void* context) {
  auto* m = static_cast<MappedFile*>(context);
  munmap(m->data, m->size);
  delete m;
}

// The first `nbytes` of a file. Shared memory is written back to it, and it grows to that size.
Ref<Storage> map_file(PyObject* path, bool shared, size_t nbytes) {
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(path, &encoded)) throw PythonError();
  const PyRef held(encoded);
  const char* name = PyBytes_AS_STRING(encoded);
  const int fd = open(name, (shared ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
  check(fd >= 0, "from_file(): unable to open file <", name, "> in ",
        shared ? "read-write" : "read-only", " mode: ", std::strerror(errno));
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } const closer{fd};
  struct stat status;
  if (fstat(fd, &status) < 0) fail_with_errno();
  if (status.st_size < static_cast<off_t>(nbytes)) {
    check(shared, "from_file(): file <", name, "> size <", status.st_size,
          "> is smaller than the required mapping size <", nbytes, ">");
    if (ftruncate(fd, static_cast<off_t>(nbytes)) < 0) fail_with_errno();
  }
  if (nbytes == 0) return Storage::allocate(0, Device{});
  void* data =
      mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) fail_with_errno();
  return Storage::borrow(data, nbytes, release_mapped, new MappedFile{data, nbytes});
}

PyObject* from_file(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"filename", "shared", "nbytes", nullptr};
  PyObject* path;
  int shared = 0;
  Py_ssize_t count = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pn:from_file", const_cast<char**>(names), &path,
                                   &shared, &count))
    return nullptr;
  return guarded([&] {
    check(count >= 0, "from_file(): nbytes must not be negative, got ", count);
    return make(map_file(path, shared != 0, static_cast<size_t>(count)));
  });
}

// storage[i], and storage[begin:end]: a storage of these bytes, not of a copy.
PyObject* get_bytes(PyObject* o, PyObject* index) {
  return guarded([&]() -> PyObject* {
    if (!PySlice_Check(index)) {
      const Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
      if (i == -1 && PyErr_Occurred()) throw PythonError();
      return must(get_byte(o, i < 0 ? i + length(o) : i));
    }
    Py_ssize_t begin, end, step;
    must(PySlice_Unpack(index, &begin, &end, &step));
    check(step == 1, "Trying to slice with a step of ", step,
          ", but only a step of 1 is supported");
    const Py_ssize_t n = PySlice_AdjustIndices(length(o), &begin, &end, step);
    return make(Storage::borrow(
        bytes_of(o) + begin, static_cast<size_t>(n),
        [](void* context) { delete static_cast<ExportedStorage*>(context); },
        new ExportedStorage(storage_of(o))));
  });
}

PyObject* resize_(PyObject* o, PyObject* size) {
  return guarded([&] {
    int64_t n;
    if (!as_int(size, &n))
      fail<TypeError>("resize_(): argument 'size' must be int, not ", type_name(size));
    check(n >= 0, "resize_(): size must not be negative, got ", n);
    storage_of(o)->resize(static_cast<size_t>(n));
    return Py_NewRef(o);
  });
}

int set_byte(PyObject* o, Py_ssize_t i, PyObject* value) {
  return guarded(
      [&] {
        int64_t v;
        if (!value || !as_int(value, &v))
          fail<TypeError>("UntypedStorage holds bytes, not ", value ? type_name(value) : "nothing");
        check<IndexError>(i >= 0 && i < length(o), "index ", i,
                          " out of range for storage of size ", length(o));
        check<ValueError>(v >= 0 && v < 256, "byte must be in range(0, 256), got ", v);
        bytes_of(o)[i] = static_cast<uint8_t>(v);
        return 0;
      },
      -1);
}

PyObject* clone(PyObject* o, PyObject*) {
  return guarded([&] {
    const Storage& from = *storage_of(o);
    auto to = Storage::allocate(from.nbytes, from.device);
    if (from.data) copy_memory(to->data, to->device, from.data, from.device, from.nbytes);
    return make(std::move(to));
  });
}

PyObject* untyped(PyObject* o, PyObject*) { return Py_NewRef(o); }

PyObject* tolist(PyObject* o, PyObject*) { return PySequence_List(o); }

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  return guarded(
      [&] {
        static char nothing;
        uint8_t* data = bytes_of(o);
        int status = PyBuffer_FillInfo(view, o, data ? static_cast<void*>(data) : &nothing,
                                       length(o), 0, flags);
        must(status);
        ++storage_of(o)->exports;
        return 0;
      },
      -1);
}
void release_buffer(PyObject* o, Py_buffer*) { --storage_of(o)->exports; }

PyObject* get_device(PyObject* o, void*) {
  return guarded([&] { return device_object(storage_of(o)->device); });
}
PyObject* get_cdata(PyObject* o, void*) { return PyLong_FromVoidPtr(storage_of(o).get()); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* o) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(storage_of(o).get()) >> 4);
}

PyMethodDef storage_methods[] = {
    {"nbytes", nbytes, METH_NOARGS, "How many bytes there are."},
    {"__sizeof__", size_of, METH_NOARGS, "The size of the object and its bytes."},
    {"size", nbytes, METH_NOARGS, "How many bytes there are."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first byte."},
    {"resizable", resizable, METH_NOARGS,
     "Whether resize_() works: not for memory that somebody else owns."},
    {"is_shared", is_shared, METH_NOARGS,
     "Whether the memory is such that other processes see it."},
    {"share_memory_", share_memory_, METH_NOARGS,
     "Move the bytes to memory that processes started from now on share with this one."},
    {"_shared_file", shared_file, METH_NOARGS, "The descriptor of the shared memory, or -1."},
    {"_from_shared_file", from_shared_file, METH_VARARGS | METH_STATIC,
     "_from_shared_file(descriptor, nbytes)\n\nThe storage that another process shares."},
    {"resize_", resize_, METH_O,
     "resize_(size)\n\nChange how many bytes there are, keeping the first of them."},
    {"from_file", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_file)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "from_file(filename, shared=False, nbytes=0)\n\nThe first bytes of a file, as memory mapped "
     "from it. Changes are written to the file only where it is shared; a file that is too short "
     "then grows, or is made."},
    {"untyped", untyped, METH_NOARGS, "The storage itself."},
    {"clone", clone, METH_NOARGS, "A copy of the bytes."},
    {"tolist", tolist, METH_NOARGS, "The bytes as a list of ints."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef storage_getset[] = {
    {"device", get_device, nullptr, "Where the bytes are.", nullptr},
    {"_cdata", get_cdata, nullptr, "A number that identifies the storage.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- on Tensor ----

PyObject* untyped_storage(PyObject* o, PyObject*) {
  return guarded([&] {
    check(!tensor_of(o).is_placeholder(), kPlaceholderText);
    return make(tensor_of(o).storage());
  });
}

// set_(), set_(tensor), set_(storage[, offset, size[, stride]])
PyObject* set_(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"source", "storage_offset", "size", "stride", nullptr};
  PyObject *source = Py_None, *offset = nullptr, *size = nullptr, *stride = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO:set_", const_cast<char**>(names), &source,
                                   &offset, &size, &stride)) {
    return nullptr;
  }
  return guarded([&] {
    const Tensor& t = tensor_of(o);
    check(!(modes.grad && requires_grad(t) && !is_leaf(t)),
          "set_(): the memory of a tensor with a history cannot be exchanged");
    check<NotImplemented>(!tangent_of(t).defined(),
                          "set_(): the memory of a tensor with a tangent cannot be exchanged");
    check(modes.inference || !(t.flags() & kInference), kInferenceChange);
    check<NotImplemented>(!(t.flags() & kDispatch) && !t.is_placeholder(),
                          "set_() is not supported for tensors of a class with __torch_dispatch__");
    Ref<Storage> storage;
    Dims sizes, strides;
    int64_t at = 0;
    if (source == Py_None) {
      storage = Storage::allocate(0, t.device());
      sizes = Dims{0};
    } else if (is_tensor(source)) {
      const Tensor& from = tensor_of(source);
      check(!from.is_placeholder(), "set_(): ", kPlaceholderText);
      check(from.dtype() == t.dtype(), "set_(): expected a tensor of dtype ", name(t.dtype()),
            ", got ", name(from.dtype()));
      storage = from.storage();
      sizes = Dims(from.sizes());
      strides = Dims(from.strides());
      at = from.offset();
    } else if (Py_TYPE(source) == StorageType) {
      storage = storage_of(source);
      sizes = Dims{static_cast<int64_t>(storage->nbytes / t.itemsize())};
    } else {
      fail<TypeError>("set_(): argument 'source' must be Tensor or UntypedStorage, not ",
                      type_name(source));
    }
    if (offset && !as_int(offset, &at))
      fail<TypeError>("set_(): argument 'storage_offset' must be int, not ", type_name(offset));
    if (size) {
      if (!as_dims(size, &sizes))
        fail<TypeError>("set_(): argument 'size' must be tuple of ints, not ", type_name(size));
      strides.clear();
    }
    if (stride && !as_dims(stride, &strides))
      fail<TypeError>("set_(): argument 'stride' must be tuple of ints, not ", type_name(stride));
    if (strides.size() != sizes.size()) strides = contiguous_strides(sizes);
    check(storage->device.type == t.device().type,
          "Attempted to set the storage of a tensor on device \"", t.device(),
          "\" to a storage on different device \"", storage->device,
          "\". This is no longer allowed; the devices must match.");
    Tensor checked = from_storage(storage, sizes, strides, at, t.dtype());
    TensorImpl* p = t.impl();
    if (p->autograd) before_reshape(p);
    p->storage = std::move(storage);
    p->sizes = checked.impl()->sizes;
    p->strides = checked.impl()->strides;
    p->offset = at;
    p->numel = checked.numel();
    p->contiguous = checked.is_contiguous();
    p->flags = (p->flags & ~kPlaceFlags) | (checked.flags() & kPlaceFlags);
    ++p->reshapes;
    t.bump_version();
    return Py_NewRef(o);
  });
}

PyObject* tensor_is_shared(PyObject* o, PyObject*) {
  return PyBool_FromLong(shared_memory(*tensor_of(o).storage()) != nullptr);
}
PyObject* tensor_share_memory_(PyObject* o, PyObject*) {
  return guarded([&] {
    check(!tensor_of(o).is_placeholder(), kPlaceholderText);
    share(*tensor_of(o).storage());
    return Py_NewRef(o);
  });
}

template <class F> PyCFunction fn(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef tensor_methods[] = {
    {"untyped_storage", untyped_storage, METH_NOARGS,
     "The storage shared by the tensor and its views."},
    {"set_", fn(set_), METH_VARARGS | METH_KEYWORDS,
     "set_(source=None, storage_offset=0, size=None, stride=None)\n\nSee other memory from now on: "
     "that of a tensor or storage."},
    {"is_shared", tensor_is_shared, METH_NOARGS,
     "Whether the memory is such that other processes see it."},
    {"share_memory_", tensor_share_memory_, METH_NOARGS,
     "share_memory_() -> Tensor\n\nMove the memory, with that of all views, to where processes "
     "started "
     "from now on share it with this one.\nReturns the tensor itself. Its storage can no longer be "
     "resized."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_untyped_storage(PyObject* o) { return Py_TYPE(o) == StorageType; }

void init_storage(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(storage_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
      {Py_sq_length, reinterpret_cast<void*>(length)},
      {Py_mp_subscript, reinterpret_cast<void*>(get_bytes)},
      {Py_mp_length, reinterpret_cast<void*>(length)},
      {Py_sq_item, reinterpret_cast<void*>(get_byte)},
      {Py_sq_ass_item, reinterpret_cast<void*>(set_byte)},
      {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
      {Py_tp_hash, reinterpret_cast<void*>(hash)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
      {Py_tp_methods, storage_methods},
      {Py_tp_getset, storage_getset},
      {Py_tp_doc,
       const_cast<char*>("UntypedStorage(size=0, *, device='cpu')\n\nBytes that tensors share.")},
      {0, nullptr}};
  PyType_Spec spec{"taeda.UntypedStorage", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT, slots};
  StorageType = reinterpret_cast<PyTypeObject*>(must(PyType_FromSpec(&spec)));
  must(PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(StorageType)));
  add_methods(tensor_methods);
}

}  // namespace taeda::py
