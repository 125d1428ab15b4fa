#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_tiling.h"

// The gradient of the weights for few channels: places lie across the registers, so that the input
// and the outputs' gradients are read as they are. Each register of sums is added up at the end.
namespace taeda::cpu::direct {
namespace {

constexpr int64_t kTasks = 16;          // or more, where there are pieces enough
constexpr int64_t kRunRegisters = 64;   // of places of a run, or more
constexpr int64_t kTaskWork = 1 << 16;  // multiplications worth a chunk

// What the pieces of one run come to: registers of sums, [some outputs][some taps][output][tap].
template <class T> struct Sums {
  int64_t outputs, depth;  // depth: taps of all channels
  Scratch<T> memory;

  static int64_t groups(int64_t depth) { return ceil_div(depth, correlate_loops<T>().taps); }
  Sums(int64_t outputs_, int64_t depth_)
      : outputs(outputs_),
        depth(depth_),
        memory(outputs * groups(depth) * correlate_loops<T>().taps * correlate_loops<T>().lanes) {}
  int64_t padded_depth() const { return groups(depth) * correlate_loops<T>().taps; }
  int64_t size() const { return outputs * padded_depth() * correlate_loops<T>().lanes; }

  // A rectangle of places; offset: of all taps, filled up to whole groups of them.
  void add(simd::Places<T> places, const int64_t* offset) {
    const auto& k = correlate_loops<T>();
    T* sums = memory.data();
    for (int64_t first = 0; first < outputs;
         first += k.outputs, places.g += k.outputs * places.g_plane) {
      const int64_t m = std::min(k.outputs, outputs - first);
      for (int64_t tap = 0; tap < depth; tap += k.taps) {
        k.add(m, places, offset + tap, sums);
        sums += m * k.taps * k.lanes;
      }
    }
  }
  // to[output][tap]
  void finish(T* to) const {
    const auto& k = correlate_loops<T>();
    const Scratch<T> added(size() / k.lanes);
    add_lanes(memory.data(), size() / k.lanes, k.lanes, added.data());
    const T* from = added.data();
    for (int64_t first = 0; first < outputs; first += k.outputs) {
      const int64_t m = std::min(k.outputs, outputs - first);
      for (int64_t tap = 0; tap < depth; tap += k.taps) {
        for (int64_t i = 0; i < m; ++i, from += k.taps)
          std::copy_n(from, std::min(k.taps, depth - tap), to + (first + i) * depth + tap);
      }
    }
  }
};

}  // namespace

template <class T> double places_cost(const Problem& p, int64_t outputs) {
  const int64_t registers = p.h.out * ceil_div(p.w.out, correlate_loops<T>().lanes);
  return static_cast<double>(outputs * p.depth()) * static_cast<double>(registers + 2);
}
template double places_cost<float>(const Problem&, int64_t);
template double places_cost<double>(const Problem&, int64_t);

template <class T> void places_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const Problem p = forward_problem(s);
  const int64_t outputs = s.out_channels / s.groups, depth = p.depth(),
                lanes = correlate_loops<T>().lanes;
  const int64_t x_volume = volume(s, s.in), y_volume = volume(s, s.out);
  // Runs of pieces have sums of their own, which are then added in order: no more of them than make
  // tasks enough with the groups, and of places enough to pay for adding up their registers.
  const int64_t bands = p.bands(), pieces = s.batch * bands;
  const int64_t most = std::min(std::max<int64_t>(1, kTasks / s.groups), pieces);
  const int64_t registers = p.band() * ceil_div(p.w.out, lanes);  // of a piece
  const int64_t run = std::max(ceil_div(pieces, most), ceil_div(kRunRegisters, registers));
  const int64_t runs = ceil_div(pieces, run);
  const int64_t total = s.groups * outputs * depth;
  const int64_t work = std::max<int64_t>(1, outputs * depth * run * p.band() * p.w.out);
  const int64_t grain = std::max<int64_t>(1, kTaskWork / work);
  Scratch<T> results(runs * total);
  parallel_for(runs * s.groups, grain, [&](int64_t begin, int64_t end) {
    const bool copied = p.w.out < lanes;  // with room to read a register after the last row
    const int64_t most_places = p.band() * p.w.out;
    Scratch<T> laid(p.channels * p.channel_size(p.band()) + lanes);
    Scratch<T> grads(copied ? outputs * most_places + lanes : 0);
    Sums<T> sums(outputs, depth);
    std::vector<int64_t> offset;
    int64_t rows = 0;  // of a band that has these offsets
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % s.groups, number = i / s.groups;
      std::fill_n(sums.memory.data(), sums.size(), T(0));
      for (int64_t piece = number * run; piece < std::min((number + 1) * run, pieces); ++piece) {
        const int64_t image = piece / bands;
        const Band band(p, piece % bands);
        if (band.rows != rows) {
          rows = band.rows;
          offset = offsets(p, rows);
          offset.resize(static_cast<size_t>(sums.padded_depth()));  // those are not used
        }
        lay_out(p, band, x + (image * s.groups + group) * p.channels * x_volume, laid.data());
        const T* g = gy + (image * s.groups + group) * outputs * y_volume +
                     (band.depth * p.h.out + band.first) * p.w.out;
        const int64_t places = rows * p.w.out;
        for (int64_t m = 0; copied && m < outputs; ++m)
          std::copy_n(g + m * y_volume, places, grads.data() + m * places);
        sums.add({rows, p.w.out, copied ? grads.data() : g, copied ? places : y_volume, p.w.out,
                  laid.data(), p.width()},
                 offset.data());
      }
      sums.finish(results.data() + number * total + group * outputs * depth);
    }
  });
  add_parts(results.data(), runs, total, gw);
}
template void places_grad_weight<float>(const ConvShape&, const float*, const float*, float*);
template void places_grad_weight<double>(const ConvShape&, const double*, const double*, double*);

}  // namespace taeda::cpu::direct
