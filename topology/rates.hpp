#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

/// Figures used where a source states none. All are payload rates of one direction in bytes per
/// second, and all end up in a `Link` as `Provenance::Assumed`. Sources stand beside each figure in
/// rates.cpp.
namespace rates {

/// Payload rate of a PCIe link: 8b/10b or 128b/130b coding, then 256-byte packets with 24 bytes of
/// header, framing and checksum. `generation` 1 to 6, `width` 1 to 32; 0 where either is out of
/// range.
double pcie(std::uint32_t generation, std::uint32_t width);

/// One lane of a generation, bytes per second after line coding; 0 where out of range.
double pcie_coded(std::uint32_t generation);

/// Rate of one PCIe link from the sum of its lanes' raw signalling rate, as hwloc reports it: bytes
/// per second after coding, before packet headers. Returns the payload rate.
double pcie_payload(double coded_bytes_per_second);

/// The generation whose lane rate after coding is nearest to `coded_bytes_per_second / width`, for
/// the widths 1, 2, 4, 8, 16, 32; sets both to 0 where nothing fits within 3 %.
struct PcieShape {
  std::uint32_t generation = 0, width = 0;
};
PcieShape pcie_shape(double coded_bytes_per_second);

/// One NVLink of a generation (1 to 5), one direction; 0 where unknown.
double nvlink(std::uint32_t generation);

/// One xGMI link of an AMD GPU, by its name or `gfx` number, one direction.
double xgmi(std::string_view model);

inline constexpr double kPcieDefault = 25e9;    ///< PCIe 4.0 x16 payload
inline constexpr double kPcieDevice = 12.5e9;   ///< PCIe 3.0 x16 or 4.0 x8: NICs and the like
inline constexpr double kNvlinkPair = 300e9;    ///< all 12 third-generation NVLinks of an A100
inline constexpr double kXgmiLink = 50e9;       ///< one xGMI link between two GPUs
inline constexpr double kC2c = 450e9;           ///< NVLink-C2C of a Grace Hopper
inline constexpr double kMemoryBus = 100e9;     ///< a socket's memory controllers
inline constexpr double kHbmBus = 400e9;        ///< on-package memory of a processor
inline constexpr double kSlowMemoryBus = 20e9;  ///< persistent or CXL memory
inline constexpr double kSocketLink = 40e9;     ///< two UPI or three xGMI links between packages
inline constexpr double kNetwork = 50e9;        ///< 400 Gb/s
inline constexpr double kDisk = 3e9;            ///< an NVMe drive
inline constexpr double kSlowDisk = 0.5e9;      ///< a SATA drive

inline constexpr std::chrono::nanoseconds kBusLatency{100};
inline constexpr std::chrono::nanoseconds kPcieLatency{500};
inline constexpr std::chrono::nanoseconds kNvlinkLatency{500};
inline constexpr std::chrono::nanoseconds kSocketLatency{100};
inline constexpr std::chrono::nanoseconds kNetworkLatency{1000};
inline constexpr std::chrono::nanoseconds kDiskLatency{80000};

}  // namespace rates
}  // namespace weft
