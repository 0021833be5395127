#pragma once

#include <cstddef>
#include <cstdint>

#include "topology/machine.hpp"

namespace weft {

/// What was measured, as the programs that measure it count.
enum class Measured : std::uint8_t {
  HostToGpu,         ///< a large copy from pinned memory near the GPU, alone
  GpuToHost,         ///< the way back
  PeerCopy,          ///< a large copy from one GPU's memory to another's, alone
  PeerCopyBothWays,  ///< two such copies at once, one each way: the sum of both
  AllReduce,         ///< nccl-tests' bus bandwidth, algorithm ring, of the first `gpus` GPUs
  AllReduceSwitch,   ///< the same with the sums made in the NVSwitches (NVLS)
};

/// A result that somebody measured on a real machine and published: what a prediction for the
/// machine of that name (topology/machines) is compared with. docs/published-figures.md has more
/// about each, and the results that are not here because sources disagree.
struct PublishedFigure {
  const char* machine;  ///< name of the shipped machine
  Measured what;
  Node from, to;       ///< a memory or GPU each; of an all-reduce the first GPU twice
  std::uint32_t gpus;  ///< that take part
  double bytes_per_second;
  const char* source;
};

namespace published {

inline constexpr const char* kBootcamp =
    "https://github.com/openhackathons-org/gpubootcamp, hpc/multi_gpu_nways/labs/CFD/English/C/"
    "jupyter_notebook/advanced_concepts/single_node_topology.ipynb";
inline constexpr const char* kDell =
    "Dell EMC Ready Solutions for AI, C4130 configuration K, table 3 (p2pBandwidthLatencyTest): "
    "https://manuzoid.com/manuals/46Jor-Dell%20High%20Performance%20Computing%20Solution%20"
    "Resources%20Owner's%20Manual";
inline constexpr const char* kAzureA100 =
    "https://github.com/Azure/AI-benchmarking-guide, Azure_Results/ND_A100_v4_results.md";
inline constexpr const char* kAzureH100 =
    "https://github.com/Azure/AI-benchmarking-guide, Azure Results/ND_H100_v5_results.md";
inline constexpr const char* kNccl1264 = "https://github.com/NVIDIA/nccl/issues/1264";
inline constexpr const char* kNccl1455 = "https://github.com/NVIDIA/nccl/issues/1455";
inline constexpr const char* kPower9 =
    "https://www.nextplatform.com/2017/12/15/nvlink-shines-power9-ai-hpc-tests/, six GPUs, as "
    "quoted at https://reddit.wdas.io/r/OpenPOWER/comments/7ns1rp/";
inline constexpr const char* kNvbandwidth23 = "https://github.com/NVIDIA/nvbandwidth/issues/23";
inline constexpr const char* kDella = "https://github.com/jdh4/della-gpu-A100, README.md";

}  // namespace published

/// All of them. One value where a source gives a range: its middle.
inline const PublishedFigure kPublishedFigures[] = {
    {"dgx-1v", Measured::PeerCopyBothWays, GpuId{0}, GpuId{1}, 2, 48.49e9, published::kBootcamp},
    {"dgx-1v", Measured::PeerCopyBothWays, GpuId{0}, GpuId{2}, 2, 48.49e9, published::kBootcamp},
    {"dgx-1v", Measured::PeerCopyBothWays, GpuId{0}, GpuId{3}, 2, 96.85e9, published::kBootcamp},
    {"dgx-1v", Measured::PeerCopyBothWays, GpuId{0}, GpuId{4}, 2, 96.90e9, published::kBootcamp},
    {"dgx-1v", Measured::PeerCopy, GpuId{0}, GpuId{3}, 2, 47.9e9, published::kDell},
    {"dgx-1v", Measured::HostToGpu, MemoryId{0}, GpuId{0}, 1, 12.4e9, published::kDella},
    {"dgx-1v", Measured::GpuToHost, GpuId{0}, MemoryId{0}, 1, 13.1e9, published::kDella},

    {"dgx-a100", Measured::PeerCopy, GpuId{0}, GpuId{1}, 2, 272.5e9, published::kBootcamp},
    {"dgx-a100", Measured::PeerCopy, GpuId{0}, GpuId{7}, 2, 272.5e9, published::kBootcamp},
    {"dgx-a100", Measured::HostToGpu, MemoryId{3}, GpuId{0}, 1, 26.28e9, published::kAzureA100},
    {"dgx-a100", Measured::GpuToHost, GpuId{0}, MemoryId{3}, 1, 25.7e9, published::kDella},
    {"dgx-a100", Measured::AllReduce, GpuId{0}, GpuId{0}, 8, 231.58e9, published::kAzureA100},

    {"hgx-h100", Measured::PeerCopy, GpuId{0}, GpuId{1}, 2, 371.02e9, published::kNccl1264},
    {"hgx-h100", Measured::PeerCopy, GpuId{0}, GpuId{4}, 2, 376.82e9, published::kNccl1264},
    {"hgx-h100", Measured::PeerCopyBothWays, GpuId{0}, GpuId{1}, 2, 742.21e9, published::kNccl1264},
    {"hgx-h100", Measured::PeerCopyBothWays, GpuId{0}, GpuId{7}, 2, 741.20e9, published::kNccl1264},
    {"hgx-h100", Measured::HostToGpu, MemoryId{0}, GpuId{0}, 1, 51e9, published::kAzureH100},
    {"hgx-h100", Measured::GpuToHost, GpuId{0}, MemoryId{0}, 1, 52e9, published::kAzureH100},
    {"hgx-h100", Measured::AllReduce, GpuId{0}, GpuId{0}, 8, 367.5e9, published::kNccl1455},
    {"hgx-h100", Measured::AllReduce, GpuId{0}, GpuId{0}, 4, 367.5e9, published::kNccl1455},
    {"hgx-h100", Measured::AllReduceSwitch, GpuId{0}, GpuId{0}, 8, 478.87e9, published::kAzureH100},

    {"summit-node", Measured::HostToGpu, MemoryId{0}, GpuId{0}, 1, 45.9e9, published::kPower9},
    {"summit-node", Measured::PeerCopy, GpuId{0}, GpuId{1}, 2, 47.9e9, published::kDell},

    {"gh200", Measured::HostToGpu, MemoryId{0}, GpuId{0}, 1, 346e9, published::kNvbandwidth23},
    {"gh200", Measured::GpuToHost, GpuId{0}, MemoryId{0}, 1, 301e9, published::kNvbandwidth23},
};

}  // namespace weft
