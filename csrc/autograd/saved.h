// SavedTensor: a value that a node keeps for its derivative, guarded against in-place changes.
#pragma once

#include "autograd/node.h"

namespace taeda {

// The object that saved_tensors_hooks packed a tensor into. Counted, since the hook that unpacks it
// may release the graph.
struct PackedTensor : RefCounted {
  Dims sizes;
  Options options;
  bool placeholder = false;
  virtual ~PackedTensor() = default;
  virtual Tensor unpack() = 0;
  static void destroy(PackedTensor* p) { delete p; }
};
struct SavedHooks {
  virtual ~SavedHooks() = default;
  virtual Ref<PackedTensor> pack(const Tensor& t) = 0;
};
TAEDA_FAST_TLS extern thread_local constinit SavedHooks* saved_hooks;  // nullptr: none

class SavedTensor {
 public:
  // A result of the saving node is kept without its history, to avoid a reference cycle through the
  // node.
  void save(const Tensor& t, bool is_result);
  bool has() const { return set_; }
  bool defined() const { return tensor_.defined() || packed_; }
  // The value. While gradients are recorded its gradient goes to (node, nr), as it did when it was
  // saved. `saver` is for messages. Throws where the value has been changed since, or released.
  Tensor unpack(const Node& saver, Node* node, uint32_t nr) const;
  // For a result that has got its tangent after it was saved.
  void take_tangent(const Tensor& result) const;
  void release() {
    tensor_ = Tensor();
    packed_.reset();
    released_ = true;
  }

 private:
  static constexpr uint32_t kMostReshapes = (1u << 29) - 1;
  bool has_its_shape() const;
  [[noreturn]] void changed(const Node& saver, const Node* node, uint32_t nr) const;

  Tensor tensor_;
  Ref<PackedTensor> packed_;
  uint32_t version_ = 0;
  bool set_ : 1 = false, is_result_ : 1 = false, released_ : 1 = false;
  uint32_t reshapes_ : 29 = 0;
};

[[noreturn]] void fail_released();  // "Trying to backward through the graph a second time ..."

}  // namespace taeda
