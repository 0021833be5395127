// What the placer tells a policy that plans.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "framework/op_cost.hpp"
#include "framework/placer.hpp"
#include "framework/residency.hpp"

namespace weft {
namespace {

constexpr double kNoWay = std::numeric_limits<double>::infinity();

}  // namespace

// Makes a window of calls that wait.
class Placer::WindowMaker {
 public:
  WindowMaker(Placer& placer, double now, std::size_t all) : placer_(placer), now_(now) {
    window_.waiting = all;
    add_devices();
  }

  void add(const Waiting& waiting) {
    PlacementWindow::Op op;
    op.after = waiting.after;
    op.priority = static_cast<int>(waiting.call.priority);
    for (const Argument& argument : waiting.call.arguments)
      op.arguments.push_back({.tensor = number_of(argument),
                              .reads = !overwrites(argument.access),
                              .writes = argument.access != Access::In});
    const std::size_t bytes = placer_.bytes_of(waiting.call);
    double amount = 0;
    bool is_known = true;
    try {
      amount = amount_of(*waiting.trial);
    } catch (...) {  // what a kernel says it costs may throw: it fails when it is placed
      is_known = false;
    }
    const RunCosts::Row& learnt = placer_.costs_.row(*waiting.trial->code);
    for (std::size_t d = 0; d < placer_.devices_.size(); ++d) {
      const Device& device = *placer_.devices_[d];
      if (!is_known || !placer_.fits(*placer_.fabric_.places[d], waiting.call, bytes)) {
        op.run.push_back(kNoWay);
        continue;
      }
      const auto seconds = learnt[device.model]->seconds(amount);
      op.run.push_back(seconds ? *seconds * device.pace.load(std::memory_order_relaxed)
                               : device.assumed(*waiting.trial));
    }
    window_.ops.push_back(std::move(op));
  }

  [[nodiscard]] const PlacementWindow& window() const { return window_; }

 private:
  void add_devices() {
    const auto& places = placer_.fabric_.places;
    for (const auto& place : places) {
      Device& device = *placer_.devices_[place->index];
      std::lock_guard lock(device.lock);
      correct(device, *place, now_);
      window_.devices.push_back({place.get(), device.timeline.free_at(now_)});
      for (double& time : window_.devices.back().free_at) time -= now_;
    }
    for (const auto& from : places)
      for (const auto& to : places) {
        const bool is_same = from->memory == to->memory;
        const Path& path = placer_.fabric_.path(from->memory, to->memory);
        double latency = is_same || !path.segments.empty() ? 0 : kNoWay, per_byte = 0;
        if (!is_same)
          for (const Segment& segment : path.segments) {
            const double rate = segment.load->bytes_per_second.load(std::memory_order_relaxed);
            latency += 1e-9 * static_cast<double>(segment.latency.count());
            if (rate > 0) per_byte += 1 / rate;
          }
        window_.latency.push_back(latency);
        window_.seconds_per_byte.push_back(per_byte);
      }
  }

  std::uint32_t number_of(const Argument& argument) {
    const TensorState& tensor = *argument.tensor;
    const auto [found, is_new] =
        numbers_.try_emplace(&tensor, static_cast<std::uint32_t>(window_.tensors.size()));
    if (!is_new) return found->second;
    PlacementWindow::Tensor made;
    made.bytes = tensor.bytes();
    std::lock_guard lock(argument.tensor->lock);
    const bool is_pending = tensor.writer && !tensor.writer->is_settled();
    const double written = is_pending ? std::max(0.0, tensor.expected_at - now_) : 0;
    for (const auto& place : placer_.fabric_.places) {
      double copy = 0;
      if (!find_replica(tensor, place->memory)) {
        const Source source = choose_source(placer_.fabric_, tensor, place->memory);
        if (source.path)
          copy = copy_seconds(*source.path, tensor.bytes());
        else if (source.replica)
          copy = kNoWay;
        // Without a value submission says so.
      }
      made.there.push_back(written + copy);
    }
    window_.tensors.push_back(std::move(made));
    return found->second;
  }

  Placer& placer_;
  const double now_;
  PlacementWindow window_;
  std::unordered_map<const TensorState*, std::uint32_t> numbers_;
};

std::vector<Placer::Given> Placer::plan(std::span<const Waiting> waiting, std::size_t all,
                                        PlacementPolicy& policy) {
  WindowMaker maker(*this, now_(), all);
  for (const Waiting& each : waiting) maker.add(each);
  const PlacementWindow& window = maker.window();
  std::vector<PlannedOp> planned;
  try {
    planned = policy.plan(window);
  } catch (...) {  // a program's own: as if it had left out all
    return {};
  }
  std::vector<Given> given;
  for (const PlannedOp& each : planned) {
    if (each.op >= window.ops.size() || each.device >= window.devices.size()) continue;
    const double run = window.ops[each.op].run[each.device];
    if (std::isfinite(run)) given.push_back({each, run});
  }
  return given;
}

// As many as run at a time, and as many whose data come meanwhile.
bool Placer::has_room(std::uint32_t device, bool is_far) const {
  const Device& asked = *devices_[device];
  return asked.given_late.load(std::memory_order_seq_cst) < (is_far ? 1 : 2) * asked.forecast.width;
}

Place* Placer::give_planned(const Call& call, Op& trial, std::uint32_t device) {
  const double now = now_();
  Options options;
  PlacementOption option;
  option.place = fabric_.places[device].get();
  options.push_back(option);
  estimate(call, trial, now, options);
  devices_[device]->given_late.fetch_add(1, std::memory_order_seq_cst);
  give(call, options[0], now);
  return fabric_.places[device].get();
}

}  // namespace weft
