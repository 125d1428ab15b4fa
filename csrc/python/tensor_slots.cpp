// Python's protocols for tensors: operators, comparison, conversion to numbers, len, iteration,
// subscripts.
#include "python/tensor_slots.h"

#include "ops/core/op.h"
#include "python/interop.h"
#include "python/objects.h"
#include "python/op_callable.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

template <OpName Name> const OpTable& table() {
  static const OpTable* t = find_table(Name.text);
  if (!t) fail<NotImplemented>("taeda was built without the operation '", Name.text, "'");
  return *t;
}

// NotImplemented if the op does not support the operands, so that Python tries the reflected
// method.
template <OpName Name> PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* args[] = {a, b};
    PyObject* result = call_table(table<Name>(), {args, 2, nullptr, false}, true);
    if (result || PyErr_Occurred()) return result;
    Py_RETURN_NOTIMPLEMENTED;
  });
}

template <OpName Name> PyObject* in_place(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* args[] = {a, b};
    PyObject* result = call_table(table<Name>(), {args, 2, nullptr, true}, true);
    if (result || PyErr_Occurred()) return result;
    Py_RETURN_NOTIMPLEMENTED;
  });
}

template <OpName Name> PyObject* unary(PyObject* a) {
  return guarded([&] {
    PyObject* args[] = {a};
    return call_table(table<Name>(), {args, 1, nullptr, true});
  });
}

PyObject* invert(PyObject* a) {
  if (is_exact_tensor(a) && is_inexact(tensor_of(a).dtype())) {
    return PyErr_Format(PyExc_TypeError,
                        "~ (operator.invert) takes an integer or bool Tensor, got %s",
                        std::string(name(tensor_of(a).dtype())).c_str());
  }
  return unary<"bitwise_not">(a);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    return PyErr_Format(PyExc_TypeError, "pow() of a Tensor takes no third argument");
  }
  return binary<"pow">(a, b);
}
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject*) { return in_place<"pow_">(a, b); }

// Like `eq`, but also accepts NumPy arrays of numbers or bools.
PyObject* equal(PyObject* a, PyObject* b) {
  PyRef result(binary<"eq">(a, b));
  if (result.get() != Py_NotImplemented || !is_ndarray(b)) return result.release();
  return guarded([&] {
    PyRef other;
    try {
      other = PyRef(wrap(share_array(b, false)));
    } catch (const TypeError&) {
      return Py_NewRef(Py_NotImplemented);
    }
    return binary<"eq">(a, other.get());
  });
}

// Like `div`, but also accepts a NumPy array divided by a tensor.
PyObject* divide(PyObject* a, PyObject* b) {
  PyRef result(binary<"div">(a, b));
  if (result.get() != Py_NotImplemented || !is_ndarray(a)) return result.release();
  return guarded([&] {
    PyRef inverse(call_method("reciprocal", {b}));
    return must(PyNumber_Multiply(inverse.get(), a));
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT: return binary<"lt">(a, b);
    case Py_LE: return binary<"le">(a, b);
    case Py_EQ: return equal(a, b);
    case Py_NE: return binary<"ne">(a, b);
    case Py_GT: return binary<"gt">(a, b);
    default: return binary<"ge">(a, b);
  }
}

// ---- conversions ----

int to_bool(PyObject* o) {
  return guarded(
      [&]() -> int {
        const Tensor& t = tensor_of(o);
        check(t.numel() == 1, "Boolean value of Tensor with ",
              t.numel() == 0 ? "no values" : "more than one value", " is ambiguous");
        if (t.dtype() == DType::UInt64) return PyObject_IsTrue(take(item_object(t)).get());
        return t.item().to<bool>();
      },
      -1);
}

const Tensor& of_one_element(PyObject* o) {
  const Tensor& t = tensor_of(o);
  check<ValueError>(t.numel() == 1,
                    "only one element tensors can be converted to Python scalars, got shape ",
                    to_string(t.sizes()));
  return t;
}

// The only element, or its real part where the other one is 0, as a Python number.
PyRef real_element(PyObject* o, const char* type) {
  const Tensor& t = of_one_element(o);
  if (!is_complex(t.dtype())) return take(item_object(t));
  const auto c = t.item().to<cdouble>();
  check(c.imag() == 0, "value cannot be converted to type ", type, " without overflow");
  return take(PyFloat_FromDouble(c.real()));
}

PyObject* to_int(PyObject* o) {
  return guarded([&] { return must(PyNumber_Long(real_element(o, "int64_t").get())); });
}
PyObject* to_float(PyObject* o) {
  return guarded([&] { return must(PyNumber_Float(real_element(o, "double").get())); });
}
PyObject* to_index(PyObject* o) {
  return guarded([&] {
    const Tensor& t = tensor_of(o);
    check<TypeError>(t.numel() == 1 && is_integral(t.dtype()),
                     "only integer tensors of a single element can be converted to an index");
    return must(PyNumber_Long(take(item_object(t)).get()));
  });
}

// ---- containers ----

Py_ssize_t length(PyObject* o) {
  const Tensor& t = tensor_of(o);
  if (!t.defined() || t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return t.sizes()[0];
}

PyObject* iterate(PyObject* o) {
  return guarded([&] {
    check<TypeError>(tensor_of(o).dim() > 0, "iteration over a 0-d tensor");
    PyRef rows(call_method("unbind", {o}));
    return must(PyObject_GetIter(rows.get()));
  });
}

int contains(PyObject* o, PyObject* element) {
  return guarded(
      [&]() -> int {
        Scalar s;
        check(is_tensor(element) || PyLong_Check(element) || as_scalar(element, &s),
              "Tensor.__contains__ only supports Tensor or scalar, but you passed in a ",
              to_string(take(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(element)))).get()),
              ".");
        PyRef same = take(compare(o, element, Py_EQ));
        PyRef any(call_method("any", {same.get()}));
        return tensor_of(any.get()).item().to<bool>();
      },
      -1);
}

Py_hash_t hash(PyObject* o) {
  auto bits = reinterpret_cast<uintptr_t>(o);
  auto h = static_cast<Py_hash_t>((bits >> 4) | (bits << (8 * sizeof(bits) - 4)));
  return h == -1 ? -2 : h;
}

PyObject* repr(PyObject* o) {
  return guarded([&] {
    static PyObject* function = nullptr;
    if (!function) {
      PyRef module = take(PyImport_ImportModule("taeda._tensor.printing"));
      function = must(PyObject_GetAttrString(module.get(), "tensor_repr"));
    }
    return must(python_call(PyObject_CallOneArg, function, o));
  });
}

PyObject* positive(PyObject* o) {
  return guarded([&] {
    check(tensor_of(o).dtype() != DType::Bool,
          "The `+` operator, on a bool tensor is not supported.");
    return Py_NewRef(o);
  });
}

template <class F> void* slot(F* f) { return reinterpret_cast<void*>(f); }

}  // namespace

std::vector<PyType_Slot> tensor_slots() {
  return {{Py_tp_new, slot(legacy_new)},
          {Py_tp_hash, slot(hash)},
          {Py_tp_repr, slot(repr)},
          {Py_tp_richcompare, slot(compare)},
          {Py_tp_iter, slot(iterate)},
          {Py_mp_length, slot(length)},
          {Py_mp_subscript, slot(get_item)},
          {Py_mp_ass_subscript, slot(set_item)},
          {Py_sq_contains, slot(contains)},
          {Py_sq_length, slot(length)},
          {Py_nb_bool, slot(to_bool)},
          {Py_nb_int, slot(to_int)},
          {Py_nb_float, slot(to_float)},
          {Py_nb_index, slot(to_index)},
          {Py_nb_add, slot(binary<"add">)},
          {Py_nb_subtract, slot(binary<"sub">)},
          {Py_nb_multiply, slot(binary<"mul">)},
          {Py_nb_true_divide, slot(divide)},
          {Py_nb_floor_divide, slot(binary<"floor_divide">)},
          {Py_nb_remainder, slot(binary<"remainder">)},
          {Py_nb_power, slot(power)},
          {Py_nb_matrix_multiply, slot(binary<"matmul">)},
          {Py_nb_and, slot(binary<"bitwise_and">)},
          {Py_nb_or, slot(binary<"bitwise_or">)},
          {Py_nb_xor, slot(binary<"bitwise_xor">)},
          {Py_nb_lshift, slot(binary<"bitwise_left_shift">)},
          {Py_nb_rshift, slot(binary<"bitwise_right_shift">)},
          {Py_nb_negative, slot(unary<"neg">)},
          {Py_nb_positive, slot(positive)},
          {Py_nb_absolute, slot(unary<"abs">)},
          {Py_nb_invert, slot(invert)},
          {Py_nb_inplace_add, slot(in_place<"add_">)},
          {Py_nb_inplace_subtract, slot(in_place<"sub_">)},
          {Py_nb_inplace_multiply, slot(in_place<"mul_">)},
          {Py_nb_inplace_true_divide, slot(in_place<"div_">)},
          {Py_nb_inplace_floor_divide, slot(in_place<"floor_divide_">)},
          {Py_nb_inplace_remainder, slot(in_place<"remainder_">)},
          {Py_nb_inplace_power, slot(in_place_power)},
          {Py_nb_inplace_and, slot(in_place<"bitwise_and_">)},
          {Py_nb_inplace_or, slot(in_place<"bitwise_or_">)},
          {Py_nb_inplace_xor, slot(in_place<"bitwise_xor_">)},
          {Py_nb_inplace_lshift, slot(in_place<"bitwise_left_shift_">)},
          {Py_nb_inplace_rshift, slot(in_place<"bitwise_right_shift_">)}};
}

}  // namespace taeda::py
