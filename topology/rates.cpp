#include "topology/rates.hpp"

#include <cmath>

namespace weft::rates {
namespace {

// Per lane and direction after line coding, bytes per second: PCI Express Base Specification 6.0,
// table of data rates (2.5 and 5 GT/s with 8b/10b, 8 to 32 GT/s with 128b/130b, 64 GT/s PAM4 with
// 242/256 flits).
constexpr double kLane[] = {0, 0.25e9, 0.5e9, 0.984615e9, 1.969231e9, 3.938462e9, 7.5625e9};

// 256-byte payload in a packet of 24 more bytes (framing 4, sequence and LCRC 6, header 12, then
// acknowledgements): 0.91 at best. Measured host-to-device copies reach about 0.8 of the coded rate
// on PCIe 3 to 5 (12.5 of 15.75, 25 of 31.5, 52 of 63 GB/s).
constexpr double kPayload = 0.8;

}  // namespace

double pcie(std::uint32_t generation, std::uint32_t width) {
  if (generation < 1 || generation > 6 || width < 1 || width > 32) return 0;
  return kPayload * kLane[generation] * width;
}

double pcie_payload(double coded_bytes_per_second) {
  return kPayload * coded_bytes_per_second;
}

PcieShape pcie_shape(double coded_bytes_per_second) {
  // The widest fit loses against the fastest lanes: x16 of generation 4 and x8 of generation 5 are
  // equal; accelerators are wired wide, so prefer 16 lanes, then 8, then 4.
  for (const std::uint32_t width : {16u, 8u, 4u, 2u, 1u, 32u})
    for (std::uint32_t generation = 1; generation <= 6; ++generation) {
      const double expected = kLane[generation] * width;
      if (std::abs(coded_bytes_per_second - expected) < 0.03 * expected) return {generation, width};
    }
  return {};
}

double nvlink(std::uint32_t generation) {
  // NVIDIA data sheets, per link and direction: P100 20 GB/s; V100, A100 and H100 25 GB/s;
  // B200 50 GB/s.
  static constexpr double kRate[] = {0, 20e9, 25e9, 25e9, 25e9, 50e9};
  return generation < std::size(kRate) ? kRate[generation] : 0;
}

double pcie_coded(std::uint32_t generation) {
  return generation < std::size(kLane) ? kLane[generation] : 0;
}

double xgmi(std::string_view model) {
  // AMD data sheets: MI300 links carry 64 GB/s each way, MI250X 50 GB/s, MI100 46 GB/s.
  const auto has = [&](std::string_view part) {
    return model.find(part) != std::string_view::npos;
  };
  if (has("MI300") || has("gfx94")) return 64e9;
  if (has("MI100") || has("gfx908")) return 46e9;
  return kXgmiLink;
}

}  // namespace weft::rates
