#include "ops/core/tensor_ops.h"

#include <algorithm>

namespace taeda {

Tensor operator+(const Tensor& a, const Tensor& b) { return op<"add">(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return op<"sub">(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return op<"mul">(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return op<"div">(a, b); }
Tensor operator-(const Tensor& a) { return op<"neg">(a); }
Tensor operator*(const Tensor& a, double b) { return op<"mul">(a, Tensor(b)); }
Tensor operator*(double a, const Tensor& b) { return op<"mul">(b, Tensor(a)); }
Tensor operator+(const Tensor& a, double b) { return op<"add">(a, Tensor(b)); }
Tensor operator-(double a, const Tensor& b) { return op<"sub">(Tensor(a), b); }
Tensor operator/(const Tensor& a, double b) { return op<"div">(a, Tensor(b)); }
Tensor operator<(const Tensor& a, const Tensor& b) { return op<"lt">(a, b); }
Tensor operator<=(const Tensor& a, const Tensor& b) { return op<"le">(a, b); }
Tensor operator>(const Tensor& a, const Tensor& b) { return op<"gt">(a, b); }
Tensor operator>=(const Tensor& a, const Tensor& b) { return op<"ge">(a, b); }
Tensor operator==(const Tensor& a, const Tensor& b) { return op<"eq">(a, b); }
Tensor operator!=(const Tensor& a, const Tensor& b) { return op<"ne">(a, b); }
Tensor operator&(const Tensor& a, const Tensor& b) { return op<"bitwise_and">(a, b); }
Tensor operator|(const Tensor& a, const Tensor& b) { return op<"bitwise_or">(a, b); }
Tensor operator!(const Tensor& a) { return op<"logical_not">(a); }

Tensor sum(const Tensor& x, DimsRef dims, bool keepdim) {
  return op<"sum">(x, Dims(dims), keepdim);
}

Tensor sum_to(const Tensor& x, DimsRef sizes) {
  if (same(x.sizes(), sizes)) return x;
  const size_t lead = x.sizes().size() - sizes.size();
  Dims leading, kept;
  for (size_t i = 0; i < x.sizes().size(); ++i) {
    if (i < lead) leading.push_back(static_cast<int64_t>(i));
    else if (sizes[i - lead] == 1 && x.sizes()[i] != 1)
      kept.push_back(static_cast<int64_t>(i - lead));
  }
  const bool raw = is_unwatched({&x});
  auto added = [raw](const Tensor& t, DimsRef dims, bool keepdim) {
    return raw ? raw_sum(t, dims, keepdim) : sum(t, dims, keepdim);
  };
  Tensor r = x;
  if (!leading.empty()) r = added(r, leading, false);
  if (!kept.empty()) r = added(r, kept, true);
  return r;
}

Tensor expand(const Tensor& x, DimsRef sizes) { return op<"expand">(x, sizes); }
Tensor reshape(const Tensor& x, DimsRef sizes) { return op<"reshape">(x, sizes); }
Tensor unsqueeze(const Tensor& x, int64_t dim) { return op<"unsqueeze">(x, dim); }
Tensor squeeze(const Tensor& x, int64_t dim) { return op<"squeeze">(x, dim); }
Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return op<"transpose">(x, a, b); }
Tensor permute(const Tensor& x, DimsRef dims) { return op<"permute">(x, dims); }
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return op<"narrow">(x, dim, start, length);
}
Tensor matmul(const Tensor& a, const Tensor& b) { return op<"matmul">(a, b); }
Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : op<"contiguous">(x); }
Tensor to(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : op<"_to_copy">(x, dtype);
}
Tensor conj(const Tensor& x) { return is_complex(x.dtype()) ? op<"conj_physical">(x) : x; }
Tensor where(const Tensor& cond, const Tensor& a, const Tensor& b) {
  return op<"where">(cond, a, b);
}
Tensor zeros(DimsRef sizes, Options o) { return op<"zeros">(sizes, o.dtype, o.device); }
Tensor zeros_like(const Tensor& x) { return op<"zeros_like">(x); }
Tensor ones_like(const Tensor& x) { return op<"ones_like">(x); }
Tensor full(DimsRef sizes, Scalar v, Options o) { return op<"full">(sizes, v, o.dtype, o.device); }
Tensor clone(const Tensor& x) { return op<"clone">(x); }

bool is_unwatched(std::initializer_list<const Tensor*> tensors) {
  if (GradMode::enabled() || modes.always) return false;
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor* t) {
    return !(t->flags() & (kOverride | kOffHost | kDispatch));
  });
}

}  // namespace taeda
