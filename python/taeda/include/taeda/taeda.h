// taeda for extensions in C++20: tensors, every op by its name, ops of your own with derivatives,
// and threads. pybind11.h and nanobind.h beside this file let functions take and return tensors.
//
//   #include <taeda/pybind11.h>
//   using namespace taeda;
//
//   Tensor twice(const Tensor& x) { return op<"mul">(x, 2.0); }
//   PYBIND11_MODULE(TAEDA_EXTENSION_NAME, m) { m.def("twice", &twice); }
//
// An extension does not link to taeda: it calls a table of functions (abi.h), so it keeps working
// when taeda is updated. Exceptions do not cross this interface; they are passed by value and
// rethrown on the other side as the corresponding Python exceptions.
#pragma once

#include <Python.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "abi.h"

namespace taeda {
inline namespace v1 {

// ---- errors -------------------------------------------------------------------------------------

// Becomes RuntimeError in Python; the others below become the exceptions of their names.
struct Error : std::runtime_error {
  explicit Error(const std::string& text, int32_t kind = abi::kRuntimeError)
      : std::runtime_error(text),
        kind(kind) {}
  int32_t kind;
};
template <int32_t K> struct ErrorOf : Error {
  explicit ErrorOf(const std::string& text) : Error(text, K) {}
};
using TypeError = ErrorOf<abi::kTypeError>;
using ValueError = ErrorOf<abi::kValueError>;
using IndexError = ErrorOf<abi::kIndexError>;
using NotImplemented = ErrorOf<abi::kNotImplementedError>;

template <class E = Error> void check(bool ok, const std::string& text) {
  if (!ok) throw E(text);
}

// Throws Error if taeda is missing or too old; the first call needs the GIL.
inline const abi::Table& api() {
  static const abi::Table* table = [] {
    PyObject* package = PyImport_ImportModule("taeda");
    Py_XDECREF(package);
    auto* t =
        package ? static_cast<const abi::Table*>(PyCapsule_Import(abi::kCapsule, 0)) : nullptr;
    if (!t) PyErr_Clear();
    check(t, "taeda cannot be imported, or has no interface for extensions");
    check(t->version == abi::kVersion && t->size >= sizeof(abi::Table),
          "this extension was compiled for a later version of taeda");
    return t;
  }();
  return *table;
}

inline void must(int32_t error) {
  if (error) throw Error(api().last_error(), error);
}

// Runs f() at the interface, which exceptions must not cross, and reports what it throws.
template <class F> int32_t guarded(F&& f) noexcept {
  int32_t kind = abi::kRuntimeError;
  try {
    try {
      f();
      return abi::kOk;
    } catch (const Error& e) {
      api().set_error(kind = e.kind, e.what());
    } catch (const std::bad_alloc&) {
      api().set_error(kind = abi::kMemoryError, "out of memory");
    } catch (const std::exception& e) {
      api().set_error(kind, e.what());
    }
  } catch (...) {
    api().set_error(kind, "an extension threw an exception of an unknown type");
  }
  return kind;
}

// ---- dtypes, devices, numbers -------------------------------------------------------------------

enum class DType : int32_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128
};
inline bool is_floating(DType d) { return d >= DType::Float16 && d <= DType::Float64; }
inline bool is_complex(DType d) { return d >= DType::Complex64; }

template <class T> inline constexpr bool has_dtype = false;
template <class T> inline constexpr DType dtype_of = DType::Bool;
#define TAEDA_DTYPE(T, name)                             \
  template <> inline constexpr bool has_dtype<T> = true; \
  template <> inline constexpr DType dtype_of<T> = DType::name
TAEDA_DTYPE(bool, Bool);
TAEDA_DTYPE(uint8_t, UInt8);
TAEDA_DTYPE(int8_t, Int8);
TAEDA_DTYPE(int16_t, Int16);
TAEDA_DTYPE(int32_t, Int32);
TAEDA_DTYPE(int64_t, Int64);
TAEDA_DTYPE(float, Float32);
TAEDA_DTYPE(double, Float64);
TAEDA_DTYPE(std::complex<float>, Complex64);
TAEDA_DTYPE(std::complex<double>, Complex128);
#undef TAEDA_DTYPE

struct Device {
  int32_t type = abi::kCPU;
  int32_t index = -1;
  bool operator==(const Device&) const = default;
};

struct Options {
  DType dtype = DType::Float32;
  Device device = {};
};

// A Python number: bool, int, float or complex.
class Scalar {
 public:
  Scalar(bool v) : value_{abi::kTrue, 0, {}} { value_.integer = v; }
  Scalar(int v) : Scalar(int64_t{v}) {}
  Scalar(int64_t v) : value_{abi::kInt, 0, {}} { value_.integer = v; }
  Scalar(double v) : value_{abi::kFloat, 0, {}} { value_.number[0] = v; }
  Scalar(std::complex<double> v) : value_{abi::kComplex, 0, {}} {
    value_.number[0] = v.real();
    value_.number[1] = v.imag();
  }
  explicit Scalar(const abi::Value& v) : value_(v) {}

  bool is_integral() const { return value_.kind == abi::kTrue || value_.kind == abi::kInt; }
  bool is_complex() const { return value_.kind == abi::kComplex; }
  // The number; the real part of a complex one, unless T is complex.
  template <class T> T to() const {
    if (is_integral()) return static_cast<T>(value_.integer);
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      using R = typename T::value_type;
      return T(static_cast<R>(value_.number[0]),
               static_cast<R>(is_complex() ? value_.number[1] : 0));
    } else {
      return static_cast<T>(value_.number[0]);
    }
  }
  const abi::Value& value() const { return value_; }

 private:
  abi::Value value_;
};

// ---- tensors ------------------------------------------------------------------------------------

using IntArray = std::span<const int64_t>;

// A counted handle. Copies are the same tensor.
class Tensor {
 public:
  Tensor() = default;  // undefined: None in Python
  Tensor(const Tensor& o) : handle_(o.handle_) {
    if (handle_) api().retain(handle_);
  }
  Tensor(Tensor&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_) api().release(handle_);
  }
  // From a handle: adopt takes over its count, borrow adds one.
  static Tensor adopt(abi::Tensor* handle) {
    Tensor t;
    t.handle_ = handle;
    return t;
  }
  static Tensor borrow(abi::Tensor* handle) {
    if (handle) api().retain(handle);
    return adopt(handle);
  }

  bool defined() const { return handle_ != nullptr; }
  abi::Tensor* handle() const { return handle_; }

  int64_t dim() const { return info().dim; }
  int64_t numel() const { return info().numel; }
  // Valid while the tensor lives and is not resized.
  IntArray sizes() const {
    auto i = info();
    return {i.sizes, static_cast<size_t>(i.dim)};
  }
  IntArray strides() const {
    auto i = info();
    return {i.strides, static_cast<size_t>(i.dim)};
  }
  // Negative dimensions count from the end.
  int64_t size(int64_t d) const { return sizes()[wrapped(d)]; }
  int64_t stride(int64_t d) const { return strides()[wrapped(d)]; }
  DType dtype() const { return static_cast<DType>(info().dtype); }
  Device device() const {
    auto i = info();
    return {i.device_type, i.device_index};
  }
  Options options() const { return {dtype(), device()}; }
  bool is_contiguous() const { return info().contiguous; }
  bool requires_grad() const { return info().requires_grad; }
  bool is_meta() const { return info().device_type == abi::kMeta; }

  // The elements, `strides()` apart; consecutive if is_contiguous(). Untyped memory for float16 and
  // bfloat16, for which C++20 has no types.
  void* data() const {
    auto i = info();
    check(i.data || i.numel == 0, "a tensor without memory (on the meta device) has no data");
    return i.data;
  }
  template <class T> T* data() const {
    static_assert(has_dtype<T>, "T must be bool, an integer, float, double or complex");
    check<TypeError>(dtype() == dtype_of<T>, "data(): the tensor's dtype is another one");
    return static_cast<T*>(data());
  }

  Tensor contiguous() const;
  Tensor to(DType dtype) const;
  Scalar item() const;

 private:
  abi::TensorInfo info() const {
    check(handle_, "an undefined tensor was used");
    abi::TensorInfo i;
    api().describe(handle_, &i);
    return i;
  }
  size_t wrapped(int64_t d) const {
    const int64_t n = dim();
    check<IndexError>(d >= -n && d < n, "dimension " + std::to_string(d) + " is out of range");
    return static_cast<size_t>(d < 0 ? d + n : d);
  }
  abi::Tensor* handle_ = nullptr;
};

using TensorList = std::vector<Tensor>;

// A new tensor with uninitialised memory.
inline Tensor empty(IntArray sizes, Options o = {}) {
  abi::Tensor* t = nullptr;
  must(api().empty(sizes.data(), static_cast<int64_t>(sizes.size()), static_cast<int32_t>(o.dtype),
                   o.device.type, &t));
  return Tensor::adopt(t);
}
inline Tensor empty(std::initializer_list<int64_t> sizes, Options o = {}) {
  return empty(IntArray(sizes.begin(), sizes.size()), o);
}
inline Tensor empty_like(const Tensor& x) { return empty(x.sizes(), x.options()); }

// A contiguous tensor on external memory; `free(context)` is called once it is unused.
inline Tensor from_blob(void* data, IntArray sizes, DType dtype, void (*free)(void*) = nullptr,
                        void* context = nullptr) {
  abi::Tensor* t = nullptr;
  must(api().from_blob(data, sizes.data(), static_cast<int64_t>(sizes.size()),
                       static_cast<int32_t>(dtype), free, context, &t));
  return Tensor::adopt(t);
}

// ---- values: C++ types as arguments and results of ops ------------------------------------------

// Convert<T>: `kind`, `get` (from an argument), `put` (as one; what it points to must last).
template <class T> struct Convert;

template <> struct Convert<Tensor> {
  static constexpr int32_t kind = abi::kTensor;
  static Tensor get(const abi::Value& v) {
    return v.kind == abi::kNone ? Tensor() : Tensor::borrow(v.tensor);
  }
  template <class F> static void put(const Tensor& t, F&& use) {
    abi::Value v{t.defined() ? abi::kTensor : abi::kNone, 0, {}};
    v.tensor = t.handle();
    use(v);
  }
};
template <> struct Convert<TensorList> {
  static constexpr int32_t kind = abi::kTensors;
  static TensorList get(const abi::Value& v) {
    TensorList list;
    for (int64_t i = 0; i < v.count; ++i) list.push_back(Tensor::borrow(v.tensors[i]));
    return list;
  }
  template <class F> static void put(const TensorList& list, F&& use) {
    std::vector<abi::Tensor*> handles;
    for (const Tensor& t : list) handles.push_back(t.handle());
    abi::Value v{abi::kTensors, static_cast<int64_t>(handles.size()), {}};
    v.tensors = handles.data();
    use(v);
  }
};
template <> struct Convert<Scalar> {
  static constexpr int32_t kind = abi::kNumber;
  static Scalar get(const abi::Value& v) { return Scalar(v); }
  template <class F> static void put(const Scalar& s, F&& use) { use(s.value()); }
};
template <class T, int32_t K> struct ConvertNumber {
  static constexpr int32_t kind = K;
  static T get(const abi::Value& v) { return Scalar(v).to<T>(); }
  template <class F> static void put(T x, F&& use) { use(Scalar(x).value()); }
};
template <> struct Convert<bool> : ConvertNumber<bool, abi::kTrue> {};
template <> struct Convert<int64_t> : ConvertNumber<int64_t, abi::kInt> {};
template <> struct Convert<double> : ConvertNumber<double, abi::kFloat> {};
template <class T> struct ConvertArray {
  static constexpr int32_t kind = std::is_same_v<T, double> ? abi::kFloats : abi::kInts;
  static std::vector<T> get(const abi::Value& v) {
    if constexpr (std::is_same_v<T, double>) return {v.floats, v.floats + v.count};
    else return {v.integers, v.integers + v.count};
  }
  template <class F> static void put(std::span<const T> list, F&& use) {
    abi::Value v{kind, static_cast<int64_t>(list.size()), {}};
    if constexpr (std::is_same_v<T, double>) v.floats = list.data();
    else v.integers = list.data();
    use(v);
  }
};
template <> struct Convert<std::vector<int64_t>> : ConvertArray<int64_t> {};
template <> struct Convert<std::vector<double>> : ConvertArray<double> {};
template <> struct Convert<std::string> {
  static constexpr int32_t kind = abi::kText;
  static std::string get(const abi::Value& v) { return {v.text, static_cast<size_t>(v.count)}; }
  template <class F> static void put(const std::string& s, F&& use) {
    abi::Value v{abi::kText, static_cast<int64_t>(s.size()), {}};
    v.text = s.data();
    use(v);
  }
};
template <> struct Convert<DType> {
  static constexpr int32_t kind = abi::kDType;
  static DType get(const abi::Value& v) { return static_cast<DType>(v.integer); }
  template <class F> static void put(DType d, F&& use) {
    abi::Value v{abi::kDType, 0, {}};
    v.integer = static_cast<int64_t>(d);
    use(v);
  }
};
template <> struct Convert<Device> {
  static constexpr int32_t kind = abi::kDevice;
  static Device get(const abi::Value& v) {
    return {static_cast<int32_t>(v.integer), static_cast<int32_t>(v.count)};
  }
  template <class F> static void put(Device d, F&& use) {
    abi::Value v{abi::kDevice, d.index, {}};
    v.integer = d.type;
    use(v);
  }
};
template <class T> struct Convert<std::optional<T>> {
  static constexpr int32_t kind = Convert<T>::kind;
  static std::optional<T> get(const abi::Value& v) {
    if (v.kind == abi::kNone) return std::nullopt;
    return Convert<T>::get(v);
  }
  template <class F> static void put(const std::optional<T>& o, F&& use) {
    if (o) Convert<T>::put(*o, use);
    else use(abi::Value{abi::kNone, 0, {}});
  }
};

// The representation of other types.
template <class T> auto stored(T&& x) {
  using D = std::decay_t<T>;
  if constexpr (std::is_same_v<D, bool>) return x;
  else if constexpr (std::is_integral_v<D>) return static_cast<int64_t>(x);
  else if constexpr (std::is_floating_point_v<D>) return static_cast<double>(x);
  else if constexpr (std::is_same_v<D, const char*> || std::is_same_v<D, char*>)
    return std::string(x);
  else if constexpr (std::is_same_v<D, std::nullopt_t>) return Tensor();
  else if constexpr (std::is_same_v<D, IntArray>) return std::vector<int64_t>(x.begin(), x.end());
  else return D(std::forward<T>(x));
}

// ---- calling ops --------------------------------------------------------------------------------

struct Result {  // the results of an op
  TensorList tensors;
  static void take(void* self, const abi::Value* v) {
    auto& r = *static_cast<Result*>(self);
    if (v->kind == abi::kTensor) r.tensors.push_back(Tensor::borrow(v->tensor));
    else if (v->kind == abi::kTensors) r.tensors = Convert<TensorList>::get(*v);
  }
};

template <size_t N> struct OpName {
  char text[N];
  constexpr OpName(const char (&s)[N]) { std::copy_n(s, N, text); }
};

inline void collect(std::vector<abi::Value>& values, Result& r, const abi::Overloads* ops) {
  must(api().call(ops, values.data(), static_cast<int64_t>(values.size()), &r, &Result::take));
}
template <class T, class... Rest>
void collect(std::vector<abi::Value>& values, Result& r, const abi::Overloads* ops, const T& first,
             const Rest&... rest) {
  Convert<T>::put(first, [&](const abi::Value& v) {
    values.push_back(v);
    collect(values, r, ops, rest...);
  });
}

template <OpName Name, class... A> Result call(A&&... args) {
  static std::atomic<const abi::Overloads*> known = nullptr;
  const abi::Overloads* found = known.load(std::memory_order_relaxed);
  if (!found) known = found = api().find(Name.text);
  check(found, std::string("taeda has no operation '") + Name.text + "'");
  std::vector<abi::Value> values;
  values.reserve(sizeof...(A));
  Result r;
  collect(values, r, found, stored(std::forward<A>(args))...);
  return r;
}

// op<"softmax">(x, 1): any of taeda's ops, by name, with arguments in order; trailing defaults may
// be left out. Recorded for gradients, as in Python.
template <OpName Name, class... A> Tensor op(A&&... args) {
  Result r = call<Name>(std::forward<A>(args)...);
  check(r.tensors.size() == 1, std::string(Name.text) + " does not give one tensor: use ops<>()");
  return std::move(r.tensors[0]);
}
// The same for ops with several results.
template <OpName Name, class... A> TensorList ops(A&&... args) {
  return call<Name>(std::forward<A>(args)...).tensors;
}

inline Tensor Tensor::contiguous() const {
  return is_contiguous() ? *this : op<"contiguous">(*this);
}
inline Tensor Tensor::to(DType d) const { return d == dtype() ? *this : op<"to">(*this, d); }
inline Scalar Tensor::item() const {
  check(handle_, "an undefined tensor was used");
  abi::Value v{};
  must(api().item(handle_, &v));
  return Scalar(v);
}
inline Tensor operator+(const Tensor& a, const Tensor& b) { return op<"add">(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return op<"sub">(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return op<"mul">(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return op<"div">(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return op<"add">(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return op<"sub">(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return op<"mul">(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return op<"div">(a, b); }
inline Tensor operator-(const Tensor& a) { return op<"neg">(a); }

// ---- ops of your own ----------------------------------------------------------------------------

// The interface of a derivative; see Traits::backward.
class Backward {
 public:
  explicit Backward(abi::Backward* b) : b_(b) {}
  // The gradient of result i; undefined if no gradient reached it (only with several results).
  Tensor grad(int i = 0) const { return Tensor::borrow(api().grad(b_, i)); }
  // Argument i as it was given. A tensor must have been named in Traits::saves.
  template <class T> T arg(int i) const { return read<T>(api().arg, i); }
  Tensor out(int i = 0) const { return read<Tensor>(api().out, i); }  // a result named in saves
  bool needs(int i) const { return api().needs(b_, i); }  // the gradient of argument i is needed
  void set(int i, const Tensor& gradient) { must(api().set(b_, i, gradient.handle())); }
  void set_item(int i, int64_t item, const Tensor& gradient) {  // of a list of tensors
    must(api().set_item(b_, i, item, gradient.handle()));
  }

 private:
  template <class T, class F> T read(F function, int i) const {
    std::optional<T> result;
    must(function(b_, i, &result, [](void* to, const abi::Value* v) {
      *static_cast<std::optional<T>*>(to) = Convert<T>::get(*v);
    }));
    return std::move(*result);
  }
  abi::Backward* b_;
};

constexpr uint32_t saves_arg(int i) { return 1u << i; }
constexpr uint32_t saves_out(int i = 0) { return 1u << (16 + i); }

struct Traits {
  void (*backward)(Backward&) = nullptr;
  uint32_t saves = 0;      // the tensors that backward reads: saves_arg(0) | saves_out()
  bool composite = false;  // the function calls ops that have derivatives: record those instead
};

// A function as the kernel of an op. It is called without the GIL, so it must not touch Python;
// gradients are not recorded in it unless the op is composite.
struct Kernel {
  int (*run)(void (*)(), const abi::Value*, void*, abi::Give);
  void (*function)();
  std::vector<int32_t> kinds;
};

template <class R, class... A, size_t... I>
void run_kernel(void (*function)(), const abi::Value* args, void* receiver, abi::Give give,
                std::index_sequence<I...>) {
  auto f = reinterpret_cast<R (*)(A...)>(function);
  if constexpr (std::is_void_v<R>) {
    f(Convert<std::decay_t<A>>::get(args[I])...);
  } else {
    Convert<std::decay_t<R>>::put(f(Convert<std::decay_t<A>>::get(args[I])...),
                                  [&](const abi::Value& v) { give(receiver, &v); });
  }
}

// Its parameters: Tensor, TensorList, Scalar, int64_t, double, bool, std::string, DType, Device,
// std::vector<int64_t> or <double>, or std::optional of one. Its result: a Tensor, a TensorList or
// nothing.
template <class R, class... A> Kernel kernel(R (*f)(A...)) {
  return {[](void (*function)(), const abi::Value* args, void* receiver, abi::Give give) -> int {
            return guarded([&] {
              run_kernel<R, A...>(function, args, receiver, give, std::index_sequence_for<A...>{});
            });
          },
          reinterpret_cast<void (*)()>(f),
          {Convert<std::decay_t<A>>::kind...}};
}

// Defines an op, which is then taeda.ops.namespace.name in Python, and op<"namespace::name"> in
// C++. It is dispatched like taeda's own: gradients of any order, no_grad, inference mode, checks
// of arguments. Returns the Python function, a new reference. Needs the GIL.
//
//   define("my::smooth(self: Tensor, decay: float = 0.9) -> Tensor", "Exponential smoothing.",
//          kernel(smooth), {.backward = smooth_backward});
inline PyObject* define(const char* schema, const char* doc, const Kernel& k, Traits traits = {}) {
  abi::Definition d{};
  d.schema = schema;
  d.doc = doc;
  d.run = k.run;
  d.function = k.function;
  d.backward_function = reinterpret_cast<void (*)(abi::Backward*)>(traits.backward);
  d.backward = [](void (*function)(abi::Backward*), abi::Backward* b) -> int {
    return guarded([&] {
      Backward view(b);
      reinterpret_cast<void (*)(Backward&)>(function)(view);
    });
  };
  d.kinds = k.kinds.data();
  d.arguments = static_cast<int64_t>(k.kinds.size());
  d.saves = traits.saves;
  d.composite = traits.composite;
  PyObject* function = nullptr;
  must(api().define(&d, &function));
  return function;
}

// ---- threads and modes --------------------------------------------------------------------------

// Calls f(begin, end) for chunks of [0, n), each at least `grain` long but the last, on taeda's
// threads. The chunks depend on n alone, not on the number of threads.
template <class F> void parallel_for(int64_t n, int64_t grain, F&& f) {
  using Body = std::remove_reference_t<F>;
  auto body = [](void* context, int64_t begin, int64_t end) -> int {
    return guarded([&] { (*static_cast<Body*>(context))(begin, end); });
  };
  must(api().parallel_for(n, grain, body, const_cast<void*>(static_cast<const void*>(&f))));
}

class NoGrad {  // during its lifetime, this thread records nothing for gradients
 public:
  NoGrad() : before_(api().set_grad_enabled(0)) {}
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  ~NoGrad() { api().set_grad_enabled(before_); }

 private:
  int before_;
};

// ---- for the casters ----------------------------------------------------------------------------

// False if `o` is not a tensor (or None, which is an undefined one).
inline bool from_python(PyObject* o, Tensor* t) {
  if (o == Py_None) {
    *t = Tensor();
    return true;
  }
  abi::Tensor* handle = api().from_python(o);
  if (handle) *t = Tensor::borrow(handle);
  return handle != nullptr;
}
inline PyObject* to_python(const Tensor& t) {
  return t.defined() ? api().to_python(t.handle()) : Py_NewRef(Py_None);
}
inline void raise(const Error& e) { api().raise(e.kind, e.what()); }

}  // namespace v1
}  // namespace taeda
