#include "actors/storage/spill.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "actors/storage/storage_lane.hpp"
#include "framework/trace.hpp"
#include "topology/make_link.hpp"
#include "topology/rates.hpp"
#include "topology/route_finder.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Of a simulated disk that does not say how large it is.
constexpr std::size_t kUnknownDisk = std::size_t{1} << 40;

std::size_t nine_tenths(std::size_t bytes) {
  return bytes / 10 * 9;
}

// The disk below a block device: a partition's is its parent, a mapped one's what it is made of.
std::string disk_below(fs::path device) {
  std::error_code ignored;
  if (fs::exists(device / "partition", ignored)) device = device.parent_path();
  fs::directory_iterator slaves(device / "slaves", ignored);
  if (!ignored && slaves != fs::directory_iterator())
    return disk_below(fs::canonical(slaves->path(), ignored));
  return device.filename().string();
}

// The name of the disk that holds `path`, as the system says; empty where it does not.
std::string disk_that_holds(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
  std::error_code error;
  const fs::path device = fs::canonical("/sys/dev/block/" + std::to_string(major(status.st_dev)) +
                                            ":" + std::to_string(minor(status.st_dev)),
                                        error);
  return error ? "" : disk_below(device);
}

// Invalid: none is known.
DiskId find_disk(const Machine& machine, const std::string& directory) {
  if (machine.source != "live") return machine.disks.empty() ? DiskId{} : DiskId{0};
  const std::string name = disk_that_holds(directory);
  for (std::uint32_t d = 0; d < machine.disks.size(); ++d)
    if (!name.empty() && machine.disks[d].name == name) return DiskId{d};
  return {};
}

MemoryId first_host_memory(const Machine& machine) {
  for (const Socket& socket : machine.sockets)
    if (!socket.memories.empty()) return socket.memories.front();
  return MemoryId{0};
}

bool is_reachable(const Machine& machine, MemoryId from, MemoryId to) {
  return RouteFinder(machine).find(from, to).route_class != RouteClass::None;
}

// The disk's memory in `machine`, which is changed to have it.
MemoryId add_disk_memory(Machine& machine, const std::string& directory) {
  DiskId id = find_disk(machine, directory);
  if (!id.is_valid()) {
    id.value = static_cast<std::uint32_t>(machine.disks.size());
    machine.disks.emplace_back().name = "spill";
  }
  Disk& disk = machine.disks[id.value];
  if (!disk.memory.is_valid()) {
    disk.memory.value = static_cast<std::uint32_t>(machine.memories.size());
    Memory& memory = machine.memories.emplace_back();
    memory.kind = MemoryKind::Disk;
    memory.bytes = disk.bytes;
  }
  const MemoryId memory = disk.memory, host = first_host_memory(machine);
  if (!is_reachable(machine, host, memory) || !is_reachable(machine, memory, host))
    machine.links.push_back(make_link(LinkKind::Disk, host, id, rates::kDisk, rates::kDiskLatency));
  return memory;
}

}  // namespace

Spill::Spill(Machine& machine, std::string directory, bool is_simulated)
    : directory_(std::move(directory)) {
  if (!is_simulated) {
    file_ = std::make_shared<SpillFile>(directory_);
    threads_ = std::make_unique<IoThreads>(2 * StorageLane::kPieces);
  }
  memory_ = add_disk_memory(machine, directory_);
  const std::size_t disk = machine.memories[memory_.value].bytes;
  bytes_ = nine_tenths(file_ ? file_->free_bytes() : (disk ? disk : kUnknownDisk));
}

void Spill::add_to(Realisation& real, const EmulatedOptions& hooks, Tracer* tracer) {
  real.spill = SpillPlace{memory_, directory_};
  real.budget = [this, others = std::move(real.budget)](MemoryId id) {
    return id == memory_ ? bytes_ : others(id);
  };
  if (!file_) return;
  real.backing = [this, others = std::move(real.backing)](MemoryId id) -> MemoryPool::Backing {
    if (id != memory_) return others(id);
    return {.allocate = [file = file_](std::size_t bytes) { return file->allocate(bytes); },
            .free = [file = file_](void* token, std::size_t bytes) { file->free(token, bytes); },
            .poison = false};
  };
  real.storage_lane = [this, &hooks, tracer](LinkDirection& direction, const std::string& name,
                                             const std::string& lane) {
    StorageLane::Setup setup;
    setup.name = name + " " + lane;
    setup.device = name;
    setup.disk = memory_.value;
    setup.file = file_;
    setup.threads = threads_.get();
    setup.hooks = &hooks;
    setup.tracer = tracer;
    setup.track = tracer ? tracer->add_track(name, lane, TrackKind::Link) : 0;
    setup.load = direction.load;
    setup.on_copied = [&direction] { direction.mailbox.nudge(); };
    return std::make_unique<StorageLane>(std::move(setup));
  };
}

void Spill::join() {
  if (threads_) threads_->join();
}

}  // namespace weft
