// The table of functions through which extensions compiled elsewhere use taeda. Its contract is
// python/taeda/include/taeda/abi.h; extensions are written against taeda.h in the same folder. All
// input from extensions is validated: a wrong kind of value or index is reported to them as an
// error.
#include <algorithm>
#include <array>
#include <deque>
#include <functional>

#include "autograd/backward.h"
#include "base/thread_pool.h"
#include "ops/core/schema.h"
#include "python/extension_values.h"
#include "python/objects.h"
#include "python/op_callable.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

// ---- errors, passed as a number and a text ----

struct LastError {
  std::string text;
  PyObject* exception = nullptr;  // for kPythonError
};
LastError& last() {
  static thread_local LastError e;
  return e;
}

int report(abi::Error kind, const char* text) noexcept {
  try {
    last().text = text;
  } catch (...) {
    last().text.clear();
  }
  return kind;
}

// Takes the current Python exception out of the interpreter and stores it, so that C++ code can
// run.
int report_python() noexcept {
  AcquireGil gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  Py_XSETREF(last().exception, value);
  PyRef text(value ? PyObject_Str(value) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) PyErr_Clear();
  return report(abi::kPythonError, utf8 ? utf8 : "a Python exception");
}

// Runs f() and reports what it throws.
template <class F> int guard(F&& f) noexcept {
  try {
    f();
    return abi::kOk;
  } catch (const PythonError&) {
    return report_python();
  } catch (const TypeError& e) {
    return report(abi::kTypeError, e.what());
  } catch (const ValueError& e) {
    return report(abi::kValueError, e.what());
  } catch (const IndexError& e) {
    return report(abi::kIndexError, e.what());
  } catch (const NotImplemented& e) {
    return report(abi::kNotImplementedError, e.what());
  } catch (const OutOfMemory& e) {
    return report(abi::kMemoryError, e.what());
  } catch (const std::bad_alloc&) {
    return report(abi::kMemoryError, "out of memory");
  } catch (const std::exception& e) {
    return report(abi::kRuntimeError, e.what());
  } catch (...) {
    return report(abi::kRuntimeError, "an unknown C++ exception");
  }
}

void raise(int32_t error, const char* text) {
  PyObject* type = error == abi::kTypeError             ? PyExc_TypeError
                   : error == abi::kValueError          ? PyExc_ValueError
                   : error == abi::kIndexError          ? PyExc_IndexError
                   : error == abi::kNotImplementedError ? PyExc_NotImplementedError
                   : error == abi::kMemoryError         ? PyExc_MemoryError
                                                        : PyExc_RuntimeError;
  PyObject* kept = last().exception;
  if (error == abi::kPythonError && kept) {
    last().exception = nullptr;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(kept)), kept);
    Py_DECREF(kept);
  } else {
    PyErr_SetString(type, text);
  }
}

// Throws the exception for an error code that an extension returned.
[[noreturn]] void rethrow(int32_t error) {
  const std::string text = last().text;
  switch (error) {
    case abi::kTypeError: throw TypeError(text);
    case abi::kValueError: throw ValueError(text);
    case abi::kIndexError: throw IndexError(text);
    case abi::kNotImplementedError: throw NotImplemented(text);
    case abi::kMemoryError: throw OutOfMemory(text);
    case abi::kPythonError: {
      AcquireGil gil;
      raise(error, text.c_str());
      throw PythonError();
    }
    default: throw Error(text);
  }
}

// ---- tensors ----

void describe(const abi::Tensor* h, abi::TensorInfo* info) {
  const auto* t = reinterpret_cast<const TensorImpl*>(h);
  auto* bytes = static_cast<char*>(t->storage->data);
  const Device device = t->storage->device;
  info->data = bytes ? bytes + t->offset * static_cast<int64_t>(itemsize(t->dtype)) : nullptr;
  info->sizes = t->sizes.data();
  info->strides = t->strides.data();
  info->dim = static_cast<int64_t>(t->sizes.size());
  info->numel = t->numel;
  info->dtype = static_cast<int32_t>(t->dtype);
  info->device_type = static_cast<int32_t>(device.type);
  info->device_index = device.index;
  info->contiguous = t->contiguous;
  info->requires_grad = (t->flags & kRequiresGrad) != 0;
}

int item(const abi::Tensor* h, abi::Value* v) {
  return guard([&] { *v = number(tensor(const_cast<abi::Tensor*>(h)).item()); });
}

int new_empty(const int64_t* sizes, int64_t dim, int32_t dtype, int32_t device, abi::Tensor** t) {
  return guard([&] {
    DimsRef dims(sizes, static_cast<size_t>(dim));
    Tensor made = empty(dims, {dtype_from(dtype), device_from(device)});
    *t = reinterpret_cast<abi::Tensor*>(Ref(made.ref()).release());
  });
}

int from_blob(void* data, const int64_t* sizes, int64_t dim, int32_t dtype, void (*free)(void*),
              void* context, abi::Tensor** t) {
  return guard([&] {
    Dims dims(DimsRef(sizes, static_cast<size_t>(dim)));
    const DType d = dtype_from(dtype);
    const auto bytes = static_cast<size_t>(numel_of(dims)) * itemsize(d);
    check<ValueError>(data || !bytes, "from_blob(): data is null");
    auto storage = Storage::borrow(data, bytes, free ? free : [](void*) {}, context);
    Tensor made = from_storage(std::move(storage), dims, contiguous_strides(dims), 0, d);
    *t = reinterpret_cast<abi::Tensor*>(Ref(made.ref()).release());
  });
}

// ---- calling ops ----

const abi::Overloads* find(const char* name) {
  const std::vector<const Op*>& ops = overloads(name);
  return ops.empty() ? nullptr : reinterpret_cast<const abi::Overloads*>(&ops);
}

// Whether `count` values match an op's arguments; fills `values`, defaults included.
bool fits(const Op& op, const abi::Value* args, size_t count, Values& values) {
  for (size_t i = 0; i < op.args.size(); ++i) {
    if (i < count ? !from_abi(args[i], op.args[i], &values[i]) : !op.args[i].has_default)
      return false;
    if (i >= count) values[i] = op.args[i].fallback;
  }
  return true;
}

void give_value(const Value& v, void* receiver, abi::Give give) {
  AbiValues shown;
  abi::Value a = shown.one(v);
  if (a.kind != abi::kNone) give(receiver, &a);
}

int call_op(const abi::Overloads* o, const abi::Value* args, int64_t count, void* receiver,
            abi::Give give) {
  return guard([&] {
    const auto& ops = *reinterpret_cast<const std::vector<const Op*>*>(o);
    const auto n = static_cast<size_t>(count);
    // Newest first: an extension that is reloaded defines its ops again.
    const bool outside = ops[0]->name.find("::") != std::string::npos;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Op& op = *ops[outside ? ops.size() - 1 - i : i];
      if (op.args.size() < n) continue;
      Values values(op.args.size());
      if (fits(op, args, n, values)) return give_value(call(op, values.span()), receiver, give);
    }
    fail<TypeError>(ops[0]->name, "(): an extension called it with ", count,
                    " arguments that fit none of its forms, such as ", ops[0]->signature);
  });
}

// ---- ops that extensions define ----

struct Defined {
  abi::Definition how;  // without its schema, text and kinds
};
const abi::Definition& how(const Op& op) { return static_cast<const Defined*>(op.user)->how; }

void take_result(void* to, const abi::Value* a) {
  auto& result = *static_cast<Value*>(to);
  if (a->kind == abi::kTensor) result = tensor(a->tensor);
  else if (a->kind == abi::kTensors) result = list_from(*a);
  else if (is_number(a->kind)) result = scalar_from(*a);
}

void check_result(const Op& op, const Value& result) {
  bool right;
  if (op.returns == 1) {
    right = std::holds_alternative<Tensor>(result);
  } else if (op.returns != 0) {
    auto* list = std::get_if<TensorList>(&result);
    right = list && (op.returns < 0 || static_cast<int>(list->size()) == op.returns) &&
            std::all_of(list->begin(), list->end(), std::mem_fn(&Tensor::defined));
  } else {
    right = op.return_type == "None" ? is_none(result) : std::holds_alternative<Scalar>(result);
  }
  check<TypeError>(right, op.name, "(): the extension did not return ", op.return_type);
}

Value run_defined(Call& c) {
  const abi::Definition& d = how(c.op);
  AbiValues shown;
  Value result;
  if (int error = d.run(d.function, shown.show(c.args), &result, take_result)) rethrow(error);
  // The dispatcher increments the version of one changed argument, unless the op is composite.
  const int counted = c.op.traits.composite ? -1 : c.op.mutated;
  for (size_t i = 0; i < c.args.size(); ++i) {
    auto* t = std::get_if<Tensor>(&c.args[i]);
    if (t && c.op.args[i].mutated && static_cast<int>(i) != counted) t->bump_version();
  }
  check_result(c.op, result);
  return result;
}

void run_defined_backward(Backward& b) {
  const abi::Definition& d = how(b.op());
  if (int error = d.backward(d.backward_function, reinterpret_cast<abi::Backward*>(&b)))
    rethrow(error);
}

void check_definition(const Op& op, const abi::Definition& d) {
  const size_t colons = op.name.find("::");
  check<ValueError>(colons != 0 && colons != op.name.npos && colons + 2 < op.name.size(),
                    "define(): the name must be 'namespace::name', got '", op.name, "'");
  check<ValueError>(op.args.size() <= 16, "define(): ", op.name, " has more than 16 arguments");
  check<TypeError>(static_cast<size_t>(d.arguments) == op.args.size(), "define(): the schema of ",
                   op.name, " has ", op.args.size(), " arguments, its function ", d.arguments);
  for (size_t i = 0; i < op.args.size(); ++i) {
    check<TypeError>(suits(op.args[i], d.kinds[i]), "define(): argument '", op.args[i].name,
                     "' of ", op.name, " has another type in the schema than in its function");
  }
  check<ValueError>(!d.backward_function || op.returns > 0, "define(): ", op.name,
                    " gives no fixed number of tensors, so it can have no derivative of its own");
  check<ValueError>(!d.backward_function || op.mutated < 0, "define(): ", op.name,
                    " changes an argument in place, so it can have no derivative of its own");
}

int define_op(const abi::Definition* d, PyObject** function) {
  return guard([&] {
    check_definition(parse_schema(d->schema), *d);
    static std::deque<Defined> all;  // ops live until the process ends
    const Defined& kept = all.emplace_back(Defined{*d});
    Traits traits{.backward = d->backward_function ? run_defined_backward : nullptr,
                  .saves = d->saves,
                  .forms = kFunction,
                  .composite = d->composite != 0};
    const Op& op = define(d->schema, d->doc ? d->doc : "", raw_kernel(run_defined), traits, &kept);
    PyRef callable(op_function(op));
    PyRef home = take(PyImport_ImportModule("taeda.library._operator"));
    PyRef compiled = take(PyObject_GetAttrString(home.get(), "COMPILED"));
    must(PyDict_SetItemString(compiled.get(), op.name.c_str(), callable.get()));
    *function = callable.release();
  });
}

// ---- derivatives ----

Backward& backward(abi::Backward* b) { return *reinterpret_cast<Backward*>(b); }

bool in_range(const Backward& b, int32_t i) {
  return i >= 0 && static_cast<size_t>(i) < b.op().args.size();
}
void check_argument(const Backward& b, int32_t i) {
  check<IndexError>(in_range(b, i), b.op().backward_name, ": there is no argument ", i);
}

abi::Tensor* grad(abi::Backward* b, int32_t i) {
  const Backward& view = backward(b);
  if (i < 0 || i >= view.op().returns || !view.grad(i).defined()) return nullptr;
  return handle(view.grad(i));
}

template <class T> Value optional(const Backward& b, int i) {
  return pack(b.arg<std::optional<T>>(i));
}
Value argument(const Backward& b, int i) {
  switch (b.op().args[static_cast<size_t>(i)].kind) {
    case ArgKind::Tensor: return b.arg<Tensor>(i);
    case ArgKind::TensorList: return b.arg<TensorList>(i);
    case ArgKind::Scalar: return optional<Scalar>(b, i);
    case ArgKind::Int: return optional<int64_t>(b, i);
    case ArgKind::Float: return optional<double>(b, i);
    case ArgKind::Bool: return optional<bool>(b, i);
    case ArgKind::Str: return optional<std::string>(b, i);
    case ArgKind::Ints: return optional<Dims>(b, i);
    case ArgKind::Floats: {
      auto floats = b.arg<std::optional<std::vector<double>>>(i);
      return floats ? Value(std::move(*floats)) : Value();
    }
    case ArgKind::DType: return optional<DType>(b, i);
    case ArgKind::Device: return optional<Device>(b, i);
    default: return {};
  }
}

int read_argument(abi::Backward* p, int32_t i, void* receiver, abi::Give give) {
  return guard([&] {
    const Backward& b = backward(p);
    check_argument(b, i);
    const ArgKind kind = b.op().args[static_cast<size_t>(i)].kind;
    const bool tensors = kind == ArgKind::Tensor || kind == ArgKind::TensorList;
    check(!tensors || (b.op().traits.saves & saves_arg(i)), b.op().backward_name, ": argument ", i,
          " was not saved; name it in saves");
    const Value value = argument(b, i);
    AbiValues shown;
    abi::Value a = shown.one(value);
    give(receiver, &a);
  });
}

int read_result(abi::Backward* p, int32_t i, void* receiver, abi::Give give) {
  return guard([&] {
    const Backward& b = backward(p);
    check<IndexError>(i >= 0 && i < b.op().returns, b.op().backward_name, ": there is no result ",
                      i);
    check(b.op().traits.saves & saves_out(i), b.op().backward_name, ": result ", i,
          " was not saved; name it in saves");
    const Value value = b.out(i);
    AbiValues shown;
    abi::Value a = shown.one(value);
    give(receiver, &a);
  });
}

int needs(abi::Backward* b, int32_t i) { return in_range(backward(b), i) && backward(b).needs(i); }

int set(abi::Backward* p, int32_t i, abi::Tensor* gradient) {
  return guard([&] {
    check_argument(backward(p), i);
    backward(p).set(i, tensor(gradient));
  });
}

int set_item(abi::Backward* p, int32_t i, int64_t item, abi::Tensor* gradient) {
  return guard([&] {
    Backward& b = backward(p);
    check_argument(b, i);
    check<IndexError>(item >= 0 && static_cast<size_t>(item) < b.list_size(i), b.op().backward_name,
                      ": argument ", i, " has no item ", item);
    b.set_item(i, static_cast<size_t>(item), tensor(gradient));
  });
}

// ---- threads, modes, Python ----

int run_parallel(int64_t n, int64_t grain, int (*body)(void*, int64_t, int64_t), void* context) {
  return guard([&] {
    parallel_for(n, grain, [&](int64_t begin, int64_t end) {
      if (int error = body(context, begin, end)) rethrow(error);
    });
  });
}

int set_grad_enabled(int on) {
  const bool before = GradMode::enabled();
  GradMode::set(on != 0);
  return before;
}

// Sparse tensors are a Python class whose objects have no storage of their own.
abi::Tensor* from_python(PyObject* o) {
  if (!is_tensor(o)) return nullptr;
  if (!is_exact_tensor(o)) {
    PyRef layout(PyObject_GetAttrString(o, "layout")), strided(strided_object());
    if (!layout) PyErr_Clear();
    if (layout.get() != strided.get()) return nullptr;
  }
  return handle(tensor_of(o));
}

constexpr abi::Table kTable{
    .version = abi::kVersion,
    .size = sizeof(abi::Table),
    .retain = [](abi::Tensor* t) { reinterpret_cast<TensorImpl*>(t)->retain(); },
    .release = [](abi::Tensor* t) { Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(t)); },
    .describe = describe,
    .item = item,
    .empty = new_empty,
    .from_blob = from_blob,
    .find = find,
    .call = call_op,
    .define = define_op,
    .grad = grad,
    .arg = read_argument,
    .out = read_result,
    .needs = needs,
    .set = set,
    .set_item = set_item,
    .parallel_for = run_parallel,
    .set_grad_enabled = set_grad_enabled,
    .from_python = from_python,
    .to_python = [](abi::Tensor* t) { return guarded([&] { return wrap(tensor(t)); }); },
    .last_error = [] { return static_cast<const char*>(last().text.c_str()); },
    .set_error = [](int32_t error,
                    const char* text) { report(static_cast<abi::Error>(error), text); },
    .raise = raise,
};

}  // namespace

void init_extension(PyObject* module) {
  auto* table = const_cast<void*>(static_cast<const void*>(&kTable));
  must(PyModule_AddObject(module, "_extension_api",
                          must(PyCapsule_New(table, abi::kCapsule, nullptr))));
}

}  // namespace taeda::py
