#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

/// What a PCI function is to weft, from its class, vendor and device numbers.
enum class PciRole : std::uint8_t { None, Gpu, Network, Storage, NvSwitch, Bridge };

/// `pci_class` is base class and subclass (`0x0302`). Display chips of board-management controllers
/// and of virtual machines are `None`; so are FPGAs, QuickAssist and other co-processors. Xeon Phi
/// counts as a GPU: an accelerator with memory of its own.
PciRole pci_role(std::uint16_t pci_class, std::uint16_t vendor, std::uint16_t device);

/// True for a graphics unit that has no memory of its own and works in the host's.
bool shares_host_memory(std::uint16_t vendor, std::uint16_t device, std::string_view model);

/// `NVIDIA`, `AMD`, `Intel`; empty for others.
std::string gpu_vendor(std::uint16_t vendor);

/// The name of some well-known accelerators by PCI numbers (pci.ids); empty for others.
std::string gpu_name(std::uint16_t vendor, std::uint16_t device);

/// Memory a model is sold with, read from its name (`A100-SXM4-80GB`, `[H200 SXM 141GB]`) or from a
/// short list of models that come in one size. 0 if it cannot be told.
std::size_t gpu_memory_of(std::string_view model);

/// Generation of the NVLink (1 to 5) that a GPU model has; 0 if it has none or cannot be told.
std::uint32_t nvlink_generation_of(std::string_view model);

/// The trade name out of a PCI name: `GH100 [H200 SXM 141GB]` gives `H200 SXM 141GB`.
std::string trade_name(std::string_view pci_name);

}  // namespace weft
