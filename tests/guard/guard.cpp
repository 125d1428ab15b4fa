// A device for tests: the CPU's kernels on memory that the host can reach only while one of them
// runs, and which they do as late as possible. What reads or writes it anywhere else ends the
// process; who does not wait for the kernels finds old values.
//
// With GUARD_TABLES=few it has the tables that a new device begins with and no others.
#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>

#include "kernels/amp.h"
#include "kernels/attention.h"
#include "kernels/conv.h"
#include "kernels/creation.h"
#include "kernels/distance.h"
#include "kernels/embedding.h"
#include "kernels/fft.h"
#include "kernels/fold.h"
#include "kernels/frexp.h"
#include "kernels/gamma.h"
#include "kernels/gemm.h"
#include "kernels/grid_sample.h"
#include "kernels/histogram.h"
#include "kernels/index.h"
#include "kernels/linalg.h"
#include "kernels/margin.h"
#include "kernels/matrices.h"
#include "kernels/nll.h"
#include "kernels/norm.h"
#include "kernels/pad.h"
#include "kernels/pool.h"
#include "kernels/random.h"
#include "kernels/resample.h"
#include "kernels/runs.h"
#include "kernels/softmax.h"
#include "kernels/sort.h"
#include "kernels/sparse.h"
#include "wrap.h"

namespace guard {
namespace {

constexpr int kDevices = 2;
constexpr size_t kArena = size_t{64} << 30, kPage = 4096;

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
    const size_t begin = size < kPage ? used_ : (used_ + kPage - 1) / kPage * kPage;
    if (size > kArena || begin > kArena - size)
      throw OutOfMemory(str("guard: out of memory for ", nbytes, " bytes"));
    used_ = begin + size;
    if (unlocked_) protect(PROT_READ | PROT_WRITE);
    return base_ + begin;
  }
  void deallocate(void* block, size_t nbytes) {
    const std::lock_guard lock(mutex_);
    const size_t size = rounded(nbytes);
    if (size >= kLarge) madvise(block, size, MADV_DONTNEED);
    free_[size].push_back(block);
  }
  bool has(const void* p) const {
    const auto place = reinterpret_cast<uintptr_t>(p), begin = reinterpret_cast<uintptr_t>(base_);
    return place >= begin && place < begin + kArena;
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
  static constexpr size_t kLarge = size_t{1} << 20;  // given back to the system

  static size_t rounded(size_t nbytes) {
    return nbytes < kPage ? (nbytes + 63) / 64 * 64 : std::bit_ceil(nbytes);
  }
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

// What was asked for and has not been done. An error of a kernel comes to whoever waits next.
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
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  static constexpr size_t kMost = 256;

  void run() {
    if (waiting_.empty()) return;
    const Unlocked unlocked;
    for (const auto& work : std::exchange(waiting_, {})) {
      try {
        work();
      } catch (...) {
        failure_ = std::current_exception();
      }
    }
  }

  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
  std::exception_ptr failure_;
};

Queue& queue() {
  static Queue& one = *new Queue;  // tensors die later than static objects
  return one;
}

// ---- the tables ----

std::vector<DeviceTable> tables;

template <class... K> void add() { (tables.push_back(device_table(guarded<K>())), ...); }
template <template <class> class K, class... T> void add_each() { add<K<T>...>(); }
template <template <class> class... K> void add_floating() { (add_each<K, float, double>(), ...); }
template <template <class> class... K> void add_linalg() {
  (add_each<K, float, double, std::complex<float>, std::complex<double>>(), ...);
}

void add_few() {
  add<PointwiseKernels, ReduceKernels>();
  add_linalg<GemmKernels>();
}

void add_rest() {
  add<AmpKernels, CountKernels, CreationKernels, CsrKernels, DrawKernels, FoldKernels, IndexKernels,
      JoinKernels, LinalgKernels, OptimKernels, PadKernels, RunKernels, ScatterKernels,
      SearchKernels, SelectKernels, SortKernels>();
  add_floating<AttentionKernels, BatchNormKernels, ContinuousKernels, ConvKernels, CtcKernels,
               DistanceKernels, DropoutKernels, EmbeddingKernels, FftKernels, FrexpKernels,
               GammaKernels, GridSampleKernels, HistogramKernels, MarginKernels, NllKernels,
               NormKernels, PoolKernels, RandomKernels, ResampleKernels, RnnKernels, SampleKernels,
               SoftmaxKernels>();
  add_linalg<EigenKernels, HermitianKernels, LeastSquaresKernels, MatrixKernels, QrKernels,
             SolveKernels, SparseKernels>();
  add_each<IntegerConvKernels, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  add_each<IntegerGemmKernels, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  add_each<RandomKernels, Half, BFloat16, bool, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  add<GemmKernels<Half>, GemmKernels<BFloat16>>();
  add<ContinuousKernels<Half>, ContinuousKernels<BFloat16>, DropoutKernels<Half>,
      DropoutKernels<BFloat16>, PoolKernels<int64_t>, SparseKernels<int64_t>>();
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

// A storage of no bytes is null, and so is, but for its offset, what begins inside of it.
void must_be_ours(const void* p) {
  constexpr uintptr_t kMostOffset = 1 << 20;
  if (reinterpret_cast<uintptr_t>(p) < kMostOffset || arena().has(p)) return;
  throw Error("guard: a kernel was given memory of the host");
}
void enqueue(std::function<void()> work) { queue().push(std::move(work)); }
void run_now(const std::function<void()>& work) {
  queue().drain();
  const Unlocked unlocked;
  work();
}

}  // namespace guard

extern "C" [[gnu::visibility("default")]] const taeda::DevicePlugin* taeda_device(
    const taeda::DeviceHost& h) {
  using namespace guard;
  host = &h;
  const char* chosen = std::getenv("GUARD_TABLES");
  add_few();
  if (!chosen || std::string_view(chosen) != "few") add_rest();
  static const DevicePlugin plugin{
      kDeviceInterface, {count, allocate, deallocate, copy, synchronize}, tables};
  return &plugin;
}
