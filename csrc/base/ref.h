// Intrusive reference counting: the one way objects are shared in the core.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace taeda {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  uint32_t ref_count() const { return refs_.load(std::memory_order_acquire); }
  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  // The first count of an object that no other thread can see yet.
  void retain_first() const { refs_.store(1, std::memory_order_relaxed); }
  // For a pointer that holds no count: takes one unless the object is already on its way out.
  bool try_retain() const {
    uint32_t n = refs_.load(std::memory_order_relaxed);
    while (n && !refs_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) {
    }
    return n != 0;
  }
  // True if this was the last reference: the caller must destroy the object. A sole owner skips the
  // atomic write, since nobody else can take a reference. Types with try_retain() count down to
  // zero.
  bool drop() const { return refs_.load(std::memory_order_acquire) == 1 || drop_counted(); }
  bool drop_counted() const { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

// T provides `static void destroy(T*)`, called when the last reference goes.
template <class T> class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& o) : Ref(o.get()) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& o) noexcept : p_(o.release()) {}
  ~Ref() { reset(); }
  Ref& operator=(const Ref& o) {
    Ref(o).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    Ref(std::move(o)).swap(*this);
    return *this;
  }

  void reset() {
    if (T* p = std::exchange(p_, nullptr); p && p->drop()) T::destroy(p);
  }
  void swap(Ref& o) noexcept { std::swap(p_, o.p_); }
  // The first reference to a new object.
  static Ref first(T* p) {
    p->retain_first();
    return adopt(p);
  }
  // adopt() takes over a count that the caller holds; release() hands it back.
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  T* release() { return std::exchange(p_, nullptr); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }

 private:
  T* p_ = nullptr;
};

template <class T, class... A> Ref<T> make_ref(A&&... a) {
  // No parentheses without arguments: `T()` would zero the memory first.
  if constexpr (sizeof...(A) == 0) return Ref<T>::first(new T);
  else return Ref<T>::first(new T(std::forward<A>(a)...));
}

}  // namespace taeda
