#include "kernels/cpu/conv/conv.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "kernels/cpu/common/table.h"
#include "kernels/cpu/conv/algorithm.h"

// The choice among the algorithms. It follows from the shape and the instruction set alone, so
// results do not depend on the number of threads.
namespace taeda::cpu {
namespace {

// im2col comes last: it can do everything.
constexpr std::array kFloat{&winograd_f32, &nhwc_f32, &depthwise_f32, &im2col_f32};
constexpr std::array kDouble{&nhwc_f64, &depthwise_f64, &im2col_f64};
template <class T> constexpr auto& algorithms() {
  if constexpr (std::is_same_v<T, float>) return kFloat;
  else return kDouble;
}

std::atomic<const char*> forced_name = nullptr;

// Nanoseconds for each element of x and y that an op copies from channels_last, or to it.
constexpr double kCopied = 0.8;

struct Candidate {
  size_t index;
  double time;
};
// The algorithm with the least estimated time of those whose bit in `excluded` is 0.
template <class T> Candidate choose(ConvPass pass, const ConvShape& s, uint32_t excluded) {
  const char* forced = forced_name.load(std::memory_order_relaxed);
  Candidate best{algorithms<T>().size() - 1, HUGE_VAL};
  for (size_t i = 0; i < algorithms<T>().size(); ++i) {
    const ConvAlgorithm<T>& algorithm = *algorithms<T>()[i];
    if ((excluded >> i & 1) != 0 || !algorithm.passes[static_cast<size_t>(pass)].supports(s))
      continue;
    if (forced && std::string_view(forced) == algorithm.name) return {i, 0};
    const double time = algorithm.time(pass, s);
    if (time < best.time) best = {i, time};
  }
  return best;
}

// The choices that this thread has made of late, since a small convolution takes no longer than
// the choice.
template <class T> Candidate remembered_choice(ConvPass pass, const ConvShape& s) {
  struct Choice {
    ConvShape shape{};
    ConvPass pass{};
    Candidate candidate{};
  };
  static thread_local std::unique_ptr<std::array<Choice, 64>> choices;
  if (forced_name.load(std::memory_order_relaxed)) return choose<T>(pass, s, 0);
  auto hash = static_cast<uint64_t>(pass) * 2 + (s.channels_last ? 1 : 0);
  for (int64_t v : {s.batch, s.in_channels, s.out_channels, s.in[2], s.out[2], s.kernel[2]})
    hash = (hash ^ static_cast<uint64_t>(v)) * 0x9e3779b97f4a7c15u;
  if (!choices) choices = std::make_unique<std::array<Choice, 64>>();
  Choice& choice = (*choices)[hash >> 58];
  if (choice.shape != s || choice.pass != pass) choice = {s, pass, choose<T>(pass, s, 0)};
  return choice.candidate;
}

// Whether this takes less time than in NCHW, with copies of what is given and of the result.
template <class T> bool takes_channels_last(ConvPass pass, const ConvShape& s) {
  ConvShape there = s, copied = s;
  there.channels_last = true;
  copied.channels_last = false;
  const double elements = real(s.batch) * (real(s.in_channels) * real(volume(s.in)) +
                                           real(s.out_channels) * real(volume(s.out)));
  return elements > 0 && remembered_choice<T>(pass, there).time <
                             remembered_choice<T>(pass, copied).time + kCopied * elements;
}

template <class T>
void run(ConvPass pass, const ConvShape& s, const T* a, const T* b, const T* bias, T* result) {
  uint32_t excluded = 0;
  size_t i = remembered_choice<T>(pass, s).index;
  const auto at = static_cast<size_t>(pass);
  while (!algorithms<T>()[i]->passes[at].run(s, a, b, bias, result)) {
    excluded |= uint32_t{1} << i;
    i = choose<T>(pass, s, excluded).index;
  }
}

template <class T> void forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  if (s.batch * s.out_channels * volume(s.out) == 0) return;
  run(ConvPass::forward, s, x, w, bias, y);
}

template <class T> void grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
  const int64_t total = s.batch * s.in_channels * volume(s.in);
  if (total == 0) return;
  if (s.out_channels * volume(s.out) * volume(s.kernel) == 0) std::fill_n(gx, total, T(0));
  else run<T>(ConvPass::grad_input, s, gy, w, nullptr, gx);
}

template <class T> void grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const int64_t total = s.out_channels * (s.in_channels / s.groups) * volume(s.kernel);
  if (total == 0) return;
  if (s.batch * volume(s.out) * volume(s.in) == 0) std::fill_n(gw, total, T(0));
  else run<T>(ConvPass::grad_weight, s, x, gy, nullptr, gw);
}

}  // namespace

std::vector<ConvCandidate> conv_candidates(ConvPass pass, const ConvShape& s) {
  std::vector<ConvCandidate> list;
  for (const ConvAlgorithm<float>* algorithm : kFloat) {
    const auto& of_pass = algorithm->passes[static_cast<size_t>(pass)];
    if (!of_pass.supports(s)) continue;
    const ConvWork w = of_pass.work(s);
    list.push_back(
        {algorithm->name, algorithm->time(pass, s), {w.fma, w.moved, w.packed, w.calls}});
  }
  return list;
}

bool force_conv_algorithm(const char* name) {
  const char* known = nullptr;
  for (const ConvAlgorithm<float>* algorithm : kFloat) {
    if (name && std::string_view(name) == algorithm->name) known = algorithm->name;
  }
  if (known || !name) forced_name = known;
  return known || !name;
}

}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(ConvKernels, cpu::forward<T>, cpu::grad_input<T>, cpu::grad_weight<T>,
                    cpu::takes_channels_last<T>)
