// einsum and its relatives. Every operand is brought to the same order of labels; pairs are
// contracted by one bmm each, the cheapest pair first.
#include <array>
#include <limits>

#include "autograd/backward.h"

namespace taeda {
namespace {

constexpr int kEllipsis = 52;  // label of the first ellipsis dimension; 0-25 are A-Z, 26-51 a-z

std::string name_of(int label) {
  if (label >= kEllipsis) return "'...'";
  return {'\'', static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26), '\''};
}

int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -1;
}

struct Term {
  std::vector<int> labels;  // -1 marks the ellipsis
};

Term parse_term(std::string_view text, std::string_view equation) {
  Term t;
  bool ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      check(text.substr(i, 3) == "..." && !ellipsis, "einsum(): found '.' in '", equation,
            "' that is not part of one ellipsis for each operand");
      ellipsis = true;
      t.labels.push_back(-1);
      i += 2;
      continue;
    }
    int l = label_of(c);
    check(l >= 0, "einsum(): invalid subscript given at index ", i, " in the equation string '",
          equation, "', subscripts must be in [a-zA-Z]");
    t.labels.push_back(l);
  }
  return t;
}

struct Equation {
  std::vector<Term> operands;
  std::optional<Term> output;
};

Equation parse_equation(std::string_view text) {
  Equation e;
  auto arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  for (size_t start = 0;;) {
    auto comma = left.find(',', start);
    e.operands.push_back(
        parse_term(left.substr(start, comma == left.npos ? comma : comma - start), text));
    if (comma == left.npos) break;
    start = comma + 1;
  }
  if (arrow != text.npos) e.output = parse_term(text.substr(arrow + 2), text);
  return e;
}

// Batched product of two tensors of equal rank; dimensions in `summed` are contracted and kept as
// size 1.
Tensor contract(Tensor left, Tensor right, const std::vector<bool>& summed) {
  auto rank = static_cast<size_t>(left.dim());
  Dims batch, only_left, only_right, inner;
  int64_t nb = 1, nl = 1, nr = 1, ns = 1;
  for (size_t d = 0; d < rank; ++d) {
    auto i = static_cast<int64_t>(d);
    int64_t l = left.size(i), r = right.size(i);
    if (summed[d]) {
      if (l != 1 && r != 1) {
        check(l == r, "einsum(): operands do not broadcast: sizes ", l, " and ", r,
              " for one subscript");
        inner.push_back(i);
        ns *= l;
        continue;
      }
      if (l != 1) left = sum(left, Dims{i}, true);
      if (r != 1) right = sum(right, Dims{i}, true);
      only_left.push_back(i);
    } else if (l != 1 && r != 1) {
      check(l == r, "einsum(): operands do not broadcast: sizes ", l, " and ", r,
            " for one subscript");
      batch.push_back(i);
      nb *= l;
    } else if (r != 1) {
      only_right.push_back(i);
      nr *= r;
    } else {
      only_left.push_back(i);
      nl *= l;
    }
  }
  auto concat = [](std::initializer_list<const Dims*> parts) {
    Dims all;
    for (const Dims* p : parts) {
      for (int64_t v : *p) all.push_back(v);
    }
    return all;
  };
  Tensor a =
      reshape(permute(left, concat({&batch, &only_left, &inner, &only_right})), Dims{nb, nl, ns});
  Tensor b =
      reshape(permute(right, concat({&batch, &inner, &only_right, &only_left})), Dims{nb, ns, nr});
  Tensor product = op<"bmm">(a, b);
  Dims order = concat({&batch, &only_left, &inner, &only_right}), sizes, back(rank);
  for (size_t k = 0; k < rank; ++k) {
    int64_t d = order[k];
    sizes.push_back(summed[static_cast<size_t>(d)] ? 1 : std::max(left.size(d), right.size(d)));
    if (!summed[static_cast<size_t>(d)] && (left.size(d) == 0 || right.size(d) == 0))
      sizes.back() = 0;
    back[static_cast<size_t>(d)] = static_cast<int64_t>(k);
  }
  return permute(reshape(product, sizes), back);
}

// The dimensions from `kept` on that only operands i and j have: they can be summed when those two
// are multiplied.
std::vector<bool> summed_with(const TensorList& operands, size_t kept, size_t i, size_t j) {
  std::vector<bool> summed(static_cast<size_t>(operands[0].dim()), false);
  for (size_t d = kept; d < summed.size(); ++d) {
    summed[d] = true;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (k != i && k != j && operands[k].size(static_cast<int64_t>(d)) != 1) summed[d] = false;
    }
  }
  return summed;
}

// Two operands at a time, always the pair whose product takes the fewest multiplications.
Tensor contract_all(TensorList operands, size_t kept) {
  auto cost = [](const Tensor& a, const Tensor& b) {
    double n = 1;
    for (int64_t d = 0; d < a.dim(); ++d)
      n *= static_cast<double>(a.size(d) == 1 ? b.size(d) : a.size(d));
    return n;
  };
  while (operands.size() > 1) {
    size_t left = 0, right = 1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; operands.size() > 2 && i < operands.size(); ++i) {
      for (size_t j = i + 1; j < operands.size(); ++j) {
        const double c = cost(operands[i], operands[j]);
        if (c < least) least = c, left = i, right = j;
      }
    }
    operands[left] =
        contract(operands[left], operands[right], summed_with(operands, kept, left, right));
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(right));
  }
  Dims summed;
  for (int64_t d = static_cast<int64_t>(kept); d < operands[0].dim(); ++d) {
    if (operands[0].size(d) != 1) summed.push_back(d);
  }
  return summed.empty() ? operands[0] : sum(operands[0], summed, true);
}

Tensor einsum(const std::string& equation, const TensorList& operands) {
  check(!operands.empty(), "einsum(): must provide at least one operand");
  Equation e = parse_equation(equation);
  check(e.operands.size() == operands.size(),
        "einsum(): ", e.operands.size() > operands.size() ? "fewer" : "more",
        " operands were provided than specified in the equation '", equation, "'");
  int64_t dots = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto& labels = e.operands[i].labels;
    bool has_dots = std::count(labels.begin(), labels.end(), -1) > 0;
    auto named = static_cast<int64_t>(labels.size()) - has_dots;
    check(has_dots ? operands[i].dim() >= named : operands[i].dim() == named,
          "einsum(): the number of subscripts in the equation (", named,
          has_dots ? ") is more than the number of dimensions ("
                   : ") does not match the number of dimensions (",
          operands[i].dim(), ") for operand ", i, has_dots ? "" : " and no ellipsis was given");
    if (has_dots) dots = std::max(dots, operands[i].dim() - named);
  }

  // Position of every label in the common order: output labels first, then those that are summed.
  std::array<int, 52 + 64> count{}, position;
  position.fill(-1);
  for (auto& t : e.operands) {
    for (int l : t.labels) {
      if (l >= 0) ++count[static_cast<size_t>(l)];
    }
  }
  int next = 0;
  auto place_dots = [&] {
    for (int64_t k = 0; k < dots; ++k) position[static_cast<size_t>(kEllipsis + k)] = next++;
  };
  if (e.output) {
    bool placed = false;
    for (int l : e.output->labels) {
      if (l < 0) {
        place_dots();
        placed = true;
        continue;
      }
      check(count[static_cast<size_t>(l)] > 0,
            "einsum(): output subscript does not appear in the equation '", equation,
            "' for any input operand");
      check(position[static_cast<size_t>(l)] < 0,
            "einsum(): output subscript appears more than once in the output of '", equation, "'");
      position[static_cast<size_t>(l)] = next++;
    }
    if (!placed) place_dots();  // ellipsis dimensions missing from the output are summed
  } else {
    place_dots();
    for (int l = 0; l < 52; ++l) {
      if (count[static_cast<size_t>(l)] == 1) position[static_cast<size_t>(l)] = next++;
    }
  }
  int kept = next;
  if (e.output) {
    kept = 0;
    for (int l : e.output->labels) kept += l < 0 ? static_cast<int>(dots) : 1;
  }
  for (int l = 0; l < 52; ++l) {
    if (count[static_cast<size_t>(l)] && position[static_cast<size_t>(l)] < 0)
      position[static_cast<size_t>(l)] = next++;
  }
  auto rank = static_cast<size_t>(next);

  // Every operand with all labels as dimensions (size 1 for missing ones); repeated labels become
  // diagonals.
  struct Known {  // the size of a label, and the operand that has it
    int64_t size = 1;
    size_t operand = 0;
  };
  std::vector<Known> known(rank);
  TensorList ready;
  for (size_t i = 0; i < operands.size(); ++i) {
    Tensor t = operands[i];
    std::vector<int> labels;
    auto named = static_cast<int64_t>(e.operands[i].labels.size());
    for (int l : e.operands[i].labels) {
      if (l >= 0) labels.push_back(l);
      else {
        int64_t own = t.dim() - (named - 1);
        for (int64_t k = dots - own; k < dots; ++k)
          labels.push_back(kEllipsis + static_cast<int>(k));
      }
    }
    for (size_t a = 0; a < labels.size(); ++a) {
      for (size_t b = a + 1; b < labels.size();) {
        if (labels[a] != labels[b]) {
          ++b;
          continue;
        }
        int64_t da = static_cast<int64_t>(a), db = static_cast<int64_t>(b);
        check(t.size(da) == t.size(db), "einsum(): subscript is repeated for operand ", i,
              " but the sizes don't match, ", t.size(db), " != ", t.size(da));
        Tensor diagonal =
            op<"diagonal">(t, int64_t(0), da, db);  // the diagonal becomes the last dimension
        Dims order;
        for (int64_t d = 0; d < diagonal.dim() - 1; ++d) order.push_back(d);
        order.insert(a, diagonal.dim() - 1);
        t = permute(diagonal, order);
        labels.erase(labels.begin() + static_cast<int64_t>(b));
      }
    }
    Dims order, sizes(rank, 1);
    std::vector<std::pair<int, int64_t>> positions;
    for (size_t d = 0; d < labels.size(); ++d) {
      positions.emplace_back(position[static_cast<size_t>(labels[d])], static_cast<int64_t>(d));
    }
    std::sort(positions.begin(), positions.end());
    for (auto [place, d] : positions) {
      Known& k = known[static_cast<size_t>(place)];
      check(k.size == 1 || t.size(d) == 1 || k.size == t.size(d), "einsum(): subscript ",
            name_of(labels[static_cast<size_t>(d)]), " has size ", k.size, " for operand ",
            k.operand, " but size ", t.size(d), " for operand ", i);
      if (t.size(d) != 1) k = {t.size(d), i};
      order.push_back(d);
      sizes[static_cast<size_t>(place)] = t.size(d);
    }
    ready.push_back(reshape(permute(t, order), sizes));
  }

  Dims full(rank, 1);
  for (const Tensor& t : ready) full = broadcast_sizes(full, t.sizes());
  Tensor result = contract_all(std::move(ready), static_cast<size_t>(kept));
  Dims out(DimsRef(full).first(static_cast<size_t>(kept)));
  Tensor shaped = reshape(result, out);
  return shaped.is(operands[0]) ? op<"alias">(shaped) : shaped;
}

Tensor tensordot(const Tensor& self, const Tensor& other, const Dims& dims_self,
                 const Dims& dims_other) {
  check(dims_self.size() == dims_other.size(), "both dimension lists should have same length, got ",
        to_string(dims_self), " and ", to_string(dims_other));
  Dims left, right, inner_l, inner_r, out;
  std::vector<bool> used_l(static_cast<size_t>(self.dim())),
      used_r(static_cast<size_t>(other.dim()));
  Tensor a = self, b = other;
  int64_t n = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    int64_t l = wrap_dim(dims_self[i], self.dim()), r = wrap_dim(dims_other[i], other.dim());
    if (self.size(l) != other.size(r) && other.size(r) == 1) a = sum(a, Dims{l}, true);
    else if (self.size(l) != other.size(r) && self.size(l) == 1) b = sum(b, Dims{r}, true);
    else
      check(self.size(l) == other.size(r),
            "contracted dimensions need to match, but first has size ", self.size(l), " in dim ", l,
            " and second has size ", other.size(r), " in dim ", r);
    used_l[static_cast<size_t>(l)] = used_r[static_cast<size_t>(r)] = true;
    inner_l.push_back(l);
    inner_r.push_back(r);
    n *= a.size(l);
  }
  int64_t rows = 1, cols = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (used_l[static_cast<size_t>(d)]) continue;
    left.push_back(d);
    out.push_back(self.size(d));
    rows *= self.size(d);
  }
  for (int64_t v : inner_l) left.push_back(v);
  for (int64_t v : inner_r) right.push_back(v);
  for (int64_t d = 0; d < other.dim(); ++d) {
    if (used_r[static_cast<size_t>(d)]) continue;
    right.push_back(d);
    out.push_back(other.size(d));
    cols *= other.size(d);
  }
  return reshape(
      op<"mm">(reshape(permute(a, left), Dims{rows, n}), reshape(permute(b, right), Dims{n, cols})),
      out);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  check(self.dim() == 1 && vec2.dim() == 1, "outer: Expected 1-D argument self and vec2, but got ",
        self.dim(), "-D and ", vec2.dim(), "-D");
  return unsqueeze(self, 1) * unsqueeze(vec2, 0);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self * other;
  check(self.size(-1) == other.size(-1),
        "inner() the last dimension must match on both input tensors but got shapes ",
        to_string(self.sizes()), " and ", to_string(other.sizes()));
  return op<"_tensordot">(self, other, Dims{-1}, Dims{-1});
}

const Define einsum_ops[] = {
    {"_einsum(equation: str, tensors: Tensor[]) -> Tensor",
     "Sums of products, in the notation of Einstein: 'ij,jk->ik' is a matrix product.",
     kernel(einsum),
     {.forms = 0, .composite = true}},
    {"_tensordot(self: Tensor, other: Tensor, dims_self: int[], dims_other: int[]) -> Tensor",
     "Contraction over pairs of dimensions.",
     kernel(tensordot),
     {.forms = 0, .composite = true}},
    {"outer(self: Tensor, vec2: Tensor) -> Tensor",
     "Every product of an element of one vector and one of another.",
     kernel(outer),
     {.forms = kPublic | kOut,
      .composite = true,
      .out_memory = {.same_or_disjoint = 0b11},
      .out_dtype = OutDtype::Castable}},
    {"ger(self: Tensor, vec2: Tensor) -> Tensor",
     "Another name of outer.",
     kernel(outer),
     {.forms = kPublic | kOut,
      .composite = true,
      .out_memory = {.same_or_disjoint = 0b11},
      .out_dtype = OutDtype::Castable}},
    {"inner(self: Tensor, other: Tensor) -> Tensor",
     "Sums of products over the last dimensions.",
     kernel(inner),
     {.forms = kPublic | kOut, .composite = true}},
};

}  // namespace
}  // namespace taeda
