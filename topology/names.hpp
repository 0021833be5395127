#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topology/machine.hpp"

namespace weft {

/// The words used in files and for people: `dram`, `hbm`, `pmem`, `cxl`, `gpu`, `disk`.
const char* to_string(MemoryKind kind);
/// `bus`, `pcie`, `nvlink`, `xgmi`, `c2c`, `socket`, `disk`, `network`.
const char* to_string(LinkKind kind);
/// `host_bridge`, `pcie_switch`, `nvswitch`, `package`, `network`.
const char* to_string(HubKind kind);
/// `assumed`, `reported`, `measured`.
const char* to_string(Provenance provenance);
/// `0000:3b:00.0`; the domain has more digits where it needs them.
std::string to_string(const PciAddress& address);

/// The reverse of the above; nothing for any other text.
std::optional<MemoryKind> parse_memory_kind(std::string_view text);
std::optional<LinkKind> parse_link_kind(std::string_view text);
std::optional<HubKind> parse_hub_kind(std::string_view text);
std::optional<Provenance> parse_provenance(std::string_view text);
/// `domain:bus:device.function` in hexadecimal, any case; the domain and the function may be left
/// out.
std::optional<PciAddress> parse_pci_address(std::string_view text);
/// `socket0`, `mem1`, `gpu0`, `hub2`, `nic0`, `disk0`.
std::optional<Node> parse_node(std::string_view text);
/// `link12`.
std::optional<LinkId> parse_link_id(std::string_view text);

/// The text with every control character and every byte that is no valid UTF-8 as `?`: what came
/// from a file can be printed and written as JSON without surprise.
std::string printable(std::string text);

}  // namespace weft
