// taeda.Generator: a random number stream with its own state.
#include <array>
#include <cstring>

#include "base/random.h"
#include "python/objects.h"
#include "python/tensor_type.h"
#include "tensor/dispatched.h"

namespace taeda::py {

PyTypeObject* GeneratorType = nullptr;

namespace {

struct GeneratorObject {
  PyObject_HEAD Generator generator;
};

Generator& generator_of(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o)->generator; }
GeneratorImpl& impl_of(PyObject* o) { return *generator_of(o).impl; }

PyObject* make(PyTypeObject* type, Generator g) {
  PyObject* o = must(type->tp_alloc(type, 0));
  new (&generator_of(o)) Generator(std::move(g));
  return o;
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* device = Py_None;
  return guarded([&]() -> PyObject* {
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                     &device))
      throw PythonError();
    Device d;
    if (device != Py_None && !as_device(device, &d)) {
      fail<TypeError>("Generator(): argument 'device' must be taeda.device, not ",
                      type_name(device));
    }
    check(d.type == DeviceType::CPU || d.type == DeviceType::CUDA,
          "Generator(): generators live on the cpu and on cuda devices, got device '", to_string(d),
          "'");
    require_available(d);
    return make(type, make_generator(d));
  });
}

void generator_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  generator_of(o).~Generator();
  type->tp_free(o);
  Py_DECREF(type);
}

// Any integer that fits into 64 bits, signed or not.
uint64_t as_seed(PyObject* seed) {
  if (!PyIndex_Check(seed)) fail("manual_seed expected a long, but got ", type_name(seed));
  PyRef number = take(PyNumber_Index(seed));
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow == 0) return static_cast<uint64_t>(value);
  if (overflow > 0) {
    unsigned long long large = PyLong_AsUnsignedLongLong(number.get());
    if (!PyErr_Occurred()) return large;
    PyErr_Clear();
  }
  fail<ValueError>("manual_seed(): the seed must be from -2**63 to 2**64 - 1");
}

PyObject* manual_seed(PyObject* o, PyObject* seed) {
  return guarded([&] {
    uint64_t value = as_seed(seed);
    std::lock_guard lock(impl_of(o).mutex);
    impl_of(o).engine.seed(value);
    return Py_NewRef(o);
  });
}

PyObject* seed(PyObject* o, PyObject*) {
  return guarded([&] {
    uint64_t value = nondeterministic_seed();
    std::lock_guard lock(impl_of(o).mutex);
    impl_of(o).engine.seed(value);
    return PyLong_FromUnsignedLongLong(value);
  });
}

PyObject* initial_seed(PyObject* o, PyObject*) {
  return PyLong_FromUnsignedLongLong(impl_of(o).engine.initial_seed());
}

// The state of a device's stream: seed and offset.
using DeviceState = std::array<uint64_t, 2>;

// The address of the engine, by which kernels know it.
PyObject* engine_address(PyObject* o, PyObject*) { return PyLong_FromVoidPtr(&impl_of(o).engine); }

// Takes numbers of a device's stream: its seed, and where they begin.
PyObject* take_numbers(PyObject* o, PyObject* count) {
  return guarded([&] {
    const unsigned long long n = PyLong_AsUnsignedLongLong(count);
    if (PyErr_Occurred()) throw PythonError();
    DeviceState place;
    {
      const std::lock_guard lock(impl_of(o).mutex);
      Engine& engine = impl_of(o).engine;
      place = {engine.initial_seed(), engine.take(n)};
    }
    return must(Py_BuildValue("(KK)", place[0], place[1]));
  });
}

// A copy. A new object may start the garbage collector, whose code may use the generator: none is
// made under its lock.
Engine engine_of(GeneratorImpl& g) {
  std::lock_guard lock(g.mutex);
  return g.engine;
}

int64_t state_bytes(const GeneratorImpl& g) {
  return static_cast<int64_t>(g.device.type == DeviceType::CPU ? Engine::kStateBytes
                                                               : sizeof(DeviceState));
}

PyObject* get_state(PyObject* o, PyObject*) {
  return guarded([&] {
    GeneratorImpl& g = impl_of(o);
    Tensor state = empty(Dims{state_bytes(g)}, {DType::UInt8, {}});
    const Engine engine = engine_of(g);
    if (g.device.type == DeviceType::CPU) {
      engine.get_state(state.data_as<uint8_t>());
    } else {
      const DeviceState s{engine.initial_seed(), engine.offset()};
      std::memcpy(state.data_as<uint8_t>(), &s, sizeof s);
    }
    return wrap(state);
  });
}

void set_device_state(Engine& engine, const uint8_t* bytes) {
  DeviceState s;
  std::memcpy(&s, bytes, sizeof s);
  check(s[1] % 4 == 0, "offset must be a multiple of 4, got ", s[1]);
  engine.seed(s[0]);
  engine.set_offset(s[1]);
}

void set_engine_state(GeneratorImpl& g, PyObject* state) {
  if (!is_tensor(state)) fail<TypeError>("expected a taeda.ByteTensor, but got ", type_name(state));
  const Tensor& t = tensor_of(state);
  check(!t.is_placeholder(), kPlaceholderText);
  check<TypeError>(
      t.dtype() == DType::UInt8 && t.device().type == DeviceType::CPU && t.is_contiguous(),
      "RNG state must be a taeda.ByteTensor");
  check(t.numel() == state_bytes(g), "Expected a generator state of size ", state_bytes(g),
        " but found the input RNG state size to be ", t.numel());
  std::lock_guard lock(g.mutex);
  if (g.device.type != DeviceType::CPU) return set_device_state(g.engine, t.data_as<uint8_t>());
  check(g.engine.set_state(t.data_as<uint8_t>(), static_cast<size_t>(t.numel())),
        "Generator.set_state(): these bytes are not the state of a generator");
}

PyObject* set_state(PyObject* o, PyObject* state) {
  return guarded([&] {
    set_engine_state(impl_of(o), state);
    return Py_NewRef(o);
  });
}

PyObject* clone_state(PyObject* o, PyObject*) {
  return guarded([&] {
    Generator copy = make_generator(impl_of(o).device);
    copy.impl->engine = engine_of(impl_of(o));
    return make(Py_TYPE(o), std::move(copy));
  });
}

PyObject* generator_reduce(PyObject* o, PyObject*) {
  PyRef state(get_state(o, nullptr));
  PyRef device(device_object(impl_of(o).device));
  return state && device ? Py_BuildValue("O(O)O", Py_TYPE(o), device.get(), state.get()) : nullptr;
}

PyObject* generator_device(PyObject* o, void*) { return device_object(impl_of(o).device); }

PyObject* seed_all(PyObject*, PyObject* seed) {
  return guarded([&] {
    seed_default_generators(as_seed(seed));
    return Py_NewRef(Py_None);
  });
}

PyObject* made_for_devices(PyObject*, PyObject*) {
  return guarded([] {
    PyRef list = take(PyList_New(0));
    for (const Generator& g : device_generators()) {
      const PyRef object(generator_object(g));
      if (PyList_Append(list.get(), object.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}

PyObject* generator_of_device(PyObject*, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const long i = PyLong_AsLong(index);
    if (i == -1 && PyErr_Occurred()) throw PythonError();
    const Device device{DeviceType::CUDA, static_cast<int8_t>(i)};
    require_available(device);
    return generator_object(default_generator(device));
  });
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\nStart the stream that belongs to `seed`."},
    {"seed", seed, METH_NOARGS, "Seed from the operating system's entropy, and return that seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed that the stream was started with."},
    {"get_state", get_state, METH_NOARGS, "The state, as a uint8 tensor."},
    {"set_state", set_state, METH_O,
     "set_state(state) -> Generator\n\nGo on from a state that get_state() gave."},
    {"clone_state", clone_state, METH_NOARGS, "A new generator in the same state."},
    {"_engine", engine_address, METH_NOARGS, "The address of its engine."},
    {"_take", take_numbers, METH_O,
     "_take(count)\n\nTakes so many of a device's numbers: the seed, and where they begin."},
    {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
    {"__setstate__", set_state, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {
    {"device", generator_device, nullptr, "Where its numbers are drawn.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

PyObject* generator_object(Generator g) { return make(GeneratorType, std::move(g)); }

bool as_generator(PyObject* o, Generator* g) {
  if (!PyObject_TypeCheck(o, GeneratorType)) return false;
  *g = generator_of(o);
  return true;
}

void init_generator(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(generator_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getset},
      {Py_tp_doc,
       const_cast<char*>(
           "Generator(device='cpu')\n\nA stream of random numbers with a state of its own, drawn "
           "on the cpu or on a cuda device.")},
      {0, nullptr}};
  static PyMethodDef functions[] = {
      {"_seed_default_generators", seed_all, METH_O,
       "Seeds the default streams: the cpu's, and those of all cuda devices."},
      {"_cuda_generators", made_for_devices, METH_NOARGS,
       "The default streams of cuda devices that have been asked for."},
      {"_cuda_generator", generator_of_device, METH_O,
       "The default stream of the cuda device with this index."},
      {nullptr, nullptr, 0, nullptr}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
  PyType_Spec spec{"taeda.Generator", sizeof(GeneratorObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  GeneratorType = reinterpret_cast<PyTypeObject*>(must(PyType_FromSpec(&spec)));
  must(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(GeneratorType)));
  must(PyModule_AddObject(module, "default_generator", generator_object(default_generator())));
}

}  // namespace taeda::py
