// libcufft.so.12 for tests: transforms by definition, on the stub of the driver. It refuses what
// cuFFT might: arrays that are not aligned for complex numbers, plans without their workspace, and
// dimensions of one element. What is transformed to real numbers is lost, as cuFFT may do.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <vector>

namespace {

enum { kSuccess = 0, kBadPlan = 1, kBadValue = 4, kBadSize = 8 };
enum { kFromFloat = 0x2a, kToFloat = 0x2c, kComplex = 0x29 };
enum { kFromDouble = 0x6a, kToDouble = 0x6c, kComplexDoubles = 0x69 };
constexpr size_t kWorkspace = 1000;

using Numbers = std::vector<std::complex<double>>;

struct Plan {
  int type = 0;
  std::vector<int64_t> n;
  int64_t batch = 0;
  void *stream = nullptr, *workspace = nullptr;

  int64_t signal() const {
    int64_t all = 1;
    for (const int64_t size : n) all *= size;
    return all;
  }
  int64_t half() const { return n.back() / 2 + 1; }
};
std::map<int, Plan>& plans() {
  static std::map<int, Plan> all;
  return all;
}

// Along one dimension of a signal.
void transform(Numbers& x, int64_t n, int64_t inner, int direction) {
  const Numbers from = x;
  const auto size = static_cast<int64_t>(x.size());
  for (int64_t i = 0; i < size; ++i) {
    const int64_t k = i / inner % n, first = i - k * inner;
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double turn = static_cast<double>(j * k % n) / static_cast<double>(n);
      sum += from[static_cast<size_t>(first + j * inner)] *
             std::polar(1.0, direction * 2 * M_PI * turn);
    }
    x[static_cast<size_t>(i)] = sum;
  }
}
void transform(const Plan& p, Numbers& x, int direction) {
  int64_t inner = 1;
  for (size_t d = p.n.size(); d-- > 0; inner *= p.n[d]) transform(x, p.n[d], inner, direction);
}

template <class T> struct Work {
  Plan p;
  const void* in;
  void* out;
  int direction;

  void run() const {
    const int64_t signal = p.signal(), half = signal / p.n.back() * p.half();
    const bool from_real = p.type == kFromFloat || p.type == kFromDouble;
    const bool to_real = p.type == kToFloat || p.type == kToDouble;
    for (int64_t i = 0; i < p.batch; ++i) {
      Numbers x(static_cast<size_t>(signal));
      const T* from =
          static_cast<const T*>(in) + i * (from_real ? signal : 2 * (to_real ? half : signal));
      T* to = static_cast<T*>(out) + i * (to_real ? signal : 2 * (from_real ? half : signal));
      for (int64_t j = 0; j < signal; ++j) {
        auto& v = x[static_cast<size_t>(j)];
        if (from_real) v = static_cast<double>(from[j]);
        else if (!to_real) v = {from[2 * j], from[2 * j + 1]};
        else {  // signals of one dimension alone
          const int64_t k = j < p.half() ? j : signal - j;
          v = {from[2 * k], j < p.half() ? from[2 * k + 1] : -from[2 * k + 1]};
        }
      }
      transform(p, x, direction);
      int64_t written = 0;
      for (int64_t j = 0; j < signal; ++j) {
        if (from_real && j % p.n.back() >= p.half()) continue;
        to[written++] = static_cast<T>(x[static_cast<size_t>(j)].real());
        if (!to_real) to[written++] = static_cast<T>(x[static_cast<size_t>(j)].imag());
      }
    }
    if (to_real)
      std::fill_n(static_cast<T*>(const_cast<void*>(in)), 2 * p.batch * half,
                  std::numeric_limits<T>::quiet_NaN());
  }
};

template <class T> int start(int plan, int type, const void* in, void* out, int direction) {
  const auto found = plans().find(plan);
  if (found == plans().end() || found->second.type != type) return kBadPlan;
  const auto places = reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out);
  if (!found->second.workspace || places % (2 * sizeof(T)) != 0) return kBadValue;
  const auto run = [](void* data) {
    const std::unique_ptr<Work<T>> owned(static_cast<Work<T>*>(data));
    owned->run();
  };
  using Start = int (*)(void*, void (*)(void*), void*);
  const auto launch =
      reinterpret_cast<Start>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchHostFunc"));
  return launch(found->second.stream, run, new Work<T>{found->second, in, out, direction});
}

}  // namespace

#define STUB(name, ...) extern "C" int name(__VA_ARGS__)

STUB(cufftCreate, int* plan) {
  static int made = 0;
  *plan = ++made;
  plans()[*plan] = {};
  return kSuccess;
}
STUB(cufftDestroy, int plan) { return plans().erase(plan) ? kSuccess : kBadPlan; }
STUB(cufftSetAutoAllocation, int plan, int own) {
  return plans().count(plan) && !own ? kSuccess : kBadPlan;
}
STUB(cufftMakePlanMany64, int plan, int rank, long long* n, long long* in_sizes, long long,
     long long, long long* out_sizes, long long, long long, int type, long long batch,
     size_t* workspace) {
  Plan& p = plans().at(plan);
  p.type = type;
  p.batch = batch;
  p.n.assign(n, n + rank);
  *workspace = kWorkspace;
  const bool to_real = type == kToFloat || type == kToDouble;
  const bool is_known = rank >= 1 && rank <= (to_real ? 1 : 3) && !in_sizes && !out_sizes;
  return is_known && batch > 0 && *std::min_element(n, n + rank) > 1 ? kSuccess : kBadSize;
}
STUB(cufftSetStream, int plan, void* stream) {
  plans().at(plan).stream = stream;
  return kSuccess;
}
STUB(cufftSetWorkArea, int plan, void* workspace) {
  plans().at(plan).workspace = workspace;
  return kSuccess;
}
STUB(cufftExecC2C, int plan, void* in, void* out, int direction) {
  return start<float>(plan, kComplex, in, out, direction);
}
STUB(cufftExecZ2Z, int plan, void* in, void* out, int direction) {
  return start<double>(plan, kComplexDoubles, in, out, direction);
}
STUB(cufftExecR2C, int plan, void* in, void* out) {
  return start<float>(plan, kFromFloat, in, out, -1);
}
STUB(cufftExecD2Z, int plan, void* in, void* out) {
  return start<double>(plan, kFromDouble, in, out, -1);
}
STUB(cufftExecC2R, int plan, void* in, void* out) {
  return start<float>(plan, kToFloat, in, out, 1);
}
STUB(cufftExecZ2D, int plan, void* in, void* out) {
  return start<double>(plan, kToDouble, in, out, 1);
}
