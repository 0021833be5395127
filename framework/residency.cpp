#include "framework/residency.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/memory_pool.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/tagged.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

// A copy over several segments is cut into chunks so that the segments work at the same time.
constexpr std::size_t kMaxChunk = 4 << 20;
constexpr std::size_t kMinChunk = 256 << 10;

std::size_t chunk_bytes(std::size_t bytes, std::size_t segments) {
  if (segments < 2) return std::max<std::size_t>(bytes, 1);
  return std::clamp(bytes / 8, kMinChunk, kMaxChunk);
}

void prune_settled(SmallVector<Op*, 4>& readers) {
  std::uint32_t kept = 0;
  for (Op* reader : readers) {
    if (reader->is_settled())
      release(reader);
    else
      readers[kept++] = reader;
  }
  readers.resize_down(kept);
}

// Each write looks at every reader: one op that is done with all of them takes the place of so
// many.
constexpr std::uint32_t kMostReaders = 256;

void join_readers(SmallVector<Op*, 4>& readers) {
  static const KernelCode& code = *[] {
    auto* made = new KernelCode;  // lives as long as the process, as other codes of inline ops
    made->name = "readers";
    made->is_lazy = true;
    return made;
  }();
  Op* join = make_op(&code, 0, 0, 0);
  acquire(join);
  publish(join);
  wait_for_all(join, {readers.begin(), readers.size()});
  for (Op* reader : readers) release(reader);
  readers.clear();
  readers.push_back(join);
}

}  // namespace

void DependencySet::add(Op* producer, bool order_only, bool until_done) {
  if (!producer) return;
  for (Dependency& known : list_)
    if (known.producer == producer) {
      known.order_only = known.order_only && order_only;
      known.until_done = known.until_done || until_done;
      return;
    }
  if (producer->is_settled() && (order_only || !producer->has_failed())) return;
  list_.push_back({producer, order_only, until_done});
}

double copy_seconds(const Path& path, std::size_t bytes) {
  double sum = 0;
  for (const Segment& segment : path.segments) {
    const double rate = segment.load->bytes_per_second.load(std::memory_order_relaxed);
    const auto queued = segment.load->queued_bytes.load(std::memory_order_relaxed);
    sum += 1e-9 * static_cast<double>(segment.latency.count());
    if (rate > 0) sum += (static_cast<double>(bytes) + static_cast<double>(queued)) / rate;
  }
  return sum;
}

Replica* find_replica(const TensorState& tensor, std::uint32_t memory) {
  for (Replica* replica : tensor.replicas)
    if (replica->memory == memory) return replica;
  return nullptr;
}

namespace {

// Whether a way leads through a memory that has a replica: from there it is shorter, whatever the
// links publish between two looks, and a memory must not get a second one.
bool passes_replica(const TensorState& tensor, const Path& path) {
  for (std::size_t s = 0; s + 1 < path.segments.size(); ++s)
    if (find_replica(tensor, path.segments[s].to)) return true;
  return false;
}

}  // namespace

Source choose_source(const Fabric& fabric, const TensorState& tensor, std::uint32_t memory) {
  Source best;
  std::pair best_rank{true, std::numeric_limits<double>::infinity()};
  for (Replica* replica : tensor.replicas) {
    const Path& path = fabric.path(replica->memory, memory);
    if (!best.replica) best.replica = replica;
    if (path.segments.empty()) continue;
    // One whose copy is under way counts as if it were there.
    const std::pair rank{passes_replica(tensor, path), copy_seconds(path, tensor.bytes())};
    if (rank < best_rank) {
      best_rank = rank;
      best = {replica, &path};
    }
  }
  return best;
}

Replica* make_replica(Fabric& fabric, TensorState& tensor, std::uint32_t memory) {
  auto* replica = new Replica;
  replica->tensor = &tensor;
  replica->pool = fabric.memories[memory].get();
  replica->bytes = tensor.bytes();
  replica->memory = memory;
  return replica;
}

void add_reader(TensorState& tensor, Op* op) {
  if (tensor.readers.size() == tensor.readers.capacity()) prune_settled(tensor.readers);
  if (tensor.readers.size() >= kMostReaders) join_readers(tensor.readers);
  tensor.readers.push_back(op);
}

void add_write_dependencies(const TensorState& tensor, DependencySet& set) {
  // Every read waited for the write itself: where there are reads, the write is implied. A failed
  // writer's readers failed at once and imply nothing, but then the writer has settled too.
  for (Op* reader : tensor.readers) set.add(reader, true);
  if (tensor.readers.empty()) set.add(tensor.writer, true);
}

void become_writer(TensorState& tensor, Op* op, Replica* kept) {
  for (Op* reader : tensor.readers) release(reader);
  tensor.readers.clear();
  if (tensor.writer) release(tensor.writer);
  tensor.writer = op;
  // What stays in its place stays in its memory's set too.
  const bool was_valid = kept && find_replica(tensor, kept->memory) == kept;
  for (Replica* replica : tensor.replicas)
    if (replica != kept) make_stale(replica, op);
  if (was_valid && tensor.replicas.size() == 1) {
    if (kept->ready) release(std::exchange(kept->ready, nullptr));
    return;
  }
  take_out_replicas(tensor);
  if (!kept) return;
  if (kept->ready) release(std::exchange(kept->ready, nullptr));
  add_replica(tensor, kept);  // last: a partial sum's lock is not held
}

std::size_t count_waits(const DependencySet& set, Domain domain) {
  if (domain == Domain::Host) return 0;
  std::size_t count = 0;
  for (const Dependency& dependency : set.all())
    count += waits_on_device(domain, dependency.producer->domain, dependency.until_done);
  return count;
}

void connect(Op* op, const DependencySet& set) {
  op->pending.store(static_cast<std::uint32_t>(set.size()) + 1, std::memory_order_relaxed);
  publish(op);
  const std::uint32_t closed = follow(op, set, 0);
  if (closed) op->pending.fetch_sub(closed, std::memory_order_acq_rel);
}

std::uint32_t follow(Op* op, const DependencySet& set, std::uint32_t waits) {
  std::uint32_t closed = 0;
  for (const Dependency& dependency : set.all()) {
    Op* producer = dependency.producer;
    note_wait(*op, *producer);
    const bool on_device = waits_on_device(op->domain, producer->domain, dependency.until_done);
    if (on_device) {
      acquire(producer);
      op->waits()[waits++] = tag(producer, dependency.order_only);
    }
    closed += !follow_running(op, producer, on_device ? Stage::Issued : Stage::Done,
                              dependency.order_only);
  }
  return closed;
}

bool follow_running(Op* op, Op* producer, Stage stage, bool order_only) {
  if (add_follower(producer, stage, op, order_only)) return true;
  if (order_only || !producer->is_settled()) return false;
  if (Failure* cause = producer->failure.load(std::memory_order_acquire)) {
    Failure* failure = inherited(cause, *op);
    Failure* expected = nullptr;
    if (!op->failure.compare_exchange_strong(expected, failure)) failure->release();
  }
  return false;
}

namespace {

// One chunk over one segment, sent to the link's actor. The caller gets a reference.
Op* send_chunk(Fabric& fabric, TensorState& tensor, const Segment& segment, Replica* from,
               Replica* to, const CopyRange& range, const DependencySet& needs) {
  // The program's own memory may be pageable: no device can wait for such a copy, or start it.
  const MemoryPool* program = fabric.program_memory.get();
  const bool is_staged = from->pool == program || to->pool == program;
  const Domain domain = is_staged ? Domain::Host : segment.domain;
  constexpr std::uint32_t kReferences = 3;  // runner, reader list, caller
  Op* copy =
      make_op(copy_code().get(), 2, count_waits(needs, domain), sizeof(CopyRange), kReferences);
  copy->owner = segment.owner;
  copy->domain = domain;
  copy->args()[0] = ArgSlot(from, Access::In);
  copy->args()[1] = ArgSlot(to, Access::Out);
  *static_cast<CopyRange*>(copy->scalars()) = range;
  segment.owner->admission()->take_in();
  segment.load->queue(range.bytes);
  if (fabric.tracer) fabric.tracer->submitted(fabric, *copy, needs);
  if (PlanRecorder* recorder = PlanRecorder::of(fabric)) recorder->add_copy(copy, tensor);
  connect(copy, needs);
  add_reader(tensor, copy);
  remember_serial(fabric, copy);
  satisfy(copy, send_to_owner());
  return copy;
}

}  // namespace

void remember_serial(Fabric& fabric, Op* op) {
  if (!fabric.serial) return;
  acquire(op);
  if (fabric.last_serial) release(fabric.last_serial);
  fabric.last_serial = op;
}

namespace {

// Done when all of `copies` are, failed when one of them is: stands for pieces that several links
// move in any order. The caller gets a reference.
Op* join_copies(std::span<Op* const> copies) {
  static const KernelCode& code = *[] {
    auto* made = new KernelCode;  // lives as long as the process, as other codes of inline ops
    made->name = "copied";
    return made;
  }();
  DependencySet needs;
  for (Op* copy : copies) needs.add(copy, false);
  Op* join = make_op(&code, 0, 0, 0);
  acquire(join);
  connect(join, needs);
  satisfy(join, send_to_owner());
  return join;
}

// A large copy into host memory in pieces, so that links that are idle may take some of them.
Op* send_pieces(Fabric& fabric, TensorState& tensor, const Source& source, Replica* target,
                const DependencySet* target_dependencies) {
  const Segment& segment = source.path->segments.front();
  const std::size_t bytes = tensor.bytes(), most = source.path->piece_bytes;
  const std::size_t pieces = (bytes + most - 1) / most;
  const std::size_t piece = ((bytes + pieces - 1) / pieces + 4095) / 4096 * 4096;
  SmallVector<Op*, 16> made;
  for (std::size_t offset = 0; offset < bytes; offset += piece) {
    DependencySet needs;
    needs.add(producer_of(*source.replica), false);
    if (target_dependencies)
      for (const Dependency& d : target_dependencies->all())
        needs.add(d.producer, d.order_only, d.until_done);
    needs.add(fabric.last_serial, true, true);
    made.push_back(send_chunk(fabric, tensor, segment, source.replica, target,
                              {offset, std::min(piece, bytes - offset), &segment, offset}, needs));
  }
  Op* join = join_copies({made.begin(), made.size()});
  for (Op* copy : made) release(copy);
  return join;
}

}  // namespace

Replica* send_copies(Fabric& fabric, TensorState& tensor, const Source& source, Replica* target,
                     Op** last_copy, const DependencySet* target_dependencies) {
  const auto& segments = source.path->segments;
  const std::size_t bytes = tensor.bytes();
  const std::size_t chunk = chunk_bytes(bytes, segments.size());
  const std::size_t chunks = bytes == 0 ? 1 : (bytes + chunk - 1) / chunk;
  const std::size_t most = source.path->piece_bytes;
  if (target && last_copy && most > 0 && bytes > most &&
      target->pool != fabric.program_memory.get()) {
    *last_copy = send_pieces(fabric, tensor, source, target, target_dependencies);
    return target;
  }

  Replica* from = source.replica;
  SmallVector<Op*, 16> before, made;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments[s];
    const bool is_last = s + 1 == segments.size(), into_target = target && is_last;
    Replica* to = into_target ? target : make_replica(fabric, tensor, segment.to);
    if (is_last && source.space) to->data = source.space;
    const std::uint32_t first = made.size();
    for (std::size_t c = 0; c < chunks; ++c) {
      DependencySet needs;
      needs.add(before.empty() ? producer_of(*from) : before[c], false);
      // Lanes are in order, so the last chunk stands for all of them; the edge carries failures.
      if (c > 0) needs.add(made[first + c - 1], false);
      if (into_target && c == 0 && target_dependencies)
        for (const Dependency& d : target_dependencies->all())
          needs.add(d.producer, d.order_only, d.until_done);
      needs.add(fabric.last_serial, true, true);
      const std::size_t offset = c * chunk;
      made.push_back(send_chunk(fabric, tensor, segment, from, to,
                                {offset, std::min(chunk, bytes - offset), &segment, offset},
                                needs));
    }
    before.clear();
    for (std::uint32_t c = first; c < made.size(); ++c) before.push_back(made[c]);
    Op* last = made[made.size() - 1];
    if (into_target) {
      if (last_copy) {
        acquire(last);
        *last_copy = last;
      }
    } else {
      acquire(last);
      to->ready = last;
      add_replica(tensor, to);
    }
    from = to;
  }
  for (Op* copy : made) release(copy);
  return from;
}

}  // namespace weft
