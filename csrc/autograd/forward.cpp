#include "autograd/forward.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

std::atomic<uint64_t> next_level{1};
thread_local constinit uint64_t level_now = 0;

// Guards the list of tangents: tensors may be destroyed in any thread.
std::mutex& tangents_mutex() {
  static std::mutex mutex;
  return mutex;
}
Tangent* first_tangent = nullptr;

// Ignores a tangent that no longer fits because `t` has been given other data.
const Tangent* own_tangent(const TensorImpl* t) {
  const AutogradMeta* m = meta_of(t);
  const Tangent* own = m ? m->tangent.get() : nullptr;
  const bool counts =
      own && own->level == level_now && is_inexact(t->dtype) && same(own->value.sizes(), t->sizes);
  return counts ? own : nullptr;
}

void attach(const Tensor& t, Tensor tangent) {
  make_meta(t.impl()).tangent = std::make_unique<Tangent>(std::move(tangent), level_now);
}

bool same_strides(const Tensor& a, const Tensor& b) {
  for (size_t i = 0; i < a.sizes().size(); ++i) {
    if (a.sizes()[i] > 1 && a.strides()[i] != b.strides()[i]) return false;
  }
  return true;
}

// True if no two elements share memory. Sufficient, not necessary: compares strides only.
bool elements_are_distinct(const Tensor& t) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < t.sizes().size(); ++i) {
    if (t.sizes()[i] > 1) dims.emplace_back(t.strides()[i], t.sizes()[i]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t extent = 0;
  for (auto [stride, size] : dims) {
    if (stride <= extent) return false;
    extent += stride * (size - 1);
  }
  return true;
}

// Views of `t` are applied to its tangent as well, so both need the same layout.
Tensor with_layout_of(const Tensor& t, const Tensor& tangent) {
  if (t.numel() == 0 || same_strides(t, tangent) || !elements_are_distinct(t)) return tangent;
  Tensor copy = empty_strided(t.sizes(), t.strides(), tangent.options());
  op<"copy_">(copy, tangent);
  return copy;
}

Tensor zero_tangent(const Tensor& t) {
  if (!elements_are_distinct(t)) return zeros(t.sizes(), t.options());
  Tensor z = empty_strided(t.sizes(), t.strides(), t.options());
  op<"zero_">(z);
  return z;
}

}  // namespace

Tangent::Tangent(Tensor v, uint64_t l) : value(std::move(v)), level(l) {
  std::lock_guard lock(tangents_mutex());
  next = std::exchange(first_tangent, this);
  if (next) next->previous = this;
}

Tangent::~Tangent() {
  std::lock_guard lock(tangents_mutex());
  (previous ? previous->next : first_tangent) = next;
  if (next) next->previous = previous;
}

bool forward_level() { return level_now != 0; }

void enter_forward_level() {
  check(!level_now, "Nested forward mode AD is not supported at the moment");
  level_now = next_level.fetch_add(1, std::memory_order_relaxed);
  modes.always |= kForwardLayer;
}

void exit_forward_level() {
  check(level_now, "Dual level must be a positive number.");
  const uint64_t level = std::exchange(level_now, 0);
  modes.always &= ~uint32_t{kForwardLayer};
  std::vector<Tensor> dropped;  // destroyed after the lock is released
  std::lock_guard lock(tangents_mutex());
  for (Tangent* t = first_tangent; t; t = t->next) {
    if (t->level == level) dropped.push_back(std::move(t->value));
  }
}

Tensor tangent_of(const Tensor& t) {
  if (!level_now || !t.defined()) return {};
  const TensorImpl* p = t.impl();
  if (const Tangent* own = own_tangent(p)) return own->value;
  if (!(p->flags & kIsView) || !p->base) return {};
  const Tangent* of_base = own_tangent(p->base.get());
  if (!of_base) return {};
  TangentsOff off;
  attach(t, same_view(of_base->value, p->base.get(), p));
  return own_tangent(p)->value;
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  check(level_now,
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
        "enter_dual_level() first.");
  check<ValueError>(
      is_inexact(primal.dtype()),
      "Expected primal to be floating point or complex, but got: ", info(primal.dtype()).name);
  check<ValueError>(
      is_inexact(tangent.dtype()),
      "Expected tangent to be floating point or complex, but got: ", info(tangent.dtype()).name);
  check(!tangent_of(primal).defined(),
        "Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
        "level 0 is not supported.");
  Tensor dual = op<"alias">(primal);
  set_tangent(dual, tangent);
  return dual;
}

Tensor primal_of(const Tensor& dual) {
  TangentsOff off;
  Tensor p = op<"alias">(dual);
  // Otherwise the base's tangent would be used.
  p.impl()->base.reset();
  p.impl()->flags &= ~static_cast<uint32_t>(kIsView);
  return p;
}

void set_tangent(const Tensor& t, const Tensor& tangent) {
  check(same(t.sizes(), tangent.sizes()),
        "Trying to set a forward gradient that has a different size than that of the original "
        "Tensor, this is not supported. Tensor is of size ",
        to_string(t.sizes()), " while the given forward gradient is of size ",
        to_string(tangent.sizes()), ".");
  check(t.device() == tangent.device(),
        "Trying to set a forward gradient on another device than that of the original Tensor: ",
        tangent.device(), " instead of ", t.device());
  check(!tangent_of(tangent).defined(),
        "Setting a forward grad that itself has a forward gradient at the same level0 is not "
        "supported.");
  TangentsOff off;
  attach(t, with_layout_of(t, tangent));
}

void change_tangent(const Tensor& t, const Tensor& tangent) {
  TangentsOff off;
  Tensor own = tangent_of(t);
  if (!own.defined()) {
    const Ref<TensorImpl>& base = t.impl()->base;
    if (!(t.flags() & kIsView) || !base || !is_inexact(base->dtype)) {
      if (tangent.defined()) attach(t, with_layout_of(t, tangent));
      return;
    }
    const Tensor whole(base);
    attach(whole, zero_tangent(whole));
    own = tangent_of(t);
  }
  if (tangent.defined()) op<"copy_">(own, tangent);
  else op<"zero_">(own);
}

void share_tangent(const Tensor& from, const Tensor& to) {
  if (!level_now) return;
  if (Tensor tangent = tangent_of(from); tangent.defined()) attach(to, std::move(tangent));
}

void check_no_tangent(const Tensor& t, const Op& op) {
  check<NotImplemented>(!tangent_of(t).defined(), "Trying to use forward AD with ", op.name,
                        "_out that does not support it because it is an out= function");
}

}  // namespace taeda
