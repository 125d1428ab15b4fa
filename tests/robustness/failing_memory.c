// Loaded before all other libraries: makes the n-th allocation from taeda's code fail, once.
//
// Allocations of the interpreter and of OpenBLAS are left alone: the first copes with failures by
// itself, the second ends the process, which taeda prevents by asking for the memory before.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static atomic_long countdown = 0;  // 0: no failures
static atomic_long seen = 0;
static struct {
  uintptr_t begin, end;
} watched[4];
static int watched_count = 0;

static int find(struct dl_phdr_info* info, size_t size, void* context) {
  (void)size, (void)context;
  const int ours = strstr(info->dlpi_name, "taeda/_C.") || strstr(info->dlpi_name, "libstdc++");
  if (!ours || watched_count == 4) return 0;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const uintptr_t last = first + info->dlpi_phdr[i].p_memsz;
    begin = first < begin ? first : begin;
    end = last > end ? last : end;
  }
  watched[watched_count].begin = begin;
  watched[watched_count++].end = end;
  return 0;
}

// The n-th allocation from now on fails; 0: none does. Returns how many there have been since the
// last call.
long fail_allocation(long n) {
  if (watched_count == 0) dl_iterate_phdr(find, NULL);
  atomic_store(&countdown, n);
  return atomic_exchange(&seen, 0);
}

static int fails(void* from) {
  if (atomic_load(&countdown) <= 0) return 0;
  const uintptr_t at = (uintptr_t)from;
  for (int i = 0; i < watched_count; ++i) {
    if (at < watched[i].begin || at >= watched[i].end) continue;
    atomic_fetch_add(&seen, 1);
    return atomic_fetch_sub(&countdown, 1) == 1;
  }
  return 0;
}

#define NEXT(name, type, ...)                                         \
  static type (*next)(__VA_ARGS__) = NULL;                            \
  if (!next) next = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);
#define FROM __builtin_return_address(0)

void* malloc(size_t n) {
  NEXT("malloc", void*, size_t)
  if (!fails(FROM)) return next(n);
  errno = ENOMEM;
  return NULL;
}
void* realloc(void* p, size_t n) {
  NEXT("realloc", void*, void*, size_t)
  if (!fails(FROM)) return next(p, n);
  errno = ENOMEM;
  return NULL;
}
int posix_memalign(void** p, size_t alignment, size_t n) {
  NEXT("posix_memalign", int, void**, size_t, size_t)
  return fails(FROM) ? ENOMEM : next(p, alignment, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  NEXT("aligned_alloc", void*, size_t, size_t)
  if (!fails(FROM)) return next(alignment, n);
  errno = ENOMEM;
  return NULL;
}
void* mmap(void* at, size_t n, int rights, int flags, int file, off_t offset) {
  NEXT("mmap", void*, void*, size_t, int, int, int, off_t)
  if (!fails(FROM)) return next(at, n, rights, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) {
  NEXT("pthread_create", int, pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)
  return fails(FROM) ? EAGAIN : next(t, a, f, x);
}
