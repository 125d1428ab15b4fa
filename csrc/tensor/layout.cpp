// Sizes and strides: broadcasting, viewing, wrapping of negative dimensions. Touches no data.
#include "base/checked.h"
#include "tensor/tensor.h"

namespace taeda {

Dims contiguous_strides(DimsRef sizes) {
  Dims s(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    s[i] = step;
    step = checked_mul(step, std::max<int64_t>(sizes[i], 1));
  }
  return s;
}

Dims channels_last_strides(DimsRef sizes) {
  // (N, C, *spatial) stored as (N, *spatial, C)
  Dims s(sizes.size());
  int64_t step = 1;
  s[1] = step;
  step *= std::max<int64_t>(sizes[1], 1);
  for (size_t i = sizes.size(); i-- > 2;) {
    s[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  s[0] = step;
  return s;
}

int64_t numel_of(DimsRef sizes) {
  check(sizes.size() <= kMostDims, "a tensor has at most ", kMostDims, " dimensions, got ",
        sizes.size());
  int64_t n = 1;  // dimensions of size 0 count as 1: strides are products of the others
  bool overflow = false, zero = false;
  for (int64_t v : sizes) {
    check(v >= 0, "Trying to create tensor with negative dimension ", v, ": ", to_string(sizes));
    zero |= v == 0;
    overflow |= __builtin_mul_overflow(n, std::max<int64_t>(v, 1), &n);
  }
  check(!overflow, "numel: integer multiplication overflow for sizes ", to_string(sizes));
  return zero ? 0 : n;
}

bool is_dense_nonoverlapping(DimsRef sizes, DimsRef strides) {
  Dims order;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) order.push_back(static_cast<int64_t>(i));
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] < strides[static_cast<size_t>(b)];
  });
  int64_t expected = 1;
  for (int64_t i : order) {
    if (strides[static_cast<size_t>(i)] != expected) return false;
    expected *= sizes[static_cast<size_t>(i)];
  }
  return true;
}

Dims broadcast_sizes(DimsRef a, DimsRef b) {
  size_t n = std::max(a.size(), b.size());
  Dims out(n);
  for (size_t k = 0; k < n; ++k) {
    size_t i = n - 1 - k;
    int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1, y = k < b.size() ? b[b.size() - 1 - k] : 1;
    check(x == y || x == 1 || y == 1, "The size of tensor a (", x,
          ") must match the size of tensor b (", y, ") at non-singleton dimension ", i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

Dims broadcast_strides(const Tensor& t, DimsRef to) {
  Dims s(to.size());
  size_t lead = to.size() - t.sizes().size();
  for (size_t i = 0; i < t.sizes().size(); ++i) {
    s[lead + i] = t.sizes()[i] == 1 && to[lead + i] != 1 ? 0 : t.strides()[i];
  }
  return s;
}

int64_t wrap_dim(int64_t dim, int64_t ndim, const char* what) {
  int64_t n = std::max<int64_t>(ndim, 1);
  if (dim < -n || dim >= n) [[unlikely]] {
    fail<IndexError>(what ? what : "", what ? "(): " : "",
                     "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
                     "], but got ", dim, ")");
  }
  return dim < 0 ? dim + n : dim;
}

bool view_strides(DimsRef old_sizes, DimsRef old_strides, DimsRef sizes, Dims* strides) {
  *strides = Dims(sizes.size());
  if (numel_of(old_sizes) == 0) {
    *strides = same(old_sizes, sizes) ? Dims(old_strides) : contiguous_strides(sizes);
    return true;
  }
  // Walk both shapes from the right; each group of old dimensions that is contiguous within itself
  // can be split into new ones.
  auto view_d = static_cast<int64_t>(sizes.size()) - 1;
  int64_t run_stride = old_strides.empty() ? 1 : old_strides.back(), run = 1, taken = 1;
  for (auto d = static_cast<int64_t>(old_sizes.size()) - 1; d >= 0; --d) {
    auto i = static_cast<size_t>(d);
    run *= old_sizes[i];
    bool ends = d == 0 || (old_sizes[i - 1] != 1 && old_strides[i - 1] != run * run_stride);
    if (!ends) continue;
    while (view_d >= 0 && (taken < run || sizes[static_cast<size_t>(view_d)] == 1)) {
      auto v = static_cast<size_t>(view_d--);
      (*strides)[v] = taken * run_stride;
      taken *= sizes[v];
    }
    if (taken != run) return false;
    if (d > 0) {
      run_stride = old_strides[i - 1];
      run = taken = 1;
    }
  }
  for (; view_d >= 0; --view_d) {
    if (sizes[static_cast<size_t>(view_d)] != 1) return false;
    (*strides)[static_cast<size_t>(view_d)] = 1;
  }
  return true;
}

Dims infer_size(DimsRef sizes, int64_t numel) {
  Dims out(sizes);
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1) {
      check(hole < 0, "only one dimension can be inferred, got shape ", to_string(sizes));
      hole = static_cast<int64_t>(i);
    } else {
      check(out[i] >= 0, "invalid shape dimension ", out[i], " in shape ", to_string(sizes));
      check(!__builtin_mul_overflow(known, out[i], &known), "shape '", to_string(sizes),
            "' is too large");
    }
  }
  bool fits = hole < 0 ? known == numel : known > 0 && numel % known == 0;
  check(hole < 0 || known != 0 || numel != 0, "cannot reshape tensor of 0 elements into shape ",
        to_string(sizes),
        " because the unspecified dimension size -1 can be any value and is ambiguous");
  check(fits, "shape '", to_string(sizes), "' is invalid for input of size ", numel);
  if (hole >= 0) out[static_cast<size_t>(hole)] = numel / known;
  return out;
}

}  // namespace taeda
