// libcupti.so.13 for tests: records of what the stub of the driver is given to do, by kinds that
// are enabled, laid out as cupti_activity.h of CUDA 13 says. A kernel takes 1000 ns from when it
// was started; copies of the host's memory 500.
#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

extern "C" void (*stub_watch)(const char* what, unsigned long bytes);

namespace {

enum { kCopy = 1, kDriverCall = 4, kKernel = 10 };

void (*request)(uint8_t**, size_t*, size_t*) = nullptr;
void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;
uint64_t (*clock_of_host)() = nullptr;
std::set<uint32_t> enabled;

struct Record {
  std::vector<uint8_t> bytes;
  Record(uint32_t kind, size_t size) : bytes(size) { put(0, kind); }
  template <class T> Record& put(size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return *this;
  }
};
std::vector<Record> records;

void watch(const char* what, unsigned long bytes) {
  static uint32_t correlation = 0;
  ++correlation;
  const uint64_t begin = clock_of_host();
  if (enabled.contains(kDriverCall)) {
    const auto thread = static_cast<uint32_t>(pthread_self());
    records.push_back(Record(kDriverCall, 40)
                          .put(8, begin)
                          .put(16, clock_of_host())
                          .put(28, thread)
                          .put(32, correlation));
  }
  if (std::strcmp(what, "kernel") == 0 && enabled.contains(kKernel)) {
    Record r(kKernel, 216);
    r.put(16, begin).put(24, begin + 1000).put(40, 0u).put(48, 7u).put(92, correlation);
    for (size_t i = 0; i < 6; ++i) r.put(52 + 4 * i, static_cast<int32_t>(i + 1));
    records.push_back(r.put(104, "_Z6kernelf"));
  } else if (enabled.contains(kCopy)) {
    records.push_back(Record(kCopy, 96)
                          .put(4, uint8_t{1})
                          .put(8, uint64_t{bytes})
                          .put(16, begin)
                          .put(24, begin + 500)
                          .put(32, 0u)
                          .put(40, 7u)
                          .put(44, correlation));
  }
}

}  // namespace

#define STUB(name, ...) extern "C" int name(__VA_ARGS__)

STUB(cuptiActivityRegisterCallbacks, decltype(request) r, decltype(complete) c) {
  request = r;
  complete = c;
  return 0;
}
STUB(cuptiActivityRegisterTimestampCallback, uint64_t (*now)()) {
  clock_of_host = now;
  return 0;
}
STUB(cuptiActivityEnable, uint32_t kind) {
  enabled.insert(kind);
  stub_watch = watch;
  return 0;
}
STUB(cuptiActivityDisable, uint32_t kind) {
  enabled.erase(kind);
  if (enabled.empty()) stub_watch = nullptr;
  return 0;
}
STUB(cuptiActivityFlushAll, uint32_t) {
  while (!records.empty()) {  // as many as the buffer holds
    uint8_t* buffer = nullptr;
    size_t size = 0, most = 0, used = 0, taken = 0;
    request(&buffer, &size, &most);
    for (; taken < records.size() && used + records[taken].bytes.size() <= size; ++taken) {
      std::memcpy(buffer + used, records[taken].bytes.data(), records[taken].bytes.size());
      used += records[taken].bytes.size();
    }
    records.erase(records.begin(), records.begin() + static_cast<long>(taken));
    complete(nullptr, 0, buffer, size, used);
  }
  return 0;
}
STUB(cuptiActivityGetNextRecord, uint8_t* buffer, size_t valid, uint8_t** record) {
  const auto size = [](const uint8_t* r) {
    uint32_t kind;
    std::memcpy(&kind, r, sizeof kind);
    return kind == kKernel ? 216 : kind == kCopy ? 96 : 40;
  };
  constexpr int no_more = 12;
  uint8_t* next = *record ? *record + size(*record) : buffer;
  if (next >= buffer + valid) return no_more;
  *record = next;
  return 0;
}
STUB(cuptiGetResultString, int, const char** text) {
  *text = "an error of the stub";
  return 0;
}
