// Padding: constant, and by the tensor's own elements (reflect, replicate, circular).
#include "kernels/pad.h"

#include "base/checked.h"
#include "ops/core/factory.h"
#include "ops/index/util.h"

namespace taeda {
namespace {

// `pad` lists (before, after) from the last dimension backwards; negative amounts cut.
struct Amount {
  int64_t dim, before, after;
};
std::vector<Amount> amounts(const Tensor& x, const Dims& pad) {
  check(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  check(static_cast<int64_t>(pad.size()) <= 2 * x.dim(),
        "Length of pad should be no more than twice the number of "
        "dimensions of the input. Pad length is ",
        pad.size(), " while the input has ", x.dim(), " dimensions.");
  for (int64_t v : pad)
    check(v > INT64_MIN, "pad(): an amount of ", v, " cuts more than any tensor has");
  std::vector<Amount> all;
  for (size_t i = 0; i < pad.size(); i += 2)
    all.push_back({x.dim() - 1 - static_cast<int64_t>(i / 2), pad[i], pad[i + 1]});
  return all;
}

Tensor constant_pad(const Tensor& self, const Dims& pad, Scalar value) {
  Dims sizes(self.sizes());
  Tensor from = self;
  for (auto [dim, before, after] : amounts(self, pad)) {
    auto d = static_cast<size_t>(dim);
    sizes[d] = checked_add(sizes[d], checked_add(before, after));
    check(sizes[d] >= 0, "The input size ", self.size(dim), ", plus negative padding ", before,
          " and ", after, " resulted in a negative output size, which is invalid. Check dimension ",
          dim, " of your input.");
    int64_t start = std::max<int64_t>(-before, 0),
            stop = self.size(dim) - std::max<int64_t>(-after, 0);
    from = narrow(from, dim, std::min(start, self.size(dim)), std::max<int64_t>(stop - start, 0));
  }
  Tensor out = full(sizes, value, self.options());
  if (out.is_meta()) return out;
  Tensor inside = out;
  for (auto [dim, before, after] : amounts(self, pad)) {
    inside = narrow(inside, dim, std::min(std::max<int64_t>(before, 0), inside.size(dim)),
                    from.size(dim));
  }
  copy_into(inside, from);
  return out;
}

void constant_pad_backward(Backward& b) {
  Dims back = b.arg<Dims>(1);
  for (int64_t& v : back) v = -v;
  b.set(0, op<"constant_pad_nd">(b.grad(), back, Scalar(0)));
}

enum class Mode { Reflect, Replicate, Circular };

int64_t source(Mode mode, int64_t i, int64_t n) {
  switch (mode) {
    case Mode::Reflect: return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    default: return std::clamp<int64_t>(i, 0, n - 1);
  }
}

// With negative amounts, circular padding repeats the remaining part of the dimension.
int64_t wrapped(int64_t i, int64_t before, int64_t after, int64_t n) {
  int64_t first = std::max<int64_t>(-before, 0), kept = n - first - std::max<int64_t>(-after, 0);
  int64_t j = (i - std::max<int64_t>(before, 0)) % kept;
  return first + (j < 0 ? j + kept : j);
}

// Pairs the last dimensions of `source` with vectors of indices into them; `result` receives the
// output sizes.
IndexedBlock indexed_block(DimsRef source, const TensorList& indices, TensorList& owned,
                           Dims& result) {
  const size_t most = std::min<size_t>(source.size(), 64);
  check(!indices.empty() && indices.size() <= most, "_take_indices(): expected 1 to ", most,
        " vectors of indices, got ", indices.size());
  IndexedBlock l;
  const size_t first = source.size() - indices.size();
  result = Dims(source);
  for (size_t i = 0; i < indices.size(); ++i) {
    check(indices[i].defined() && indices[i].dim() == 1 && indices[i].dtype() == DType::Int64,
          "_take_indices(): expected vectors of int64 as indices");
    result[first + i] = indices[i].numel();
    l.source[i] = source[first + i];
    l.result[i] = indices[i].numel();
    if (indices[i].is_meta()) continue;
    const int64_t size = source[first + i];
    owned.push_back(inside(raw_contiguous(indices[i]), 0, size, [&](int64_t bad) {
      fail<IndexError>("_take_indices(): index ", bad, " is outside of a dimension of size ", size);
    }));
    l.indices[i] = owned.back().data_as<int64_t>();
    ++l.dims;
  }
  for (size_t d = 0; d < first; ++d) l.planes *= source[d];
  return l;
}

Tensor take_indices(const Tensor& self, const TensorList& indices) {
  TensorList owned;
  Dims sizes;
  IndexedBlock l = indexed_block(self.sizes(), indices, owned, sizes);
  Tensor out = empty(sizes, self.options());
  if (out.is_meta() || out.numel() == 0) return out;
  check(owned.size() == indices.size(), "_take_indices(): indices on the meta device");
  Tensor x = raw_contiguous(self);
  kernels<PadKernels>(x.device()).read_block(out.data(), x.data(), l, self.dtype());
  return out;
}

Tensor take_indices_backward(const Tensor& grad, const TensorList& indices, DimsRef sizes) {
  TensorList owned;
  Dims result;
  IndexedBlock l = indexed_block(sizes, indices, owned, result);
  check(same(grad.sizes(), result), "_take_indices_backward(): grad of shape ",
        to_string(grad.sizes()), " does not fit a result of shape ", to_string(result));
  if (grad.is_meta() || grad.numel() == 0) return raw_zeros(sizes, grad.options());
  check(owned.size() == indices.size(), "_take_indices(): indices on the meta device");
  Tensor out = empty(sizes, grad.options()), g = raw_contiguous(grad);
  kernels<PadKernels>(g.device()).accumulate_block(out.data(), g.data(), l, grad.dtype());
  return out;
}

void take_indices_derivative(Backward& b) {
  b.set(0, op<"_take_indices_backward">(b.grad(), b.arg<TensorList>(1), b.sizes(0)));
}

void take_indices_backward_derivative(Backward& b) {
  b.set(0, op<"_take_indices">(b.grad(), b.arg<TensorList>(1)));
}

Tensor pad_by_index(const Tensor& self, const Dims& pad, Mode mode) {
  check<NotImplemented>(
      self.dim() > static_cast<int64_t>(pad.size() / 2) &&
          self.dim() <= static_cast<int64_t>(pad.size() / 2) + 2,
      "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: pad of length ",
      pad.size(), " does not fit an input of shape ", to_string(self.sizes()));
  const auto spatial = static_cast<int64_t>(pad.size() / 2);
  if (mode != Mode::Circular) {
    for (int64_t d = self.dim() == spatial + 2 ? 1 : 0; d < self.dim(); ++d) {
      check(self.size(d) > 0, "Expected ", spatial + 1, "D or ", spatial + 2,
            "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            "input, but got: ",
            to_string(self.sizes()));
    }
  }
  TensorList indices(pad.size() / 2);
  bool changes = false;
  for (auto [dim, before, after] : amounts(self, pad)) {
    int64_t n = self.size(dim);
    if (mode == Mode::Reflect) {
      check(before < n && after < n,
            "Padding size should be less than the corresponding input dimension, but got: "
            "padding (",
            before, ", ", after, ") at dimension ", dim, " of input ", to_string(self.sizes()));
    }
    if (mode == Mode::Circular) {
      check(before <= n && after <= n, "Padding value causes wrapping around more than once.");
      check(n + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) > 0,
            "pad(): circular padding by (", before, ", ", after, ") leaves nothing of dimension ",
            dim, " of input ", to_string(self.sizes()), " to repeat");
    }
    int64_t total = checked_add(n, checked_add(before, after));
    check(n > 0 && total > 0, "pad(): dimension ", dim, " of input ", to_string(self.sizes()),
          " cannot be padded by (", before, ", ", after, ")");
    changes = changes || before != 0 || after != 0;
    const Tensor index = empty(Dims{total}, {DType::Int64, self.device()});
    factory::tabulate(index, [&, before = before, after = after](int64_t i) {
      return mode == Mode::Circular ? wrapped(i, before, after, n) : source(mode, i - before, n);
    });
    indices[static_cast<size_t>(dim) + indices.size() - self.sizes().size()] = index;
  }
  return changes ? op<"_take_indices">(self, indices) : clone(self);
}

Tensor pad(const Tensor& self, const Dims& amount, const std::string& mode,
           std::optional<double> value) {
  if (mode == "constant") {
    double v = value.value_or(0);
    bool whole = is_integral(self.dtype()) && v == static_cast<double>(static_cast<int64_t>(v));
    return op<"constant_pad_nd">(self, amount, whole ? Scalar(static_cast<int64_t>(v)) : Scalar(v));
  }
  check(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect") return pad_by_index(self, amount, Mode::Reflect);
  if (mode == "replicate") return pad_by_index(self, amount, Mode::Replicate);
  if (mode == "circular") return pad_by_index(self, amount, Mode::Circular);
  fail<NotImplemented>("Unrecognised padding mode ", mode);
}

const Define pad_ops[] = {
    {"constant_pad_nd(self: Tensor, pad: int[], value: Scalar = 0) -> Tensor",
     "Puts `value` around the input; `pad` has (before, after) for each dimension from the last "
     "one backwards.",
     kernel(constant_pad),
     {.backward = constant_pad_backward, .forms = kFunction, .format_of = 0b1}},
    {"_take_indices(self: Tensor, indices: Tensor[]) -> Tensor",
     "The elements at all combinations of the indices, one int64 vector for each of the last "
     "dimensions.",
     kernel(take_indices),
     {.backward = take_indices_derivative,
      .saves = saves_arg(1),
      .forms = kFunction,
      .format_of = 0b1}},
    {"_take_indices_backward(grad: Tensor, indices: Tensor[], sizes: int[]) -> Tensor",
     "Zeros of shape `sizes` to which `grad` has been added at the indices.",
     kernel(take_indices_backward),
     {.backward = take_indices_backward_derivative,
      .saves = saves_arg(1),
      .forms = kFunction,
      .format_of = 0b1}},
    {"pad(input: Tensor, pad: int[], mode: str = 'constant', value: float? = None) -> Tensor",
     "Adds elements at the ends of the last dimensions; negative numbers remove some.\n\n"
     "`pad`: how many at the start and the end of the last dimension, then of the one before it, "
     "and so on. `mode`: 'constant' adds `value` (0 where it is None); 'reflect', 'replicate' and "
     "'circular' repeat the input's own elements.\n\n"
     ">>> taeda.nn.functional.pad(taeda.tensor([1, 2]), (1, 2))\n"
     "tensor([0, 1, 2, 0, 0])",
     kernel(pad),
     {.forms = kFunction, .composite = true, .module = "nn.functional"}},
};

}  // namespace
}  // namespace taeda
