// An extension of taeda with an op of its own: exponential smoothing along the last dimension,
//
//   y[t] = (1 - decay) x[t] + decay y[t - 1]
//
// which would take one op for each t if it were written with the ops that there are. README.md
// beside this file says how it is built.
#include <taeda/nanobind.h>

using taeda::Tensor;

// The kernel: plain memory in, plain memory out.
template <class T> void smooth_lines(const Tensor& x, const Tensor& y, T decay) {
  const int64_t n = x.size(-1), lines = n ? x.numel() / n : 0;
  const T* from = x.data<T>();
  T* to = y.data<T>();
  taeda::parallel_for(lines, std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin * n; i < end * n; i += n) {
                          T last = 0;
                          for (int64_t t = 0; t < n; ++t)
                            to[i + t] = last = (1 - decay) * from[i + t] + decay * last;
                        }
                      });
}

// What the op means: checks, dtypes, the call. On the meta device there is nothing to compute.
Tensor smooth(const Tensor& self, double decay) {
  taeda::check(self.dim() > 0, "smooth(): self must have a dimension");
  taeda::check<taeda::ValueError>(decay >= 0 && decay < 1, "smooth(): decay must be in [0, 1)");
  taeda::check<taeda::TypeError>(
      self.dtype() == taeda::DType::Float32 || self.dtype() == taeda::DType::Float64,
      "smooth(): self must be float32 or float64");
  Tensor x = self.contiguous(), y = taeda::empty(x.sizes(), x.options());
  if (x.is_meta()) return y;
  if (x.dtype() == taeda::DType::Float32) smooth_lines<float>(x, y, static_cast<float>(decay));
  else smooth_lines<double>(x, y, decay);
  return y;
}

// The derivative: the same recurrence, run from the end. Being ops, it can be differentiated again.
void smooth_backward(taeda::Backward& b) {
  const std::vector<int64_t> last{-1};
  Tensor g = taeda::op<"flip">(b.grad(), last);
  b.set(0, taeda::op<"flip">(taeda::op<"smooth_example::smooth">(g, b.arg<double>(1)), last));
}

// A function that is no op of its own: what it calls is recorded for gradients.
Tensor roughness(const Tensor& x, double decay) {
  Tensor rest = x - taeda::op<"smooth_example::smooth">(x, decay);
  return taeda::op<"mean">(rest * rest);
}

NB_MODULE(smooth_example, m) {
  taeda::translate_errors();
  PyObject* op = taeda::define("smooth_example::smooth(self: Tensor, decay: float = 0.9) -> Tensor",
                               "Exponential smoothing along the last dimension.",
                               taeda::kernel(smooth), {.backward = smooth_backward});
  m.attr("smooth") = nanobind::steal(op);
  m.def("roughness", &roughness, nanobind::arg("x"), nanobind::arg("decay") = 0.9,
        "Mean square of what smoothing takes away.");
}
