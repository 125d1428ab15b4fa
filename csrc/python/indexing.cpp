// x[...] and x[...] = value. Numbers, slices, None and ... select a view; tensors, masks and lists
// then gather from it or scatter into it.
#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"
#include "ops/pointwise/copy.h"
#include "python/arguments.h"
#include "python/batching.h"
#include "python/interop.h"
#include "python/objects.h"
#include "python/overrides.h"
#include "python/tensor_slots.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }
bool is_sequence(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (!PyUnicode_Check(o) && !PyBytes_Check(o) && !PyDict_Check(o) && PySequence_Check(o));
}

[[noreturn]] void no_index(PyObject* o) {
  fail<IndexError>(
      "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
      "indices (got ",
      Py_TYPE(o)->tp_name, ")");
}

Tensor index_tensor(PyObject* o) {
  if (PyUnicode_Check(o) || PyBytes_Check(o))
    fail<TypeError>("new(): invalid data type '", type_name(o), "'");
  Tensor t = tensor_from_data(o);
  return t.numel() == 0 && !is_ndarray(o) ? to(t, DType::Int64) : t;
}

// The number of the tensor's dimensions that an index consumes.
int64_t dims_used(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    return is_mask(t) ? t.dim() : 1;
  }
  return 1;
}

// Whether a list is meant as a tuple, as in old code: [0, slice(1)] is, [0, 1] is not.
bool list_means_tuple(PyObject* o) {
  if (!PyList_Check(o) || PyList_GET_SIZE(o) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
    PyObject* item = PyList_GET_ITEM(o, i);
    if (is_tensor(item) || PyList_Check(item) || PyTuple_Check(item) || PySlice_Check(item) ||
        item == Py_Ellipsis || item == Py_None) {
      must(PyErr_WarnEx(
          PyExc_UserWarning,
          "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
          "x[tuple(seq)] instead of "
          "x[seq], or x[taeda.tensor(seq)] where the list stands for one tensor of indices.",
          1));
      return true;
    }
  }
  return false;
}

struct Selection {
  Tensor view;         // the view selected by indices that need no gathering
  TensorList indices;  // one per dimension of `view`, undefined where the whole dimension is taken
  bool gathers = false;
  Tensor only_mask;     // set instead of indices if a single mask is the only thing to gather
  int64_t mask_at = 0;  // its first dimension
  int gathered = 0;
};

// Converts a mask on the dimensions from `dim` on to one index per dimension.
void put_mask_indices(TensorList& indices, const Tensor& mask, int64_t dim) {
  indices.resize(static_cast<size_t>(dim));
  const Tensor found = op<"nonzero">(mask);
  for (int64_t k = 0; k < mask.dim(); ++k) indices.push_back(op<"select">(found, int64_t(1), k));
}

// The indices for the gather and scatter ops. vmap has rules for indices, not for masks.
TensorList indices_of(const Selection& s) {
  if (!s.only_mask.defined()) return s.indices;
  TensorList indices(static_cast<size_t>(s.mask_at));
  if (modes.always & kBatchLayer) put_mask_indices(indices, s.only_mask, s.mask_at);
  else indices.push_back(s.only_mask);
  return indices;
}

class Indexer {
 public:
  explicit Indexer(const Tensor& self) : self_(self) { s_.view = self; }

  Selection run(PyObject* index) {
    PyRef tuple;
    if (PyTuple_Check(index)) {
      tuple = PyRef::borrow(index);
    } else if (list_means_tuple(index)) {
      tuple = take(PyList_AsTuple(index));
    } else {
      tuple = take(PyTuple_Pack(1, index));
    }
    // Sequences become tensors first: masks among them decide how many dimensions are used.
    std::vector<PyRef> items;
    int64_t used = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
      items.push_back(prepared(PyTuple_GET_ITEM(tuple.get(), i)));
      used += dims_used(items.back().get());
    }
    if (self_.dim() == 0 && used > 0 && items.size() == 1) {
      check<IndexError>(!PySlice_Check(items[0].get()),
                        "slice() cannot be applied to a 0-dim tensor.");
      check<IndexError>(!PyIndex_Check(items[0].get()) || is_tensor(items[0].get()),
                        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                        "`tensor.item<T>()` in C++ to "
                        "convert a 0-dim tensor to a number");
    }
    check<IndexError>(used <= self_.dim(), "too many indices for tensor of dimension ",
                      self_.dim());
    int64_t left = self_.dim() - used;  // dimensions that the first ... stands for
    for (const PyRef& item : items) {
      if (item.get() == Py_Ellipsis) {
        dim_ += left;
        left = 0;
      } else {
        apply(item.get());
      }
      ++position_;
    }
    return std::move(s_);
  }

 private:
  static PyRef prepared(PyObject* o) {
    if (PyLong_CheckExact(o) || PySlice_Check(o) || o == Py_None || o == Py_Ellipsis ||
        is_tensor(o))
      return PyRef::borrow(o);
    if (is_ndarray(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
        (is_sequence(o) && !is_numpy_scalar(o))) {
      return PyRef(wrap(index_tensor(o)));
    }
    return PyRef::borrow(o);
  }

  void select(int64_t i) {
    const int64_t size = s_.view.sizes()[static_cast<size_t>(dim_)];
    check<IndexError>(i >= -size && i < size, "index ", i, " is out of bounds for dimension ",
                      position_, " with size ", size);
    s_.view = op<"select">(s_.view, dim_, i);
  }

  void apply(PyObject* o) {
    int64_t i;
    if (PyBool_Check(o)) {
      gather_bool(o == Py_True);
    } else if (PySlice_Check(o)) {
      slice(o);
    } else if (o == Py_None) {
      s_.view = op<"unsqueeze">(s_.view, dim_++);
    } else if (is_tensor(o)) {
      apply_tensor(tensor_of(o));
    } else if (!is_numpy_scalar(o) || PyIndex_Check(o)) {
      if (!as_int(o, &i)) no_index(o);
      select(i);
    } else {
      no_index(o);
    }
  }

  void slice(PyObject* o) {
    Py_ssize_t start, stop, step;
    must(PySlice_Unpack(o, &start, &stop, &step));
    check<ValueError>(step > 0, "step must be greater than zero");
    const int64_t size = s_.view.sizes()[static_cast<size_t>(dim_)];
    PySlice_AdjustIndices(size, &start, &stop, step);
    if (start == 0 && stop == size && step == 1 && !(s_.view.is(self_))) {
      ++dim_;  // the whole dimension
      return;
    }
    s_.view =
        op<"slice">(s_.view, dim_++, int64_t(start), int64_t(std::max(start, stop)), int64_t(step));
  }

  void apply_tensor(const Tensor& t) {
    if (t.dim() == 0 && is_integral(t.dtype()) && (is_mask(t) || !is_batched(t))) {
      if (is_mask(t)) gather_bool(t.item().to<bool>());
      else select(t.item().to_int());
      return;
    }
    check<IndexError>(is_mask(t) || t.dtype() == DType::Int64 || t.dtype() == DType::Int32,
                      "tensors used as indices must be long, int, byte or bool tensors");
    if (is_mask(t)) {
      gather_mask(t);
    } else {
      record(t.dtype() == DType::Int64 ? t : to(t, DType::Int64));
    }
  }

  // True and False add a dimension of size 1 or 0.
  void gather_bool(bool on) {
    s_.view = op<"unsqueeze">(s_.view, dim_);
    Tensor index = empty(Dims{on ? 1 : 0}, {DType::Int64, {}});
    if (on) *index.data_as<int64_t>() = 0;
    record(index);
  }

  void gather_mask(const Tensor& mask) {
    if (mask.dtype() == DType::UInt8) {
      must(PyErr_WarnEx(PyExc_UserWarning,
                        "indexing with dtype taeda.uint8 is now deprecated, please use a dtype "
                        "taeda.bool instead.",
                        1));
    }
    DimsRef sizes = s_.view.sizes();
    for (int64_t k = 0; k < mask.dim(); ++k) {
      check<IndexError>(dim_ + k < s_.view.dim() && mask.sizes()[static_cast<size_t>(k)] ==
                                                        sizes[static_cast<size_t>(dim_ + k)],
                        "The shape of the mask ", to_string(mask.sizes()), " at index ", k,
                        " does not match the shape of the indexed tensor ", to_string(sizes),
                        " at index ", dim_ + k);
    }
    if (s_.gathered == 0) {
      s_.only_mask = mask.dtype() == DType::Bool ? mask : to(mask, DType::Bool);
      s_.mask_at = dim_;
    } else {
      convert_only_mask();
      put_mask_indices(s_.indices, mask, dim_);
    }
    dim_ += mask.dim();
    ++s_.gathered;
    s_.gathers = true;
  }
  // A mask that turns out not to be the only index is converted to indices.
  void convert_only_mask() {
    if (s_.only_mask.defined()) put_mask_indices(s_.indices, s_.only_mask, s_.mask_at);
    s_.only_mask = Tensor();
  }

  void record(Tensor index) {
    convert_only_mask();
    s_.indices.resize(static_cast<size_t>(dim_) + 1);
    s_.indices.back() = std::move(index);
    s_.gathers = true;
    ++dim_;
    s_.gathered += 2;  // not a mask
  }

  const Tensor& self_;
  Selection s_;
  int64_t dim_ = 0;
  int64_t position_ = 0;  // in the subscript, for messages
};

// Fast path: one int into a tensor without layers, the most frequent case by far.
Tensor select_fast(const Tensor& self, PyObject* index) {
  int64_t i;
  if (!PyLong_CheckExact(index) || self.dim() == 0 || !as_int(index, &i)) return {};
  const int64_t size = self.sizes()[0];
  check<IndexError>(i >= -size && i < size, "index ", i,
                    " is out of bounds for dimension 0 with size ", size);
  return op<"select">(self, int64_t(0), i);
}

bool override_call(const char* method, std::initializer_list<PyObject*> args, PyObject** result) {
  bool any = function_modes_entered > 0;
  for (PyObject* o : args)
    any |= !is_exact_tensor(o) && is_tensor(o) && (tensor_of(o).flags() & kOverride);
  if (!any || (overrides_disabled() && !function_modes_entered)) return false;
  PyRef function = take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), method));
  *result = call_override(function.get(), args.begin(), args.size(), nullptr);
  return *result != nullptr;
}

// The value of an assignment as a tensor; numbers get the target's device and dtype.
Tensor value_tensor(PyObject* value, const Tensor& self) {
  if (is_tensor(value)) return tensor_of(value);
  Scalar s;
  if (PyLong_Check(value)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    check<ValueError>(!overflow, "can't assign an integer of more than 64 bits to a taeda.",
                      info(self.dtype()).scalar, "Tensor");
  }
  if (!as_scalar(value, &s)) {
    fail<TypeError>("can't assign a ", Py_TYPE(value)->tp_name, " to a taeda.",
                    info(self.dtype()).scalar, "Tensor");
  }
  // Values too large for half precision become infinity, as in tensor().
  if (!is_half(self.dtype()) || s.is_complex()) check_fits(s, self.dtype());
  return zero_dim(s, self.dtype());
}

// Drops leading dimensions of size 1 that the target lacks.
Tensor drop_leading_ones(const Tensor& value, int64_t dims) {
  Dims sizes(value.sizes());
  size_t drop = 0;
  while (static_cast<int64_t>(sizes.size() - drop) > dims && sizes[drop] == 1) ++drop;
  if (!drop) return value;
  return reshape(value, DimsRef(sizes).subspan(drop));
}

void write(const Selection& s, const Tensor& value) {
  if (!s.gathers) {
    if (value.dim() == 0 && !is_complex(value.dtype()) && !requires_grad(value)) {
      op<"fill_">(s.view, value);
    } else {
      op<"copy_">(s.view, drop_leading_ones(value, s.view.dim()));
    }
    return;
  }
  if (s.only_mask.defined() && value.dim() == 0) {
    // The mask lies on some of the dimensions; masked_fill_ broadcasts it from the last ones.
    Dims sizes(s.only_mask.sizes());
    while (s.mask_at + static_cast<int64_t>(sizes.size()) < s.view.dim()) sizes.push_back(1);
    const Tensor mask = s.view.is_off_host() ? raw_to(s.view.device(), s.only_mask) : s.only_mask;
    op<"masked_fill_">(s.view, reshape(mask, sizes), value);
    return;
  }
  op<"index_put_">(s.view, indices_of(s), drop_leading_ones(value, 0), false);
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    PyObject* overridden;
    if (((t.flags() & kOverride) || function_modes_entered) &&
        override_call("__getitem__", {self, index}, &overridden))
      return overridden;
    if (Tensor row = select_fast(t, index); row.defined()) return wrap(std::move(row));
    Selection s = Indexer(t).run(index);
    if (s.gathers) return wrap(op<"index">(s.view, indices_of(s)));
    return wrap(s.view.is(t) ? op<"alias">(t) : s.view);
  });
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  return guarded(
      [&] {
        if (!value) fail<TypeError>("Tensor does not support deleting items");
        const Tensor& t = tensor_of(self);
        PyObject* overridden;
        if (override_call("__setitem__", {self, index, value}, &overridden)) {
          Py_DECREF(overridden);
          return 0;
        }
        Tensor source = value_tensor(value, t);
        Selection s;
        if (s.view = select_fast(t, index); !s.view.defined()) s = Indexer(t).run(index);
        write(s, source);
        return 0;
      },
      -1);
}

}  // namespace taeda::py
