#include "actors/storage/storage_lane.hpp"

#include <algorithm>

#include "actors/emulated/lane.hpp"
#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/submit.hpp"
#include "framework/tensor_state.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

constexpr std::size_t kStoragePiece = 1 << 20;
// Shorter copies say more about latency than about the rate.
constexpr std::size_t kTellsDiskRate = 64 << 10;

}  // namespace

void StorageLane::push(Op& op) {
  Transfer transfer;
  transfer.op = &op;
  transfer.is_refused = op.failure.load(std::memory_order_relaxed) != nullptr;
  if (!transfer.is_refused) transfer.bytes = copied_bytes(op);
  unsigned more = 0;
  {
    std::lock_guard lock(mutex_);
    const std::size_t pieces =
        std::max<std::size_t>(1, (transfer.bytes + kStoragePiece - 1) / kStoragePiece);
    transfers_.push_back(transfer);
    more = static_cast<unsigned>(std::min<std::size_t>(pieces, kPieces - workers_));
    workers_ += more;
  }
  for (unsigned i = 0; i < more; ++i) setup_.threads->post([this] { work(); });
}

void StorageLane::work() {
  thread_must_not_wait() = true;  // what it settles may submit
  std::unique_lock lock(mutex_);
  while (const auto piece = take_piece()) {
    lock.unlock();
    Failure* failure = move(*piece);
    lock.lock();
    Transfer& transfer = *piece->transfer;
    --transfer.under_way;
    if (failure) {
      transfer.next = transfer.bytes;
      if (transfer.failure)
        failure->release();
      else
        transfer.failure = failure;
    }
    settle_in_order(lock);
  }
  --workers_;
}

std::optional<StorageLane::Piece> StorageLane::take_piece() {
  for (Transfer& transfer : transfers_) {
    if (transfer.has_begun && transfer.next == transfer.bytes) continue;
    Piece piece;
    piece.transfer = &transfer;
    piece.offset = transfer.next;
    piece.bytes = std::min(kStoragePiece, transfer.bytes - transfer.next);
    piece.is_first = !std::exchange(transfer.has_begun, true);
    if (piece.is_first) transfer.begun = std::chrono::steady_clock::now();
    transfer.next += piece.bytes;
    ++transfer.under_way;
    return piece;
  }
  return std::nullopt;
}

// The failure if there was one. Without the lock.
Failure* StorageLane::move(const Piece& piece) {
  const Transfer& transfer = *piece.transfer;
  if (transfer.is_refused) return nullptr;
  Op& op = *transfer.op;
  if (piece.is_first)
    if (Failure* failure = consult_hooks(op, transfer.begun)) return failure;
  const CopyRange& range = *static_cast<const CopyRange*>(op.scalars());
  const Replica& from = *op.args()[0].replica();
  const Replica& to = *op.args()[1].replica();
  const std::size_t source = range.offset + piece.offset, target = range.to_offset + piece.offset;
  const bool is_write = to.memory == setup_.disk;
  const std::string problem =
      is_write
          ? setup_.file->write(static_cast<const char*>(from.data) + source, to.data, target,
                               piece.bytes)
          : setup_.file->read(static_cast<char*>(to.data) + target, from.data, source, piece.bytes);
  if (problem.empty()) return nullptr;
  return Failure::make(FailureKind::DeviceError, op.code->name, setup_.device,
                       std::string(is_write ? "writing to" : "reading from") +
                           " the spill directory \"" + setup_.file->directory() + "\": " + problem);
}

Failure* StorageLane::consult_hooks(const Op& op, Time begun) {
  const LaneOp described{op.code->name, setup_.name, copied_bytes(op)};
  if (setup_.hooks->fault)
    if (auto message = setup_.hooks->fault(described))
      return Failure::make(FailureKind::Injected, op.code->name, setup_.device, *message);
  if (setup_.hooks->delay) wait_until(begun + setup_.hooks->delay(described));
  return nullptr;
}

void StorageLane::settle_in_order(std::unique_lock<std::mutex>& lock) {
  if (std::exchange(is_settling_, true)) return;  // whoever does looks again
  while (!transfers_.empty()) {
    const Transfer& first = transfers_.front();
    if (!first.has_begun || first.under_way > 0 || first.next < first.bytes) break;
    const Transfer ended = first;
    transfers_.pop_front();
    lock.unlock();
    end(ended);
    lock.lock();
  }
  is_settling_ = false;
}

// Of several that were under way together the last ones seem to take no time: only what has
// gathered for a while tells a rate.
void StorageLane::note_rate(std::size_t bytes, double seconds) {
  constexpr double kLongEnough = 2e-3;
  gathered_bytes_ += static_cast<double>(bytes);
  gathered_seconds_ += seconds;
  if (gathered_seconds_ < kLongEnough) return;
  auto& rate = setup_.load->bytes_per_second;
  rate.store(0.8 * rate.load(std::memory_order_relaxed) + 0.2 * gathered_bytes_ / gathered_seconds_,
             std::memory_order_relaxed);
  gathered_bytes_ = gathered_seconds_ = 0;
}

void StorageLane::end(const Transfer& transfer) {
  Op& op = *transfer.op;
  const std::size_t bytes = copied_bytes(op);
  const bool has_moved = !transfer.failure && !transfer.is_refused;
  const Time now = std::chrono::steady_clock::now();
  const Time begun = std::max(transfer.begun, last_end_);  // before that another had the lane
  last_end_ = now;
  if (setup_.tracer)
    setup_.tracer->ran(setup_.track, op, setup_.tracer->at(begun), setup_.tracer->at(now),
                       !has_moved);
  const double seconds = std::chrono::duration<double>(now - begun).count();
  if (has_moved && bytes >= kTellsDiskRate) note_rate(bytes, seconds);
  setup_.load->queued_bytes.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  settle(&op, transfer.failure, send_to_owner());
  if (bytes == 0) return;
  busy_bytes_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_seq_cst);
  setup_.on_copied();
}

}  // namespace weft
