// An extension without a binding library: ops of many kinds, and mistakes that must be errors.
#include <taeda/taeda.h>

using namespace taeda;

namespace {

// Every type of argument that there is; the numbers among them are added up.
Tensor sum_of(const Tensor& x, const Scalar& s, int64_t i, double f, bool b,
              const std::string& text, const std::vector<int64_t>& ints,
              const std::optional<std::vector<double>>& floats, std::optional<DType> dtype,
              std::optional<Device> device) {
  double sum = s.to<double>() + double(i) + f + b + double(text.size());
  for (int64_t v : ints) sum += double(v);
  for (double v : floats.value_or(std::vector<double>{})) sum += v;
  if (device) check(device->type == abi::kCPU, "sum_of(): not on the CPU");
  Tensor y = x + sum;
  return dtype ? y.to(*dtype) : y;
}

Tensor total(const TensorList& xs) {
  Tensor sum = xs.at(0);
  for (size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
  return sum;
}
void total_backward(Backward& b) {
  for (int64_t i = 0, n = int64_t(b.arg<TensorList>(0).size()); i < n; ++i)
    b.set_item(0, i, b.grad());
}

TensorList parts(const Tensor& x) { return {x * 2.0, op<"exp">(x)}; }
void parts_backward(Backward& b) {
  Tensor g;
  if (b.grad(0).defined()) g = b.grad(0) * 2.0;
  if (b.grad(1).defined()) {
    Tensor second = b.grad(1) * b.out(1);
    g = g.defined() ? g + second : second;
  }
  if (b.needs(0)) b.set(0, g);
}

Tensor softer(const Tensor& x) { return op<"softmax">(op<"relu">(x), -1); }

void fill_(const Tensor& x, double value) {
  NoGrad guard;
  std::fill_n(x.data<float>(), x.numel(), float(value));
}
Tensor same(const Tensor& x) { return x; }
Tensor first_row(const Tensor& x) { return op<"select">(x, 0, 0); }
double biggest(const Tensor& x) { return op<"max">(x).item().to<double>(); }

Tensor calls_python(const Tensor& x) { return op<"plain_python::fail">(x); }

Tensor fail(const Tensor&, const std::string& kind) {
  if (kind == "type") throw TypeError("a type");
  if (kind == "index") throw IndexError("an index");
  if (kind == "memory") throw std::bad_alloc();
  if (kind == "number") throw 3;
  if (kind == "threads")
    parallel_for(100, 1, [](int64_t begin, int64_t) { check<ValueError>(begin < 50, "a thread"); });
  if (kind == "undefined") return Tensor() + 1.0;
  if (kind == "dtype") return empty({2}).data<int64_t>() ? Tensor() : Tensor();
  if (kind == "arguments") return op<"softmax">(empty({2}), "x", 3.0);
  if (kind == "missing") return op<"no_such_op">(empty({2}));
  if (kind == "size") return empty({-1});
  if (kind == "nothing") return Tensor();
  throw std::runtime_error("a runtime error");
}

Tensor careless(const Tensor& x) { return x * 1.0; }
void reads_unsaved(Backward& b) { b.set(0, b.arg<Tensor>(0)); }
void sets_beyond(Backward& b) { b.set(5, b.grad()); }
void wrong_shape(Backward& b) { b.set(0, op<"ones">(std::vector<int64_t>{7, 7})); }

Tensor over_blob() {
  auto* numbers = new double[4]{1, 2, 3, 4};
  const int64_t sizes[] = {2, 2};
  return from_blob(
      numbers, sizes, DType::Float64, [](void* p) { delete[] static_cast<double*>(p); }, numbers);
}

void define_all(PyObject* module) {
  auto add = [&](const char* schema, const Kernel& k, Traits traits = {}) {
    Py_XDECREF(define(schema, "From a test.", k, traits));
  };
  add("plain::sum_of(self: Tensor, s: Scalar, i: int = 0, f: float = 0.0, b: bool = False, "
      "text: str = '', ints: int[] = [], floats: float[]? = None, *, dtype: dtype? = None, "
      "device: device? = None) -> Tensor",
      kernel(sum_of), {.composite = true});
  add("plain::total(tensors: Tensor[]) -> Tensor", kernel(total),
      {.backward = total_backward, .saves = saves_arg(0)});
  add("plain::parts(self: Tensor) -> (Tensor, Tensor)", kernel(parts),
      {.backward = parts_backward, .saves = saves_out(1)});
  add("plain::softer(self: Tensor) -> Tensor", kernel(softer), {.composite = true});
  add("plain::fill_(self!: Tensor, value: float) -> None", kernel(fill_));
  add("plain::same(self: Tensor) -> Tensor", kernel(same));
  add("plain::first_row(self: Tensor) -> Tensor", kernel(first_row));
  add("plain::biggest(self: Tensor) -> float", kernel(biggest));
  add("plain::fail(self: Tensor, kind: str) -> Tensor", kernel(fail));
  add("plain::unsaved(self: Tensor) -> Tensor", kernel(careless), {.backward = reads_unsaved});
  add("plain::beyond(self: Tensor) -> Tensor", kernel(careless), {.backward = sets_beyond});
  add("plain::misshapen(self: Tensor) -> Tensor", kernel(careless), {.backward = wrong_shape});
  add("plain::calls_python(self: Tensor) -> Tensor", kernel(calls_python));
  add("plain::blob() -> Tensor", kernel(over_blob));
  // Definitions that are refused, with what is said of them.
  PyObject* refused = PyList_New(0);
  for (const char* schema : {"same(self: Tensor) -> Tensor", "plain::bad(self: int) -> Tensor",
                             "plain::bad(self: Tensor, x: int) -> Tensor",
                             "plain::bad(self: Tensor", "plain::bad(self: int[) -> Tensor", ""}) {
    try {
      add(schema, kernel(same));
    } catch (const Error& e) {
      PyObject* text = PyUnicode_FromString(e.what());
      PyList_Append(refused, text);
      Py_DECREF(text);
    }
  }
  PyModule_AddObject(module, "refused", refused);
}

PyModuleDef definition{
    PyModuleDef_HEAD_INIT, "plain", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_plain() {
  PyObject* module = PyModule_Create(&definition);
  try {
    define_all(module);
    return module;
  } catch (const Error& e) {
    raise(e);
    Py_DECREF(module);
    return nullptr;
  }
}
