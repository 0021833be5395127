#include "topology/pci_ids.hpp"

#include "topology/quantity.hpp"

#include <cctype>
#include <utility>

namespace weft {
namespace {

constexpr std::uint16_t kNvidia = 0x10de, kAmd = 0x1002, kIntel = 0x8086, kHabana = 0x1da3,
                        kMooreThreads = 0x1ed5, kMatrox = 0x102b, kAspeed = 0x1a03,
                        kAmazon = 0x1d0f;

// AMD device numbers 0x4000 to 0x5fff are Rage, R300 to R500 and the ES1000 that boards use as a
// management display (pci.ids): none computes.
bool is_amd_display_chip(std::uint16_t device) {
  return device >= 0x4000 && device < 0x6000;
}

// Knights Corner, pci.ids 8086:2250 to 225e.
bool is_xeon_phi(std::uint16_t vendor, std::uint16_t device) {
  return vendor == kIntel && device >= 0x2250 && device <= 0x225f;
}

// Elastic Fabric Adapters, Linux's drivers/infiniband/hw/efa/efa_main.c: efa0 to efa4 so far.
bool is_efa(std::uint16_t vendor, std::uint16_t device) {
  return vendor == kAmazon && (device & 0xfff0) == 0xefa0;
}

}  // namespace

PciRole pci_role(std::uint16_t pci_class, std::uint16_t vendor, std::uint16_t device) {
  if (is_efa(vendor, device)) return PciRole::Network;  // also where a source states no class
  const std::uint16_t base = pci_class >> 8;
  switch (base) {
    case 0x01:
      return PciRole::Storage;
    case 0x02:
      return PciRole::Network;
    case 0x03:
      if (vendor == kAspeed || vendor == kMatrox) return PciRole::None;
      if (vendor == kAmd) return is_amd_display_chip(device) ? PciRole::None : PciRole::Gpu;
      if (vendor == kNvidia || vendor == kIntel || vendor == kMooreThreads) return PciRole::Gpu;
      // Other vendors' VGA chips are management or virtual displays; a 3D controller is no display.
      return pci_class == 0x0302 ? PciRole::Gpu : PciRole::None;
    case 0x06:
      if (pci_class == 0x0604) return PciRole::Bridge;
      return pci_class == 0x0680 && vendor == kNvidia ? PciRole::NvSwitch : PciRole::None;
    case 0x0b:
      return is_xeon_phi(vendor, device) ? PciRole::Gpu : PciRole::None;
    case 0x0c:
      return pci_class == 0x0c06 ? PciRole::Network : PciRole::None;
    case 0x12:
      // Processing accelerators of Intel are FPGAs and QuickAssist-like blocks.
      return vendor == kAmd || vendor == kNvidia || vendor == kHabana ? PciRole::Gpu
                                                                      : PciRole::None;
    default:
      return PciRole::None;
  }
}

bool shares_host_memory(std::uint16_t vendor, std::uint16_t device, std::string_view model) {
  if (contains(model, "MI300A")) return true;
  if (vendor == kAmd)
    return device == 0x74a0 || (device >= 0x1300 && device < 0x1700) ||
           (device >= 0x9800 && device < 0x98ff) || (device >= 0x15d0 && device < 0x15f0);
  // Intel's discrete parts: Arc 56xx and e2xx, Flex 56Cx, DG1 4905 to 4909, Ponte Vecchio 0bd0 to
  // 0be5, Xeon Phi 225x.
  if (vendor == kIntel)
    return !((device >= 0x5690 && device < 0x5700) || (device >= 0x4905 && device <= 0x4909) ||
             (device >= 0x0bd0 && device <= 0x0be5) || (device >= 0xe200 && device < 0xe300) ||
             is_xeon_phi(vendor, device));
  return false;
}

std::string gpu_vendor(std::uint16_t vendor) {
  switch (vendor) {
    case kNvidia:
      return "NVIDIA";
    case kAmd:
      return "AMD";
    case kIntel:
      return "Intel";
    case kHabana:
      return "Habana";
    case kMooreThreads:
      return "Moore Threads";
    default:
      return {};
  }
}

std::string gpu_name(std::uint16_t vendor, std::uint16_t device) {
  static constexpr struct {
    std::uint16_t vendor, device;
    const char* name;
  } kNames[] = {{kNvidia, 0x1024, "Tesla K40c"},
                {kNvidia, 0x1b38, "Tesla P40"},
                {kNvidia, 0x15f8, "Tesla P100 PCIe"},
                {kNvidia, 0x15f9, "Tesla P100 SXM2"},
                {kNvidia, 0x1db1, "V100 SXM2 16GB"},
                {kNvidia, 0x1db4, "V100 PCIe 16GB"},
                {kNvidia, 0x1db5, "V100 SXM2 32GB"},
                {kNvidia, 0x1db6, "V100 PCIe 32GB"},
                {kNvidia, 0x1db8, "V100 SXM3 32GB"},
                {kNvidia, 0x1eb8, "Tesla T4"},
                {kNvidia, 0x20b0, "A100 SXM4 40GB"},
                {kNvidia, 0x20b2, "A100 SXM4 80GB"},
                {kNvidia, 0x20b5, "A100 PCIe 80GB"},
                {kNvidia, 0x20f1, "A100 PCIe 40GB"},
                {kNvidia, 0x2204, "RTX 3090"},
                {kNvidia, 0x2237, "A10G"},
                {kNvidia, 0x2324, "H800 SXM5 80GB"},
                {kNvidia, 0x2330, "H100 SXM5 80GB"},
                {kNvidia, 0x2331, "H100 PCIe 80GB"},
                {kNvidia, 0x2335, "H200 SXM 141GB"},
                {kNvidia, 0x2342, "GH200 96GB"},
                {kNvidia, 0x2684, "RTX 4090"},
                {kNvidia, 0x2901, "B200 180GB"},
                {kAmd, 0x66a1, "Vega 20"},
                {kAmd, 0x738c, "MI100"},
                {kAmd, 0x7408, "MI250X"},
                {kAmd, 0x740c, "MI250X"},
                {kAmd, 0x740f, "MI210"},
                {kAmd, 0x74a0, "MI300A"},
                {kAmd, 0x74a1, "MI300X"},
                {kAmd, 0x74a5, "MI325X"}};
  for (const auto& known : kNames)
    if (known.vendor == vendor && known.device == device) return known.name;
  return {};
}

std::size_t gpu_memory_of(std::string_view model) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  // `GH200 480GB` names the processor's memory.
  if (contains(model, "GH200")) return (contains(model, "144G") ? 144 : 96) * kGiB;
  for (std::size_t at = model.find("GB"); at != std::string_view::npos;
       at = model.find("GB", at + 2)) {
    std::size_t begin = at;
    while (begin > 0 && model[begin - 1] == ' ') --begin;
    const std::size_t digits_end = begin;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(model[begin - 1]))) --begin;
    if (begin == digits_end || digits_end - begin > 4) continue;
    std::size_t value = 0;
    for (std::size_t i = begin; i < digits_end; ++i)
      value = value * 10 + static_cast<std::size_t>(model[i] - '0');
    if (value > 0) return value * kGiB;
  }
  static constexpr std::pair<std::string_view, std::size_t> kSizes[] = {
      {"H200", 141},    {"MI300X", 192},   {"MI250X", 64}, {"MI100", 32},
      {"A800", 80},     {"Tesla T4", 16},  {"A10G", 24},   {"RTX 4090", 24},
      {"RTX 3090", 24}, {"Tesla P40", 24}, {"K40", 12},    {"Max 1550", 128}};
  for (const auto& [name, size] : kSizes)
    if (contains(model, name)) return size * kGiB;
  return 0;
}

std::uint32_t nvlink_generation_of(std::string_view model) {
  static constexpr std::pair<std::string_view, std::uint32_t> kModels[] = {
      {"GB200", 5}, {"B200", 5},     {"B100", 5}, {"GH200", 4}, {"H100", 4},
      {"H200", 4},  {"H800", 4},     {"H20", 4},  {"A100", 3},  {"A800", 3},
      {"A40", 3},   {"RTX 3090", 3}, {"V100", 2}, {"P100", 1}};
  for (const auto& [name, generation] : kModels)
    if (contains(model, name)) return generation;
  return 0;
}

std::string trade_name(std::string_view pci_name) {
  const std::size_t open = pci_name.rfind('['), close = pci_name.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2)
    return std::string(pci_name);
  return std::string(pci_name.substr(open + 1, close - open - 1));
}

}  // namespace weft
