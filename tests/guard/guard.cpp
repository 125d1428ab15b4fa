// A device for tests: the CPU's kernels on memory that the host can reach only while one of them
// runs, and which they do as late as possible. What reads or writes it anywhere else ends the
// process; who does not wait for the kernels finds old values.
#include <sys/mman.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "kernels/attention.h"
#include "kernels/conv.h"
#include "kernels/creation.h"
#include "kernels/device_plugin.h"
#include "kernels/gemm.h"
#include "kernels/nll.h"
#include "kernels/norm.h"
#include "kernels/optim.h"
#include "kernels/pointwise.h"
#include "kernels/pool.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "tensor/plan.h"

namespace {

using namespace taeda;

constexpr int kDevices = 2;
constexpr size_t kArena = size_t{8} << 30, kPage = 4096;

// One range of addresses, accessible only while an Unlocked exists.
class Arena {
 public:
  Arena() {
    base_ = static_cast<char*>(
        mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED) throw OutOfMemory("guard: no address space");
  }
  void* allocate(size_t nbytes) {
    const std::lock_guard lock(mutex_);
    const size_t size = rounded(nbytes);
    auto& same = free_[size];
    if (!same.empty()) {
      void* block = same.back();
      same.pop_back();
      return block;
    }
    if (size > kArena - used_)
      throw OutOfMemory(str("guard: out of memory for ", nbytes, " bytes"));
    used_ += size;
    if (unlocked_) protect(PROT_READ | PROT_WRITE);
    return base_ + used_ - size;
  }
  void deallocate(void* block, size_t nbytes) {
    const std::lock_guard lock(mutex_);
    free_[rounded(nbytes)].push_back(block);
  }
  void unlock() {
    const std::lock_guard lock(mutex_);
    if (unlocked_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void lock() {
    const std::lock_guard lock(mutex_);
    if (--unlocked_ == 0) protect(PROT_NONE);
  }

 private:
  // Whole pages, so that what ends one block begins none.
  static size_t rounded(size_t nbytes) { return (nbytes + kPage - 1) / kPage * kPage; }
  void protect(int access) { mprotect(base_, used_, access); }

  std::mutex mutex_;
  char* base_;
  size_t used_ = 0;
  int unlocked_ = 0;
  std::map<size_t, std::vector<void*>> free_;
};

Arena& arena() {
  static Arena one;
  return one;
}

struct Unlocked {
  Unlocked() { arena().unlock(); }
  ~Unlocked() { arena().lock(); }
};

// What was asked for and has not been done.
class Queue {
 public:
  void push(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    if (waiting_.size() >= kMost) run();
  }
  void drain() {
    const std::lock_guard lock(mutex_);
    run();
  }

 private:
  static constexpr size_t kMost = 256;

  void run() {
    const auto all = std::exchange(waiting_, {});
    for (const auto& work : all) work();
  }

  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
};

Queue& queue() {
  static Queue& one = *new Queue;  // tensors die later than static objects
  return one;
}

// An argument for later: a copy of it and of the host memory that it refers to.
template <class T> struct Kept {
  T value;
  explicit Kept(const T& v) : value(v) {}
  const T& get() const { return value; }
};
template <> struct Kept<ReduceInput> {
  ReduceInput value;
  Dims sizes, strides;
  explicit Kept(const ReduceInput& v) : value(v), sizes(v.sizes), strides(v.strides) {}
  ReduceInput get() const { return {value.data, value.dtype, sizes, strides, value.reduced}; }
};
template <> struct Kept<std::span<const OptimUpdate>> {
  std::vector<OptimUpdate> value;
  explicit Kept(std::span<const OptimUpdate> v) : value(v.begin(), v.end()) {}
  std::span<const OptimUpdate> get() const { return value; }
};

const DeviceHost* host;

// The CPU's kernel of a table, with the memory accessible: later, unless it gives a result.
template <auto Member> struct Guarded;
template <class K, class R, class... A, KernelFn<R(A...)> K::* Member> struct Guarded<Member> {
  static R call(A... a) {
    const auto kernel = (host->cpu<K>().*Member).get();
    if constexpr (std::is_void_v<R>) {
      queue().push([kernel, kept = std::tuple(Kept<std::decay_t<A>>(a)...)] {
        const Unlocked unlocked;
        std::apply([kernel](const auto&... k) { kernel(k.get()...); }, kept);
      });
    } else {
      queue().drain();
      const Unlocked unlocked;
      return kernel(std::forward<A>(a)...);
    }
  }
};

std::vector<DeviceTable> tables;

template <class K, auto... Members> void add() {
  static const K table = [] {
    K k{};
    ((k.*Members = Guarded<Members>::call), ...);
    return k;
  }();
  tables.push_back(device_table(table));
}

template <class T> void add_gemm() {
  using G = GemmKernels<T>;
  if constexpr (std::is_same_v<GemmOut<T>, T>) add<G, &G::gemm, &G::batched, &G::onto>();
  else add<G, &G::gemm, &G::batched>();
}
template <class T> void add_floating() {
  using S = SoftmaxKernels<T>;
  add<S, &S::softmax, &S::backward>();
  using C = ConvKernels<T>;
  add<C, &C::forward, &C::grad_input, &C::grad_weight>();
  add_gemm<T>();
  add_gemm<std::complex<T>>();
}

void add_all() {
  using P = PointwiseKernels;
  add<P, &P::run, &P::copy, &P::copy_bytes, &P::clear>();
  using R = ReduceKernels;
  add<R, &R::reduce, &R::complex_prod, &R::all_equal, &R::scan, &R::scan_extreme>();
  using C = CreationKernels;
  add<C, &C::range, &C::triangle>();
  add<OptimKernels, &OptimKernels::step>();
  add_floating<float>();
  add_floating<double>();
  add_gemm<Half>();
  add_gemm<BFloat16>();
}

// ---- the runtime ----

int count() { return kDevices; }
void* allocate(size_t nbytes, int) { return arena().allocate(nbytes); }
void deallocate(void* block, size_t nbytes, int) noexcept {
  queue().push([=] { arena().deallocate(block, nbytes); });
}
void copy(void* to, Device, const void* from, Device, size_t nbytes) {
  static const bool forgets_to_wait = std::getenv("GUARD_FORGETS_TO_WAIT");
  if (!forgets_to_wait) queue().drain();
  const Unlocked unlocked;
  std::memcpy(to, from, nbytes);
}
void synchronize(int) { queue().drain(); }

}  // namespace

extern "C" [[gnu::visibility("default")]] const DevicePlugin* taeda_device(const DeviceHost& h) {
  host = &h;
  add_all();
  static const DevicePlugin plugin{
      kDeviceInterface, {count, allocate, deallocate, copy, synchronize}, tables};
  return &plugin;
}
