#include "base/openblas_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/error.h"

extern "C" {
void scipy_openblas_set_num_threads(int count);
void scipy_cblas_cgemm(int order, int ta, int tb, int m, int n, int k, const void* alpha,
                       const void* a, int lda, const void* b, int ldb, const void* beta, void* c,
                       int ldc);
}

namespace taeda {
namespace {

constexpr size_t kBufferBytes = size_t{32} << 20, kSpareBytes = size_t{4} << 20;
constexpr size_t kThreadBytes = size_t{1} << 20;  // more than a thread's own data in OpenBLAS
thread_local constinit bool has_thread_data = false;

// Callers now, and buffers that there are: OpenBLAS never gives one back.
std::atomic<int> callers{0}, buffers{0};
std::mutex mutex;
std::condition_variable left;

bool is_free(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p != MAP_FAILED && munmap(p, bytes) == 0;
}

// A product that needs a buffer, so that the first one is taken before anything else is allocated.
void take_first() {
  scipy_openblas_set_num_threads(1);
  const float one[2] = {1, 0}, zero[2] = {0, 0};
  float a[32] = {}, b[32] = {}, c[32] = {};
  scipy_cblas_cgemm(101, 111, 111, 4, 4, 4, one, a, 4, b, 4, zero, c, 4);
}

// Sees to a buffer for one more caller, all of whom are counted.
void provide() {
  std::unique_lock lock(mutex);
  while (callers.load() > buffers.load()) {
    if (is_free(kBufferBytes + kSpareBytes)) {
      if (buffers.load() == 0) take_first();
      buffers.fetch_add(1);
      continue;
    }
    if (buffers.load() == 0) {
      callers.fetch_sub(1);
      fail<OutOfMemory>("out of memory: tried to allocate ", kBufferBytes,
                        " bytes for a buffer of OpenBLAS");
    }
    callers.fetch_sub(1);
    left.wait(lock, [] { return callers.load() < buffers.load(); });
    callers.fetch_add(1);
  }
}

}  // namespace

OpenblasBuffer::OpenblasBuffer() {
  if (!has_thread_data && !is_free(kThreadBytes))
    fail<OutOfMemory>("out of memory: tried to allocate ", kThreadBytes,
                      " bytes for OpenBLAS in a further thread");
  has_thread_data = true;
  if (callers.fetch_add(1) >= buffers.load()) provide();
}

OpenblasBuffer::~OpenblasBuffer() {
  if (callers.fetch_sub(1) == buffers.load()) {
    const std::lock_guard lock(mutex);
    left.notify_one();
  }
}

}  // namespace taeda
