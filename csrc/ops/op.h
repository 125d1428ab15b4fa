// Op: what the registry knows of an operation; Define: how an op file adds its ops; call: the
// single entry point of every op ("the door").
//
//   static const Define ops[] = {
//       {"softmax(self: Tensor, dim: int, *, dtype: dtype? = None) -> Tensor",
//        "Exponentials of the elements, divided by their sum along `dim`.",
//        kernel(softmax), {.backward = softmax_backward, .saves = saves_out(0)}},
//   };
//
// The schema gives name, types and defaults to Python, to the stubs and to the checks. Types:
// Tensor, Tensor[], Scalar, int, float, bool, str, int[] (int[2]: one int stands for two), float[],
// dtype, device, Generator, memory_format; each may carry `?` (None). `self!: Tensor` marks an
// argument that the op changes in place. `*` starts keyword-only arguments. Several ops of one name
// are overloads, tried in the order in which they were defined.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/tls.h"
#include "ops/value.h"

namespace taeda {

enum class ArgKind : uint8_t {
  Tensor,
  TensorList,
  Scalar,
  Int,
  Float,
  Bool,
  Str,
  Ints,
  Floats,
  DType,
  Device,
  Generator,
  MemoryFormat
};

struct Arg {
  std::string name;
  ArgKind kind;
  bool optional = false;  // takes None
  bool mutated = false;   // `!`
  bool keyword_only = false;
  bool has_default = false;
  bool allows_none_items = false;  // Tensor?[]
  int repeat = 0;                  // int[2]: a single int is repeated
  Value fallback;
};

struct Op;
struct Call {
  const Op& op;
  std::span<Value> args;
  Tensor out;         // destination of the result (in-place form, out=); the kernel may write
                      // to it
  bool grad = false;  // for layers: whether grad mode was on at the call
};

// A type-erased kernel: `run` unpacks the arguments and calls `fn`. `run` is instantiated once per
// signature, not per op.
struct Kernel {
  using Fn = void (*)();
  Value (*run)(Fn fn, Call& call) = nullptr;
  Fn fn = nullptr;
  bool writes_out = false;  // writes to Call::out; otherwise the dispatcher copies the result there
};

template <class R> Value to_value(R&& r) {
  using T = std::decay_t<R>;
  if constexpr (std::is_same_v<T, Value>) return std::forward<R>(r);
  else if constexpr (std::is_same_v<T, int>) return Value(int64_t(r));
  else return Value(std::forward<R>(r));
}

template <class R, class... A, size_t... I>
Value run_typed(Kernel::Fn fn, Call& c, std::index_sequence<I...>) {
  auto f = reinterpret_cast<R (*)(A...)>(fn);
  if constexpr (std::is_void_v<R>) {
    f(Unpack<std::decay_t<A>>::get(c.args[I])...);
    return {};
  } else {
    return to_value(f(Unpack<std::decay_t<A>>::get(c.args[I])...));
  }
}

// A plain C++ function as a kernel: Tensor f(const Tensor& x, int64_t dim, std::optional<DType>
// dtype). Several results are returned as a TensorList.
template <class R, class... A> Kernel kernel(R (*f)(A...)) {
  return {[](Kernel::Fn fn, Call& c) {
            return run_typed<R, A...>(fn, c, std::index_sequence_for<A...>{});
          },
          reinterpret_cast<Kernel::Fn>(f)};
}
// A function that sees the whole call, e.g. to write into `out`.
inline Kernel raw_kernel(Value (*f)(Call&), bool writes_out = false) {
  return {[](Kernel::Fn fn, Call& c) { return reinterpret_cast<Value (*)(Call&)>(fn)(c); },
          reinterpret_cast<Kernel::Fn>(f), writes_out};
}

class Backward;  // autograd/backward.h
using BackwardFn = void (*)(Backward&);

// Which arguments and results a derivative reads; the rest keep only sizes and dtype.
constexpr uint32_t saves_arg(int i) { return 1u << i; }
constexpr uint32_t saves_out(int i = 0) { return 1u << (16 + i); }

enum Form : uint32_t {
  kFunction = 1,  // taeda.name
  kMethod = 2,    // Tensor.name
  kInplace = 4,   // Tensor.name_ is made from it (and taeda.name_ where PyTorch has it)
  kOut = 8,       // takes out=
  kMixed = 16,    // its tensors may be on different devices; the kernel checks them
  kPublic = kFunction | kMethod,
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
  bool whole_list = false;  // a list of tensors comes as one argument, not spread over several
  // Bit i: results are laid out in channels_last where argument i is.
  uint32_t format_of = 0;
  bool elementwise =
      false;  // each result element depends only on the operands' elements at its index
};

struct Op {
  std::string name;       // "softmax"; in-place forms end in "_"
  std::string signature;  // as written in the schema
  std::string doc;
  std::vector<Arg> args;
  int returns = 1;          // number of tensors, 0 for none; -1: a list of unknown length
  std::string return_type;  // "Tensor", "(values: Tensor, indices: Tensor)", "bool", ...
  std::vector<std::string> return_names;  // for named tuples
  Kernel kernel;
  Kernel factory;  // the kernel itself, of an op that makes tensors from numbers on any device
  Traits traits;
  int mutated = -1;            // index of the argument that is changed in place
  bool inplace_form = false;   // generated by kInplace: runs the functional kernel with out = self
  std::string backward_name;   // "SoftmaxBackward0"
  const void* user = nullptr;  // a kernel's own data (the pointwise row)
};

// Adds an op (and its in-place form). Returns the functional one. Used by Define and by extensions.
const Op& define(const char* schema, const char* doc, Kernel kernel, Traits traits,
                 const void* user = nullptr);

struct Define {
  Define(const char* schema, const char* doc, Kernel k, Traits traits = {},
         const void* user = nullptr) {
    define(schema, doc, k, traits, user);
  }
};

const std::vector<const Op*>& overloads(std::string_view name);  // empty where there is none
std::vector<std::string> op_names();
const Op& find_op(std::string_view name,
                  size_t nargs);  // by name and number of arguments; Error where missing

// ---- dispatch ----
// Dispatches a call of any op. `args` has one Value per schema argument.
Value call(const Op& op, std::span<Value> args, Tensor out = {});
// The same, with the flags of all tensor arguments already combined.
Value call(const Op& op, std::span<Value> args, Tensor out, uint32_t flags);

// op<"sum">(x, dims, true): calls by name from C++; trailing defaults may be left out.
template <size_t N> struct OpName {
  char text[N];
  constexpr OpName(const char (&s)[N]) { std::copy_n(s, N, text); }
};

Value call_padded(const Op& op, std::span<Value> given);  // fills in defaults, then calls

template <OpName Name, class... A> Value op_value(A&&... a) {
  static const Op& o = find_op(Name.text, sizeof...(A));
  Values args(sizeof...(A));
  [[maybe_unused]] size_t i = 0;
  (::new (&args[i++]) Value(pack(std::forward<A>(a))), ...);
  return call_padded(o, args.span());
}
template <OpName Name, class... A> Tensor op(A&&... a) {
  return std::get<Tensor>(op_value<Name>(std::forward<A>(a)...));
}
template <OpName Name, class... A> TensorList ops(A&&... a) {
  return std::get<TensorList>(op_value<Name>(std::forward<A>(a)...));
}

// ---- dispatch layers ----
// Per-thread state: which tensor flags need a layer now, and which layers run for every call.
struct Modes {
  uint32_t watched = kRequiresGrad | kIsView | kOverride;  // tensor flags that leave the fast path
  uint32_t always = 0;                                     // LayerBit of layers that see every call
  bool grad = true;
  bool inference = false;
};
TAEDA_FAST_TLS extern thread_local constinit Modes modes;

// Layers, from the outermost in. Each gets the call and the bits of the layers inside it.
enum LayerBit : uint32_t {
  kOverrideLayer = 1,
  kProfileLayer = 2,
  kBatchLayer = 4,
  kAutocastLayer = 8,
  kAutogradLayer = 16,
  kForwardLayer = 32,  // inside autograd: results have no history yet
  kDeviceLayer = 64    // for tensors of a device that may lack the kernel
};
using Layer = Value (*)(Call& c, uint32_t inner);
void set_layer(LayerBit bit, Layer layer);
Value call_inner(Call& c, uint32_t layers);  // the next layer in, or the kernel

struct GradMode {  // RAII: GradMode off(false);
  explicit GradMode(bool on) : saved_(modes) { set(on); }
  ~GradMode() { modes = saved_; }
  static void set(bool on) {
    modes.grad = on;
    if (on && !modes.inference) modes.watched |= kRequiresGrad | kIsView;
    else modes.watched &= ~(kRequiresGrad | kIsView);
  }
  static bool enabled() { return modes.grad; }

 private:
  Modes saved_;
};

// Whether the derivative being computed may itself be differentiated: then it must be composed of
// ops rather than call a kernel of its own.
inline bool derivative_in_ops() { return modes.grad || (modes.always & kForwardLayer); }

// ---- helpers for op files ----
// Checks `out` against a result and copies it there, resizing as PyTorch's out= does. Returns out.
Tensor write_out(const Op& op, const Tensor& out, const Tensor& result);

}  // namespace taeda
