#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/device.hpp"
#include "framework/mailbox.hpp"
#include "framework/memory_pool.hpp"
#include "framework/tagged.hpp"

namespace weft::test {

/// A mailbox that a test drains by hand. Counts how often its owner would have been woken.
class HandMailbox final : public Mailbox {
 public:
  explicit HandMailbox(Admission* admission) : Mailbox(admission) {}
  int wakes = 0;

 private:
  void wake() override { ++wakes; }
};

/// A fabric without a thread: host memory 0 with `socket0`, and `gpus` GPU memories behind host
/// memory, each way a link with a mailbox. Tests take ops out, run and settle them themselves.
class DrainedFabric {
 public:
  static constexpr std::size_t kBudget = 64 << 20;

  explicit DrainedFabric(std::uint32_t gpus = 2, std::size_t gpu_budget = kBudget,
                         std::size_t host_budget = kBudget) {
    fabric = new Fabric;
    fabric->runtime_number = next_number();
    add_place("socket0", DeviceKind::Socket, 0, Domain::Host, host_budget);
    for (std::uint32_t g = 0; g < gpus; ++g)
      add_place("gpu" + std::to_string(g), DeviceKind::Gpu, g, Domain::Emulated, gpu_budget);
    const std::uint32_t memories = gpus + 1;
    fabric->paths.resize(std::size_t{memories} * memories);
    for (std::uint32_t from = 0; from < memories; ++from)
      for (std::uint32_t to = 0; to < memories; ++to) {
        if (from == to) continue;
        auto& segments = fabric->paths[from * memories + to].segments;
        if (from == 0 || to == 0)
          segments = {segment(from, to)};
        else
          segments = {segment(from, 0), segment(0, to)};
      }
  }
  ~DrainedFabric() {
    run_all();
    fabric->closed.store(true);
    if (fabric->last_serial) release(std::exchange(fabric->last_serial, nullptr));
    release(fabric);
  }
  DrainedFabric(const DrainedFabric&) = delete;
  DrainedFabric& operator=(const DrainedFabric&) = delete;

  /// 0: the socket, then the GPUs.
  Device device(std::size_t index) { return {*fabric, *fabric->places[index]}; }
  HandMailbox& mailbox(std::size_t device) { return *lanes_[device]; }
  HandMailbox& link(std::uint32_t from, std::uint32_t to) { return *links_.at({from, to}); }
  MemoryPool& memory(std::size_t index) { return *fabric->memories[index]; }

  /// Ops that are ready at `mailbox`: those that became so, then those submitted so, oldest first.
  std::vector<Op*> take(Mailbox& mailbox) {
    std::vector<Op*> ops;
    for (Op* op = mailbox.take_ready(); op; op = op->next) ops.push_back(op);
    for (Op* op = mailbox.take_submitted(); op; op = op->next) ops.push_back(op);
    return ops;
  }
  /// The only op that is ready at `mailbox`; null if there is none or more than one.
  Op* take_one(Mailbox& mailbox) {
    const auto ops = take(mailbox);
    for (std::size_t i = 1; i < ops.size(); ++i) mailbox.push(ops[i]);
    return ops.empty() ? nullptr : ops[0];
  }
  /// Allocates, runs or copies, marks as issued and settles.
  void run(Op* op, Failure* failure = nullptr) {
    issue(op);
    finish(op, failure);
  }
  void issue(Op* op) {
    acquire(op);
    mark_issued(op, send_to_owner());
    release(op);
  }
  void finish(Op* op, Failure* failure = nullptr) {
    for (std::size_t i = 0; i < op->wait_count; ++i) {  // as a lane does
      const Op* producer = untagged(op->waits()[i]);
      if (!producer->is_settled()) throw std::logic_error("a lane would wait here");
      if (!failure && !is_order_only(op->waits()[i]) && producer->has_failed())
        failure = Failure::dependent(producer->failure.load(), op->code->name);
    }
    allocate(*op);
    if (!failure) {
      if (op->code->is_copy)
        copy(*op);
      else
        op->code->cpu(cpu_, *op);
    }
    if (op->code->is_copy) op->code->abandon(*op);
    settle(op, failure, send_to_owner());
  }
  /// Until no mailbox has anything.
  int run_all() {
    int count = 0;
    for (bool any = true; any;) {
      any = false;
      auto drain = [&](Mailbox& mailbox) {
        for (Op* op : take(mailbox)) run(op), any = true, ++count;
      };
      for (auto& lane : lanes_) drain(*lane);
      for (auto& [ends, link] : links_) drain(*link);
    }
    return count;
  }

  template <class T>
  Tensor<T> filled(std::size_t device_index, const Shape& shape, T value) {
    auto made = device(device_index).tensor<T>(shape);
    device(device_index)
        .run(
            "fill", [value](Cpu&, Out<T> x) { std::fill(x.begin(), x.end(), value); }, out(made));
    return made;
  }

  Fabric* fabric = nullptr;

 private:
  struct OneCore final : Cpu {
    [[nodiscard]] std::size_t team_size() const override { return 1; }
    void share(std::size_t n, std::size_t, Range range) override { range.run(range.body, 0, n); }
  };

  static std::uint32_t next_number() {
    static std::atomic<std::uint32_t> number{1'000'000};
    return number.fetch_add(1);
  }
  void add_place(const std::string& name, DeviceKind kind, std::uint32_t number, Domain domain,
                 std::size_t budget) {
    auto place = std::make_unique<Place>();
    place->name = name;
    place->kind = kind;
    place->number = number;
    place->index = static_cast<std::uint32_t>(fabric->places.size());
    place->domain = domain;
    place->memory = place->index;
    place->admission = std::make_unique<Admission>(1 << 20);
    lanes_.push_back(std::make_unique<HandMailbox>(place->admission.get()));
    place->lanes.push_back(lanes_.back().get());
    fabric->places.push_back(std::move(place));
    fabric->memories.push_back(std::make_unique<MemoryPool>(
        "mem" + std::to_string(fabric->memories.size()), budget, host_backing(true)));
  }
  Segment segment(std::uint32_t from, std::uint32_t to) {
    auto& mailbox = links_[{from, to}];
    if (!mailbox) {
      fabric->link_admissions.push_back(std::make_unique<Admission>(1 << 20));
      mailbox = std::make_unique<HandMailbox>(fabric->link_admissions.back().get());
      fabric->loads.push_back(std::make_unique<LinkLoad>());
      fabric->loads.back()->bytes_per_second = 1e9;
      loads_[{from, to}] = fabric->loads.back().get();
    }
    Segment made;
    made.owner = mailbox.get();
    made.domain = Domain::Emulated;
    made.from = from;
    made.to = to;
    made.load = loads_[{from, to}];
    return made;
  }
  static void allocate(Op& op) {
    for (std::size_t i = 0; i < op.arg_count; ++i) {
      Replica& replica = *op.args()[i].replica();
      if (op.args()[i].access() != Access::In && !replica.data && replica.bytes)
        replica.data = replica.pool->allocate(replica.bytes);
    }
  }
  static void copy(Op& op) {
    const auto& range = *static_cast<CopyRange*>(op.scalars());
    const auto* from = static_cast<const char*>(op.args()[0].replica()->data);
    auto* to = static_cast<char*>(op.args()[1].replica()->data);
    if (range.bytes) std::memcpy(to + range.offset, from + range.offset, range.bytes);
  }

  OneCore cpu_;
  std::vector<std::unique_ptr<HandMailbox>> lanes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<HandMailbox>> links_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, LinkLoad*> loads_;
};

}  // namespace weft::test
