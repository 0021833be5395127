#include "actors/collective.hpp"

#include <algorithm>
#include <tuple>

#include "actors/collective_actor.hpp"
#include "framework/kernel_code.hpp"

namespace weft {

struct Collective::Group {
  Fabric& fabric;
  Mailbox& mailbox;
  DeviceCollectives* devices;  // null: steps only
  std::vector<Device> members;
  std::vector<Place*> places;
  Domain domain = Domain::Host;
  bool all_direct = true, host_member = false;
  std::uint32_t best_root = 0;
  std::shared_ptr<const KernelCode> codes[4];
  std::mutex mutex;
  std::optional<CollectiveAlgorithm> forced;
  // Plans are few and kept: ops refer to them.
  std::map<std::tuple<CollectiveKind, CollectiveAlgorithm, std::uint32_t>,
           std::unique_ptr<const CollectivePlan>>
      plans;
};

namespace {

// The group lives as long as an op of it: the op carries a counted reference beside the call.
struct Carried {
  CollectiveCall call;
  std::shared_ptr<const void> group;
};

std::shared_ptr<const KernelCode> make_code(CollectiveKind kind) {
  auto code = std::make_shared<KernelCode>();
  code->name = to_string(kind);
  code->is_collective = true;
  code->destroy_scalars = [](Op& op) { std::destroy_at(static_cast<Carried*>(op.scalars())); };
  code->copy_scalars = [](const void* from, void* to) {
    new (to) Carried(*static_cast<const Carried*>(from));
  };
  // Kind, bytes and type are those of the kernel and the tensors.
  code->same_scalars = [](const void* a, const void* b) {
    const auto &one = *static_cast<const Carried*>(a), &other = *static_cast<const Carried*>(b);
    return one.group == other.group && one.call.plan == other.call.plan &&
           one.call.operation.root == other.call.operation.root &&
           one.call.operation.algorithm == other.call.operation.algorithm;
  };
  return code;
}

}  // namespace

Collective::Collective(Fabric& fabric, Mailbox& mailbox, DeviceCollectives* devices,
                       const std::vector<Device>& members)
    : group_(new Group{fabric, mailbox, devices, members, {}, {}, true, false, 0, {}, {}, {}, {}}) {
  if (members.empty()) throw UsageError("collective: a group has at least one device");
  for (std::size_t i = 0; i < members.size(); ++i) {
    Place& place = members[i].place();
    if (std::find(group_->places.begin(), group_->places.end(), &place) != group_->places.end())
      throw UsageError("collective: " + place.name + " is a member twice");
    for (const Place* other : group_->places)
      group_->all_direct =
          group_->all_direct && (other->memory == place.memory ||
                                 fabric.path(other->memory, place.memory).segments.size() == 1);
    if (place.kind == DeviceKind::Socket && !group_->host_member) {
      group_->host_member = true;
      group_->best_root = static_cast<std::uint32_t>(i);
    }
    group_->places.push_back(&place);
  }
  const bool all_gpus =
      std::all_of(group_->places.begin(), group_->places.end(),
                  [&](const Place* place) { return place->domain == group_->places[0]->domain; });
  // A lane of a CUDA device can wait for an op on one lane, not for one that is many.
  const Domain domain = group_->places[0]->domain;
  group_->domain = all_gpus && domain != Domain::Cuda ? domain : Domain::Host;
  if (members.size() < 2 || !all_gpus || domain != Domain::Cuda) group_->devices = nullptr;
  if (group_->devices) group_->devices->prepare(group_->places);
  for (auto kind : {CollectiveKind::AllReduce, CollectiveKind::Broadcast,
                    CollectiveKind::ReduceScatter, CollectiveKind::AllGather})
    group_->codes[static_cast<std::size_t>(kind)] = make_code(kind);
}

const std::vector<Device>& Collective::members() const {
  return group_->members;
}

void Collective::set_algorithm(std::optional<CollectiveAlgorithm> algorithm) {
  std::lock_guard lock(group_->mutex);
  group_->forced = algorithm;
}

namespace {

constexpr CollectiveAlgorithm kOnDevices[] = {CollectiveAlgorithm::Peer, CollectiveAlgorithm::Nccl};

bool is_on_devices(CollectiveAlgorithm algorithm) {
  return algorithm == CollectiveAlgorithm::Peer || algorithm == CollectiveAlgorithm::Nccl;
}

DeviceOperation operation_of(CollectiveKind kind, CollectiveAlgorithm algorithm, std::size_t bytes,
                             std::uint32_t element_type) {
  DeviceOperation operation;
  operation.kind = kind;
  operation.algorithm = algorithm;
  operation.count = bytes / std::max<std::size_t>(element_type & 0xff, 1);  // the size, if small
  operation.element_type = element_type;
  return operation;
}

}  // namespace

CollectiveAlgorithm Collective::algorithm_for(CollectiveKind kind, std::size_t bytes,
                                              std::uint32_t element_type) const {
  std::lock_guard lock(group_->mutex);
  const auto takes = [&](CollectiveAlgorithm algorithm) {
    return group_->devices &&
           group_->devices->takes(group_->places,
                                  operation_of(kind, algorithm, bytes, element_type));
  };
  if (group_->forced && (!is_on_devices(*group_->forced) || takes(*group_->forced)))
    return *group_->forced;
  if (group_->devices)
    if (const auto best = group_->devices->best(
            group_->places, operation_of(kind, CollectiveAlgorithm::Nccl, bytes, element_type)))
      return *best;
  if (kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather)
    return CollectiveAlgorithm::Ring;
  return choose_algorithm({kind, static_cast<std::uint32_t>(group_->places.size()), bytes,
                           group_->all_direct, group_->host_member});
}

std::vector<CollectiveAlgorithm> Collective::algorithms(CollectiveKind kind,
                                                        std::size_t bytes) const {
  std::vector<CollectiveAlgorithm> all{CollectiveAlgorithm::Ring};
  if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::Broadcast) {
    all.push_back(CollectiveAlgorithm::Tree);
    all.push_back(CollectiveAlgorithm::Star);
  }
  for (const CollectiveAlgorithm algorithm : kOnDevices)
    if (group_->devices &&
        group_->devices->takes(group_->places,
                               operation_of(kind, algorithm, bytes, element_type_of<float>())))
      all.push_back(algorithm);
  return all;
}

Future Collective::run(CollectiveKind kind, const std::vector<TensorState*>& data,
                       const std::vector<TensorState*>& results, std::size_t root,
                       std::size_t element_bytes,
                       void (*sum)(void*, const void*, std::size_t)) const {
  Group& group = *group_;
  const std::size_t n = group.places.size();
  const std::string name = to_string(kind);
  if (group.fabric.closed.load(std::memory_order_acquire))
    throw UsageError(name + ": its runtime has ended");
  const bool has_results =
      kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather;
  if (data.size() != n || (has_results && results.size() != n))
    throw UsageError(name + ": " + std::to_string(data.size()) + " tensors" +
                     (has_results ? " and " + std::to_string(results.size()) + " results" : "") +
                     " for a group of " + std::to_string(n));
  if (root >= n)
    throw UsageError(name + ": root " + std::to_string(root) + " in a group of " +
                     std::to_string(n));
  for (const auto* list : {&data, &results})
    for (TensorState* tensor : *list)
      if (!tensor) throw UsageError(name + ": a tensor is an empty handle");
  for (std::size_t i = 1; i < n; ++i)
    if (data[i]->shape != data[0]->shape)
      throw UsageError(name + ": member " + std::to_string(i) + " has a tensor of " +
                       data[i]->shape.to_string() + ", member 0 one of " +
                       data[0]->shape.to_string());
  for (TensorState* result : results) {
    const std::int64_t want = kind == CollectiveKind::AllGather
                                  ? data[0]->shape.size() * static_cast<std::int64_t>(n)
                                  : data[0]->shape.size() / static_cast<std::int64_t>(n);
    const bool divides = kind == CollectiveKind::AllGather ||
                         want * static_cast<std::int64_t>(n) == data[0]->shape.size();
    if (result->shape.size() != want || !divides)
      throw UsageError(name + ": a result of " + result->shape.to_string() + " for data of " +
                       data[0]->shape.to_string() + " and " + std::to_string(n) + " members");
  }

  const CollectiveAlgorithm algorithm =
      algorithm_for(kind, data[0]->bytes(), data[0]->element_type);
  const bool on_devices = is_on_devices(algorithm);
  const auto plan_root =
      static_cast<std::uint32_t>(kind == CollectiveKind::Broadcast ? root : group.best_root);
  const CollectivePlan* plan = nullptr;
  if (!on_devices) {
    std::lock_guard lock(group.mutex);
    auto& slot = group.plans[{kind, algorithm, plan_root}];
    if (!slot)
      slot = std::make_unique<const CollectivePlan>(
          plan_collective(kind, algorithm, static_cast<std::uint32_t>(n), plan_root));
    plan = slot.get();
  }

  std::vector<Argument> arguments;
  std::vector<std::uint32_t> memories;
  for (std::size_t i = 0; i < n; ++i) {
    Access access = has_results ? Access::In : Access::InOut;
    if (kind == CollectiveKind::Broadcast) access = i == root ? Access::In : Access::Out;
    arguments.push_back({data[i], access, nullptr});
    memories.push_back(group.places[i]->memory);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    arguments.push_back({results[i], Access::Out, nullptr});
    memories.push_back(group.places[i]->memory);
  }
  DeviceOperation operation =
      operation_of(kind, algorithm, data[0]->bytes(), data[0]->element_type);
  operation.root = static_cast<std::uint32_t>(root);
  Carried carried{{plan, operation, &group.places, static_cast<std::uint32_t>(element_bytes), sum},
                  group_};
  Call call;
  call.place = group.places[0];
  call.code = &group.codes[static_cast<std::size_t>(kind)];
  call.arguments = arguments;
  call.memories = memories;
  call.owner = &group.mailbox;
  call.domain = on_devices ? group.devices->domain() : group.domain;
  call.scalar_bytes = sizeof(Carried);
  call.context = &carried;
  call.write_scalars = [](void* where, void* context) {
    new (where) Carried(*static_cast<Carried*>(context));
  };
  return Future(submit(group.fabric, call));
}

}  // namespace weft
