// Which of the instruction sets that kernels are compiled for this machine can run.
#pragma once

namespace taeda {

// x86-64 psABI levels (v2: SSE4.2, v3: AVX2 and FMA, v4: AVX-512). Other architectures have one
// level, `baseline`.
enum class CpuLevel { baseline = 1, v2 = 2, v3 = 3, v4 = 4 };

// The highest level this machine supports, or what TAEDA_CPU=v2|v3|v4 asks for where that is lower.
// Decided once.
CpuLevel cpu_level();
CpuLevel supported_cpu_level();
const char* cpu_level_name(CpuLevel level);

}  // namespace taeda
