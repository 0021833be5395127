#include "framework/placer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "framework/admit.hpp"
#include "framework/gate.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_cost.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/residency.hpp"
#include "framework/trial_op.hpp"

namespace weft {
namespace {

std::vector<std::string> models_of(const std::vector<DeviceForecast>& devices) {
  std::vector<std::string> models;
  for (const DeviceForecast& device : devices)
    if (std::find(models.begin(), models.end(), device.model) == models.end())
      models.push_back(device.model);
  return models;
}

// Counting what a device has in hand takes as long as a decision: not for each.
constexpr double kCorrectEvery = 20e-6;

Placer* placer_of(Op& op) {
  if (op.arg_count == 0 || op.code->is_copy || op.code->is_collective) return nullptr;
  const Replica* first = op.args()[0].replica();
  return first ? first->tensor->fabric->placer.load(std::memory_order_acquire) : nullptr;
}

bool can_run(const Place& place, const KernelCode& code) {
  if (place.is_lost.load(std::memory_order_relaxed)) return false;
  return place.domain == Domain::Cuda ? bool(code.cuda) : bool(code.cpu);
}

}  // namespace

Placer::Placer(Fabric& fabric, std::vector<DeviceForecast> devices, std::function<double()> now)
    : fabric_(fabric), now_(std::move(now)), costs_(models_of(devices)) {
  for (DeviceForecast& device : devices) {
    devices_.push_back(std::make_unique<Device>(std::move(device)));
    const auto& models = costs_.models();
    devices_.back()->model = static_cast<std::size_t>(
        std::find(models.begin(), models.end(), devices_.back()->forecast.model) - models.begin());
  }
  for (const auto& place : fabric_.places)
    least_budget_ = std::min(least_budget_, fabric_.memories[place->memory]->budget());
  for (const auto& device : devices_)
    device->is_one_of_several =
        std::count_if(devices_.begin(), devices_.end(),
                      [&](const auto& other) { return other->model == device->model; }) > 1;
}

void Placer::ran(Op& op, double seconds) {
  if (op.device >= devices_.size()) return;
  try {
    Device& device = *devices_[op.device];
    const double amount = amount_of(op);
    KernelCosts& costs = costs_.of(*op.code, device.model);
    if (device.is_one_of_several)
      if (const auto usual = costs.seconds(amount); usual && *usual > 0)
        device.note_pace(seconds / *usual);
    costs.note(amount, seconds);
  } catch (...) {  // what a kernel says it costs may throw
  }
}

Op* Placer::submit(const Call& call, PlacementPolicy& policy) {
  Call placed = call;
  placed.policy = nullptr;
  placed.place = fabric_.places.front().get();
  if (fabric_.places.size() == 1 && !policy.binds_late()) return weft::submit(fabric_, placed);
  check_call(fabric_, placed, false);
  adopt(fabric_, *call.code);  // its costs are kept by its address
  // What is recorded must be submitted here and now.
  const bool may_wait = fabric_.gate && !PlanRecorder::of(fabric_);
  auto wait_for_device = [&] {
    placed.place = nullptr;
    placed.policy = &policy;
    return fabric_.gate->queue(placed);
  };
  if (policy.binds_late() && may_wait) return wait_for_device();
  TrialOp trial(call);
  trial.give_scalars(placed);
  placed.place = choose(placed, trial.op(), policy, may_wait);
  return placed.place ? weft::submit(fabric_, placed) : wait_for_device();
}

std::size_t Placer::bytes_of(const Call& call) const {
  // Nearly always less than any memory's budget, though one tensor may be counted twice.
  std::size_t sum = 0;
  for (const Argument& argument : call.arguments)
    sum += MemoryPool::round_up(argument.tensor->bytes());
  if (sum <= least_budget_) return sum;
  const Place& first = *fabric_.places.front();
  return bytes_in(fabric_, *fabric_.memories[first.memory], call, first.memory).taken;
}

bool Placer::fits(const Place& place, const Call& call, std::size_t bytes) const {
  return can_run(place, **call.code) && bytes <= fabric_.memories[place.memory]->budget();
}

void Placer::list_options(const Call& call, Options& options) const {
  const std::size_t bytes = bytes_of(call);
  for (const auto& place : fabric_.places) {
    if (!fits(*place, call, bytes)) continue;
    PlacementOption option;
    option.place = place.get();
    options.push_back(option);
  }
}

// One tensor after the other, each under its lock: between two of them others may submit, which
// makes an estimate no worse than it is.
void Placer::estimate(const Call& call, Op& trial, double now, Options& options) {
  SmallVector<Transfer, 16> copies;
  for (std::uint32_t i = 0; i < options.size(); ++i) copies.push_back({0, 0});
  for (const Argument& argument : call.arguments) {
    TensorState& tensor = *argument.tensor;
    const bool is_read = !overwrites(argument.access);
    std::lock_guard lock(tensor.lock);
    const bool is_pending = tensor.writer && !tensor.writer->is_settled();
    if (!is_pending && !is_read) continue;
    const double written = is_pending ? std::max(0.0, tensor.expected_at - now) : 0;
    const std::size_t bytes = tensor.bytes();
    for (std::uint32_t i = 0; i < options.size(); ++i) {
      PlacementOption& option = options[i];
      option.inputs = std::max(option.inputs, written);
      if (!is_read || find_replica(tensor, option.place->memory)) continue;
      option.missing_bytes += bytes;
      // All of them come one after the other, as they do over one link, behind what waits there.
      const Transfer copy = cheapest_copy(tensor, option.place->memory, bytes);
      copies[i].begins = std::max(copies[i].begins, copy.begins);
      copies[i].takes += copy.takes;
    }
  }
  const double amount = amount_of(trial);
  const RunCosts::Row& learnt = costs_.row(*trial.code);
  std::size_t model = learnt.size();
  std::optional<double> seconds;
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    PlacementOption& option = options[i];
    Device& device = *devices_[option.place->index];
    if (model != device.model) seconds = learnt[model = device.model]->seconds(amount);
    option.run =
        seconds ? *seconds * device.pace.load(std::memory_order_relaxed) : device.assumed(trial);
    option.inputs += copies[i].begins + copies[i].takes;
    if (now - device.corrected_at.load(std::memory_order_relaxed) > kCorrectEvery) {
      std::lock_guard lock(device.lock);
      correct(device, *option.place, now);
    }
    option.ready = std::max(0.0, device.ready_at.load(std::memory_order_relaxed) - now);
  }
}

Placer::Transfer Placer::cheapest_copy(const TensorState& tensor, std::uint32_t memory,
                                       std::size_t bytes) const {
  const Path* best = nullptr;
  double least = 0;
  for (const Replica* replica : tensor.replicas) {
    const Path& path = fabric_.path(replica->memory, memory);
    if (path.segments.empty()) continue;
    const double seconds = copy_seconds(path, bytes);
    if (best && seconds >= least) continue;
    best = &path;
    least = seconds;
  }
  if (!best) return {0, 0};
  const double begins = copy_seconds(*best, 0);
  return {begins, least - begins};
}

void Placer::correct(Device& device, const Place& place, double now) {
  if (now - device.corrected_at.load(std::memory_order_relaxed) <= kCorrectEvery) return;
  device.corrected_at.store(now, std::memory_order_relaxed);
  const auto in_flight = place.admission->in_flight();
  device.timeline.correct(now, static_cast<std::size_t>(std::max<std::int64_t>(0, in_flight)));
  device.ready_at.store(device.timeline.ready(now), std::memory_order_relaxed);
}

// What others may expect of the device and of what the op writes.
void Placer::give(const Call& call, const PlacementOption& chosen, double now) {
  Device& device = *devices_[chosen.place->index];
  double end = 0;
  {
    std::lock_guard lock(device.lock);
    end = device.timeline.give(now, now + chosen.inputs, chosen.run);
    device.ready_at.store(device.timeline.ready(now), std::memory_order_relaxed);
  }
  for (const Argument& argument : call.arguments) {
    if (argument.access == Access::In) continue;
    std::lock_guard lock(argument.tensor->lock);
    argument.tensor->expected_at = end;
  }
}

Place* Placer::choose(const Call& call, Op& trial, PlacementPolicy& policy, bool may_wait) {
  Options options;
  list_options(call, options);
  // Nothing can run it: submission says why.
  if (options.empty()) return fabric_.places.front().get();
  const double now = now_();
  if (policy.needs_estimates()) estimate(call, trial, now, options);
  if (may_wait && policy.lets_wait({options.begin(), options.size()})) return nullptr;
  const PlacementOption chosen = options[std::min<std::size_t>(
      policy.choose({options.begin(), options.size()}), options.size() - 1)];
  if (policy.needs_estimates()) give(call, chosen, now);
  return fabric_.places[chosen.place->index].get();
}

Place* Placer::try_place(const Call& call, Op& trial, PlacementPolicy& policy) {
  Options options;
  list_options(call, options);
  if (options.empty()) {  // submission says why
    devices_.front()->given_late.fetch_add(1, std::memory_order_seq_cst);
    return fabric_.places.front().get();
  }
  const double now = now_();
  estimate(call, trial, now, options);
  const PlacementOption chosen = options[std::min<std::size_t>(
      policy.choose({options.begin(), options.size()}), options.size() - 1)];
  if (!has_room(chosen.place->index)) return nullptr;
  devices_[chosen.place->index]->given_late.fetch_add(1, std::memory_order_seq_cst);
  give(call, chosen, now);
  return fabric_.places[chosen.place->index].get();
}

OpForecast Placer::forecast(const Call& call, const Place& place) {
  adopt(fabric_, *call.code);
  TrialOp trial(call);
  return {amount_of(trial.op()), devices_[place.index]->assumed(trial.op())};
}

double Placer::seconds(const KernelCode& code, const OpForecast& forecast, const Place& place) {
  const Device& device = *devices_[place.index];
  const auto learnt = costs_.of(code, device.model).seconds(forecast.amount);
  return learnt ? *learnt * device.pace.load(std::memory_order_relaxed) : forecast.assumed;
}

OpForecast forecast(Fabric& fabric, const Call& call) {
  Placer* const placer = fabric.placer.load(std::memory_order_acquire);
  if (!placer)
    throw UsageError("kernel " + (*call.code)->name +
                     ": run times are not known before Runtime::anywhere or Runtime::split");
  return placer->forecast(call, *call.place);
}

void Placer::take_back(const Place& place) {
  devices_[place.index]->given_late.fetch_sub(1, std::memory_order_seq_cst);
}

void Placer::has_settled(const Place& place) {
  take_back(place);
  if (fabric_.gate) fabric_.gate->ask_to_look();
}

bool wants_run(Op& op) {
  return placer_of(op) != nullptr;
}

void note_run(Op& op, double seconds) {
  if (Placer* const placer = placer_of(op)) placer->ran(op, seconds);
}

}  // namespace weft
