// Type promotion: which dtype a result has when operands differ.
//
// Three categories count, in this order: tensors with dimensions, zero-dimensional tensors, Python
// numbers. A lower category matters only if its kind (bool < integer < floating < complex) is above
// that of the higher categories.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

class Promotion {
 public:
  void add(const Tensor& t) {
    const DType d = t.dtype();
    if (t.is_wrapped_number())
      number_.join(is_complex(d)    ? to_complex(default_dtype())
                   : is_floating(d) ? default_dtype()
                                    : d);
    else if (t.dim() == 0) zero_dim_.join(d);
    else tensor_.join(d);
  }
  void add(Scalar s) { number_.join(s.dtype()); }
  DType result() const { return combine(combine(tensor_, zero_dim_), number_).dtype; }

 private:
  struct Category {
    bool any = false;
    DType dtype = DType::Bool;
    void join(DType d) {
      dtype = any ? promote(dtype, d) : d;
      any = true;
    }
  };
  static Category combine(Category high, Category low);
  Category tensor_, zero_dim_, number_;
};

DType result_type(const Tensor& a, const Tensor& b);

}  // namespace taeda
