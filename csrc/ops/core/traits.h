// Traits: what the registry knows of an op beyond its schema. A row gives those that differ from
// the defaults; what acts on ops by their kind (autograd, autocast, vmap, the FLOP counter) reads
// them there, so no other place lists names of ops.
#pragma once

#include <cstdint>

namespace taeda {

class Backward;  // autograd/backward.h
using BackwardFn = void (*)(Backward&);

// Which arguments and results a derivative reads; the rest keep only sizes and dtype.
constexpr uint32_t saves_arg(int i) { return 1u << i; }
constexpr uint32_t saves_out(int i = 0) { return 1u << (16 + i); }

enum Form : uint32_t {
  kFunction = 1,          // taeda.name
  kMethod = 2,            // Tensor.name
  kInplace = 4,           // Tensor.name_ is made from it
  kOut = 8,               // takes out=
  kMixed = 16,            // its tensors may be on different devices; the kernel checks them
  kInplaceFunction = 32,  // taeda.name_ too, where PyTorch has it
  kForeach = 64,          // taeda._foreach_name, and _foreach_name_ with kInplace
  kPublic = kFunction | kMethod,
};

// What autocast does with the floating tensors that an op is given.
enum class Precision : uint8_t {
  AsGiven,
  Lower,    // converts them to the lower precision: products gain most from it
  Float32,  // to float32: losses, transforms and decompositions lose too much
  Widest,   // to float32 if one of them is, else to the lower precision
};

// Where it does so, as in PyTorch: of CUDA's numbers in half precision more overflow, and less is
// gained by converting what is read once.
struct AutocastRule {
  enum Where : uint8_t { Everywhere, Cpu, Cuda };
  Precision precision = Precision::AsGiven;
  Where where = Everywhere;

  constexpr AutocastRule(Precision p = Precision::AsGiven, Where w = Everywhere)
      : precision(p),
        where(w) {}
  constexpr Precision on(Where device) const {
    return where == Everywhere || where == device ? precision : Precision::AsGiven;
  }
};
inline constexpr AutocastRule kFloat32OnCpu{Precision::Float32, AutocastRule::Cpu},
    kWidestOnCpu{Precision::Widest, AutocastRule::Cpu},
    kLowerOnCuda{Precision::Lower, AutocastRule::Cuda},
    kFloat32OnCuda{Precision::Float32, AutocastRule::Cuda},
    kWidestOnCuda{Precision::Widest, AutocastRule::Cuda};

// Where PyTorch takes Python numbers for Tensor parameters.
enum class Numbers : uint8_t {
  None,
  Anywhere,   // add(2, 3)
  OneTensor,  // pow(2, x) and pow(x, 2), but not pow(2, 3)
  AfterSelf,  // eq(x, 2), but not eq(2, x)
};

// How many floating-point operations a product takes: the formulas of utils/flop_counter.py.
enum class Flops : uint8_t {
  None,
  Product,       // each element of the result is a dot product along the first argument's last dim
  AddedProduct,  // the same, of the second and third argument
  Convolution,
  TransposedConvolution,
  FilterGradient,
  Attention,
  AttentionGradient,
  Recurrence,
  RecurrenceGradient,
};

// How vmap computes an op on batches: the rules of _batching/table.py. Unset: as `elementwise` if
// it is that, as its parts if it is composite, else by a rule registered in Python (`@rule`), else
// one element of the batch after the other, with a warning. A trait on a composite op is the rule
// for the whole of it. In-place forms have the rule of their op.
struct Vmap {
  enum Form : uint8_t {
    Unset,
    Elementwise,    // broadcasts its operands
    Loss,           // of pairs of elements, then the reduction that the argument says
    Direct,         // computes on one tensor of any rank
    New,            // makes a tensor of the sizes in its second argument
    Reduction,      // over `dim`, by default all
    Along,          // along its dimension arguments
    StrictlyAlong,  // the same, where a tensor without dimensions is an error
    Leading,        // takes any leading dimensions; ranks: what each tensor has besides
    Folded,         // takes (examples, channels, *spatial); ranks[0]: of spatial, 0: as `spatial`
    Random,         // draws numbers, though composed of other ops; ranks[0]: the least rank
    Looped,         // one element after the other, which is the best possible
    OneByOne,       // the same with a warning, though composed of other ops
    Dynamic,        // refused: the result's shape depends on the elements
    AsItIs,         // reads no elements
  };
  Form form = Unset;
  int8_t ranks[3] = {-1, -1, -1};  // -1: none
};

namespace vmap {
inline constexpr Vmap elementwise{Vmap::Elementwise}, loss{Vmap::Loss}, direct{Vmap::Direct},
    new_tensor{Vmap::New}, reduction{Vmap::Reduction}, along{Vmap::Along},
    strictly_along{Vmap::StrictlyAlong}, loop{Vmap::Looped}, one_by_one{Vmap::OneByOne},
    dynamic{Vmap::Dynamic}, as_it_is{Vmap::AsItIs};
constexpr Vmap leading(int8_t first, int8_t second = -1, int8_t third = -1) {
  return {Vmap::Leading, {first, second, third}};
}
constexpr Vmap folded(int8_t spatial) { return {Vmap::Folded, {spatial, -1, -1}}; }
constexpr Vmap random(int8_t least_rank = 0) { return {Vmap::Random, {least_rank, -1, -1}}; }
}  // namespace vmap

// Which arguments `out` must not share memory with, as bits of their positions. Unset: a partial
// overlap is refused for all if the op is elementwise, and for none otherwise, because the result
// is computed before it is written.
struct OutMemory {
  uint32_t disjoint = 0;          // no element in common
  uint32_t same_or_disjoint = 0;  // may be `out` itself
  uint32_t results = ~0u;         // the results that this holds for
};

// Which dtypes `out` may have.
enum class OutDtype : uint8_t {
  ByKind,    // Castable for elementwise ops, else Exact
  Castable,  // any that the result can be cast to
  SameKind,  // the same, but complex only where the result is
  Exact,     // the result's
};

struct Traits {
  BackwardFn backward = nullptr;
  uint32_t saves = 0;
  uint32_t forms = kFunction | kMethod;  // names that start with `_` are in taeda._C.ops alone
  bool composite =
      false;          // written in terms of other ops: autograd and other layers see those instead
  bool view = false;  // the result shares self's storage
  // Bit i: argument i is read only for the gradients of other arguments, so it is saved only if one
  // of those requires a gradient. `x * 3` saves nothing.
  uint32_t saved_for_others = 0;
  uint32_t non_differentiable = 0;  // bit i: result i never carries a gradient (indices, masks)
  const char* module =
      "";              // public namespace: "" (taeda), "nn.functional", "linalg", "special", "fft"
  bool heavy = false;  // slow for few elements: releases the GIL for small tensors too
  bool by_copies =
      false;  // a factory that needs memory and copies alone: devices make it themselves
  bool by_draws = false;    // a factory that random kernels fill: devices that have them make it
  bool on_host = false;     // devices that lack its kernel run it on the CPU without being asked
  bool whole_list = false;  // a list of tensors comes as one argument, not spread over several
  // Bit i: results are laid out in channels_last where argument i is.
  uint32_t format_of = 0;
  bool elementwise =
      false;  // each result element depends only on the operands' elements at its index
  bool keeps_zero = false;  // elementwise, of one operand, and 0 gives 0: computes sparse tensors
  AutocastRule autocast = {};
  Vmap vmap = {};
  Flops flops = Flops::None;
  Numbers numbers = Numbers::None;
  OutMemory out_memory = {};
  OutDtype out_dtype = {};
  // Orders of arguments that PyTorch has deprecated and still takes, with numbers before the
  // tensors that they multiply. s: self, t: another tensor, a: alpha, b: beta, v: value.
  const char* old_orders = "";

  // A copy with one more trait, for rows that share the others.
  constexpr Traits with(AutocastRule a) const {
    return changed([&](Traits& t) { t.autocast = a; });
  }
  constexpr Traits with(Vmap v) const {
    return changed([&](Traits& t) { t.vmap = v; });
  }
  constexpr Traits with(Flops f) const {
    return changed([&](Traits& t) { t.flops = f; });
  }
  constexpr Traits with(Numbers n) const {
    return changed([&](Traits& t) { t.numbers = n; });
  }
  constexpr Traits with(OutMemory m) const {
    return changed([&](Traits& t) { t.out_memory = m; });
  }
  constexpr Traits with(OutDtype d) const {
    return changed([&](Traits& t) { t.out_dtype = d; });
  }
  constexpr Traits with(Form more) const {
    return changed([&](Traits& t) { t.forms |= more; });
  }

 private:
  template <class F> constexpr Traits changed(F&& change) const {
    Traits t = *this;
    change(t);
    return t;
  }
};

}  // namespace taeda
