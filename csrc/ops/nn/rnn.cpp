// Recurrent networks over whole sequences: nn.RNN, nn.LSTM and nn.GRU call these for each layer and
// direction. The input's contribution to the gates is computed by a linear layer beforehand.
#include "kernels/rnn.h"

#include <algorithm>

#include "autograd/backward.h"
#include "ops/core/half.h"
#include "ops/core/memory.h"

namespace taeda {
namespace {

enum RnnArgument { kX, kH0, kC0, kW, kB, kR, kSizes, kCell, kReverse };
enum RnnResult { kOutput, kHn, kCn, kActs, kExtra };

RnnCell cell_of(int64_t number) {
  check<ValueError>(number >= 0 && number <= 3,
                    "rnn: cell must be 0 (tanh), 1 (relu), 2 (LSTM) or 3 (GRU), got ", number);
  return static_cast<RnnCell>(number);
}

// The offset of each step's rows in a packed batch, and the validated shapes.
struct Layout {
  Dims sizes, offsets;
  RnnShape shape;
  int64_t rows = 0;

  Layout(const Tensor& x, const Tensor& h0, const Tensor& w, const Dims& step_sizes, RnnCell cell,
         bool reverse)
      : sizes(step_sizes),
        offsets(step_sizes.size()) {
    check(x.dim() == 2 && h0.dim() == 2 && w.dim() == 2,
          "rnn: expected x, h0 and w to have 2 dimensions, got shapes ", to_string(x.sizes()), ", ",
          to_string(h0.sizes()), " and ", to_string(w.sizes()));
    const int64_t count = gate_count(cell);
    check(x.size(1) % count == 0 && w.size(0) == x.size(1) && w.size(1) == h0.size(1), "rnn: x ",
          to_string(x.sizes()), ", h0 ", to_string(h0.sizes()), " and w ", to_string(w.sizes()),
          " do not fit together with ", count, " gates");
    int64_t last = h0.size(0);
    for (size_t t = 0; t < sizes.size(); ++t) {
      check<ValueError>(sizes[t] >= 0 && sizes[t] <= last, "rnn: step ", t, " has ", sizes[t],
                        " rows; expected at most the ", last, " of the step before it");
      offsets[t] = rows;
      rows += last = sizes[t];
    }
    check(rows == x.size(0), "rnn: the steps have ", rows, " rows in all, but x has ", x.size(0));
    shape = {cell,       reverse,      h0.size(0),     x.size(1) / count,
             h0.size(1), sizes.data(), offsets.data(), static_cast<int64_t>(sizes.size())};
  }
};

void check_rest(const RnnShape& s, const Tensor& x, const Tensor& c0, const Tensor& b,
                const Tensor& r) {
  const bool lstm = s.cell == RnnCell::Lstm;
  check(c0.defined() == lstm, "rnn: c0 is for LSTMs, and they need it");
  if (lstm) {
    check(same(c0.sizes(), Dims{s.batch, s.hidden}), "rnn: expected c0 of shape ",
          to_string(Dims{s.batch, s.hidden}), ", got ", to_string(c0.sizes()));
  }
  if (b.defined()) {
    check(same(b.sizes(), Dims{s.gates()}), "rnn: expected b of shape ", to_string(Dims{s.gates()}),
          ", got ", to_string(b.sizes()));
  }
  check(r.defined() ? lstm && same(r.sizes(), Dims{s.state, s.hidden}) : s.state == s.hidden,
        "rnn: expected r of shape ", to_string(Dims{s.state, s.hidden}),
        " where the state has another size than the cell, and only for LSTMs");
  for (const Tensor* t : {&c0, &b, &r}) {
    check(!t->defined() || t->dtype() == x.dtype(), "rnn: expected every tensor to have dtype ",
          x.dtype(), ", got ", t->defined() ? t->dtype() : x.dtype());
  }
}

// A copy that the kernel may change.
Tensor copied(const Tensor& t, DType dtype) {
  Tensor r = empty(t.sizes(), {dtype, t.device()});
  if (!t.is_meta()) copy_into(r, t);
  return r;
}

TensorList sequence(const Tensor& x, const Tensor& h0, const Tensor& c0, const Tensor& w,
                    const Tensor& b, const Tensor& r, const Dims& sizes, int64_t cell,
                    bool reverse) {
  Layout layout(x, h0, w, sizes, cell_of(cell), reverse);
  const RnnShape& s = layout.shape;
  check_rest(s, x, c0, b, r);
  check(h0.dtype() == x.dtype() && w.dtype() == x.dtype(),
        "rnn: expected every tensor to have dtype ", x.dtype(), ", got ", h0.dtype(), " and ",
        w.dtype());
  DType compute = compute_dtype(x.dtype(), "rnn");
  Options o{compute, x.device()};
  Tensor gates = prepared(x, compute), weight = prepared(w, compute), bias = prepared(b, compute),
         projection = prepared(r, compute);
  Tensor h = copied(h0, compute), c = c0.defined() ? copied(c0, compute) : empty(Dims{0}, o);
  Tensor output = empty(Dims{layout.rows, s.state}, o), acts = empty(x.sizes(), o);
  const bool keeps = s.cell == RnnCell::Lstm || s.cell == RnnCell::Gru;
  Tensor extra = empty(Dims{keeps ? layout.rows : 0, s.hidden}, o);
  if (output.numel() && !output.is_meta()) {
    visit_floating(compute, "rnn", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<RnnKernels<T>>(x.device())
          .forward(s, {weight.data_as<T>(), memory<T>(bias), memory<T>(projection)},
                   {gates.data_as<T>(), memory<T>(h), memory<T>(c), memory<T>(output),
                    memory<T>(acts), memory<T>(extra)});
    });
  }
  return {finished(output, x.dtype()), finished(h, x.dtype()), finished(c, x.dtype()), acts, extra};
}

// Gradients of x, h0, c0, w, b and r; those that do not exist are empty.
TensorList sequence_backward(const Tensor& grad, const Tensor& grad_h, const Tensor& grad_c,
                             const Tensor& h0, const Tensor& c0, const Tensor& w, const Tensor& r,
                             const Tensor& output, const Tensor& acts, const Tensor& extra,
                             const Dims& sizes, int64_t cell, bool reverse) {
  Layout layout(acts, h0, w, sizes, cell_of(cell), reverse);
  const RnnShape& s = layout.shape;
  const bool lstm = s.cell == RnnCell::Lstm, gru = s.cell == RnnCell::Gru;
  DType compute = acts.dtype(), dtype = w.dtype();
  check_rest(s, w, c0, Tensor(), r);
  check(compute == compute_dtype(dtype, "rnn") && acts.is_contiguous() &&
            same(output.sizes(), Dims{layout.rows, s.state}) && extra.is_contiguous() &&
            extra.dtype() == compute && (!(lstm || gru) || extra.numel() == layout.rows * s.hidden),
        "_rnn_sequence_backward(): expected output, acts and extra as the forward pass kept them");
  check((!grad.defined() || same(grad.sizes(), output.sizes())) &&
            (!grad_h.defined() || same(grad_h.sizes(), h0.sizes())) &&
            (!grad_c.defined() || !lstm || same(grad_c.sizes(), c0.sizes())),
        "_rnn_sequence_backward(): expected gradients of the results' shapes");
  Options o{compute, acts.device()};
  Tensor weight = prepared(w, compute), projection = prepared(r, compute);
  Tensor h = prepared(h0, compute), c = prepared(c0, compute), out = prepared(output, compute),
         g = prepared(grad, compute);
  Tensor dh = grad_h.defined() ? copied(grad_h, compute) : zeros(h0.sizes(), o);
  Tensor dc = !lstm              ? empty(Dims{0}, o)
              : grad_c.defined() ? copied(grad_c, compute)
                                 : zeros(c0.sizes(), o);
  Tensor dx = empty(acts.sizes(), o), dg = gru ? empty(acts.sizes(), o) : dx;
  Tensor before = empty(output.sizes(), o);
  Tensor dp = empty(r.defined() ? Dims{layout.rows, s.state} : Dims{0}, o);
  Tensor raw = empty(r.defined() ? Dims{layout.rows, s.hidden} : Dims{0}, o);
  if (output.numel() && !output.is_meta()) {
    visit_floating(compute, "rnn", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<RnnKernels<T>>(acts.device())
          .backward(s, {memory<T>(weight), nullptr, memory<T>(projection)},
                    {memory<T>(h), memory<T>(c), memory<T>(out), memory<T>(acts), memory<T>(extra),
                     memory<T>(g), memory<T>(dh), memory<T>(dc), memory<T>(dx), memory<T>(dg),
                     memory<T>(before), memory<T>(dp), memory<T>(raw)});
    });
  }
  Tensor dw = matmul(transpose(dg, 0, 1), before), db = sum(dg, Dims{0});
  Tensor dr = r.defined() ? matmul(transpose(dp, 0, 1), raw) : empty(Dims{0}, o);
  return {finished(dx, dtype), finished(dh, dtype), finished(dc, dtype),
          finished(dw, dtype), finished(db, dtype), finished(dr, dtype)};
}

// ---- composed of ops, step by step, for higher-order derivatives ----

Tensor sigmoid(const Tensor& x) { return op<"sigmoid">(x); }
Tensor tanh(const Tensor& x) { return op<"tanh">(x); }

// Replaces the first rows of a state.
Tensor with_rows(const Tensor& state, const Tensor& rows) {
  const int64_t n = rows.size(0), rest = state.size(0) - n;
  if (rest == 0) return rows;
  return op<"cat">(TensorList{rows, narrow(state, 0, n, rest)}, int64_t(0));
}

struct Step {
  Tensor before, c_before, c, raw;  // its inputs and outputs
  Tensor in, forget, fresh, out;    // gates; a GRU's reset and update are `in` and `forget`
  Tensor from_state;
};

class SequenceReplay {
 public:
  explicit SequenceReplay(Backward& b)
      : b_(b),
        cell_(cell_of(b.arg<int64_t>(kCell))),
        sizes_(b.arg<Dims>(kSizes)),
        w_(b.arg<Tensor>(kW)),
        r_(b.arg<Tensor>(kR)) {
    int64_t at = 0;
    for (int64_t n : sizes_) {
      offsets_.push_back(at);
      at += n;
    }
    for (size_t t = 0; t < sizes_.size(); ++t) order_.push_back(static_cast<int64_t>(t));
    if (b.arg<bool>(kReverse)) std::reverse(order_.begin(), order_.end());
  }

  void run() {
    forward();
    backward();
  }

 private:
  Tensor gate(const Tensor& all, int64_t i) const {
    const int64_t n = all.size(1) / gate_count(cell_);
    return narrow(all, 1, i * n, n);
  }

  void forward() {
    Tensor x = b_.arg<Tensor>(kX), bias = b_.arg<Tensor>(kB);
    Tensor h = b_.arg<Tensor>(kH0), c = b_.arg<Tensor>(kC0);
    for (int64_t t : order_) {
      const int64_t n = sizes_[static_cast<size_t>(t)];
      Tensor part = narrow(x, 0, offsets_[static_cast<size_t>(t)], n);
      Step s;
      s.before = narrow(h, 0, 0, n);
      Tensor g = matmul(s.before, transpose(w_, 0, 1));
      if (bias.defined()) g = g + bias;
      if (cell_ == RnnCell::Gru) {
        s.in = sigmoid(gate(part, 0) + gate(g, 0));
        s.forget = sigmoid(gate(part, 1) + gate(g, 1));
        s.from_state = gate(g, 2);
        s.fresh = tanh(gate(part, 2) + s.in * s.from_state);
        s.raw = s.fresh + s.forget * (s.before - s.fresh);
      } else if (cell_ == RnnCell::Lstm) {
        Tensor all = part + g;
        s.in = sigmoid(gate(all, 0));
        s.forget = sigmoid(gate(all, 1));
        s.fresh = tanh(gate(all, 2));
        s.out = sigmoid(gate(all, 3));
        s.c_before = narrow(c, 0, 0, n);
        s.c = s.forget * s.c_before + s.in * s.fresh;
        s.raw = s.out * tanh(s.c);
        c = with_rows(c, s.c);
      } else {
        s.raw = cell_ == RnnCell::Relu ? op<"relu">(part + g) : tanh(part + g);
      }
      h = with_rows(h, r_.defined() ? matmul(s.raw, transpose(r_, 0, 1)) : s.raw);
      steps_.push_back(std::move(s));
    }
  }

  // The gradients of the gates' input and recurrent parts from that of the unprojected h; updates
  // `dc`.
  std::pair<Tensor, Tensor> through(const Step& s, const Tensor& d, Tensor& dc) const {
    auto cat = [](TensorList parts) { return op<"cat">(parts, int64_t(1)); };
    if (cell_ == RnnCell::Gru) {
      Tensor dfresh = d * (1.0 - s.forget) * (1.0 - s.fresh * s.fresh);
      Tensor dupdate = d * (s.before - s.fresh) * s.forget * (1.0 - s.forget);
      Tensor dreset = dfresh * s.from_state * s.in * (1.0 - s.in);
      return {cat({dreset, dupdate, dfresh}), cat({dreset, dupdate, dfresh * s.in})};
    }
    Tensor all;
    if (cell_ == RnnCell::Lstm) {
      Tensor t = tanh(s.c), dcell = dc + d * s.out * (1.0 - t * t);
      all = cat({dcell * s.fresh * s.in * (1.0 - s.in),
                 dcell * s.c_before * s.forget * (1.0 - s.forget),
                 dcell * s.in * (1.0 - s.fresh * s.fresh), d * t * s.out * (1.0 - s.out)});
      dc = dcell * s.forget;
    } else if (cell_ == RnnCell::Relu) {
      all = where(op<"gt">(s.raw, Tensor(0)), d, zeros_like(d));
    } else {
      all = d * (1.0 - s.raw * s.raw);
    }
    return {all, all};
  }

  void backward() {
    Tensor grad = b_.grad(kOutput), dh = b_.grad_or_zeros(kHn), dc;
    if (cell_ == RnnCell::Lstm) dc = b_.grad_or_zeros(kCn);
    TensorList dx(steps_.size());
    Tensor dw, db, dr;
    auto add = [](Tensor& total, const Tensor& more) {
      total = total.defined() ? total + more : more;
    };
    for (size_t k = steps_.size(); k-- > 0;) {
      const Step& s = steps_[k];
      const size_t t = static_cast<size_t>(order_[k]);
      const int64_t n = sizes_[t];
      Tensor d = narrow(dh, 0, 0, n), dcell = dc.defined() ? narrow(dc, 0, 0, n) : dc;
      if (grad.defined()) d = d + narrow(grad, 0, offsets_[t], n);
      if (r_.defined()) {
        add(dr, matmul(transpose(d, 0, 1), s.raw));
        d = matmul(d, r_);
      }
      auto [of_input, of_state] = through(s, d, dcell);
      dx[t] = of_input;
      add(dw, matmul(transpose(of_state, 0, 1), s.before));
      add(db, sum(of_state, Dims{0}));
      Tensor back = matmul(of_state, w_);
      if (cell_ == RnnCell::Gru) back = back + d * s.forget;
      dh = with_rows(dh, back);
      if (dc.defined()) dc = with_rows(dc, dcell);
    }
    b_.set(kH0, dh);
    if (dc.defined()) b_.set(kC0, dc);
    if (steps_.empty()) return;
    b_.set(kX, op<"cat">(dx, int64_t(0)));
    b_.set(kW, dw);
    if (b_.has(kB)) b_.set(kB, db);
    if (r_.defined()) b_.set(kR, dr);
  }

  Backward& b_;
  RnnCell cell_;
  Dims sizes_, offsets_, order_;
  Tensor w_, r_;
  std::vector<Step> steps_;
};

void sequence_gradient(Backward& b) {
  if (derivative_in_ops()) return SequenceReplay(b).run();
  TensorList r = ops<"_rnn_sequence_backward">(
      b.grad(kOutput), b.grad(kHn), b.grad(kCn), b.arg<Tensor>(kH0), b.arg<Tensor>(kC0),
      b.arg<Tensor>(kW), b.arg<Tensor>(kR), b.out(kOutput), b.out(kActs), b.out(kExtra),
      b.arg<Dims>(kSizes), b.arg<int64_t>(kCell), b.arg<bool>(kReverse));
  for (int i : {kX, kH0, kC0, kW, kB, kR}) {
    if (b.has(i)) b.set(i, r[static_cast<size_t>(i)]);
  }
}

const Define rnn_ops[] = {
    {"_rnn_sequence(x: Tensor, h0: Tensor, c0: Tensor?, w: Tensor, b: Tensor?, r: Tensor?, sizes: "
     "int[], cell: int, reverse: bool) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     "One layer and direction of a recurrent network over packed sequences: all outputs, the final "
     "h and c, and two tensors for the derivative. `cell`: 0 tanh, 1 relu, 2 LSTM, 3 GRU.",
     kernel(sequence),
     {.backward = sequence_gradient,
      .saves = saves_arg(kX) | saves_arg(kH0) | saves_arg(kC0) | saves_arg(kW) | saves_arg(kB) |
               saves_arg(kR) | saves_out(kOutput) | saves_out(kActs) | saves_out(kExtra),
      .forms = 0,
      .non_differentiable = 0b11000,
      .autocast = Precision::Lower,
      .flops = Flops::Recurrence}},
    {"_rnn_sequence_backward(grad: Tensor?, grad_h: Tensor?, grad_c: Tensor?, h0: Tensor, c0: "
     "Tensor?, w: Tensor, r: Tensor?, output: Tensor, acts: Tensor, extra: Tensor, sizes: int[], "
     "cell: int, reverse: bool) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
     "Gradients of _rnn_sequence.",
     kernel(sequence_backward),
     {.forms = 0, .flops = Flops::RecurrenceGradient}},
};

}  // namespace
}  // namespace taeda
