#include "kernels/cpu/conv/conv.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "kernels/cpu/conv/geometry.h"
#include "kernels/cpu/conv/tuning.h"

// The choice among the algorithms. It follows from the shape and the instruction set alone, so
// results do not depend on the number of threads.
namespace taeda::cpu {
namespace {

template <class T> struct Entry {
  const ConvAlgorithms<T>* algorithms;
  const ConvRates (ConvTuning::*rates)[3];
};
// im2col comes last: it can do everything.
constexpr std::array kFloat{Entry<float>{&winograd_f32, &ConvTuning::winograd},
                            Entry<float>{&nhwc_f32, &ConvTuning::nhwc},
                            Entry<float>{&depthwise_f32, &ConvTuning::depthwise},
                            Entry<float>{&depthwise_nhwc_f32, &ConvTuning::depthwise_nhwc},
                            Entry<float>{&im2col_f32, &ConvTuning::im2col}};
constexpr std::array kDouble{Entry<double>{&nhwc_f64, &ConvTuning::nhwc},
                             Entry<double>{&depthwise_f64, &ConvTuning::depthwise},
                             Entry<double>{&depthwise_nhwc_f64, &ConvTuning::depthwise_nhwc},
                             Entry<double>{&im2col_f64, &ConvTuning::im2col}};
template <class T> constexpr auto& entries() {
  if constexpr (std::is_same_v<T, float>) return kFloat;
  else return kDouble;
}

std::atomic<const char*> forced_name = nullptr;

// The entry with the least estimated time of those whose bit in `excluded` is 0.
template <class T> size_t choose(ConvPass pass, const ConvShape& s, uint32_t excluded) {
  const auto at = static_cast<size_t>(pass);
  const char* forced = forced_name.load(std::memory_order_relaxed);
  size_t best = entries<T>().size() - 1;
  double least = HUGE_VAL;
  for (size_t i = 0; i < entries<T>().size(); ++i) {
    const Entry<T>& entry = entries<T>()[i];
    const ConvAlgorithm<T>& algorithm = entry.algorithms->passes[at];
    if ((excluded >> i & 1) != 0 || !algorithm.supports || !algorithm.supports(s)) continue;
    if (forced && std::string_view(forced) == algorithm.name) return i;
    const double time = (conv_tuning().*entry.rates)[at].time(algorithm.work(s));
    if (time < least) {
      least = time;
      best = i;
    }
  }
  return best;
}

// The choices that this thread has made of late, since a small convolution takes no longer than
// the choice.
template <class T> size_t remembered_choice(ConvPass pass, const ConvShape& s) {
  struct Choice {
    ConvShape shape{};
    ConvPass pass{};
    size_t index{};
  };
  static thread_local std::unique_ptr<std::array<Choice, 64>> choices;
  if (forced_name.load(std::memory_order_relaxed)) return choose<T>(pass, s, 0);
  auto hash = static_cast<uint64_t>(pass);
  for (int64_t v : {s.batch, s.in_channels, s.out_channels, s.in[0], s.out[0], s.kernel[0]})
    hash = (hash ^ static_cast<uint64_t>(v)) * 0x9e3779b97f4a7c15u;
  if (!choices) choices = std::make_unique<std::array<Choice, 64>>();
  Choice& choice = (*choices)[hash >> 58];
  if (choice.shape != s || choice.pass != pass) choice = {s, pass, choose<T>(pass, s, 0)};
  return choice.index;
}

template <class T>
void run(ConvPass pass, const ConvShape& s, const T* a, const T* b, const T* bias, T* result) {
  uint32_t excluded = 0;
  size_t i = remembered_choice<T>(pass, s);
  const auto at = static_cast<size_t>(pass);
  while (!entries<T>()[i].algorithms->passes[at].run(s, a, b, bias, result)) {
    excluded |= uint32_t{1} << i;
    i = choose<T>(pass, s, excluded);
  }
}

}  // namespace

template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  if (s.batch * s.out_channels * volume(s, s.out) == 0) return;
  run(ConvPass::forward, s, x, w, bias, y);
}

template <class T> void conv_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
  const int64_t total = s.batch * s.in_channels * volume(s, s.in);
  if (total == 0) return;
  if (s.out_channels * volume(s, s.out) * volume(s, s.kernel) == 0) std::fill_n(gx, total, T(0));
  else run<T>(ConvPass::grad_input, s, gy, w, nullptr, gx);
}

template <class T> void conv_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const int64_t total = s.out_channels * (s.in_channels / s.groups) * volume(s, s.kernel);
  if (total == 0) return;
  if (s.batch * volume(s, s.out) * volume(s, s.in) == 0) std::fill_n(gw, total, T(0));
  else run<T>(ConvPass::grad_weight, s, x, gy, nullptr, gw);
}

#define TAEDA_CONV(T)                                                                \
  template void conv_forward<T>(const ConvShape&, const T*, const T*, const T*, T*); \
  template void conv_grad_input<T>(const ConvShape&, const T*, const T*, T*);        \
  template void conv_grad_weight<T>(const ConvShape&, const T*, const T*, T*);
TAEDA_CONV(float)
TAEDA_CONV(double)

std::vector<ConvCandidate> conv_candidates(ConvPass pass, const ConvShape& s) {
  std::vector<ConvCandidate> list;
  const auto at = static_cast<size_t>(pass);
  for (const Entry<float>& entry : kFloat) {
    const ConvAlgorithm<float>& algorithm = entry.algorithms->passes[at];
    if (!algorithm.supports || !algorithm.supports(s)) continue;
    const ConvWork w = algorithm.work(s);
    list.push_back({algorithm.name,
                    (conv_tuning().*entry.rates)[at].time(w),
                    {w.fma, w.moved, w.packed, w.calls}});
  }
  return list;
}

bool force_conv_algorithm(const char* name) {
  for (const Entry<float>& entry : kFloat) {
    const char* known = entry.algorithms->passes[0].name;
    if (name && std::string_view(name) == known) {
      forced_name = known;
      return true;
    }
  }
  if (!name) forced_name = nullptr;
  return !name;
}

}  // namespace taeda::cpu
