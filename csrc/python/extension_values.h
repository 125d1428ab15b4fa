// Conversion of op values to and from the extension ABI (taeda/abi.h).
#pragma once

#include <deque>
#include <vector>

#include "ops/core/op.h"
#include "taeda/abi.h"

namespace taeda::py {

inline abi::Tensor* handle(const Tensor& t) { return reinterpret_cast<abi::Tensor*>(t.impl()); }
inline Tensor tensor(abi::Tensor* h) {
  return Tensor(Ref<TensorImpl>(reinterpret_cast<TensorImpl*>(h)));
}

// ValueError for an unknown value.
DType dtype_from(int64_t d);
Device device_from(int64_t type, int64_t index = -1);

abi::Value number(const Scalar& s);
inline bool is_number(int32_t kind) { return kind >= abi::kTrue && kind <= abi::kComplex; }
Scalar scalar_from(const abi::Value& a);
TensorList list_from(const abi::Value& a);

// Values in ABI form, with the handle lists that some point to.
class AbiValues {
 public:
  const abi::Value* show(std::span<const Value> values);
  abi::Value one(const Value& v);

 private:
  std::vector<abi::Value> shown_;
  std::deque<std::vector<abi::Tensor*>> lists_;
};

// Converts an extension's value for an argument of an op. False if its kind does not match.
bool from_abi(const abi::Value& a, const Arg& arg, Value* v);
// Whether an argument of this type can be passed to an extension as this kind of value.
bool suits(const Arg& arg, int32_t kind);

}  // namespace taeda::py
