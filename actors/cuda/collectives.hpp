#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/cuda/lane.hpp"
#include "actors/device_collectives.hpp"

namespace weft::cuda {

/// Collective operations of CUDA devices: by own kernels that reach into the peers' memory where
/// all members are peers, else by NCCL. Each GPU has one lane for all groups, and one thread fills
/// them in one order, so that two operations never wait for each other's device.
class GpuCollectives final : public DeviceCollectives {
 public:
  struct Setup {
    LaneTable* table = nullptr;
    Tracer* tracer = nullptr;
    std::vector<DeviceState*> devices;  ///< by GPU
    std::vector<bool> peers;            ///< [a * n + b]
    std::size_t first_place = 0;        ///< index of GPU 0 among the fabric's places
  };
  explicit GpuCollectives(Setup setup);
  ~GpuCollectives() override;

  void prepare(const std::vector<Place*>& members) override;
  [[nodiscard]] bool takes(const std::vector<Place*>& members,
                           const DeviceOperation& operation) const override;
  [[nodiscard]] std::optional<CollectiveAlgorithm> best(const std::vector<Place*>& members,
                                                        DeviceOperation operation) const override;
  [[nodiscard]] Domain domain() const override { return Domain::Cuda; }
  void issue(Op& whole, const std::vector<Place*>& members,
             const DeviceOperation& operation) override;
  bool progress(ReadySink& sink, bool quiet) override;
  [[nodiscard]] bool needs_progress() const override { return !in_flight_.empty(); }

 private:
  struct Group;
  struct InFlight {
    Op* op;
    Group* group;
    std::uint32_t parts_left;
    // Since when all it waits for has settled; zero: not yet.
    std::chrono::steady_clock::time_point alone_since{};
  };
  using Key = std::vector<std::size_t>;  // GPUs, in the members' order
  [[nodiscard]] Key key_of(const std::vector<Place*>& members) const;
  [[nodiscard]] Group* group_of(const Key& key) const;
  void run(Group& group, const Key& gpus, Op& whole, const DeviceOperation& operation);
  void part_done(Op& whole, Failure* failure, ReadySink& sink);
  void look_for_errors();
  static bool is_overdue(InFlight& entry);
  void end(Group& group, const std::string& reason);

  Setup setup_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by GPU
  mutable std::mutex mutex_;                  // for the next line
  std::map<Key, std::unique_ptr<Group>> groups_;
  std::deque<InFlight> in_flight_;  // oldest first
  std::uint32_t looks_ = 0;
};

}  // namespace weft::cuda
