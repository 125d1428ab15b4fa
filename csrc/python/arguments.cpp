#include "python/arguments.h"

#include <algorithm>

#include "python/objects.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

const char* kind_name(const Arg& a) {
  switch (a.kind) {
    case ArgKind::Tensor: return "Tensor";
    case ArgKind::TensorList: return "tuple of Tensors";
    case ArgKind::Scalar: return "Number";
    case ArgKind::Int: return "int";
    case ArgKind::Float: return "float";
    case ArgKind::Bool: return "bool";
    case ArgKind::Str: return "str";
    case ArgKind::Ints: return "tuple of ints";
    case ArgKind::Floats: return "tuple of floats";
    case ArgKind::DType: return "taeda.dtype";
    case ArgKind::Device: return "taeda.device";
    case ArgKind::Generator: return "taeda.Generator";
    case ArgKind::MemoryFormat: return "taeda.memory_format";
  }
  return "?";
}

std::string show_default(const Value& v) {
  struct Show {
    std::string operator()(std::monostate) { return "None"; }
    std::string operator()(const Tensor& t) { return (*this)(t.item()); }
    std::string operator()(const TensorList&) { return "()"; }
    std::string operator()(const Scalar& s) {
      if (s.is_bool()) return s.to<bool>() ? "True" : "False";
      return s.is_integral() ? std::to_string(s.to_int()) : (*this)(s.to_double());
    }
    std::string operator()(int64_t i) { return std::to_string(i); }
    std::string operator()(double d) {
      PyRef o(PyFloat_FromDouble(d));
      PyRef text(PyObject_Repr(o.get()));
      return to_string(text.get());
    }
    std::string operator()(bool b) { return b ? "True" : "False"; }
    std::string operator()(const Dims& d) {
      std::string s = "(";
      for (size_t i = 0; i < d.size(); ++i) s += (i ? ", " : "") + std::to_string(d[i]);
      return s + (d.size() == 1 ? ",)" : ")");
    }
    std::string operator()(DType d) { return "taeda." + std::string(name(d)); }
    std::string operator()(Device d) { return "'" + taeda::to_string(d) + "'"; }
    std::string operator()(MemoryFormat m) {
      return m == MemoryFormat::Preserve ? "taeda.preserve_format" : "taeda.contiguous_format";
    }
    std::string operator()(const std::string& s) { return "'" + s + "'"; }
    std::string operator()(const Generator&) { return "None"; }
    std::string operator()(const std::vector<double>&) { return "()"; }
  };
  return std::visit(Show{}, v);
}

bool equals(PyObject* name, PyObject* other) {
  return name == other || (other && PyUnicode_Compare(name, other) == 0);
}

// Ints given as separate arguments.
bool convert_ints(PyObject* const* items, size_t n, Value& v) {
  if (!is_none(v)) v = Value();
  return as_dims(items, n, &v.emplace<Dims>());
}

PyObject* intern(const char* s) { return must(PyUnicode_InternFromString(s)); }

// A call whose ints from 2^63 up to 2^64 are replaced by what the call computes in: by those of the
// same bits beside tensors or a dtype of uint64, by floats beside floating ones. Scalar has no room
// for them. With the exception set that such an int has raised; it goes on where there is none.
struct Narrowed {
  std::vector<PyRef> owned;
  std::vector<PyObject*> args;
  PyArgs call;

  explicit Narrowed(const PyArgs& from) : call(from) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const size_t n = from.count + from.keywords();
    bool words = false, floats = false, found = false;
    for (size_t i = 0; i < n; ++i) {
      DType d;
      if (is_tensor(from.args[i])) d = tensor_of(from.args[i]).dtype();
      else if (Py_TYPE(from.args[i]) != DTypeType || !as_dtype(from.args[i], &d)) continue;
      words |= d == DType::UInt64;
      floats |= is_inexact(d);
    }
    for (size_t i = 0; i < n; ++i) {
      PyObject* o = from.args[i];
      if (PyLong_CheckExact(o)) {
        const unsigned long long bits = PyLong_AsUnsignedLongLong(o);
        const bool fits = !PyErr_Occurred();
        PyErr_Clear();
        if (fits && bits >> 63 != 0) {
          found = true;
          owned.push_back(take(words ? PyLong_FromLongLong(static_cast<long long>(bits))
                                     : PyFloat_FromDouble(static_cast<double>(bits))));
          o = owned.back().get();
        }
      }
      args.push_back(o);
    }
    call.args = args.data();
    if (!found) {
      PyErr_Restore(type, value, trace);
      throw PythonError();
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    check(words || floats, "value cannot be converted to type int64_t without overflow");
  }
};

}  // namespace

Signature::Signature(const Op& op) : op_(op) {
  check(op.args.size() <= Values::kMax, op.name, "() has more than ", Values::kMax, " arguments");
  const Numbers numbers = op.traits.numbers;
  needs_tensor_ = numbers == Numbers::OneTensor;
  bool has_dtype = false, has_device = false;
  params_.reserve(op.args.size());
  for (const Arg& a : op.args) {
    Param p{};
    p.arg = &a;
    p.kind = a.kind;
    p.optional = a.optional;
    const Dims* list = std::get_if<Dims>(&a.fallback);
    p.none_is_default = !a.optional && a.has_default && list && list->empty();
    p.takes_number = numbers != Numbers::None && a.kind == ArgKind::Tensor &&
                     (numbers != Numbers::AfterSelf || !params_.empty());
    p.shown_name = a.name == "self" ? "input" : a.name;
    p.name = intern(p.shown_name.c_str());
    if (p.shown_name == "input") p.aliases = {intern("x"), intern("self"), intern("a")};
    else if (p.shown_name == "other") p.aliases = {intern("x2")};
    else if (p.shown_name == "dim") p.aliases = {intern("axis")};
    else if (p.shown_name == "keepdim") p.aliases = {intern("keepdims")};
    else if (p.shown_name == "split_size_or_sections") {
      p.aliases = {intern("split_size")};
      if (!params_.empty()) params_.front().aliases.back() = intern("tensor");
    }
    if (!a.keyword_only) ++positional_;
    has_dtype |= a.kind == ArgKind::DType && a.name == "dtype";
    has_device |= a.kind == ArgKind::Device && a.name == "device";
    params_.push_back(std::move(p));
  }
  takes_spread_ints_ =
      positional_ == 2 && params_[1].kind == ArgKind::Ints && params_[1].arg->repeat <= 0;
  from_nothing_ =
      has_dtype && has_device && (op.args.empty() || op.args[0].kind != ArgKind::Tensor);
  factory_ = has_dtype && has_device &&
             (from_nothing_ || op.name.starts_with("new_") || op.name.ends_with("_like"));
}

// x.view(2, 3): ints (or tensors) as separate arguments in place of the only positional list.
bool Signature::varargs(const PyArgs& call) const {
  size_t first = call.method ? 1 : 0;
  if (positional_ == 0 || call.count <= positional_ - 1) return false;
  const Param& last = params_[positional_ - 1];
  PyObject* o = call.args[positional_ - 1];
  if (last.kind == ArgKind::Ints) {
    // A list of one or two numbers (dim: int[1]) may be given as one, but not spread: in
    // x.std(1, False) the second argument is `unbiased`.
    if (positional_ != first + 1 || last.arg->repeat > 0 || PyList_Check(o) || PyTuple_Check(o))
      return false;
    if (call.count > positional_) return true;
    int64_t i;  // x.view(6)
    return as_int(o, &i);
  }
  return last.kind == ArgKind::TensorList && !op_.traits.whole_list && is_tensor(o);
}

bool Signature::convert_varargs(const PyArgs& call, Values& values, bool explain) const {
  const size_t at = positional_ - 1, n = call.count - at;
  if (Dims d; params_[at].kind == ArgKind::Ints && as_dims(call.args + at, n, &d)) {
    values[at] = std::move(d);
    return true;
  }
  PyRef list = take(PyTuple_New(static_cast<Py_ssize_t>(n)));
  for (size_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(call.args[at + i]));
  if (convert(list.get(), params_[at], values[at])) return true;
  if (explain) wrong_type(params_[at], at + 1 - (call.method ? 1 : 0), list.get());
  return false;
}

// pow(2, 3): numbers for all arguments that could be tensors.
bool Signature::only_numbers(Values& values) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    const auto* t = std::get_if<Tensor>(&values[i]);
    if (t && !t->is_wrapped_number()) return false;
  }
  return true;
}

bool Signature::parse(const PyArgs& call, Values& values, PyObject** out, Extras* extras,
                      bool explain) const {
  try {
    if (!parse_any(call, values, out, extras, explain)) return false;
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw;
    const Narrowed narrowed(call);
    if (!parse_any(narrowed.call, values, out, extras, explain)) return false;
  }
  if (!needs_tensor_ || !only_numbers(values)) [[likely]]
    return true;
  check<TypeError>(!explain, op_.name, "(): at least one of the arguments must be a Tensor");
  return false;
}

bool Signature::parse_any(const PyArgs& call, Values& values, PyObject** out, Extras* extras,
                          bool explain) const {
  const bool spread = takes_spread_ints_ && call.method && call.count > 1 &&
                      PyLong_CheckExact(call.args[1]) && !call.kwnames;
  if (call.kwnames || from_nothing_ || (call.count > positional_ && !spread))
    return parse_slow(call, values, out, extras, explain);
  const size_t given = spread ? 2 : call.count;
  for (size_t i = 0; i < given; ++i) {
    const bool fits = spread && i == 1 ? convert_ints(call.args + 1, call.count - 1, values[1])
                                       : convert(call.args[i], params_[i], values[i]);
    if (!fits) [[unlikely]]
      return parse_slow(call, values, out, extras, explain);
  }
  for (size_t i = given; i < params_.size(); ++i) {
    if (!params_[i].arg->has_default) [[unlikely]]
      return parse_slow(call, values, out, extras, explain);
    if (is_trivial(values[i])) construct_value(&values[i], params_[i].arg->fallback);
    else values[i] = params_[i].arg->fallback;
  }
  return true;
}

int Signature::find_keyword(PyObject* name, bool method) const {
  for (size_t i = method ? 1 : 0; i < params_.size(); ++i) {
    if (params_[i].name == name) return static_cast<int>(i);
  }
  for (size_t i = method ? 1 : 0; i < params_.size(); ++i) {
    const Param& p = params_[i];
    if (equals(name, p.name)) return static_cast<int>(i);
    for (PyObject* alias : p.aliases) {
      if (equals(name, alias)) return static_cast<int>(i);
    }
  }
  return -1;
}

bool Signature::take_extra(PyObject* name, PyObject* value, Extras* extras, bool explain,
                           bool* fits) const {
  *fits = true;
  if (!factory_) return false;
  auto wrong = [&](const char* key, const char* expected) {
    if (explain)
      fail<TypeError>(op_.name, "(): argument '", key, "' must be ", expected, ", not ",
                      type_name(value));
    *fits = false;
  };
  if (PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0) {
    if (PyBool_Check(value)) extras->requires_grad = value == Py_True;
    else wrong("requires_grad", "bool");
    return true;
  }
  if (PyUnicode_CompareWithASCIIString(name, "layout") == 0) {
    if (Py_TYPE(value) != LayoutType && value != Py_None) wrong("layout", "taeda.layout");
    else if (value != Py_None && value != take(strided_object()).get()) {
      check<NotImplemented>(op_.name.find("zeros") != std::string::npos ||
                                op_.name.find("empty") != std::string::npos,
                            op_.name,
                            "(): layout must be taeda.strided; sparse tensors are "
                            "made by sparse_coo_tensor() and sparse_compressed_tensor()");
      extras->layout = value;
    }
    return true;
  }
  if (PyUnicode_CompareWithASCIIString(name, "pin_memory") == 0) {
    if (PyBool_Check(value)) extras->pin_memory = value == Py_True;
    else if (value != Py_None) wrong("pin_memory", "bool");
    return true;
  }
  return false;
}

void Signature::wrong_type(const Param& p, size_t position, PyObject* got) const {
  std::string where = position ? " (position " + std::to_string(position) + ")" : "";
  if ((p.kind == ArgKind::TensorList || p.kind == ArgKind::Ints) &&
      (PyList_Check(got) || PyTuple_Check(got))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(got); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(got, i);
      int64_t n;
      if (p.kind == ArgKind::TensorList && !is_tensor(item)) {
        fail<TypeError>("expected Tensor as element ", i, " in argument '", p.shown_name, "' of ",
                        op_.name, "(), but got ", type_name(item));
      }
      if (p.kind == ArgKind::Ints && !as_int(item, &n)) {
        fail<TypeError>(op_.name, "(): argument '", p.shown_name, "'", where,
                        " must be tuple of ints, but found element of type ", type_name(item),
                        " at pos ", i);
      }
    }
  }
  fail<TypeError>(op_.name, "(): argument '", p.shown_name, "'", where, " must be ",
                  kind_name(*p.arg), ", not ", type_name(got));
}

bool Signature::fill_missing(const PyArgs& call, Values& values, uint64_t given,
                             bool explain) const {
  std::string missing;
  size_t count = 0;
  for (size_t i = 0; i < params_.size(); ++i) {
    const Param& p = params_[i];
    if (given >> i & 1) continue;
    if (p.arg->has_default) {
      values[i] = p.arg->fallback;
    } else if (explain) {
      missing += (count++ ? ", \"" : "\"") + p.shown_name + "\"";
    } else {
      return false;
    }
    if (from_nothing_ && p.kind == ArgKind::Device && is_none(values[i]) && has_current_device()) {
      values[i] = current_device();
    }
  }
  (void)call;
  check<TypeError>(count == 0, op_.name, "() missing ", count,
                   " required positional arguments: ", missing);
  return true;
}

bool Signature::parse_slow(const PyArgs& call, Values& values, PyObject** out, Extras* extras,
                           bool explain) const {
  const size_t self = call.method ? 1 : 0;
  uint64_t given = 0;
  size_t positional = call.count;
  if (varargs(call)) {
    const size_t at = positional_ - 1;
    positional = at;
    if (!convert_varargs(call, values, explain)) return false;
    given |= uint64_t(1) << at;
  } else if (call.count > positional_) {
    if (explain) {
      size_t takes = positional_ - self, got = call.count - self;
      fail<TypeError>(op_.name, "() takes ", takes, " positional argument", takes == 1 ? "" : "s",
                      " but ", got, got == 1 ? " was given" : " were given");
    }
    return false;
  }
  for (size_t i = 0; i < positional; ++i) {
    if (!convert(call.args[i], params_[i], values[i])) {
      if (explain) wrong_type(params_[i], i + 1 - self, call.args[i]);
      return false;
    }
    given |= uint64_t(1) << i;
  }
  for (size_t k = 0; k < call.keywords(); ++k) {
    PyObject* name = PyTuple_GET_ITEM(call.kwnames, static_cast<Py_ssize_t>(k));
    PyObject* value = call.args[call.count + k];
    int at = find_keyword(name, call.method);
    if (at < 0) {
      bool fits;
      if ((op_.traits.forms & kOut) && PyUnicode_CompareWithASCIIString(name, "out") == 0) {
        if (value != Py_None) *out = value;
        continue;
      }
      if (take_extra(name, value, extras, explain, &fits)) {
        if (!fits) return false;
        continue;
      }
      if (explain)
        fail<TypeError>(op_.name, "() got an unexpected keyword argument '", to_string(name), "'");
      return false;
    }
    if (given >> at & 1) {
      if (explain)
        fail<TypeError>(op_.name, "() got multiple values for argument '", to_string(name), "'");
      return false;
    }
    const Param& p = params_[static_cast<size_t>(at)];
    // An explicit None selects the default, whatever the type, as in `sum(x, dtype=None)`.
    if (!convert(value, p, values[static_cast<size_t>(at)])) {
      if (explain) wrong_type(p, 0, value);
      return false;
    }
    given |= uint64_t(1) << at;
  }
  if (from_nothing_) {
    for (size_t i = 0; i < params_.size(); ++i) {  // device=None means the default device too
      if ((given >> i & 1) && params_[i].kind == ArgKind::Device && is_none(values[i]) &&
          has_current_device()) {
        values[i] = current_device();
      }
    }
  }
  return fill_missing(call, values, given, explain);
}

bool Signature::plausible(const PyArgs& call) const {
  if (call.count > positional_ && !varargs(call)) return false;
  uint64_t given = (uint64_t(1) << std::min(call.count, positional_)) - 1;
  for (size_t k = 0; k < call.keywords(); ++k) {
    PyObject* name = PyTuple_GET_ITEM(call.kwnames, static_cast<Py_ssize_t>(k));
    int at = find_keyword(name, call.method);
    if (at >= 0) {
      if (given >> at & 1) return false;
      given |= uint64_t(1) << at;
      continue;
    }
    bool known =
        ((op_.traits.forms & kOut) && PyUnicode_CompareWithASCIIString(name, "out") == 0) ||
        (factory_ && (PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0 ||
                      PyUnicode_CompareWithASCIIString(name, "layout") == 0 ||
                      PyUnicode_CompareWithASCIIString(name, "pin_memory") == 0));
    if (!known) return false;
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    if (!params_[i].arg->has_default && !(given >> i & 1)) return false;
  }
  return true;
}

std::string Signature::text(bool method) const {
  std::string s = "(";
  bool starred = false;
  auto separate = [&] { s += s.size() > 1 ? ", " : ""; };
  for (size_t i = method ? 1 : 0; i < params_.size(); ++i) {
    const Param& p = params_[i];
    separate();
    if (p.arg->keyword_only && !starred) {
      s += "*, ";
      starred = true;
    }
    s += std::string(kind_name(*p.arg)) + " " + p.shown_name;
    if (p.arg->has_default) s += " = " + show_default(p.arg->fallback);
  }
  if (op_.traits.forms & kOut && !op_.inplace_form) {
    separate();
    s += starred ? "Tensor out = None" : "*, Tensor out = None";
    starred = true;
  }
  if (factory_) {
    separate();
    s += starred ? "bool requires_grad = False" : "*, bool requires_grad = False";
  }
  return s + ")";
}

std::string describe(const PyArgs& call) {
  std::string s = "(";
  auto type_of = [](PyObject* o) -> std::string {
    if (PyList_Check(o) || PyTuple_Check(o)) {
      std::string kind = PyList_Check(o) ? "list" : type_name(o);
      Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      if (n == 0) return kind;
      return kind + " of " + (n == 1 ? "[" : "(") + type_name(PySequence_Fast_GET_ITEM(o, 0)) +
             (n == 1 ? "]" : ", ...)");
    }
    return type_name(o);
  };
  for (size_t i = call.method ? 1 : 0; i < call.count + call.keywords(); ++i) {
    if (s.size() > 1) s += ", ";
    if (i >= call.count)
      s += to_string(PyTuple_GET_ITEM(call.kwnames, static_cast<Py_ssize_t>(i - call.count))) + "=";
    s += type_of(call.args[i]);
  }
  return s + ")";
}

}  // namespace taeda::py
