#include "apps/workloads/tiles.hpp"

#include <algorithm>
#include <limits>
#include <memory>

namespace weft::workloads {

BlockCyclic::BlockCyclic(std::vector<Device> devices) : devices_(std::move(devices)) {
  const auto count = static_cast<std::int64_t>(devices_.size());
  for (std::int64_t rows = 1; rows * rows <= count; ++rows)
    if (count % rows == 0) rows_ = rows;
  columns_ = count / rows_;
}

const Device& BlockCyclic::owner(std::int64_t i, std::int64_t j) const {
  return devices_[static_cast<std::size_t>(i % rows_ * columns_ + j % columns_)];
}

namespace {

// A policy over some of a runtime's devices.
class AmongPlacement final : public PlacementPolicy {
 public:
  AmongPlacement(std::unique_ptr<PlacementPolicy> policy, const std::vector<Device>& devices)
      : policy_(std::move(policy)) {
    for (const Device& device : devices) places_.push_back(&device.place());
  }
  [[nodiscard]] std::string name() const override { return policy_->name() + " among some"; }
  [[nodiscard]] bool needs_estimates() const override { return policy_->needs_estimates(); }
  [[nodiscard]] bool binds_late() const override { return policy_->binds_late(); }
  [[nodiscard]] std::size_t plans_ahead() const override { return policy_->plans_ahead(); }
  [[nodiscard]] std::vector<PlannedOp> plan(const PlacementWindow& window) override {
    PlacementWindow allowed = window;
    for (std::size_t d = 0; d < window.devices.size(); ++d)
      if (!is_allowed(*window.devices[d].place))
        for (PlacementWindow::Op& op : allowed.ops)
          op.run[d] = std::numeric_limits<double>::infinity();
    return policy_->plan(allowed);
  }
  bool lets_wait(std::span<const PlacementOption> options) override {
    return policy_->lets_wait(among(options).options);
  }
  std::size_t choose(std::span<const PlacementOption> options) override {
    const Allowed allowed = among(options);
    return allowed.options.empty() ? policy_->choose(options)
                                   : allowed.numbers[policy_->choose(allowed.options)];
  }

 private:
  struct Allowed {
    std::vector<PlacementOption> options;
    std::vector<std::size_t> numbers;
  };
  [[nodiscard]] Allowed among(std::span<const PlacementOption> options) const {
    Allowed allowed;
    for (std::size_t i = 0; i < options.size(); ++i)
      if (is_allowed(*options[i].place)) {
        allowed.options.push_back(options[i]);
        allowed.numbers.push_back(i);
      }
    return allowed;
  }
  [[nodiscard]] bool is_allowed(const Place& place) const {
    return std::find(places_.begin(), places_.end(), &place) != places_.end();
  }

  const std::unique_ptr<PlacementPolicy> policy_;
  std::vector<const Place*> places_;
};

}  // namespace

Parameter placement_parameter() {
  return word("placement",
              {"owner", "auto", "earliest_finish", "heft", "late", "nearest", "round_robin"},
              "the tile's owner runs its ops, or a policy places each");
}

std::shared_ptr<PlacementPolicy> placement_among(const std::string& name,
                                                 const std::vector<Device>& devices) {
  return std::make_shared<AmongPlacement>(make_placement(name), devices);
}

BlockCyclic tile_grid(const Context& context) {
  const std::string& placement = context.values.text("placement");
  if (placement == "owner") return BlockCyclic(context.devices);
  return BlockCyclic({context.runtime.anywhere(placement_among(placement, context.devices))});
}

Tiles::Tiles(std::int64_t n, std::int64_t tile)
    : n_(n), tile_(std::min(tile, n)), count_((n + tile_ - 1) / tile_) {}

std::int64_t Tiles::extent(std::int64_t i) const {
  return std::min(tile_, n_ - i * tile_);
}

void Tiles::make(const std::function<bool(std::int64_t, std::int64_t)>& wanted,
                 const std::function<Tensor<float>(std::int64_t, std::int64_t)>& fill) {
  tiles_.clear();
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t j = 0; j < count_; ++j)
      tiles_.push_back(wanted(i, j) ? fill(i, j) : Tensor<float>());
}

Tensor<float>& Tiles::at(std::int64_t i, std::int64_t j) {
  return tiles_[static_cast<std::size_t>(i * count_ + j)];
}

std::vector<float> Tiles::to_host() const {
  std::vector<HostArray<float>> parts;
  for (const auto& tile : tiles_) parts.push_back(tile ? tile.to_host() : HostArray<float>());
  std::vector<float> whole(static_cast<std::size_t>(n_ * n_));
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t j = 0; j < count_; ++j) {
      const auto at = static_cast<std::size_t>(i * count_ + j);
      if (!tiles_[at]) continue;
      const auto values = parts[at].span();
      const std::int64_t width = extent(j);
      for (std::int64_t row = 0; row < extent(i); ++row)
        std::copy_n(values.begin() + row * width, width,
                    whole.begin() + (i * tile_ + row) * n_ + j * tile_);
    }
  return whole;
}

void Tiles::wait() const {
  for (const auto& tile : tiles_)
    if (tile) tile.future().wait();
}

}  // namespace weft::workloads
