#include "framework/fair_share.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

constexpr double kCancels = 1e-6;  // share of a sum that is too little of it to be trusted

}  // namespace

void FairShare::Flow::happens() {
  is_flowing_ = false;
  share_->leave(*this);
  flowed();
}

std::uint32_t FairShare::add_resource(double capacity) {
  resources_.emplace_back().capacity = capacity;
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

double FairShare::load(std::uint32_t resource) const {
  double sum = 0;
  for (const Flow* flow : resources_[resource].flows)
    for (const Use& use : flow->uses_)
      if (use.resource == resource) sum += flow->rate_ * use.units;
  return sum;
}

void FairShare::mark(Flow& flow) {
  if (flow.is_dirty_) return;
  flow.is_dirty_ = true;
  dirty_.push_back(&flow);
}

void FairShare::start(Flow& flow, double amount, std::span<const Use> uses, double limit) {
  flow.share_ = this;
  flow.uses_.clear();
  for (const Use& use : uses) {
    flow.uses_.push_back(use);
    resources_[use.resource].flows.push_back(&flow);
    resources_[use.resource].passed += amount * use.units;
  }
  flow.remaining_ = amount;
  flow.limit_ = limit;
  flow.rate_ = 0;
  flow.updated_ = time_.now();
  flow.is_flowing_ = true;
  mark(flow);
}

void FairShare::set_limit(Flow& flow, double limit) {
  if (flow.limit_ == limit) return;
  flow.limit_ = limit;
  mark(flow);
}

// Those that shared something with it may go faster.
void FairShare::leave(Flow& flow) {
  if (flow.is_dirty_) {
    flow.is_dirty_ = false;
    std::erase(dirty_, &flow);
  }
  for (const Use& use : flow.uses_) {
    auto& flows = resources_[use.resource].flows;
    flows.erase(std::find(flows.begin(), flows.end(), &flow));
    for (Flow* other : flows) mark(*other);
  }
}

double FairShare::alone(const Flow& flow) const {
  double rate = flow.limit_;
  for (const Use& use : flow.uses_)
    rate = std::min(rate, resources_[use.resource].capacity / use.units);
  return rate;
}

void FairShare::update_dirty() {
  // What a search reaches needs none of its own.
  const std::uint64_t before = search_;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    Flow& flow = *dirty_[i];
    flow.is_dirty_ = false;
    if (flow.seen_ > before) continue;
    const bool is_alone = std::all_of(flow.uses_.begin(), flow.uses_.end(), [&](const Use& use) {
      return resources_[use.resource].flows.size() == 1;
    });
    if (is_alone) {
      set_rate(flow, alone(flow));
      continue;
    }
    collect(flow);
    share_out();
  }
  dirty_.clear();
}

void FairShare::collect(Flow& first) {
  ++search_;
  flows_.clear();
  found_.clear();
  first.seen_ = search_;
  flows_.push_back(&first);
  for (std::size_t i = 0; i < flows_.size(); ++i)
    for (const Use& use : flows_[i]->uses_) {
      Resource& resource = resources_[use.resource];
      if (resource.seen == search_) continue;
      resource.seen = search_;
      found_.push_back(use.resource);
      for (Flow* flow : resource.flows) {
        if (flow->seen_ == search_) continue;
        flow->seen_ = search_;
        flows_.push_back(flow);
      }
    }
}

void FairShare::fix(Flow& flow, double rate) {
  flow.is_fixed_ = true;
  for (const Use& use : flow.uses_) {
    Resource& resource = resources_[use.resource];
    resource.left = std::max(0.0, resource.left - rate * use.units);
    resource.wanted -= use.units;
    if (--resource.open > 0 && resource.wanted < kCancels * resource.most) sum_up(resource);
  }
  set_rate(flow, rate);
}

// Units that differ a lot leave nothing but rounding when the large ones are taken off.
void FairShare::sum_up(Resource& resource) {
  resource.wanted = 0;
  for (const Flow* flow : resource.flows) {
    if (flow->is_fixed_) continue;
    for (const Use& use : flow->uses_)
      if (&resources_[use.resource] == &resource) resource.wanted += use.units;
  }
  resource.most = resource.wanted;
}

// Progressive filling: all rates rise together until a resource is full or a limit is reached.
void FairShare::share_out() {
  for (std::uint32_t r : found_) {
    resources_[r].left = resources_[r].capacity;
    resources_[r].wanted = 0;
    resources_[r].open = static_cast<std::uint32_t>(resources_[r].flows.size());
  }
  for (Flow* flow : flows_) {
    flow->is_fixed_ = false;
    for (const Use& use : flow->uses_) resources_[use.resource].wanted += use.units;
  }
  for (std::uint32_t r : found_) resources_[r].most = resources_[r].wanted;
  std::size_t open = flows_.size();
  double filled = 0;  // what every flow without a rate has at least
  while (open > 0) {
    double level = kUnlimited;
    std::uint32_t full = 0;
    for (std::uint32_t r : found_) {
      if (resources_[r].open == 0) continue;
      const double share = std::max(filled, resources_[r].left / resources_[r].wanted);
      if (share < level) {
        level = share;
        full = r;
      }
    }
    bool is_limited = false;
    for (Flow* flow : flows_) {
      if (flow->is_fixed_ || flow->limit_ > level) continue;
      fix(*flow, flow->limit_);
      --open;
      is_limited = true;
    }
    if (is_limited) continue;
    filled = level;
    for (Flow* flow : resources_[full].flows) {
      if (flow->is_fixed_) continue;
      fix(*flow, level);
      --open;
    }
  }
}

void FairShare::set_rate(Flow& flow, double rate) {
  const VirtualTime::Ns now = time_.now();
  if (flow.is_scheduled() && rate == flow.rate_) return;
  flow.remaining_ -= flow.rate_ * 1e-9 * static_cast<double>(now - flow.updated_);
  flow.updated_ = now;
  flow.rate_ = rate;
  // Rounded, not up: the errors of many flows in a row do not add up.
  const double ns = std::max(0.0, flow.remaining_) / rate * 1e9;
  time_.schedule(flow, now + static_cast<VirtualTime::Ns>(
                                 std::llround(std::min(ns, 9e18 - static_cast<double>(now)))));
}

}  // namespace weft
