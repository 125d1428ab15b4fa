#include "kernels/cuda/runtime/marks.h"

#include "kernels/cuda/runtime/device.h"

namespace taeda::cuda {
namespace {

// Null where there cannot be one: then the stream has been waited for.
EventHandle mark_end(StreamHandle stream) {
  const Driver& d = driver();
  constexpr unsigned no_timing = 2;
  EventHandle event = nullptr;
  if (d.make_event(&event, no_timing) == kSuccess) {
    if (d.record_event(event, stream) == kSuccess) return event;
    d.destroy_event(event);
  }
  d.synchronize_stream(stream);
  return nullptr;
}

}  // namespace

Marks::Marks(std::set<StreamPlace> streams) : to_place_(std::move(streams)) { place(); }

void Marks::place() {
  std::erase_if(to_place_, [&](const StreamPlace& place) {
    const auto [device, stream] = place;
    const OnDevice here(device);
    int status = 0;
    if (driver().is_capturing(stream, &status) != kSuccess || status != 0) return false;
    if (EventHandle event = mark_end(stream)) placed_.push_back({device, event});
    return true;
  });
}

bool Marks::passed() {
  const BesideCapture beside;
  place();
  std::erase_if(placed_, [](const Mark& m) {
    const OnDevice here(m.device);
    if (driver().query_event(m.event) == kNotReady) return false;
    driver().destroy_event(m.event);
    return true;
  });
  return placed_.empty() && to_place_.empty();
}

bool Marks::wait() {
  const BesideCapture beside;
  place();
  for (const Mark& m : placed_) {
    const OnDevice here(m.device);
    driver().synchronize_event(m.event);
    driver().destroy_event(m.event);
  }
  placed_.clear();
  return to_place_.empty();
}

}  // namespace taeda::cuda
