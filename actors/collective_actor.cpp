#include "actors/collective_actor.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "actors/collective_step.hpp"
#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/residency.hpp"
#include "framework/submit.hpp"
#include "framework/tagged.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

void run_local_step(Cpu&, Op& op) {
  const auto& step = *static_cast<const CollectiveLocalStep*>(op.scalars());
  if (step.bytes == 0) return;
  char* into = static_cast<char*>(op.args()[0].replica()->data) + step.into_offset;
  const char* from = static_cast<const char*>(op.args()[1].replica()->data) + step.from_offset;
  if (step.sum)
    step.sum(into, from, step.bytes / step.element_bytes);
  else
    std::memcpy(into, from, step.bytes);
}

// Ends the collective op once every step has settled, or tells its followers that every step is
// launched.
void end_collective(Op& join) {
  Op* whole = *static_cast<Op**>(join.scalars());
  Failure* cause = join.failure.load(std::memory_order_acquire);
  settle(whole, cause ? Failure::dependent(cause, whole->code->name) : nullptr, send_to_owner());
}
void announce_collective(Op& join) {
  Op* whole = *static_cast<Op**>(join.scalars());
  mark_issued(whole, send_to_owner());
  release(whole);
}

const KernelCode& join_code(const char* name, void (*run)(Op&)) {
  auto* made = new KernelCode;
  made->name = name;
  made->inline_run = run;
  return *made;
}

// Takes one collective op apart.
class Expansion {
 public:
  Expansion(Fabric& fabric, Op& whole)
      : fabric_(fabric),
        whole_(whole),
        call_(*static_cast<CollectiveCall*>(whole.scalars())),
        total_bytes_(total_bytes_of(whole)) {}
  ~Expansion() {
    for (Op* op : made_) release(op);
    if (begin_) release(begin_);
  }
  Expansion(const Expansion&) = delete;
  Expansion& operator=(const Expansion&) = delete;

  void run() {
    if (whole_.wait_count > kManyWaits) begin_ = make_begin();
    for (const CollectiveStep& step : call_.plan->steps) {
      // Members may share a memory, as a GPU and the socket on its chip do: no link leads there.
      if (step.kind == CollectiveStep::Kind::Add ||
          memory_of(step.from.member) == memory_of(step.to.member))
        local(step);
      else
        send(step);
    }
    finish();
  }

 private:
  static constexpr std::uint32_t kManyWaits = 32;

  struct Touch {
    Op* writer = nullptr;
    std::vector<Op*> readers;
  };
  [[nodiscard]] std::uint32_t members() const { return call_.plan->members; }
  [[nodiscard]] std::uint32_t memory_of(std::uint32_t member) const {
    return (*call_.members)[member]->memory;
  }

  Replica* buffer(CollectiveBuffer buffer) {
    if (buffer.slot == CollectiveBuffer::kData) return whole_.args()[buffer.member].replica();
    if (buffer.slot == CollectiveBuffer::kResult)
      return whole_.args()[members() + buffer.member].replica();
    return temporary(buffer.member * 64 + buffer.slot, memory_of(buffer.member));
  }

  // As large as the whole data of one member, so that regions have the same offset everywhere.
  Replica* temporary(std::uint32_t key, std::uint32_t memory) {
    Replica*& replica = temporaries_[key];
    if (replica) return replica;
    replica = new Replica;
    replica->tensor = whole_.args()[0].replica()->tensor;
    replica->pool = fabric_.memories[memory].get();
    replica->bytes = total_bytes_;
    replica->memory = memory;
    replica->pool->force_reserve(replica->bytes);
    replica->next_stale = whole_.stale;  // freed when the collective settles
    whole_.stale = replica;
    return replica;
  }

  // Bytes of all regions together.
  static std::size_t total_bytes_of(Op& whole) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < whole.arg_count; ++i)
      bytes = std::max(bytes, whole.args()[i].replica()->bytes);
    return bytes;
  }
  // Where a region begins in a buffer that holds all of them.
  [[nodiscard]] std::size_t region_start(std::uint32_t region) const {
    const std::size_t elements = total_bytes_ / call_.element_bytes;
    return elements * region / call_.plan->regions * call_.element_bytes;
  }
  [[nodiscard]] std::size_t region_bytes(std::uint32_t region) const {
    return region_start(region + 1) - region_start(region);
  }
  // A buffer that holds one region only (a scattered result, a part to gather) begins with it.
  [[nodiscard]] std::size_t offset_in(const Replica& replica, std::uint32_t region) const {
    return replica.bytes == total_bytes_ ? region_start(region) : 0;
  }

  Touch& touched(const Replica* buffer, std::uint32_t region) {
    auto& regions = touched_[buffer];
    if (regions.empty()) regions.resize(call_.plan->regions);
    return regions[region];
  }

  void add_needs(DependencySet& set, const Replica* from, const Replica* into,
                 std::uint32_t region) {
    set.add(touched(from, region).writer, false);
    Touch& target = touched(into, region);
    set.add(target.writer, false);
    for (Op* reader : target.readers) set.add(reader, true);
    if (begin_)
      set.add(begin_, false);
    else
      add_waits(set);
  }

  void add_waits(DependencySet& set) const {
    for (std::size_t i = 0; i < whole_.wait_count; ++i)
      set.add(untagged(whole_.waits()[i]), is_order_only(whole_.waits()[i]));
  }

  // Done when all that the operation waits for is: one op for each step to wait for, where that
  // would be very many. The caller gets a reference.
  Op* make_begin() const {
    static const KernelCode& code = join_code("collective_begin", nullptr);
    DependencySet set;
    add_waits(set);
    Op* op = make_op(&code, 0, 0, 0, 2);
    connect(op, set);
    satisfy(op, send_to_owner());
    return op;
  }

  void touch(Op* op, const Replica* from, const Replica* into, std::uint32_t region) {
    touched(from, region).readers.push_back(op);
    Touch& target = touched(into, region);
    target.writer = op;
    target.readers.clear();
    made_.push_back(op);
  }

  Op* make(const KernelCode& code, const DependencySet& set, Domain domain, std::size_t scalars,
           Mailbox* owner) {
    constexpr std::uint32_t kReferences = 2;  // the runner's and ours
    Op* op = make_op(&code, 2, count_waits(set, domain), scalars, kReferences);
    op->domain = domain;
    op->owner = owner;
    owner->admission()->take_in();
    return op;
  }

  void launch(Op* op, const DependencySet& set) {
    if (fabric_.tracer) fabric_.tracer->submitted(fabric_, *op, set);
    connect(op, set);
    acquire(op);
    satisfy(op, send_to_owner());
    release(op);
  }

  void local(const CollectiveStep& step) {
    Replica* from = buffer(step.from);
    Replica* into = buffer(step.to);
    Place& place = *(*call_.members)[step.to.member];
    DependencySet set;
    add_needs(set, from, into, step.region);
    Op* op = make(collective_step_kernel(), set, place.domain, sizeof(CollectiveLocalStep),
                  place.lanes.front());
    op->device = static_cast<std::uint16_t>(place.index);
    op->args()[0] = ArgSlot(into, Access::InOut);
    op->args()[1] = ArgSlot(from, Access::In);
    *static_cast<CollectiveLocalStep*>(op->scalars()) = {
        offset_in(*into, step.region), offset_in(*from, step.region), region_bytes(step.region),
        call_.element_bytes, step.kind == CollectiveStep::Kind::Add ? call_.sum : nullptr};
    touch(op, from, into, step.region);
    launch(op, set);
  }

  void send(const CollectiveStep& step) {
    const auto& segments =
        fabric_.path(memory_of(step.from.member), memory_of(step.to.member)).segments;
    Replica* from = buffer(step.from);
    Replica* into = buffer(step.to);
    std::size_t from_offset = offset_in(*from, step.region);
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const Segment& segment = segments[s];
      const bool last = s + 1 == segments.size();
      Replica* next = last ? into : temporary((1u << 20) + way_of(step) * 8 + s, segment.to);
      const std::size_t to_offset =
          last ? offset_in(*into, step.region) : region_start(step.region);
      DependencySet set;
      add_needs(set, from, next, step.region);
      Op* op = make(*copy_code(), set, segment.domain, sizeof(CopyRange), segment.owner);
      op->args()[0] = ArgSlot(from, Access::In);
      op->args()[1] = ArgSlot(next, Access::Out);
      *static_cast<CopyRange*>(op->scalars()) = {from_offset, region_bytes(step.region), &segment,
                                                 to_offset};
      segment.load->queue(region_bytes(step.region));
      touch(op, from, next, step.region);
      launch(op, set);
      from = next;
      from_offset = to_offset;
    }
  }

  [[nodiscard]] std::uint32_t way_of(const CollectiveStep& step) const {
    return step.from.member * members() + step.to.member;
  }

  Op* join(const KernelCode& code) {
    Op* op = make_op(&code, 0, 0, sizeof(Op*));
    *static_cast<Op**>(op->scalars()) = &whole_;
    op->pending.store(static_cast<std::uint32_t>(made_.size()) + 1, std::memory_order_relaxed);
    publish(op);
    return op;
  }

  void finish() {
    static const KernelCode& end = join_code("collective_end", end_collective);
    static const KernelCode& announce = join_code("collective_launched", announce_collective);
    // Followers may be launched once every step has its place on a lane, not before: a follower in
    // front of a step on one lane would wait for what waits behind it.
    acquire(&whole_);
    if (fabric_.tracer)
      for (const Op* op : made_) fabric_.tracer->made_part(whole_, *op);
    Op* launched = join(announce);
    Op* ended = join(end);
    std::uint32_t ready_launched = 0, ready_ended = 0;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const Stage stage = made_[i]->domain == Domain::Host ? Stage::Done : Stage::Issued;
      if (!add_follower(made_[i], stage, launched, true)) ++ready_launched;
      if (add_follower(made_[i], Stage::Done, ended, false)) continue;
      ++ready_ended;
      if (Failure* cause = made_[i]->failure.load(std::memory_order_acquire)) {
        Failure* failure = Failure::dependent(cause, whole_.code->name);
        Failure* expected = nullptr;
        if (!ended->failure.compare_exchange_strong(expected, failure)) failure->release();
      }
    }
    if (ready_launched) launched->pending.fetch_sub(ready_launched, std::memory_order_acq_rel);
    if (ready_ended) ended->pending.fetch_sub(ready_ended, std::memory_order_acq_rel);
    satisfy(launched, send_to_owner());
    satisfy(ended, send_to_owner());
  }

  Fabric& fabric_;
  Op& whole_;
  const CollectiveCall call_;
  const std::size_t total_bytes_;
  std::unordered_map<std::uint32_t, Replica*> temporaries_;
  std::unordered_map<const Replica*, std::vector<Touch>> touched_;  // by region
  std::vector<Op*> made_;
  Op* begin_ = nullptr;
};

}  // namespace

KernelCode& collective_step_kernel() {
  static KernelCode* const code = [] {
    auto* made = new KernelCode;
    made->name = "collective_step";
    made->cpu = run_local_step;
    made->cost = [](Op& op) {
      const auto& step = *static_cast<const CollectiveLocalStep*>(op.scalars());
      const auto bytes = static_cast<double>(step.bytes);
      return step.sum ? Cost{bytes / step.element_bytes, 3 * bytes} : Cost{0, 2 * bytes};
    };
    made->typical_ns = 1000;
    return made;
  }();
  return *code;
}

void CollectiveActor::ready(Op* op) {
  if (op->owner == &mailbox_)
    local_.push_back(op);
  else
    op->owner->push(op);
}

bool CollectiveActor::run_some() {
  local_.append(mailbox_.take_ready());
  local_.append(mailbox_.take_submitted());
  bool did = !local_.empty();
  while (Op* op = local_.pop_front()) launch(*op);
  if (devices_) did = devices_->progress(*this, true) || did;
  return did;
}

void CollectiveActor::launch(Op& op) {
  const auto& call = *static_cast<CollectiveCall*>(op.scalars());
  Failure* failure = allocate_outputs(op, *call.members->front());
  if (call.plan) {
    if (failure)
      settle(&op, failure, *this);
    else
      Expansion(fabric_, op).run();
    return;
  }
  op.failure.store(failure, std::memory_order_release);  // it fails behind what it waits for
  acquire(&op);
  devices_->issue(op, *call.members, call.operation);
  mark_issued(&op, *this);
  release(&op);
}

}  // namespace weft
