#include "kernels/cpu/conv/conv_nhwc_tiles.h"

#include "kernels/cpu/common/scratch.h"

namespace taeda::cpu::nhwc {
namespace {

// Whether an output reads this tap inside of the input.
bool is_read(const Axis& a, const Axis::Tap& t) {
  const int64_t first = std::max<int64_t>(0, ceil_div(-t.position, a.step));
  return first < a.out && first * a.step + t.position < a.in;
}

constexpr double kSkipped = .95;  // of all taps; where more are read, zeros are

std::vector<Segment> segments(const Axis& a, bool skips) {
  const auto taps = static_cast<int64_t>(a.taps.size());
  if (!skips) return {{0, a.out, 0, taps}};
  std::vector<Segment> list;
  for (int64_t o = 0; o < a.out; ++o) {
    const auto at = [&](int64_t t) { return o * a.step + a.taps[static_cast<size_t>(t)].position; };
    int64_t first = 0, last = taps;
    while (first < taps && at(first) < 0) ++first;
    while (last > first && at(last - 1) >= a.in) --last;
    if (!list.empty() && list.back().tap == first && list.back().taps == last - first)
      list.back().last = o + 1;
    else list.push_back({o, o + 1, first, last - first});
  }
  return list;
}

// How many of the taps of all outputs fall inside of the input.
double share_read(const Axis& a) {
  const double all = real(a.out) * real(static_cast<int64_t>(a.taps.size()));
  return all == 0 ? 1 : taps_read(segments(a, true)) / all;
}

}  // namespace

Part::Part(const Problem& all, const ConvShape& s) : p(all) {
  for (Axis* a : {&p.d, &p.h, &p.w})
    std::erase_if(a->taps, [&](const Axis::Tap& t) { return !is_read(*a, t); });
  for (const Axis::Tap& d : p.d.taps) {
    for (const Axis::Tap& h : p.h.taps) {
      for (const Axis::Tap& w : p.w.taps)
        order.push_back((d.number * s.kernel[1] + h.number) * s.kernel[2] + w.number);
    }
  }
  const auto many = static_cast<int64_t>(p.w.taps.size());
  const bool neighbours =
      many > 0 && p.w.taps.back().position - p.w.taps.front().position + 1 == many;
  joined = neighbours ? many : 1;
  const auto few = [](const Axis& axis) { return share_read(axis) < kSkipped; };
  skip(few(p.d) || few(p.h), joined == 1 && few(p.w));
}

void Part::skip(bool in_rows, bool in_cols) {
  skips_rows = in_rows;
  skips_cols = in_cols;
  planes = segments(p.d, skips_rows);
  rows = segments(p.h, skips_rows);
  cols = segments(p.w, skips_cols);
}

void Part::take_apart() {
  if (share_read(p.d) * share_read(p.h) * share_read(p.w) >= kSkipped) return;
  joined = 1;
  skip(true, true);
}

Cut::Cut(const std::vector<Part>& parts_, Sizes y_, int64_t channels)
    : parts(parts_),
      y(y_),
      rows(y[1]),
      cols(y[2]) {
  // Tiles of what outputs far apart read would read nearly all of it.
  bool skips = false;
  for (const Part& part : parts) skips |= part.skips_cols;
  const int64_t most = skips ? kMostElements : kTileElements;
  auto fits = [&](int64_t more) {
    const int64_t size = Tile(parts, {0, 0, 0, more * planes, rows, cols}).size();
    return size * channels <= most;
  };
  while (rows > 1 && !fits(1)) rows = ceil_div(rows, 2);
  while (rows == 1 && cols > kPositions && !fits(1)) cols = ceil_div(cols, 2);
  while (rows == y[1] && cols == y[2] && planes < y[0] && fits(2)) planes *= 2;
  planes = std::min(planes, y[0]);
}

template <class T> void copy_padded(const Problem& p, const Tile& tile, const Image<T>& x, T* to) {
  const int64_t channels = p.channels, plane = p.h.in * p.w.in;
  const Extent &e = tile.height, &f = tile.width;
  const int64_t top = std::clamp<int64_t>(-e.first, 0, e.size);
  const int64_t bottom = std::clamp<int64_t>(p.h.in - e.first, top, e.size);
  const int64_t left = std::clamp<int64_t>(-f.first, 0, f.size);
  const int64_t right = std::clamp<int64_t>(p.w.in - f.first, left, f.size);
  const int64_t row = f.size * channels, seen = p.w.in * channels;
  // Whole rows of x are copied at once.
  const bool plain = f.size == p.w.in && right - left == p.w.in;
  const bool whole = plain || (right - left == p.w.in && !x.last);
  Scratch<T> near(whole && !plain ? (bottom - top) * seen : 0);
  for (int64_t z = 0; z < tile.depth.size; ++z, to += e.size * row) {
    const int64_t in_z = tile.depth.first + z;
    if (in_z < 0 || in_z >= p.d.in || top == bottom || left == right) {
      std::fill_n(to, e.size * row, T(0));
      continue;
    }
    std::fill_n(to, top * row, T(0));
    std::fill_n(to + bottom * row, (e.size - bottom) * row, T(0));
    const int64_t from = in_z * plane + (e.first + top) * p.w.in;
    if (whole) {
      x.read(from, (bottom - top) * p.w.in, channels, plain ? to + top * row : near.data(),
             channels);
    }
    for (int64_t r = top; !plain && r < bottom; ++r) {
      T* line = to + r * row;
      std::fill_n(line, left * channels, T(0));
      if (whole) {
        std::copy_n(near.data() + (r - top) * seen, seen, line + left * channels);
      } else {
        x.read(from + (r - top) * p.w.in + f.first + left, right - left, channels,
               line + left * channels, channels);
      }
      std::fill_n(line + right * channels, (f.size - right) * channels, T(0));
    }
  }
}

template void copy_padded<float>(const Problem&, const Tile&, const Image<float>&, float*);
template void copy_padded<double>(const Problem&, const Tile&, const Image<double>&, double*);

}  // namespace taeda::cpu::nhwc
