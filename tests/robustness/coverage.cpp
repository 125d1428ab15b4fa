// Counters for coverage-guided fuzzing (fuzzers.py): with -fsanitize-coverage, GCC calls these
// functions in every branch and comparison. Part of _C where TAEDA_COVERAGE is on.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kBits = 16;
constexpr size_t kCounters = size_t{1} << kBits;
uint8_t counters[kCounters];
struct Place {
  uintptr_t at, flags;
} places[kCounters];  // what libFuzzer wants to know of each counter: here, only that it exists

template <class T> void nothing(T, T) {}
template <class T> using Compare = void (*)(T, T);
Compare<uint8_t> compare1 = nothing, const_compare1 = nothing;
Compare<uint16_t> compare2 = nothing, const_compare2 = nothing;
Compare<uint32_t> compare4 = nothing, const_compare4 = nothing;
Compare<uint64_t> compare8 = nothing, const_compare8 = nothing;
void (*switch_on)(uint64_t, uint64_t*) = [](uint64_t, uint64_t*) {};

template <class F> bool find(void* library, const char* name, F& f) {
  void* p = dlsym(library, name);
  if (p) f = reinterpret_cast<F>(p);
  return p != nullptr;
}

}  // namespace

extern "C" {

void __sanitizer_cov_trace_pc() {
  const auto at = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  ++counters[at * 0x9E3779B97F4A7C15u >> (64 - kBits)];
}
void __sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b) { compare1(a, b); }
void __sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b) { compare2(a, b); }
void __sanitizer_cov_trace_cmp4(uint32_t a, uint32_t b) { compare4(a, b); }
void __sanitizer_cov_trace_cmp8(uint64_t a, uint64_t b) { compare8(a, b); }
void __sanitizer_cov_trace_const_cmp1(uint8_t a, uint8_t b) { const_compare1(a, b); }
void __sanitizer_cov_trace_const_cmp2(uint16_t a, uint16_t b) { const_compare2(a, b); }
void __sanitizer_cov_trace_const_cmp4(uint32_t a, uint32_t b) { const_compare4(a, b); }
void __sanitizer_cov_trace_const_cmp8(uint64_t a, uint64_t b) { const_compare8(a, b); }
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}
void __sanitizer_cov_trace_switch(uint64_t value, uint64_t* cases) { switch_on(value, cases); }

// Gives the counters to the libFuzzer in a library that is loaded. Returns 0, or 1 where it has
// none.
[[gnu::visibility("default")]] int taeda_count_for(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  void (*take_counters)(uint8_t*, uint8_t*) = nullptr;
  void (*take_places)(const Place*, const Place*) = nullptr;
  if (!library || !find(library, "__sanitizer_cov_8bit_counters_init", take_counters) ||
      !find(library, "__sanitizer_cov_pcs_init", take_places)) {
    return 1;
  }
  for (size_t i = 0; i < kCounters; ++i) places[i] = {reinterpret_cast<uintptr_t>(counters + i), 0};
  take_counters(counters, counters + kCounters);
  take_places(places, places + kCounters);
  find(library, "__sanitizer_cov_trace_cmp1", compare1);
  find(library, "__sanitizer_cov_trace_cmp2", compare2);
  find(library, "__sanitizer_cov_trace_cmp4", compare4);
  find(library, "__sanitizer_cov_trace_cmp8", compare8);
  find(library, "__sanitizer_cov_trace_const_cmp1", const_compare1);
  find(library, "__sanitizer_cov_trace_const_cmp2", const_compare2);
  find(library, "__sanitizer_cov_trace_const_cmp4", const_compare4);
  find(library, "__sanitizer_cov_trace_const_cmp8", const_compare8);
  find(library, "__sanitizer_cov_trace_switch", switch_on);
  return 0;
}

}  // extern "C"
