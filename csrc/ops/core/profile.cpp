#include "ops/core/profile.h"

#include <chrono>

#include "base/allocator.h"

namespace taeda {
namespace {

struct Recorder {
  bool shapes, memory;
  std::vector<ProfileEvent> events;
  std::vector<int64_t> open;  // open ranges, the outermost first
  int64_t first = 0;          // range numbers continue from one recording to the next
  RangeWatch watch;           // where there is one, events stay empty
  int64_t begun = 0;
};
thread_local std::unique_ptr<Recorder> recorder;
thread_local int64_t next_range = 0;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t held() { return static_cast<int64_t>(host_bytes_in_use()); }

std::vector<Dims> shapes_of(std::span<const Value> args) {
  std::vector<Dims> shapes;
  auto add = [&](const Tensor& t) { shapes.push_back(t.defined() ? Dims(t.sizes()) : Dims()); };
  for (const Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) add(*t);
    else if (auto* list = std::get_if<TensorList>(&v))
      for (const Tensor& t : *list) add(t);
  }
  return shapes;
}

const Tensor* first_tensor(const Value& v) {
  if (auto* t = std::get_if<Tensor>(&v)) return t->defined() ? t : nullptr;
  auto* list = std::get_if<TensorList>(&v);
  return list && !list->empty() && list->front().defined() ? &list->front() : nullptr;
}

int64_t enter(Recorder& r, ProfileEvent event) {
  const int64_t index = r.begun;
  if (r.watch.begin) {
    r.watch.begin(event);
    r.open.push_back(index);
    return r.begun++;
  }
  ++r.begun;
  event.parent = r.open.empty() ? -1 : r.open.back();
  if (r.memory) event.memory = -held();
  r.open.push_back(index);
  event.begin = now();
  r.events.push_back(std::move(event));
  return index;
}

// Ends the event and the open events inside it.
void leave(Recorder& r, int64_t index) {
  const int64_t end = now();
  while (!r.open.empty() && r.open.back() >= index) {
    if (r.watch.end) {
      r.open.pop_back();
      r.watch.end();
      continue;
    }
    ProfileEvent& e = r.events[static_cast<size_t>(r.open.back())];
    e.end = end;
    if (r.memory) e.memory += held();
    r.open.pop_back();
  }
}

Value profile_layer(Call& c, uint32_t inner) {
  Recorder* r = recorder.get();
  if (!r) return call_inner(c, inner);
  ProfileEvent event;
  event.name = "aten::" + c.op.name;
  if (r->shapes) event.shapes = shapes_of(c.args);
  struct Open {
    int64_t index;
    ~Open() {
      if (recorder) leave(*recorder, index);
    }
  } open{enter(*r, std::move(event))};
  Value result = call_inner(c, inner);
  if (const Tensor* t = first_tensor(result);
      t && recorder && recorder->shapes && !recorder->watch.begin)
    recorder->events[static_cast<size_t>(open.index)].result = Dims(t->sizes());
  return result;
}

[[maybe_unused]] const bool installed = (set_layer(kProfileLayer, profile_layer), true);

}  // namespace

void profile_start(bool shapes, bool memory, RangeWatch watch) {
  check(!recorder, "profile(): a profiler is running in this thread already");
  recorder =
      std::make_unique<Recorder>(Recorder{shapes, memory, {}, {}, next_range, std::move(watch)});
  modes.always |= kProfileLayer;
}

std::vector<ProfileEvent> profile_stop() {
  modes.always &= ~static_cast<uint32_t>(kProfileLayer);
  if (!recorder) return {};
  leave(*recorder, 0);
  auto events = std::move(recorder->events);
  next_range += recorder->begun;
  recorder.reset();
  return events;
}

int64_t profile_enter(std::string name) {
  if (!recorder) return -1;
  ProfileEvent event;
  event.name = std::move(name);
  event.user = true;
  return recorder->first + enter(*recorder, std::move(event));
}

void profile_exit(int64_t range) {
  if (recorder && range >= recorder->first) leave(*recorder, range - recorder->first);
}

}  // namespace taeda
