// From Python's arguments to an op's Values: one compiled signature per overload.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ops/core/op.h"
#include "python/errors.h"

namespace taeda::py {

struct Param {
  const Arg* arg;
  PyObject* name;                      // interned; the name in Python
  std::array<PyObject*, 3> aliases{};  // NumPy's names for it
  ArgKind kind;
  bool optional;
  bool none_is_default;    // a list that is empty by default: avg_pool2d(x, 2, stride=None)
  bool takes_number;       // a Tensor argument that may be a Python number
  std::string shown_name;  // in messages
};

// Keyword arguments of factories that are not in the schema (zeros(2, requires_grad=True)).
struct Extras {
  bool requires_grad = false;
  bool pin_memory = false;
  PyObject* layout = nullptr;  // borrowed, of one that is not strided
};

// Arguments in vectorcall form. For a method, args[0] is self.
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

  // Fills `values`, `out` and `extras`. Returns false if the arguments do not match; with
  // `explain`, throws TypeError instead. Exceptions raised by a conversion (an unknown device, an
  // overflow) propagate.
  bool parse(const PyArgs& call, Values& values, PyObject** out, Extras* extras,
             bool explain) const;

  // Whether the number of arguments and the keywords match, ignoring types.
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
  bool factory_ = false;  // creates a tensor, from nothing or like another: takes requires_grad
  bool from_nothing_ = false;  // uses the default device
  bool needs_tensor_ = false;  // numbers may replace tensors, but not all of them
};

// Converts one argument. False if its type does not match.
bool convert(PyObject* o, const Param& p, Value& v);

// A Python number, NumPy scalar or (if `tensors`) zero-dim tensor as a Scalar.
bool as_scalar(PyObject* o, Scalar* s, bool tensors = true);
// Converts an int, NumPy integer or zero-dim integer tensor. Not bool.
bool as_int(PyObject* o, int64_t* i);
// Converts an iterable of ints; `got` is the first item that is not an int.
bool as_dims(PyObject* o, Dims* d, PyObject** got = nullptr);
bool as_dims(PyObject* const* items, size_t n, Dims* d, PyObject** got = nullptr);
bool is_numpy_scalar(PyObject* o);

// "(Tensor, dim=float)": the argument types, for messages.
std::string describe(const PyArgs& call);

}  // namespace taeda::py
