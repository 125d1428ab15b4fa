#include "autograd/autocast.h"

#include <unordered_map>
#include <vector>

#include "autograd/meta.h"
#include "ops/op.h"
#include "ops/tensor_ops.h"

namespace taeda {
namespace {

enum class Policy { Lower, Single, Widest };

// Products gain most from a lower precision. These lists are those of PyTorch on the CPU.
constexpr const char* kLower[] = {
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "bmm",
    "mm",
    "matmul",
    "baddbmm",
    "addmm",
    "addbmm",
    "linear",
    "prelu",
    "linalg_vecdot",
    "linalg_multi_dot",
    "linalg_matmul",
    "_attention",
    "_rnn_sequence",
};
// Losses, transforms and decompositions lose too much.
constexpr const char* kSingle[] = {
    "adaptive_avg_pool3d",
    "avg_pool3d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "_cross_entropy",
    "smooth_l1_loss",
    "soft_margin_loss",
    "prod",
    "trace",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "geqrf",
    "inverse",
    "lu_solve",
    "orgqr",
    "ormqr",
    "pinverse",
    "qr",
    "svd",
    "triangular_solve",
    "stft",
    "fft_fft",
    "fft_ifft",
    "fft_fft2",
    "fft_ifft2",
    "fft_fftn",
    "fft_ifftn",
    "fft_rfft",
    "fft_irfft",
    "fft_rfft2",
    "fft_irfft2",
    "fft_rfftn",
    "fft_irfftn",
    "fft_hfft",
    "fft_ihfft",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_cond",
    "linalg_eig",
    "linalg_eigh",
    "linalg_eigvals",
    "linalg_eigvalsh",
    "linalg_householder_product",
    "linalg_inv",
    "linalg_inv_ex",
    "linalg_lstsq",
    "linalg_matrix_rank",
    "linalg_qr",
    "linalg_solve",
    "linalg_svd",
    "linalg_svdvals",
    "linalg_tensorinv",
    "linalg_tensorsolve",
};
constexpr const char* kWidest[] = {"cat", "stack", "index_copy"};

using Policies = std::unordered_map<const Op*, Policy>;

const Policies& policies() {
  static const Policies table = [] {
    Policies t;
    auto add = [&](const char* name, Policy policy) {
      for (const Op* op : overloads(name)) t[op] = policy;
    };
    for (const char* name : kLower) add(name, Policy::Lower);
    for (const char* name : kSingle) add(name, Policy::Single);
    for (const char* name : kWidest) add(name, Policy::Widest);
    return t;
  }();
  return table;
}

// A parameter and its conversion. The version tells whether it has been changed since.
struct Converted {
  Tensor source, result;
  uint32_t version;
};

struct State {
  Autocast now;
  std::unordered_map<const TensorImpl*, Converted> cache;
};
State& state() {
  static thread_local State s;
  return s;
}

// Disables the layer for the ops that it calls itself.
struct Suspended {
  Suspended() { modes.always &= ~uint32_t{kAutocastLayer}; }
  ~Suspended() { modes.always |= kAutocastLayer; }
};

bool is_eligible(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::Float64;
}

Tensor converted(const Tensor& t, DType dtype) {
  if (!is_eligible(t) || t.dtype() == dtype) return t;
  State& s = state();
  const bool keep = s.now.cache && modes.grad && dtype == s.now.dtype &&
                    t.dtype() == DType::Float32 && requires_grad(t) && is_leaf(t);
  if (!keep) return to(t, dtype);
  auto found = s.cache.find(t.impl());
  if (found != s.cache.end() && found->second.version == t.version()) return found->second.result;
  Tensor result = to(t, dtype);
  s.cache.insert_or_assign(t.impl(), Converted{t, result, t.version()});
  return result;
}

template <class F> void each_tensor(std::span<Value> args, F&& f) {
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      *t = f(*t);
    } else if (auto* list = std::get_if<TensorList>(&v)) {
      for (Tensor& t : *list) t = f(t);
    }
  }
}

DType target(Policy policy, std::span<Value> args) {
  if (policy == Policy::Single) return DType::Float32;
  DType dtype = state().now.dtype;
  if (policy == Policy::Widest) {
    each_tensor(args, [&](const Tensor& t) {
      if (is_eligible(t) && t.dtype() == DType::Float32) dtype = DType::Float32;
      return t;
    });
  }
  return dtype;
}

Value autocast_layer(Call& c, uint32_t inner) {
  auto found = policies().find(&c.op);
  if (found == policies().end() || c.out.defined() || c.op.inplace_form)
    return call_inner(c, inner);
  std::vector<Value> args(c.args.begin(), c.args.end());
  const Suspended suspended;
  const DType dtype = target(found->second, args);
  each_tensor(args, [&](const Tensor& t) { return converted(t, dtype); });
  Call changed{c.op, args, {}, c.grad};
  return call_inner(changed, inner);
}

[[maybe_unused]] const bool installed = (set_layer(kAutocastLayer, autocast_layer), true);

}  // namespace

Autocast autocast() { return state().now; }

void set_autocast(Autocast next) {
  check(is_half(next.dtype), "set_autocast: the dtype must be float16 or bfloat16, got ",
        name(next.dtype));
  state().now = next;
  if (next.enabled) modes.always |= kAutocastLayer;
  else modes.always &= ~uint32_t{kAutocastLayer};
}

void clear_autocast_cache() { state().cache.clear(); }

}  // namespace taeda
