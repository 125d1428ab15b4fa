// The fibers behind kernels/cuda/host_shim.h.
//
// A fiber runs one thread of a block after the other until one of them waits, so that a kernel
// without barriers needs a single one. With TAEDA_SHIM_REVERSED in the environment the threads of a
// block start from the last: what only works in one order lacks a barrier.
#include "kernels/cuda/host_shim.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "kernels/cuda/runtime/driver.h"

namespace taeda::cuda::shim {
namespace {

constexpr unsigned kMostThreads = 1024, kMostWarps = kMostThreads / 32;
constexpr size_t kStack = size_t{256} << 10, kMostShared = size_t{227} << 10;

enum class State { Idle, Running, AtBlockBarrier, AtWarpBarrier };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  State state = State::Idle;
  unsigned thread = 0;
};

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "host shim: %s\n", why);
  std::abort();
}

class Scheduler {
 public:
  void run(const Launch& launch) {
    if (launch.shared > kMostShared) give_up("more dynamic shared memory than a block has");
    threads_ = launch.block.x * launch.block.y * launch.block.z;
    if (threads_ == 0 || threads_ > kMostThreads) give_up("a block of more than 1024 threads");
    if (launch.grid.y > 65535 || launch.grid.z > 65535 || launch.grid.x == 0)
      give_up("a grid that is too large, or empty");
    gridDim = launch.grid;
    blockDim = launch.block;
    work_ = &launch.thread;
    for (unsigned z = 0; z < launch.grid.z; ++z)
      for (unsigned y = 0; y < launch.grid.y; ++y)
        for (unsigned x = 0; x < launch.grid.x; ++x) {
          blockIdx = dim3(x, y, z);
          run_block();
        }
  }
  void wait(State at) {
    Fiber* self = current_;
    self->state = at;
    swapcontext(&self->context, &main_);
    place(self->thread);
  }
  uint64_t exchange(uint64_t own, int lane) {
    const unsigned self = current_->thread;
    slots_[self] = own;
    wait(State::AtWarpBarrier);
    const uint64_t got = slots_[self / 32 * 32 + static_cast<unsigned>(lane)];
    wait(State::AtWarpBarrier);
    return got;
  }
  const char* gather(const void* own, size_t size) {
    const unsigned self = current_->thread, turn = turns_[self]++ % 2;
    char* all = gathered_.get() + turn * kMostThreads * kMostGathered;
    if (size) std::memcpy(all + self * kMostGathered, own, size);
    wait(State::AtWarpBarrier);
    return all + self / 32 * 32 * kMostGathered;
  }
  struct Copy {
    void* to;
    const void* from;
    size_t size;
    bool ends_group;
  };
  std::deque<Copy>& copies() { return copies_[current_->thread]; }
  char* shared() { return shared_->bytes; }

 private:
  void run_block() {
    started_ = 0;
    live_ = threads_;
    live_in_warp_.fill(0);
    for (unsigned t = 0; t < threads_; ++t) ++live_in_warp_[t / 32];
    turns_.fill(0);
    for (auto& copies : copies_) copies.clear();
    while (started_ < threads_) resume(idle());
    while (live_ > 0) {
      release();
      for (auto& f : fibers_)
        if (f->state == State::Running) resume(*f);
    }
  }
  // Lets those go on that all have waited for.
  void release() {
    std::array<unsigned, kMostWarps> waiting{};
    unsigned at_block = 0;
    for (auto& f : fibers_) {
      at_block += f->state == State::AtBlockBarrier;
      if (f->state == State::AtWarpBarrier) ++waiting[f->thread / 32];
    }
    bool any = false;
    for (auto& f : fibers_) {
      const unsigned warp = f->thread / 32;
      const bool free =
          f->state == State::AtBlockBarrier
              ? at_block == live_
              : f->state == State::AtWarpBarrier && waiting[warp] == live_in_warp_[warp];
      if (free) f->state = State::Running;
      any |= free;
    }
    if (!any) give_up("threads wait at different barriers");
  }
  Fiber& idle() {
    for (auto& f : fibers_)
      if (f->state == State::Idle) return *f;
    fibers_.push_back(std::make_unique<Fiber>());
    Fiber& f = *fibers_.back();
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = kStack;
    f.context.uc_link = nullptr;
    makecontext(&f.context, [] { one().live(); }, 0);
    return f;
  }
  void resume(Fiber& f) {
    f.state = State::Running;
    current_ = &f;
    swapcontext(&main_, &f.context);
  }
  [[noreturn]] void live() {
    static const bool reversed = std::getenv("TAEDA_SHIM_REVERSED");
    for (;;) {
      while (started_ < threads_) {
        const unsigned t = started_++;
        current_->thread = reversed ? threads_ - 1 - t : t;
        place(current_->thread);
        try {
          (*work_)();
        } catch (const std::exception& e) {
          give_up(e.what());
        }
        --live_;
        --live_in_warp_[current_->thread / 32];
      }
      wait(State::Idle);
    }
  }
  void place(unsigned thread) {
    threadIdx = dim3(thread % blockDim.x, thread / blockDim.x % blockDim.y,
                     thread / (blockDim.x * blockDim.y));
  }

 public:
  static Scheduler& one() {
    static Scheduler scheduler;
    return scheduler;
  }

 private:
  ucontext_t main_{};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  const std::function<void()>* work_ = nullptr;
  unsigned threads_ = 0, started_ = 0, live_ = 0;
  std::array<unsigned, kMostWarps> live_in_warp_{};
  std::array<uint64_t, kMostThreads> slots_{};
  std::array<unsigned, kMostThreads> turns_{};
  std::unique_ptr<char[]> gathered_{new char[2 * kMostThreads * kMostGathered]};
  std::array<std::deque<Copy>, kMostThreads> copies_;
  struct alignas(1024) Shared {
    char bytes[kMostShared];
  };
  std::unique_ptr<Shared> shared_{new Shared};
};

}  // namespace

void enqueue(Launch launch, CUstream_st* stream) {
  auto kept = std::make_unique<Launch>(std::move(launch));
  int capturing = 0;
  succeed(driver().is_capturing(stream, &capturing), "asking about a stream");
  if (capturing) {  // run by every replay: kept as long as the process
    const auto run = [](void* p) { Scheduler::one().run(*static_cast<Launch*>(p)); };
    succeed(driver().call_host(stream, run, kept.release()), "recording a kernel");
    return;
  }
  const auto run = [](void* p) {
    const std::unique_ptr<Launch> mine(static_cast<Launch*>(p));
    Scheduler::one().run(*mine);
  };
  succeed(driver().call_host(stream, run, kept.get()), "starting a kernel");
  kept.release();
}
void* dynamic_shared() { return Scheduler::one().shared(); }
void block_barrier() { Scheduler::one().wait(State::AtBlockBarrier); }
uint64_t exchange(uint64_t own, int lane) { return Scheduler::one().exchange(own, lane); }
const char* gather(const void* own, size_t size) { return Scheduler::one().gather(own, size); }

void copy_later(void* to, const void* from, size_t size) {
  Scheduler::one().copies().push_back({to, from, size, false});
}
void commit_copies() { Scheduler::one().copies().push_back({nullptr, nullptr, 0, true}); }
void wait_for_copies(size_t most) {
  auto& copies = Scheduler::one().copies();
  auto groups = static_cast<size_t>(
      std::count_if(copies.begin(), copies.end(), [](const auto& c) { return c.ends_group; }));
  for (; groups > most; copies.pop_front()) {
    const auto [to, from, size, ends_group] = copies.front();
    if (from) std::memcpy(to, from, size);
    else if (to) std::memset(to, 0, size);
    groups -= ends_group;
  }
}

}  // namespace taeda::cuda::shim
