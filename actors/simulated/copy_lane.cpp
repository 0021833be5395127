#include "actors/simulated/copy_lane.hpp"

#include <cstring>

#include "framework/submit.hpp"
#include "framework/tensor_state.hpp"

namespace weft {
namespace {

// Shorter copies say more about latency than about the rate.
constexpr std::int64_t kTellsRate = 64 << 10;

const CopyRange& range_of(Op& op) {
  return *static_cast<const CopyRange*>(op.scalars());
}

}  // namespace

void SimulatedCopyLane::estimate(Op& op, Work& work) {
  const CopyRange& range = range_of(op);
  work.fixed = (range.segment->latency + setup().hooks->link_latency).count();
  work.amount = static_cast<double>(range.bytes);
  for (std::uint32_t hop : range.segment->hops) work.uses.push_back({first_hop_ + hop, 1});
}

void SimulatedCopyLane::execute(Op& op) {
  const CopyRange& range = range_of(op);
  if (range.bytes == 0) return;
  std::memcpy(static_cast<char*>(op.args()[1].replica()->data) + range.to_offset,
              static_cast<const char*>(op.args()[0].replica()->data) + range.offset, range.bytes);
}

void SimulatedCopyLane::ends(Op& op, bool ran, VirtualTime::Ns start) {
  const CopyRange& range = range_of(op);
  const auto bytes = static_cast<std::int64_t>(range.bytes);
  LinkLoad* const load = range.segment->load;
  load->queued_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (load != &load_) return;  // of another link, a relief
  --own_copies_;
  const double seconds = 1e-9 * static_cast<double>(time().now() - start);
  if (!ran || bytes < kTellsRate || seconds <= 0) return;
  auto& rate = load_.bytes_per_second;
  rate.store(
      0.8 * rate.load(std::memory_order_relaxed) + 0.2 * static_cast<double>(bytes) / seconds,
      std::memory_order_relaxed);
}

void SimulatedCopyLane::ended(std::int64_t bytes) {
  if (bytes == 0) return;
  busy_bytes_ -= bytes;
  on_copied_();
}

}  // namespace weft
