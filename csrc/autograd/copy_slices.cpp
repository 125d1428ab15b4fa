// In-place changes of views: the base gets a node that passes the gradient of the changed part
// through the operation's derivative.
#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const TensorImpl* view, Ref<Node> inner, uint32_t nr,
             size_t self_edge)
      : base_sizes_(base.sizes()),
        base_strides_(base.strides()),
        sizes_(view->sizes),
        strides_(view->strides),
        dtype_(view->dtype),
        offset_(view->offset),
        inner_(std::move(inner)),
        nr_(nr),
        self_edge_(self_edge) {
    int64_t base_offset = base.offset();
    if (is_complex(base.dtype()) && !is_complex(dtype_)) base_offset *= 2;
    if (!is_complex(base.dtype()) && is_complex(dtype_)) base_offset /= 2;
    offset_ -= base_offset;
    // The operation's edge to the changed tensor led to the view; redirect it to the base.
    NodeExtras& extras = inner_->make_extras();
    extras.wrapper = this;
    extras.former = std::exchange(inner_->edges()[self_edge_], gradient_edge(base));
    extras.former_at = self_edge_;
    Small<Edge, 3> edges(inner_->edges().size());
    for (size_t i = 0; i < edges.size(); ++i) edges[i] = inner_->edges()[i];
    set_edges(std::move(edges));
    take_sequence();
  }

  ~CopySlices() override { forget(); }

  std::string name() const override { return "CopySlices"; }

  // `value` is the view after the change. Returns it with its new history.
  Tensor recorded(const Tensor& value) {
    int64_t start = value.offset() - offset_;
    check(value.dtype() == dtype_ && start >= 0,
          "the derivative of a derivative through an in-place change of a view of another dtype is "
          "not supported");
    Tensor base = from_storage(value.storage(), base_sizes_, base_strides_, start, value.dtype());
    set_history(base, Ref<Node>(this), 0);
    return op<"as_strided">(base, sizes_, strides_, value.offset());
  }

  void apply(std::span<Tensor> grads, std::span<Tensor> results) override {
    check(bool(inner_),
          "Trying to backward through the graph a second time (or directly access saved tensors "
          "after they have already "
          "been freed). Saved intermediate values of the graph are freed when you call .backward() "
          "or autograd.grad(). "
          "Specify retain_graph=True if you need to backward through the graph a second time or if "
          "you need to access "
          "saved tensors after calling backward.");
    if (!grads[0].defined()) return;
    const Tensor& g = grads[0];
    Tensor whole = g.flags() & kDispatch ? op<"new_empty_strided">(g, base_sizes_, base_strides_)
                                         : empty_strided(base_sizes_, base_strides_, g.options());
    op<"copy_">(whole, g);
    Tensor part = part_of(whole);
    Small<Tensor, 2> inner_grads(inner_->num_results);
    inner_grads[nr_] = clone(part);
    inner_->apply(inner_grads, results);
    if (!inner_->needs(self_edge_)) return;
    Tensor& own = results[self_edge_];
    if (own.defined()) op<"copy_">(part, own);
    else op<"zero_">(part);
    own = std::move(whole);
  }

  void release() override {
    if (inner_) inner_->release();
    forget();
    inner_.reset();
  }

 private:
  void forget() {
    if (inner_ && inner_->extras) inner_->extras->wrapper = nullptr;
  }

  Tensor part_of(const Tensor& whole) const {
    if (whole.dtype() == dtype_ || is_complex(whole.dtype()) == is_complex(dtype_)) {
      return op<"as_strided">(whole, sizes_, strides_, offset_);
    }
    if (is_complex(whole.dtype()))
      return op<"as_strided">(op<"view_as_real">(whole), sizes_, strides_, offset_);
    Dims sizes = sizes_, strides = strides_;
    for (int64_t& s : strides) s *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    return op<"view_as_complex">(op<"as_strided">(whole, sizes, strides, offset_ * 2));
  }

  Dims base_sizes_, base_strides_, sizes_, strides_;
  DType dtype_;
  int64_t offset_;
  Ref<Node> inner_;
  uint32_t nr_;
  size_t self_edge_;
};

}  // namespace

Ref<Node> make_copy_slices(const Tensor& base, const TensorImpl* view, Ref<Node> node, uint32_t nr,
                           size_t self_edge) {
  return make_ref<CopySlices>(base, view, std::move(node), nr, self_edge);
}

Tensor recorded_view(Node& copy_slices, const Tensor& value) {
  return static_cast<CopySlices&>(copy_slices).recorded(value);
}

}  // namespace taeda
