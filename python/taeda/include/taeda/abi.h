// The binary interface (ABI) between taeda and compiled extensions: plain structs and a table of
// functions, found through a capsule. Nothing here depends on the compiler, on the C++ library or
// on the layout of taeda's classes, so an extension keeps working with later versions of taeda:
// members are only ever appended to Table, and Table::size tells how many there are. Extensions
// include taeda.h, a C++ wrapper.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct _object;  // PyObject

namespace taeda::abi {

inline constexpr uint32_t kVersion = 1;
inline constexpr const char* kCapsule = "taeda._C._extension_api";

struct Tensor;     // the target of a handle
struct Backward;   // a derivative that is being computed
struct Overloads;  // the ops of one name

enum DType : int32_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128
};
enum DeviceType : int32_t { kCPU, kCUDA, kMeta };

struct TensorInfo {
  void* data;  // of the first element; null if there is no memory
  const int64_t* sizes;
  const int64_t* strides;
  int64_t dim, numel;
  int32_t dtype, device_type, device_index;
  int32_t contiguous, requires_grad;
};

enum Kind : int32_t {
  kNone,
  kTensor,   // tensor
  kTensors,  // tensors, count; an item may be null
  kTrue,     // integer is 0 or 1
  kInt,      // integer
  kFloat,    // number[0]
  kComplex,  // number
  kInts,     // integers, count
  kFloats,   // floats, count
  kText,     // text, count
  kDType,    // integer
  kDevice,   // integer: the type; count: the index or -1
  kNumber    // any of the four above; only in a function's declared kinds
};

// One argument or result. Its pointers are owned by the caller and valid during the call.
struct Value {
  int32_t kind;
  int64_t count;
  union {
    Tensor* tensor;
    Tensor* const* tensors;
    int64_t integer;
    double number[2];
    const int64_t* integers;
    const double* floats;
    const char* text;
  };
};

// A function returns its results by calling this.
using Give = void (*)(void* receiver, const Value* value);

// Functions that return int return 0, or an Error after which last_error() has its text.
enum Error : int32_t {
  kOk,
  kRuntimeError,
  kTypeError,
  kValueError,
  kIndexError,
  kNotImplementedError,
  kMemoryError,
  kPythonError  // a Python exception, kept until raise() or the next one
};

// An op defined by an extension.
struct Definition {
  const char* schema;  // "namespace::name(self: Tensor, decay: float = 0.9) -> Tensor"
  const char* doc;
  int (*run)(void (*function)(), const Value* args, void* receiver, Give give);
  void (*function)();
  int (*backward)(void (*function)(Backward*), Backward* b);
  void (*backward_function)(Backward*);  // null: no derivative
  const int32_t* kinds;                  // the function's parameters, one Kind for each argument
  int64_t arguments;
  uint32_t saves;     // bit i: argument i, bit 16 + i: result i
  int32_t composite;  // composed of ops that have derivatives themselves
};

struct Table {
  uint32_t version, size;

  void (*retain)(Tensor* t);
  void (*release)(Tensor* t);
  void (*describe)(const Tensor* t, TensorInfo* info);
  int (*item)(const Tensor* t, Value* number);  // of a tensor with one element
  int (*empty)(const int64_t* sizes, int64_t dim, int32_t dtype, int32_t device_type, Tensor** t);
  // Wraps external memory; free(context) is called when the last tensor on it is destroyed.
  int (*from_blob)(void* data, const int64_t* sizes, int64_t dim, int32_t dtype,
                   void (*free)(void*), void* context, Tensor** t);

  const Overloads* (*find)(const char* name);  // null if there is no such op
  int (*call)(const Overloads* ops, const Value* args, int64_t count, void* receiver, Give give);
  int (*define)(const Definition* d, _object** function);  // a new reference

  Tensor* (*grad)(Backward* b, int32_t i);  // borrowed; null if no gradient arrived
  int (*arg)(Backward* b, int32_t i, void* receiver, Give give);
  int (*out)(Backward* b, int32_t i, void* receiver, Give give);
  int (*needs)(Backward* b, int32_t i);  // 0 or 1
  int (*set)(Backward* b, int32_t i, Tensor* gradient);
  int (*set_item)(Backward* b, int32_t i, int64_t item, Tensor* gradient);

  // Runs body over chunks of [0, n) on taeda's threads; it returns 0, or 1 to stop.
  int (*parallel_for)(int64_t n, int64_t grain, int (*body)(void*, int64_t, int64_t),
                      void* context);
  int (*set_grad_enabled)(int on);  // returns the previous value

  Tensor* (*from_python)(_object* o);  // borrowed; null if it is not a tensor
  _object* (*to_python)(Tensor* t);    // a new reference; null with an exception set

  const char* (*last_error)(void);
  void (*set_error)(int32_t error, const char* text);
  void (*raise)(int32_t error, const char* text);  // sets the Python exception; needs the GIL
};

}  // namespace taeda::abi
