#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "framework/collective_plan.hpp"
#include "framework/device.hpp"

namespace weft {

class DeviceCollectives;

/// A fixed group of devices that reduce, broadcast and gather together, over the links between
/// them. One tensor a member, in the members' order; each operation is one op that reads and writes
/// all of them. Returns at once. Sums are formed in a fixed order, so the result is the same in
/// every run. Cheap to copy; any thread.
///
/// Throws `UsageError` before anything is sent for a wrong number of tensors or shapes that do not
/// fit.
class Collective {
 public:
  /// Made by `Runtime::collective`. `mailbox` is the collective actor's; `devices` may be null.
  Collective(Fabric& fabric, Mailbox& mailbox, DeviceCollectives* devices,
             const std::vector<Device>& members);

  /// Every tensor becomes the sum of all, element by element. Same shape everywhere.
  template <class T>
  Future all_reduce(const std::vector<Tensor<T>>& tensors) const {
    return run(CollectiveKind::AllReduce, states(tensors), {}, 0, sizeof(T),
               detail::add_elements<T>);
  }
  /// Every tensor becomes a copy of member `root`'s. Same shape everywhere.
  template <class T>
  Future broadcast(const std::vector<Tensor<T>>& tensors, std::size_t root = 0) const {
    return run(CollectiveKind::Broadcast, states(tensors), {}, root, sizeof(T), nullptr);
  }
  /// `results[i]` becomes part i of the sum of `tensors`, whose elements are n times those of a
  /// result.
  template <class T>
  Future reduce_scatter(const std::vector<Tensor<T>>& tensors,
                        const std::vector<Tensor<T>>& results) const {
    return run(CollectiveKind::ReduceScatter, states(tensors), states(results), 0, sizeof(T),
               detail::add_elements<T>);
  }
  /// Every result becomes all `tensors` one after the other; it has n times the elements of one.
  template <class T>
  Future all_gather(const std::vector<Tensor<T>>& tensors,
                    const std::vector<Tensor<T>>& results) const {
    return run(CollectiveKind::AllGather, states(tensors), states(results), 0, sizeof(T), nullptr);
  }

  [[nodiscard]] const std::vector<Device>& members() const;
  /// From now on this algorithm wherever it can be used, whatever the size; for experiments. Empty:
  /// by size and topology.
  void set_algorithm(std::optional<CollectiveAlgorithm> algorithm);
  /// What would be used for `bytes` a member, of fp32 unless told otherwise.
  [[nodiscard]] CollectiveAlgorithm algorithm_for(
      CollectiveKind kind, std::size_t bytes,
      std::uint32_t element_type = element_type_of<float>()) const;
  /// Those that can be used for `bytes` of fp32 a member.
  [[nodiscard]] std::vector<CollectiveAlgorithm> algorithms(CollectiveKind kind,
                                                            std::size_t bytes) const;

 private:
  struct Group;

  template <class T>
  static std::vector<TensorState*> states(const std::vector<Tensor<T>>& tensors) {
    std::vector<TensorState*> list;
    for (const auto& tensor : tensors) list.push_back(tensor.state());
    return list;
  }
  Future run(CollectiveKind kind, const std::vector<TensorState*>& data,
             const std::vector<TensorState*>& results, std::size_t root, std::size_t element_bytes,
             void (*sum)(void*, const void*, std::size_t)) const;

  std::shared_ptr<Group> group_;
};

}  // namespace weft
