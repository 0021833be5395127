#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/pinned_actor.hpp"
#include "actors/ready_list.hpp"
#include "actors/simulated/lane.hpp"
#include "actors/simulated/model.hpp"
#include "framework/cpu.hpp"
#include "framework/fabric.hpp"

namespace weft {

/// A socket in virtual time: ready ops run on its cores, the oldest first. An op that is long
/// enough uses several cores, as many as are free; all share the memory's rate.
class SimulatedSocket final : public Body, public Cpu {
 public:
  struct Setup {
    SimulatedLane::Setup lane;            ///< as for lanes, with the socket's name
    DeviceModel core;                     ///< of one core; `lanes` is their number
    std::optional<std::uint32_t> memory;  ///< the resource that reads of its memory use
  };
  SimulatedSocket(Place& place, Setup setup);
  ~SimulatedSocket() override;

  bool run_some() override;
  bool prepare_to_park() override { return mailbox_.prepare_to_park(); }
  [[nodiscard]] std::size_t team_size() const override { return cores_.size(); }
  ActorMailbox& mailbox() { return mailbox_; }
  /// Whether any op ran on it.
  [[nodiscard]] bool was_used() const { return was_used_; }

 private:
  class Core;

  void share(std::size_t n, std::size_t grain, Range range) override;
  Core* free_core();
  [[nodiscard]] VirtualTime::Ns came(const Op& op) const;

  const Setup setup_;
  Place& place_;
  ActorMailbox mailbox_;
  ReadyList waiting_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::uint32_t busy_ = 0;
  bool was_used_ = false;
};

}  // namespace weft
