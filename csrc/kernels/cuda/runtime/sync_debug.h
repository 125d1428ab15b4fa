// Whether waiting for a device is reported (cuda.set_sync_debug_mode).
#pragma once

namespace taeda::cuda {

enum class SyncDebug : int { Off, Warn, Error };
// `warn` is called for each wait in mode Warn; it may be null in the others.
void set_sync_debug(SyncDebug mode, void (*warn)());

// Called before the host waits for a device without having been asked to. Error in mode Error.
void report_wait();

}  // namespace taeda::cuda
