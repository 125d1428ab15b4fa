// What programs choose of the allocators of all devices (PYTORCH_ALLOC_CONF).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace taeda::cuda {

struct AllocatorSettings {
  // Segments are ranges of addresses that grow, instead of pieces that each have a fixed size.
  bool expandable = false;
  size_t max_split = SIZE_MAX;  // larger blocks are not split
  // From which part of the memory on unused segments are given back; 0: only when it is full.
  double collect_above = 0;
  // Of sizes below 2, 4, 8, ... MiB, and above: into how many steps the way from one power of two
  // to the next is divided. 0: sizes are not rounded to such steps.
  std::array<uint32_t, 16> divisions{};
};

// Of all devices, those that are yet to be opened included.
void set_allocator_settings(const AllocatorSettings& settings);

struct HistorySettings;
void set_allocator_history(const HistorySettings& settings, bool clear);

}  // namespace taeda::cuda
