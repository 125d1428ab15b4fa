// Interleaves contiguous pieces: row i of the result is row i of every piece, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace taeda::cpu {

struct Piece {
  const char* data;
  size_t row_bytes;
};
void join_rows(char* dst, const std::vector<Piece>& pieces, int64_t rows);

}  // namespace taeda::cpu
