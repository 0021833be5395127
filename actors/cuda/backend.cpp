#include "actors/cuda/backend.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "actors/cuda/builtin_variants.hpp"
#include "actors/cuda/collectives.hpp"
#include "actors/cuda/copy_lane.hpp"
#include "actors/cuda/engine.hpp"
#include "actors/cuda/memory.hpp"
#include "actors/cuda/peers.hpp"
#include "actors/cuda/stager.hpp"

namespace weft::cuda {
namespace {

std::uint32_t default_staging_threads() {
  return std::clamp(std::thread::hardware_concurrency() / 2, 1u, 12u);
}

}  // namespace

struct Backend::Parts {
  Parts(const Options& given, Tracer* t)
      : options(given),
        tracer(t),
        stager(given.staging_threads ? given.staging_threads : default_staging_threads()) {}

  Options options;
  const std::shared_ptr<PinnedBudget> pinned = std::make_shared<PinnedBudget>(
      options.pinned.value_or(std::numeric_limits<std::size_t>::max()));
  Tracer* tracer;
  LaneTable table;
  std::vector<std::shared_ptr<DeviceState>> devices;  // by GPU
  std::vector<std::shared_ptr<DeviceMemory>> memories;
  std::vector<DeviceState*> device_of_memory;  // by memory of the machine
  std::vector<cudaMemPool_t> pool_of_memory;
  std::vector<bool> peers;
  Stager stager;
  std::unique_ptr<GpuCollectives> collectives;
};

Backend::Backend(const Machine& machine, const std::vector<int>& ordinals, const Options& options,
                 Tracer* tracer)
    : parts_(std::make_unique<Parts>(options, tracer)) {
  add_cuda_variants();
  Parts& parts = *parts_;
  parts.device_of_memory.resize(machine.memories.size());
  parts.pool_of_memory.resize(machine.memories.size());
  std::vector<DeviceState*> devices;
  std::vector<DeviceMemory*> memories;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) {
    parts.devices.push_back(std::make_shared<DeviceState>(to_string(GpuId{g}), ordinals[g]));
    parts.memories.push_back(std::make_shared<DeviceMemory>(parts.devices.back()));
    parts.device_of_memory[machine.gpus[g].memory.value] = parts.devices.back().get();
    parts.pool_of_memory[machine.gpus[g].memory.value] = parts.memories.back()->pool();
    devices.push_back(parts.devices.back().get());
    memories.push_back(parts.memories.back().get());
  }
  parts.peers.assign(devices.size() * devices.size(), false);
  if (options.peers) parts.peers = connect_peers(devices, memories);
  GpuCollectives::Setup setup;
  setup.table = &parts.table;
  setup.tracer = tracer;
  setup.devices = devices;
  setup.peers = parts.peers;
  setup.first_place = machine.sockets.size();
  parts.collectives = std::make_unique<GpuCollectives>(std::move(setup));
}

Backend::~Backend() {
  int before = 0;
  cudaGetDevice(&before);
  parts_.reset();
  cudaSetDevice(before);
  DeviceState::forget_current();
}

std::size_t Backend::budget(GpuId gpu) const {
  return parts_->memories[gpu.value]->budget();
}

MemoryPool::Backing Backend::device_backing(GpuId gpu) const {
  return DeviceMemory::backing(parts_->memories[gpu.value]);
}

MemoryPool::Backing Backend::host_backing(int numa_node) {
  return PinnedMemory::backing(
      std::make_shared<PinnedMemory>(numa_node, parts_->devices, parts_->pinned));
}

bool Backend::are_peers(GpuId a, GpuId b) const {
  return parts_->peers[a.value * parts_->devices.size() + b.value];
}

std::unique_ptr<Engine> Backend::make_engine(GpuId gpu) {
  GpuEngine::Setup setup;
  setup.device = parts_->devices[gpu.value].get();
  setup.table = &parts_->table;
  setup.pool = parts_->memories[gpu.value]->pool();
  setup.tracer = parts_->tracer;
  setup.lanes = parts_->options.lanes;
  setup.products = {parts_->options.precision, parts_->options.tunes_products};
  return std::make_unique<GpuEngine>(setup);
}

std::unique_ptr<CopyLane> Backend::make_copy_lane(const Fabric& fabric, LinkDirection& direction,
                                                  std::uint32_t track) {
  GpuCopyLane::Setup setup;
  setup.table = &parts_->table;
  setup.stager = &parts_->stager;
  setup.tracer = parts_->tracer;
  setup.track = track;
  setup.load = direction.load;
  setup.program_memory = fabric.program_memory.get();
  setup.has_pageable = parts_->options.pinned.has_value();
  setup.device_of_memory = parts_->device_of_memory;
  setup.pool_of_memory = parts_->pool_of_memory;
  setup.on_copied = [&direction] { direction.mailbox.nudge(); };
  return std::make_unique<GpuCopyLane>(std::move(setup));
}

DeviceCollectives* Backend::collectives() {
  return parts_->collectives.get();
}

std::vector<Backend::Worker> Backend::workers() {
  std::vector<Worker> all;
  for (auto& worker : parts_->stager.workers()) all.push_back({worker.get(), &worker->mailbox()});
  return all;
}

}  // namespace weft::cuda
