#include "actors/runtime.hpp"

#include <cstring>
#include <optional>

#include "actors/collective.hpp"
#include "actors/runtime_parts.hpp"
#include "actors/then.hpp"
#include "framework/admit.hpp"
#include "framework/builtin.hpp"
#include "framework/gate.hpp"
#include "framework/memory_pool.hpp"
#include "framework/spin.hpp"
#include "framework/virtual_waits.hpp"
#include "framework/wait_graph.hpp"

namespace weft {
namespace {

std::string listed(std::size_t count) {
  if (count == 0) return "none";
  std::string text = "0";
  if (count > 1) text += count == 2 ? ", 1" : " to " + std::to_string(count - 1);
  return text;
}

}  // namespace

Runtime::Runtime() : Runtime(RuntimeOptions{}) {}
Runtime::Runtime(RuntimeOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}
Runtime::~Runtime() = default;

const Machine& Runtime::machine() const {
  return parts_->machine;
}
std::size_t Runtime::socket_count() const {
  return parts_->machine.sockets.size();
}
std::size_t Runtime::gpu_count() const {
  return parts_->gpu_domain == Domain::Host ? 0 : parts_->machine.gpus.size();
}

Device Runtime::socket(std::size_t index) const {
  if (index >= socket_count())
    throw DeviceError("socket " + std::to_string(index) + ": this machine has " +
                      std::to_string(socket_count()) + " sockets (" + listed(socket_count()) +
                      "); see weft topo");
  return {*parts_->fabric, *parts_->fabric->places[index]};
}

Device Runtime::gpu(std::size_t index) const {
  if (index >= gpu_count())
    throw DeviceError("gpu " + std::to_string(index) + ": this runtime has " +
                      std::to_string(gpu_count()) + " GPUs (" + listed(gpu_count()) +
                      "); see weft topo");
  return {*parts_->fabric, *parts_->fabric->places[socket_count() + index]};
}

Device Runtime::device(const std::string& name) const {
  std::string known;
  for (const auto& place : parts_->fabric->places) {
    if (place->name == name) return {*parts_->fabric, *place};
    known += (known.empty() ? "" : ", ") + place->name;
  }
  throw DeviceError("device \"" + name + "\": this runtime has " + known);
}

Device Runtime::anywhere() const {
  return parts_->anywhere(nullptr);
}

Device Runtime::anywhere(std::shared_ptr<PlacementPolicy> policy) const {
  if (!policy) throw UsageError("anywhere: the policy is null");
  return parts_->anywhere(std::move(policy));
}

Split Runtime::split(std::vector<Device> devices, std::vector<double> weights) const {
  (void)anywhere();  // run times are kept from now on
  return Split(std::move(devices), std::move(weights));
}

std::vector<Device> Runtime::devices() const {
  std::vector<Device> all;
  for (const auto& place : parts_->fabric->places) all.emplace_back(*parts_->fabric, *place);
  return all;
}

std::string Runtime::engine_of(const Device& device) const {
  if (parts_->simulation) return "simulated";
  switch (device.place().domain) {
    case Domain::Host:
      return "host";
    case Domain::Emulated:
      return "emulated";
    case Domain::Cuda:
      return "cuda";
  }
  return "host";
}

Tensor<float> Runtime::zeros(const Shape& shape, const Device& on) const {
  auto made = on.tensor<float>(shape);
  on.submit(kernels::fill(), 0.0f, out(made));
  return made;
}

Tensor<float> Runtime::uniform(const Shape& shape, const Device& on, std::uint64_t seed) const {
  auto made = on.tensor<float>(shape);
  on.submit(kernels::uniform(), seed, -1.0f, 1.0f, out(made));
  return made;
}

TensorHandle Runtime::copy_in(std::span<const std::byte> bytes, const Shape& shape,
                              std::uint32_t element_bytes, std::uint32_t element_type) const {
  const auto wanted = static_cast<std::size_t>(shape.size()) * element_bytes;
  if (bytes.size() != wanted)
    throw UsageError("from_host: " + std::to_string(bytes.size() / element_bytes) +
                     " values for a shape of " + shape.to_string());
  Fabric& fabric = *parts_->fabric;
  const std::uint32_t memory = fabric.places[0]->memory;
  MemoryPool& pool = *fabric.memories[memory];
  std::optional<InHand> in_hand;
  for (;;) {
    in_hand.emplace(fabric);
    if (pool.try_reserve(wanted)) break;
    if (thread_must_not_wait()) {
      pool.force_reserve(wanted);
      break;
    }
    in_hand.reset();
    const std::size_t rounded = MemoryPool::round_up(wanted);
    if (fabric.gate && fabric.gate->get_room(pool, rounded)) continue;
    if (!wait_for_memory(fabric, pool, rounded))
      throw DeviceError("from_host: " + out_of_memory(pool, wanted));
  }
  TensorHandle handle(make_tensor_state(fabric, shape, element_bytes, element_type));
  void* const data = pool.allocate(wanted);
  if (!data && wanted > 0) {
    pool.unreserve(wanted);
    throw DeviceError("from_host: " + out_of_memory(pool, wanted));
  }
  if (wanted > 0) std::memcpy(data, bytes.data(), wanted);
  auto* replica = new Replica;
  replica->tensor = handle.state();
  replica->pool = &pool;
  replica->bytes = wanted;
  replica->memory = memory;
  replica->data = data;
  add_replica(*handle.state(), replica);  // last: from now on it may be evicted
  return handle;
}

Collective Runtime::collective(const std::vector<Device>& devices) const {
  for (const Device& device : devices)
    if (&device.fabric() != parts_->fabric)
      throw UsageError("collective: " + device.name() + " belongs to another runtime");
  return {*parts_->fabric, parts_->collectives->mailbox(), parts_->collectives->devices(), devices};
}

void Runtime::wait_idle() const {
  if (thread_must_not_wait())
    throw UsageError("wait_idle() on an actor's thread would stop a device");
  if (virtual_waits::any()) virtual_waits::wait_until_quiet([this] { return in_flight() == 0; });
  wait_and_sleep([this] { return in_flight() == 0; });
}

std::chrono::nanoseconds Runtime::now() const {
  if (parts_->simulation) return std::chrono::nanoseconds(parts_->simulation->program().now());
  return std::chrono::steady_clock::now() - parts_->began;
}
bool Runtime::tunes_products() const {
  return *parts_->options.tune_products;
}

bool Runtime::is_simulated() const {
  return parts_->simulation != nullptr;
}
bool Runtime::has_data() const {
  return !parts_->simulation || *parts_->options.data == SimulatedData::Real;
}

std::vector<std::string> Runtime::scale_targets() const {
  return parts_->scale_targets();
}

std::int64_t Runtime::in_flight() const {
  return parts_->fabric->in_flight();
}
Tracer* Runtime::tracer() const {
  if (!parts_->options.trace) return nullptr;
  return parts_->tracer.get();
}
std::string Runtime::wait_for_graph() const {
  return describe_waits(*parts_->fabric);
}

void Runtime::lose(const Device& device) {
  if (device.place().kind != DeviceKind::Gpu || !parts_->engines[device.place().number]->lose())
    throw DeviceError("lose(" + device.name() +
                      "): only emulated and simulated GPUs can be lost on purpose");
  device.place().is_lost.store(true, std::memory_order_relaxed);
}

caf::actor_system& Runtime::system() const {
  return *parts_->system;
}
Fabric& Runtime::fabric() const {
  return *parts_->fabric;
}

caf::actor future_actor_of(const Runtime& runtime) {
  return runtime.parts().future_actor;
}

}  // namespace weft
