#include "kernels/cpu/fft/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kPassGrain = 1 << 15;      // elements of a pass worth a chunk
constexpr size_t kMostPlans = 64;            // of each dtype
constexpr size_t kMostPlanBytes = 64 << 20;  // of each dtype

// exp(-2 pi i k / n) for any k < n: the product of two entries of small tables, in long double.
// Each is right to the last bit of a double but for a rounding.
class Circle {
 public:
  struct Point {
    long double cosine, sine;  // of the angle 2 pi k / n; the imaginary part is -sine
  };
  explicit Circle(int64_t n) : n_(n) {
    while (step_ * step_ < n) step_ *= 2;
    for (int64_t k = 0; k < step_ && k < n; ++k) fine_.push_back(exact(k));
    for (int64_t k = 0; k < n; k += step_) coarse_.push_back(exact(k));
  }
  Point operator[](int64_t k) const {
    const Point a = coarse_[static_cast<size_t>(k / step_)],
                b = fine_[static_cast<size_t>(k % step_)];
    return {a.cosine * b.cosine - a.sine * b.sine, a.sine * b.cosine + a.cosine * b.sine};
  }

 private:
  // The angle is folded into the first eighth of the circle, so that the library sees a small one.
  Point exact(int64_t k) const {
    const long double circle = 2 * 3.14159265358979323846264338327950288L;
    int64_t eighths = 8 * k / n_, rest = 8 * k - eighths * n_;
    const bool odd = eighths & 1;
    if (odd) rest = n_ - rest;
    const long double angle =
        circle * static_cast<long double>(rest) / static_cast<long double>(8 * n_);
    long double c = std::cos(angle), s = std::sin(angle);
    if (odd) std::swap(c, s);
    switch (eighths / 2) {
      case 0: return {c, s};
      case 1: return {-s, c};
      case 2: return {-c, -s};
      default: return {s, -c};
    }
  }

  int64_t n_, step_ = 1;
  std::vector<Point> fine_, coarse_;
};

// Radices of the passes, in order: powers of two first, so that later passes have long columns.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> factors;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  const int fours = twos % 3 == 2 ? 1 : twos % 3 == 1 && twos >= 4 ? 2 : 0;
  for (int i = 0; i < fours; ++i, twos -= 2) factors.push_back(4);
  for (; twos >= 3; twos -= 3) factors.push_back(8);
  if (twos == 1) factors.push_back(2);
  for (int64_t p = 3; p * p <= n; p += 2) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

// Work for one transform of length n, in arbitrary units.
double cost_of(int64_t n) {
  double each = 0;
  for (int64_t p : factors_of(n))
    each += p <= 8 ? 2.0 + static_cast<double>(p) / 2 : 1.5 * static_cast<double>(p);
  return each * static_cast<double>(n);
}

// The cheapest length of at least `least` whose prime factors are 2, 3 and 5.
int64_t smooth_length(int64_t least) {
  int64_t best = 1;
  while (best < least) best *= 2;
  double best_cost = cost_of(best);
  for (int64_t five = 1; five < 2 * least; five *= 5) {
    for (int64_t three = five; three < 2 * least; three *= 3) {
      int64_t n = three;
      while (n < least) n *= 2;
      if (const double cost = cost_of(n); cost < best_cost) {
        best = n;
        best_cost = cost;
      }
    }
  }
  return best;
}

bool wants_chirp(int64_t n) {
  const int64_t largest = n > 1 ? factors_of(n).back() : 1;
  if (largest <= 13) return false;
  if (largest > simd::kLargestRadix) return true;
  return 2.2 * cost_of(smooth_length(2 * n - 1)) < cost_of(n);
}

}  // namespace

template <class T> FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  if (wants_chirp(n)) plan_chirp();
  else plan_passes();
  const Circle circle(2 * n);
  const int64_t count = n / 2 + 1;
  half_twiddles_.resize(static_cast<size_t>(2 * count));
  for (int64_t k = 0; k < count; ++k) {
    const auto point = circle[k];
    half_twiddles_[static_cast<size_t>(k)] = static_cast<T>(point.cosine);
    half_twiddles_[static_cast<size_t>(count + k)] = static_cast<T>(-point.sine);
  }
}

template <class T> void FftPlan<T>::plan_passes() {
  const Circle circle(n_);
  std::vector<size_t> twiddles, roots;
  int64_t length = n_;
  for (int64_t radix : factors_of(n_)) {
    const int64_t m = length / radix, step = n_ / length;
    twiddles.push_back(numbers_.size());
    for (int part = 0; part < 2; ++part) {
      for (int64_t k = 1; k < radix; ++k) {
        for (int64_t p = 0; p < m; ++p) {
          const auto point = circle[k * p * step];
          numbers_.push_back(static_cast<T>(part ? -point.sine : point.cosine));
        }
      }
    }
    roots.push_back(numbers_.size());
    if (radix > 5 && radix % 2 == 1) {
      for (int part = 0; part < 2; ++part) {
        for (int64_t k = 0; k < radix; ++k) {
          const auto point = circle[k * (n_ / radix)];
          numbers_.push_back(static_cast<T>(part ? point.sine : point.cosine));
        }
      }
    }
    passes_.push_back({static_cast<int>(radix), m, nullptr, nullptr});
    length = m;
  }
  numbers_.shrink_to_fit();
  for (size_t i = 0; i < passes_.size(); ++i) {
    passes_[i].twiddles = numbers_.data() + twiddles[i];
    passes_[i].roots = numbers_.data() + roots[i];
  }
}

// With c[j] = exp(-i pi j^2 / n): X[k] = c[k] sum_j (x[j] c[j]) conj(c[k - j]).
template <class T> void FftPlan<T>::plan_chirp() {
  const int64_t m = smooth_length(2 * n_ - 1);
  chirp_ = std::make_shared<const FftPlan<T>>(m);
  const Circle circle(2 * n_);
  const auto n = static_cast<size_t>(n_), longer = static_cast<size_t>(m);
  chirp_numbers_.resize(2 * (n + longer));
  T *re = chirp_numbers_.data(), *im = re + n;
  std::vector<T> work(4 * longer);
  const Parts<T> data{work.data(), work.data() + longer};
  const Parts<T> other{data.re + 2 * longer, data.im + 2 * longer};
  int64_t square = 0;  // j^2 mod 2n
  for (size_t j = 0; j < n; ++j) {
    const auto point = circle[square];
    re[j] = static_cast<T>(point.cosine);
    im[j] = static_cast<T>(-point.sine);
    // The inverse transform's 1/m goes into the chirp's transform.
    const size_t mirror = j ? longer - j : 0;
    data.re[j] = data.re[mirror] = static_cast<T>(point.cosine / static_cast<long double>(m));
    data.im[j] = data.im[mirror] = static_cast<T>(point.sine / static_cast<long double>(m));
    square = (square + 2 * static_cast<int64_t>(j) + 1) % (2 * n_);
  }
  const Parts<T> result = chirp_->run(1, data, other);
  std::copy_n(result.re, longer, im + n);
  std::copy_n(result.im, longer, im + n + longer);
}

template <class T> Parts<T> FftPlan<T>::run(int64_t s, Parts<T> data, Parts<T> other) const {
  return chirp_ ? run_chirp(s, data, other) : run_passes(s, data, other);
}

template <class T> Parts<T> FftPlan<T>::run_passes(int64_t s, Parts<T> data, Parts<T> other) const {
  const auto pass = fft_loops<T>().pass;
  for (const simd::FftPass<T>& f : passes_) {
    const int64_t m = f.m, columns = s, cells = kPassGrain / f.radix;
    if (m >= columns) {
      parallel_for(m, cells / columns, [&](int64_t begin, int64_t end) {
        pass(f, columns, data.re, data.im, other.re, other.im, begin, end, 0, columns);
      });
    } else {
      const int64_t blocks = (columns + 63) / 64;
      parallel_for(blocks, cells / (64 * m), [&](int64_t begin, int64_t end) {
        pass(f, columns, data.re, data.im, other.re, other.im, 0, m, begin * 64,
             std::min(end * 64, columns));
      });
    }
    std::swap(data, other);
    s *= f.radix;
  }
  return data;
}

template <class T> Parts<T> FftPlan<T>::run_chirp(int64_t s, Parts<T> data, Parts<T> other) const {
  const auto multiply = fft_loops<T>().multiply;
  const int64_t m = chirp_->size();
  const T *re = chirp_numbers_.data(), *im = re + n_;
  const T *spectrum_re = im + n_, *spectrum_im = spectrum_re + m;
  multiply(n_, s, re, im, data.re, data.im, data.re, data.im);
  std::fill_n(data.re + n_ * s, (m - n_) * s, T(0));
  std::fill_n(data.im + n_ * s, (m - n_) * s, T(0));
  Parts<T> there = chirp_->run(s, data, other), free = there.re == data.re ? other : data;
  multiply(m, s, spectrum_re, spectrum_im, there.re, there.im, there.re, there.im);
  const Parts<T> back = chirp_->run(s, there.swapped(), free.swapped()).swapped();
  multiply(n_, s, re, im, back.re, back.im, back.re, back.im);
  return back;
}

template <class T> size_t FftPlan<T>::bytes() const {
  return (numbers_.size() + half_twiddles_.size() + chirp_numbers_.size()) * sizeof(T) +
         (chirp_ ? chirp_->bytes() : 0);
}

namespace {

// The plans used last, the newest first. A plan in use outlives its place in the cache.
template <class T> class Cache {
 public:
  std::shared_ptr<const FftPlan<T>> get(int64_t n) {
    {
      std::lock_guard lock(mutex_);
      if (auto plan = find(n)) return plan;
    }
    auto made = std::make_shared<const FftPlan<T>>(n);
    std::lock_guard lock(mutex_);
    if (auto plan = find(n)) return plan;  // another thread was faster
    plans_.push_front(made);
    bytes_ += made->bytes();
    while (plans_.size() > 1 && (plans_.size() > kMostPlans || bytes_ > kMostPlanBytes)) {
      bytes_ -= plans_.back()->bytes();
      plans_.pop_back();
    }
    return made;
  }

 private:
  std::shared_ptr<const FftPlan<T>> find(int64_t n) {
    for (auto it = plans_.begin(); it != plans_.end(); ++it) {
      if ((*it)->size() != n) continue;
      plans_.splice(plans_.begin(), plans_, it);
      return plans_.front();
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::list<std::shared_ptr<const FftPlan<T>>> plans_;
  size_t bytes_ = 0;
};

}  // namespace

template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  static Cache<T>* const cache = new Cache<T>;  // never destroyed: threads may outlive main
  return cache->get(n);
}

template class FftPlan<float>;
template class FftPlan<double>;
template std::shared_ptr<const FftPlan<float>> fft_plan(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan(int64_t);

}  // namespace taeda::cpu
