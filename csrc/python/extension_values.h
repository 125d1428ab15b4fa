// Values of ops as extensions see them (taeda/abi.h), and back.
#pragma once

#include <deque>
#include <vector>

#include "ops/op.h"
#include "taeda/abi.h"

namespace taeda::py {

inline abi::Tensor* handle(const Tensor& t) { return reinterpret_cast<abi::Tensor*>(t.impl()); }
inline Tensor tensor(abi::Tensor* h) {
  return Tensor(Ref<TensorImpl>(reinterpret_cast<TensorImpl*>(h)));
}

// ValueError where there is no such thing.
DType dtype_from(int64_t d);
Device device_from(int64_t type, int64_t index = -1);

abi::Value number(const Scalar& s);
inline bool is_number(int32_t kind) { return kind >= abi::kTrue && kind <= abi::kComplex; }
Scalar scalar_from(const abi::Value& a);
TensorList list_from(const abi::Value& a);

// Values as the other side sees them, with the lists of handles that some point to.
class Shown {
 public:
  const abi::Value* show(std::span<const Value> values);
  abi::Value one(const Value& v);

 private:
  std::vector<abi::Value> shown_;
  std::deque<std::vector<abi::Tensor*>> lists_;
};

// What the other side gives for an argument of an op. False where its kind does not fit.
bool from_abi(const abi::Value& a, const Arg& arg, Value* v);
// Whether an extension's function may take an argument of this type as this kind of value.
bool suits(const Arg& arg, int32_t kind);

}  // namespace taeda::py
