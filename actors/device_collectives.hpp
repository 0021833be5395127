#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/collective_plan.hpp"
#include "framework/fabric.hpp"
#include "framework/op.hpp"

namespace weft {

/// A collective operation as devices that run it at once see it.
struct DeviceOperation {
  CollectiveKind kind = CollectiveKind::AllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Nccl;
  std::size_t count = 0;  ///< elements of one member's data
  std::uint32_t element_type = 0;
  std::uint32_t root = 0;
};

/// What runs a collective operation on all its members' devices at once.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;

  /// Makes ready for a group of devices; blocks. Throws `DeviceError`. Any thread.
  virtual void prepare(const std::vector<Place*>& members) = 0;
  /// Whether a prepared group can run the operation so. Any thread.
  [[nodiscard]] virtual bool takes(const std::vector<Place*>& members,
                                   const DeviceOperation& operation) const = 0;
  /// The fastest way to run it, whatever `operation.algorithm` says; nothing if there is none.
  [[nodiscard]] virtual std::optional<CollectiveAlgorithm> best(
      const std::vector<Place*>& members, DeviceOperation operation) const = 0;
  /// How its ops wait and are waited for.
  [[nodiscard]] virtual Domain domain() const = 0;

  /// Puts the operation on all members' devices; returns at once. The op's arguments are the
  /// members' data, then their results if it has any. The collective actor's thread, as all below.
  virtual void issue(Op& whole, const std::vector<Place*>& members,
                     const DeviceOperation& operation) = 0;
  /// Settles what is done; returns whether there was anything.
  virtual bool progress(ReadySink& sink, bool quiet) = 0;
  [[nodiscard]] virtual bool needs_progress() const = 0;
};

}  // namespace weft
