// CRC-32 as zip, gzip and PNG use it (polynomial 0x04C11DB7, reflected), at memory bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taeda {

// The checksum of `size` bytes that follow bytes with the checksum `crc`; start with 0.
uint32_t crc32(uint32_t crc, const void* data, size_t size);

// The checksum of A followed by B, from theirs and the length of B.
uint32_t crc32_combine(uint32_t a, uint32_t b, uint64_t size_of_b);

// crc32 without special instructions; for tests.
uint32_t crc32_portable(uint32_t crc, const void* data, size_t size);

}  // namespace taeda
