#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "topology/doctor.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::uint32_t> cpu_list(const fs::path& path) {
  return parse_cpu_list(first_line(path)).value_or(std::vector<std::uint32_t>{});
}

std::uint32_t hex(const fs::path& path) {
  std::string text = first_line(path);
  if (text.starts_with("0x")) text.erase(0, 2);
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

/// The field of /proc/self/status behind a key.
std::string status_field(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::string(trimmed(line.substr(key.size() + 1)));
  return {};
}

std::optional<double> cpu_quota() {
  // Version 2 of cgroups: "max 100000", or "150000 100000" for one and a half cores.
  std::ifstream self("/proc/self/cgroup");
  std::string path;
  for (std::string line; std::getline(self, line);)
    if (line.starts_with("0::")) path = line.substr(3);
  for (const fs::path& file :
       {fs::path("/sys/fs/cgroup" + path + "/cpu.max"), fs::path("/sys/fs/cgroup/cpu.max")}) {
    std::istringstream words(first_line(file));
    double quota = 0, period = 0;
    if (words >> quota >> period && period > 0) return quota / period;
  }
  return std::nullopt;
}

SystemFacts::PciDevice pci_device(const fs::path& folder, const PciAddress& address) {
  SystemFacts::PciDevice device;
  device.address = address;
  device.pci_class = static_cast<std::uint16_t>(hex(folder / "class") >> 8);
  device.vendor = static_cast<std::uint16_t>(hex(folder / "vendor"));
  device.device = static_cast<std::uint16_t>(hex(folder / "device"));
  const auto number = [&](const char* name) {
    return std::strtod(first_line(folder / name).c_str(), nullptr);
  };
  const std::string node = first_line(folder / "numa_node");
  device.numa_node = node.empty() ? -1 : std::atoi(node.c_str());
  device.speed = number("current_link_speed");
  device.max_speed = number("max_link_speed");
  device.width = static_cast<int>(number("current_link_width"));
  device.max_width = static_cast<int>(number("max_link_width"));
  device.is_suspended = first_line(folder / "power" / "runtime_status") == "suspended";
  return device;
}

/// GPUs the NVIDIA kernel driver drives, in its own order.
std::vector<PciAddress> driver_gpus() {
  std::vector<std::pair<int, PciAddress>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    const auto address = parse_pci_address(entry.path().filename().string());
    if (!address) continue;
    std::ifstream file(entry.path() / "information");
    int minor = 0;
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("Device Minor:")) minor = std::atoi(line.c_str() + 13);
    found.emplace_back(minor, *address);
  }
  std::sort(found.begin(), found.end());
  std::vector<PciAddress> addresses;
  for (const auto& [minor, address] : found) addresses.push_back(address);
  return addresses;
}

bool has_mig_slices() {
  std::error_code error;
  for (const auto& gpu : fs::directory_iterator("/proc/driver/nvidia/capabilities", error)) {
    std::error_code inner;
    for (const auto& slice : fs::directory_iterator(gpu.path() / "mig", inner))
      if (slice.path().filename().string().starts_with("gi")) return true;
  }
  return false;
}

}  // namespace

SystemFacts read_system_facts() {
  SystemFacts facts;
  facts.online_cpus = cpu_list("/sys/devices/system/cpu/online");
  facts.online_nodes = cpu_list("/sys/devices/system/node/has_memory");
  facts.allowed_cpus =
      parse_cpu_list(status_field("Cpus_allowed_list")).value_or(facts.online_cpus);
  facts.allowed_nodes =
      parse_cpu_list(status_field("Mems_allowed_list")).value_or(facts.online_nodes);
  facts.cpu_quota = cpu_quota();
  facts.load = std::strtod(first_line("/proc/loadavg").c_str(), nullptr);

  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    facts.memlock = limit.rlim_cur;
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) facts.shm_bytes = shm.f_blocks * shm.f_frsize;

#if !defined(__OPTIMIZE__)
  facts.is_optimised = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  facts.is_sanitised = true;
#endif

  facts.nvidia_driver = fs::exists("/proc/driver/nvidia/version");
  if (facts.nvidia_driver) {
    facts.gpu_lists["the NVIDIA driver"] = driver_gpus();
    facts.mig = has_mig_slices();
  }
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    facts.has_visible_devices = true;
    facts.visible_devices = visible;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/bus/pci/devices", error))
    if (const auto address = parse_pci_address(entry.path().filename().string()))
      facts.pci.push_back(pci_device(entry.path(), *address));
  std::sort(facts.pci.begin(), facts.pci.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return facts;
}

}  // namespace weft
