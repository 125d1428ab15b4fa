// From Python's arguments to an op's Values: one compiled signature per overload.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ops/op.h"
#include "python/errors.h"

namespace taeda::py {

struct Param {
  const Arg* arg;
  PyObject* name;                      // interned, as Python callers write it
  std::array<PyObject*, 3> aliases{};  // NumPy's names for it
  ArgKind kind;
  bool optional;
  bool takes_number;       // a Tensor argument that may be a Python number
  std::string shown_name;  // in messages
};

// What a factory takes beside its schema (zeros(2, requires_grad=True)).
struct Extras {
  bool requires_grad = false;
};

// The arguments as vectorcall gives them. For a method, args[0] is self.
struct PyArgs {
  PyObject* const* args;
  size_t count;
  PyObject* kwnames;  // nullptr where there are none
  bool method;

  size_t keywords() const { return kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0; }
};

class Signature {
 public:
  explicit Signature(const Op& op);

  // Fills `values`, `out` and `extras`. False where the arguments do not fit; with `explain` it
  // throws TypeError instead. Exceptions that a conversion raises by itself (an unknown device, an
  // overflow) pass through.
  bool parse(const PyArgs& call, Values& values, PyObject** out, Extras* extras,
             bool explain) const;

  // Whether the number of arguments and the keywords could fit, whatever their types.
  bool plausible(const PyArgs& call) const;
  std::string text(bool method) const;  // "(Tensor input, int dim, *, taeda.dtype dtype = None)"

  const Op& op() const { return op_; }
  bool is_factory() const { return factory_; }
  size_t size() const { return params_.size(); }
  const std::vector<Param>& params() const { return params_; }

 private:
  bool parse_any(const PyArgs& call, Values& values, PyObject** out, Extras* extras,
                 bool explain) const;
  bool only_numbers(Values& values) const;
  bool parse_slow(const PyArgs& call, Values& values, PyObject** out, Extras* extras,
                  bool explain) const;
  int find_keyword(PyObject* name, bool method) const;
  bool varargs(const PyArgs& call) const;
  bool convert_varargs(const PyArgs& call, Values& values, bool explain) const;
  bool fill_missing(const PyArgs& call, Values& values, uint64_t given, bool explain) const;
  bool take_extra(PyObject* name, PyObject* value, Extras* extras, bool explain, bool* fits) const;
  [[noreturn]] void wrong_type(const Param& p, size_t position, PyObject* got) const;

  const Op& op_;
  std::vector<Param> params_;
  size_t positional_ = 0;           // parameters that may be given by position
  bool takes_spread_ints_ = false;  // a method's only argument: x.view(2, 3)
  bool factory_ = false;       // makes a tensor from no tensor, or like one: takes requires_grad
  bool from_nothing_ = false;  // takes the default device
  bool needs_tensor_ = false;  // numbers stand for tensors, but not for all of them
};

// One argument. False where its type does not fit.
bool convert(PyObject* o, const Param& p, Value& v);

// A Python number, NumPy scalar or (if `tensors`) zero-dim tensor as a Scalar.
bool as_scalar(PyObject* o, Scalar* s, bool tensors = true);
// An int, or what stands for one: NumPy integers, zero-dim integer tensors. Not bool.
bool as_int(PyObject* o, int64_t* i);
// An iterable of ints; `got` is the first item that is none.
bool as_dims(PyObject* o, Dims* d, PyObject** got = nullptr);
bool as_dims(PyObject* const* items, size_t n, Dims* d, PyObject** got = nullptr);
bool is_numpy_scalar(PyObject* o);

// "(Tensor, dim=float)": the types of what was given.
std::string describe(const PyArgs& call);

}  // namespace taeda::py
