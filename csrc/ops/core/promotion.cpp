#include "ops/core/promotion.h"

#include "ops/core/op.h"

namespace taeda {
namespace {

int kind(DType d) { return is_complex(d) ? 3 : is_floating(d) ? 2 : d == DType::Bool ? 0 : 1; }

bool op_can_cast(DType from, DType to) { return can_cast(from, to); }
DType op_promote_types(DType a, DType b) { return promote(a, b); }
DType of_number(const Tensor& a, Scalar b) { return result_type(a, Tensor(b)); }
DType number_and(Scalar a, const Tensor& b) { return result_type(Tensor(a), b); }
DType of_numbers(Scalar a, Scalar b) { return result_type(Tensor(a), Tensor(b)); }
DType op_result_type(const Tensor& a, const Tensor& b) { return result_type(a, b); }

const Define kPromotionOps[] = {
    {"can_cast(from_: dtype, to: dtype) -> bool",
     "Whether PyTorch's rules of promotion let a result of dtype `from_` be written to a tensor of "
     "dtype `to`.",
     kernel(op_can_cast),
     {.forms = kFunction, .vmap = vmap::as_it_is}},
    {"promote_types(type1: dtype, type2: dtype) -> dtype",
     "The smallest dtype that holds the values of both.",
     kernel(op_promote_types),
     {.forms = kFunction}},
    {"result_type(tensor1: Tensor, tensor2: Tensor) -> dtype",
     "The dtype that arithmetic on the two operands (tensors or numbers) gives.",
     kernel(op_result_type),
     {.forms = kFunction, .vmap = vmap::as_it_is, .numbers = Numbers::Anywhere}},
    {"result_type(tensor: Tensor, scalar: Scalar) -> dtype",
     "",
     kernel(of_number),
     {.forms = kFunction, .vmap = vmap::as_it_is, .numbers = Numbers::Anywhere}},
    {"result_type(scalar: Scalar, tensor: Tensor) -> dtype",
     "",
     kernel(number_and),
     {.forms = kFunction, .vmap = vmap::as_it_is, .numbers = Numbers::Anywhere}},
    {"result_type(scalar1: Scalar, scalar2: Scalar) -> dtype",
     "",
     kernel(of_numbers),
     {.forms = kFunction, .vmap = vmap::as_it_is, .numbers = Numbers::Anywhere}},
};

}  // namespace

Promotion::Category Promotion::combine(Category high, Category low) {
  if (!high.any) return low;
  if (!low.any || kind(high.dtype) >= kind(low.dtype)) return high;
  // A complex number beside a floating tensor keeps the tensor's precision.
  if (kind(low.dtype) == 3 && kind(high.dtype) == 2) return {true, to_complex(high.dtype)};
  return {true, promote(high.dtype, low.dtype)};
}

DType result_type(const Tensor& a, const Tensor& b) {
  Promotion p;
  p.add(a);
  p.add(b);
  return p.result();
}

}  // namespace taeda
