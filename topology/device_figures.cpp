#include "topology/device_figures.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

#include "topology/rates.hpp"

namespace weft {
namespace {

using std::chrono::nanoseconds;

constexpr double T = 1e12;
constexpr std::size_t kGiB = std::size_t{1} << 30;

// "Getting Started with CUDA Graphs" (developer.nvidia.com/blog/cuda-graphs, V100): a kernel of
// 2.9 us takes 9.6 us when each is waited for and 3.8 us when many are queued: 6.7 us and 0.9 us on
// top. The 6.7 us hold the wait of the host too, so 5 us are left for the launch.
constexpr nanoseconds kLaunch{5000}, kLaunchGap{1000};
constexpr std::string_view kLaunchSource =
    "assumed from developer.nvidia.com/blog/cuda-graphs: 2.9 us kernels take 9.6 us one by one, "
    "3.8 us queued (V100); other GPUs taken alike";

// CUDA runtime API, cudaDeviceProp::asyncEngineCount: 2 and more mean copies in both directions at
// a time; deviceQuery prints 3 for H100 and A100, of which one serves peers.
constexpr std::string_view kCopySource =
    "assumed: one DMA engine a direction, as cudaDeviceProp::asyncEngineCount of 2 or 3 means "
    "(CUDA runtime API, deviceQuery)";

struct Row {
  std::string_view words;  ///< all of them must occur in the model, in any order
  DeviceFigures figures;
};

struct Rates {
  double fp64, fp64_matrix, fp32, fp32_matrix, tf32, fp16, bf16;
};

constexpr Row row(std::string_view words, std::string_view model, Rates rates,
                  double memory_bytes_per_second, std::size_t memory_gib,
                  std::uint32_t multiprocessors, std::string_view source,
                  FigureOrigin origin = FigureOrigin::Published) {
  DeviceFigures f;
  f.model = model;
  f.fp64 = rates.fp64, f.fp64_matrix = rates.fp64_matrix;
  f.fp32 = rates.fp32, f.fp32_matrix = rates.fp32_matrix, f.tf32 = rates.tf32;
  f.fp16 = rates.fp16, f.bf16 = rates.bf16;
  f.memory_bytes_per_second = memory_bytes_per_second;
  f.memory_bytes = memory_gib * kGiB;
  f.multiprocessors = multiprocessors;
  f.origin = origin;
  f.source = source;
  f.launch = kLaunch, f.launch_gap = kLaunchGap, f.launch_source = kLaunchSource;
  f.copy_engines_per_direction = 1, f.copy_source = kCopySource;
  return {words, f};
}

constexpr std::string_view kBlackwell =
    "NVIDIA Blackwell data sheet, GB200 NVL72 and HGX B200, figures of one GPU; matrix rates "
    "halved "
    "to dense";
constexpr std::string_view kHopper =
    "NVIDIA H100 data sheet and H100 architecture white paper; matrix rates halved to dense";
constexpr std::string_view kH200 = "NVIDIA H200 data sheet; matrix rates halved to dense";
constexpr std::string_view kH800 =
    "NVIDIA H800 data sheet: an H100 with 1 TFLOPS of double precision";
constexpr std::string_view kGraceHopper =
    "NVIDIA GH200 Grace Hopper Superchip data sheet; matrix rates halved to dense";
constexpr std::string_view kAmpere =
    "NVIDIA A100 data sheet; multiprocessors: A100 architecture white paper";
constexpr std::string_view kGa102 =
    "NVIDIA data sheet of the card; fp64 = fp32 / 64: Ampere GA102 architecture white paper";
constexpr std::string_view kAda =
    "NVIDIA data sheet of the card and Ada architecture white paper; fp64 = fp32 / 64";
constexpr std::string_view kVolta =
    "NVIDIA V100 data sheet; multiprocessors: Volta architecture white paper";
constexpr std::string_view kPascal = "NVIDIA Tesla P100 data sheet and white paper";
constexpr std::string_view kMi200 =
    "AMD Instinct MI200 data sheet, one of the two dies; 23.9 TFLOPS, 110 units and 1.6 TB/s a die "
    "also in docs.olcf.ornl.gov/systems/frontier_user_guide.html";
constexpr std::string_view kMi300 = "AMD Instinct MI300 series data sheets";

// Where several rows fit, the one with the most words counts.
constexpr Row kRows[] = {
    row("GB200", "GB200", {40 * T, 40 * T, 80 * T, 0, 1250 * T, 2500 * T, 2500 * T}, 8 * T, 186,
        148, kBlackwell),
    row("B200", "B200", {37 * T, 37 * T, 75 * T, 0, 1100 * T, 2250 * T, 2250 * T}, 7.7 * T, 180,
        148, kBlackwell),
    row("GH200", "GH200 96GB", {34 * T, 67 * T, 67 * T, 0, 494 * T, 990 * T, 990 * T}, 4 * T, 96,
        132, kGraceHopper),
    row("GH200 HBM3E", "GH200 144GB", {34 * T, 67 * T, 67 * T, 0, 494 * T, 990 * T, 990 * T},
        4.9 * T, 144, 132, kGraceHopper),
    row("H200", "H200 SXM", {34 * T, 67 * T, 67 * T, 0, 494.5 * T, 989.5 * T, 989.5 * T}, 4.8 * T,
        141, 132, kH200),
    row("H200 NVL", "H200 NVL", {30 * T, 60 * T, 60 * T, 0, 417.5 * T, 835.5 * T, 835.5 * T},
        4.8 * T, 141, 132, kH200),
    row("H100", "H100 SXM", {34 * T, 67 * T, 67 * T, 0, 494.5 * T, 989.5 * T, 989.5 * T}, 3.35 * T,
        80, 132, kHopper),
    row("H100 PCIE", "H100 PCIe", {26 * T, 51 * T, 51 * T, 0, 378 * T, 756.5 * T, 756.5 * T}, 2 * T,
        80, 114, kHopper),
    row("H100 NVL", "H100 NVL", {30 * T, 60 * T, 60 * T, 0, 417.5 * T, 835.5 * T, 835.5 * T},
        3.9 * T, 94, 132, kHopper),
    row("H800", "H800 SXM", {1 * T, 1 * T, 67 * T, 0, 494.5 * T, 989.5 * T, 989.5 * T}, 3.35 * T,
        80, 132, kH800),
    row("A100", "A100 40GB", {9.7 * T, 19.5 * T, 19.5 * T, 0, 156 * T, 312 * T, 312 * T}, 1.555 * T,
        40, 108, kAmpere),
    row("A100 80GB", "A100 SXM 80GB", {9.7 * T, 19.5 * T, 19.5 * T, 0, 156 * T, 312 * T, 312 * T},
        2.039 * T, 80, 108, kAmpere),
    row("A100 80GB PCIE", "A100 PCIe 80GB",
        {9.7 * T, 19.5 * T, 19.5 * T, 0, 156 * T, 312 * T, 312 * T}, 1.935 * T, 80, 108, kAmpere),
    row("A800", "A800 SXM 80GB", {9.7 * T, 19.5 * T, 19.5 * T, 0, 156 * T, 312 * T, 312 * T},
        2.039 * T, 80, 108, "NVIDIA A800 data sheet: an A100 with 8 NVLinks"),
    row("A40", "A40", {0.58 * T, 0, 37.4 * T, 0, 74.8 * T, 149.7 * T, 149.7 * T}, 0.696 * T, 48, 84,
        kGa102),
    row("A10", "A10", {0.49 * T, 0, 31.2 * T, 0, 62.5 * T, 125 * T, 125 * T}, 0.6 * T, 24, 72,
        kGa102),
    row("A6000", "RTX A6000", {0.6 * T, 0, 38.7 * T, 0, 77.4 * T, 154.8 * T, 154.8 * T}, 0.768 * T,
        48, 84, kGa102),
    row("3090", "RTX 3090", {0.56 * T, 0, 35.6 * T, 0, 35.6 * T, 71 * T, 71 * T}, 0.936 * T, 24, 82,
        kGa102),
    row("L40S", "L40S", {1.43 * T, 0, 91.6 * T, 0, 183 * T, 362 * T, 362 * T}, 0.864 * T, 48, 142,
        kAda),
    row("L40", "L40", {1.41 * T, 0, 90.5 * T, 0, 90.5 * T, 181 * T, 181 * T}, 0.864 * T, 48, 142,
        kAda),
    row("L4", "L4", {0.47 * T, 0, 30.3 * T, 0, 60 * T, 121 * T, 121 * T}, 0.3 * T, 24, 58, kAda),
    row("4090", "RTX 4090", {1.29 * T, 0, 82.6 * T, 0, 82.6 * T, 165.2 * T, 165.2 * T}, 1.008 * T,
        24, 128, kAda),
    row("V100", "V100 SXM", {7.8 * T, 0, 15.7 * T, 0, 0, 125 * T, 0}, 0.9 * T, 16, 80, kVolta),
    row("V100 32GB", "V100 SXM 32GB", {7.8 * T, 0, 15.7 * T, 0, 0, 125 * T, 0}, 0.9 * T, 32, 80,
        kVolta),
    row("V100 PCIE", "V100 PCIe", {7 * T, 0, 14 * T, 0, 0, 112 * T, 0}, 0.9 * T, 16, 80, kVolta),
    row("V100 PCIE 32GB", "V100 PCIe 32GB", {7 * T, 0, 14 * T, 0, 0, 112 * T, 0}, 0.9 * T, 32, 80,
        kVolta),
    row("P100", "P100 SXM2", {5.3 * T, 0, 10.6 * T, 0, 0, 0, 0}, 0.732 * T, 16, 56, kPascal),
    row("P100 PCIE", "P100 PCIe", {4.7 * T, 0, 9.3 * T, 0, 0, 0, 0}, 0.732 * T, 16, 56, kPascal),
    row("P40", "Tesla P40", {0.37 * T, 0, 12 * T, 0, 0, 0, 0}, 0.346 * T, 24, 30,
        "NVIDIA Tesla P40 data sheet; fp64 = fp32 / 32: CUDA programming guide, throughput of "
        "arithmetic instructions, 6.1"),
    row("T4", "Tesla T4", {0.25 * T, 0, 8.1 * T, 0, 0, 65 * T, 0}, 0.3 * T, 16, 40,
        "NVIDIA T4 data sheet; fp64 = fp32 / 32: CUDA programming guide, throughput of arithmetic "
        "instructions, 7.5"),
    row("K40C", "Tesla K40", {1.43 * T, 0, 4.29 * T, 0, 0, 0, 0}, 0.288 * T, 12, 15,
        "NVIDIA Tesla K40 active accelerator board specification"),
    row("MI250X", "MI250X, one die",
        {23.9 * T, 47.9 * T, 23.9 * T, 47.9 * T, 0, 191.5 * T, 191.5 * T}, 1.6 * T, 64, 110,
        kMi200),
    row("MI200 MCM HPE", "MI250X, one die",
        {23.9 * T, 47.9 * T, 23.9 * T, 47.9 * T, 0, 191.5 * T, 191.5 * T}, 1.6 * T, 64, 110,
        kMi200),
    row("MI210", "MI210", {22.6 * T, 45.3 * T, 22.6 * T, 45.3 * T, 0, 181 * T, 181 * T}, 1.6 * T,
        64, 104, "AMD Instinct MI210 data sheet"),
    row("MI100", "MI100", {11.5 * T, 0, 23.1 * T, 46.1 * T, 0, 184.6 * T, 92.3 * T}, 1.2288 * T, 32,
        120, "AMD Instinct MI100 data sheet"),
    row("MI300X", "MI300X",
        {81.7 * T, 163.4 * T, 163.4 * T, 163.4 * T, 653.7 * T, 1307.4 * T, 1307.4 * T}, 5.3 * T,
        192, 304, kMi300),
    row("MI325X", "MI325X",
        {81.7 * T, 163.4 * T, 163.4 * T, 163.4 * T, 653.7 * T, 1307.4 * T, 1307.4 * T}, 6 * T, 256,
        304, kMi300),
    row("MI300A", "MI300A",
        {61.3 * T, 122.6 * T, 122.6 * T, 122.6 * T, 490.3 * T, 980.6 * T, 980.6 * T}, 5.3 * T, 0,
        228, kMi300),
    row("MAX 1550", "Data Center GPU Max 1550",
        {52.4 * T, 0, 52.4 * T, 0, 419 * T, 839 * T, 839 * T}, 3.2768 * T, 128, 128,
        "Intel Data Center GPU Max series product brief and Intel ARK"),
    row("IRIS XE", "Iris Xe, 96 units", {0, 0, 2.3 * T, 0, 0, 0, 0}, 0.0832 * T, 0, 96,
        "assumed: 96 execution units x 8 lanes x 2 x 1.5 GHz (Intel ARK, Core i7-1370P), memory of "
        "the host: two channels of DDR5-5200; no double precision units",
        FigureOrigin::Assumed),
};

// Versions of a model with other figures than those above.
constexpr std::string_view kOthers[] = {"LAPTOP", "MOBILE", "MAXQ", "MIG", "D"};

constexpr std::size_t kMostWords = 32;

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool same_word(std::string_view word, std::string_view upper) {
  return word.size() == upper.size() &&
         std::equal(word.begin(), word.end(), upper.begin(), [](char a, char b) {
           return std::toupper(static_cast<unsigned char>(a)) == b;
         });
}

/// The words of a text: what stands between characters that are neither letters nor digits.
class ModelWords {
 public:
  explicit ModelWords(std::string_view text) {
    for (std::size_t i = 0; i < text.size() && count_ < kMostWords;) {
      if (!is_word_char(text[i])) {
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < text.size() && is_word_char(text[end])) ++end;
      words_[count_++] = text.substr(i, end - i);
      i = end;
    }
  }

  [[nodiscard]] bool have(std::string_view upper) const {
    return std::any_of(begin(), end(), [&](std::string_view w) { return same_word(w, upper); });
  }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] const std::string_view* begin() const { return words_.data(); }
  [[nodiscard]] const std::string_view* end() const { return words_.data() + count_; }

 private:
  std::array<std::string_view, kMostWords> words_;
  std::size_t count_ = 0;
};

/// How many words of `wanted` there are if all are in `words`, else 0.
std::size_t fit(const ModelWords& words, std::string_view wanted) {
  const ModelWords needed(wanted);
  const bool all = std::all_of(needed.begin(), needed.end(),
                               [&](std::string_view word) { return words.have(word); });
  return all ? needed.size() : 0;
}

struct CpuRow {
  std::string_view words;
  double fp64_per_core;  ///< flop/s; single precision is twice as fast
  std::string_view source;
};

// Vector units x lanes x 2 x base clock: what all cores reach together.
constexpr CpuRow kCpuRows[] = {
    {"E5 2698", 16 * 2.2e9, "Intel ARK, Xeon E5-2698 v4: 2.2 GHz, AVX2 with two FMA units"},
    {"8480C", 32 * 2.0e9, "Intel ARK, Xeon Platinum 8480+: 2.0 GHz, AVX-512 with two FMA units"},
    {"EPYC 7742", 16 * 2.25e9, "AMD EPYC 7742: 2.25 GHz, AVX2 with two FMA units"},
    {"EPYC 7A53", 16 * 2.0e9,
     "docs.olcf.ornl.gov/systems/frontier_user_guide.html: EPYC 7A53 at 2.0 GHz, AVX2 with two FMA "
     "units"},
    {"5975WX", 16 * 3.6e9, "AMD Ryzen Threadripper PRO 5975WX: 3.6 GHz, AVX2 with two FMA units"},
    {"GRACE", 7.1e12 / 144, "NVIDIA Grace CPU Superchip data sheet: 7.1 TFLOPS for 144 cores"},
    {"POWER9", 8 * 3.07e9, "IBM POWER9: two 128-bit VSX pipes a core, 3.07 GHz in Summit"},
    {"I7 1370P", 16 * 1.9e9, "Intel ARK, Core i7-1370P: base 1.9 GHz, AVX2 with two FMA units"},
};

constexpr double kDefaultCore = 16 * 2.5e9;
constexpr std::string_view kDefaultCoreSource =
    "assumed: AVX2 with two FMA units (16 flop a cycle in double precision) at 2.5 GHz, the middle "
    "of the servers above";

}  // namespace

std::optional<DeviceFigures> published_figures(std::string_view model) {
  const ModelWords words(model);
  for (const std::string_view other : kOthers)
    if (words.have(other)) return std::nullopt;
  const Row* best = nullptr;
  std::size_t most = 0;
  for (const Row& candidate : kRows)
    if (const std::size_t count = fit(words, candidate.words); count > most)
      most = count, best = &candidate;
  return best ? std::optional(best->figures) : std::nullopt;
}

DeviceFigures default_gpu_figures() {
  DeviceFigures figures = *published_figures("A100");
  figures.model = "unknown GPU";
  figures.origin = FigureOrigin::Assumed;
  figures.source = "assumed: nothing is known of this GPU; the figures of an A100 of 40 GB";
  return figures;
}

DeviceFigures gpu_figures(const Machine& machine, GpuId gpu) {
  const Gpu& device = machine.gpus.at(gpu.value);
  DeviceFigures figures = published_figures(device.model).value_or(default_gpu_figures());
  if (device.memory.is_valid()) {
    const Memory& memory = machine.memories.at(device.memory.value);
    if (memory.bytes > 0) figures.memory_bytes = memory.bytes;
  }
  return figures;
}

CpuFigures cpu_figures(const Machine& machine, SocketId socket) {
  const Socket& package = machine.sockets.at(socket.value);
  CpuFigures figures;
  figures.fp64_per_core = kDefaultCore;
  figures.core_source = kDefaultCoreSource;
  const ModelWords words(package.model);
  for (const CpuRow& candidate : kCpuRows)
    if (fit(words, candidate.words) > 0) {
      figures.fp64_per_core = candidate.fp64_per_core;
      figures.core_origin = FigureOrigin::Published;
      figures.core_source = candidate.source;
    }
  figures.fp32_per_core = 2 * figures.fp64_per_core;

  bool any_assumed = false;
  for (const Link& link : machine.links) {
    const bool from = link.a.kind == NodeKind::Memory && link.b == Node(socket);
    const bool to = link.b.kind == NodeKind::Memory && link.a == Node(socket);
    if (link.kind != LinkKind::Bus || (!from && !to)) continue;
    figures.memory_bytes_per_second += link.bytes_per_second[from ? 0 : 1];
    any_assumed |= link.provenance == Provenance::Assumed;
  }
  figures.memory_source = "the machine's bus links between the socket and its memories";
  if (figures.memory_bytes_per_second > 0) {
    if (!any_assumed) figures.memory_origin = FigureOrigin::Published;
  } else {
    figures.memory_bytes_per_second = rates::kMemoryBus;
    figures.memory_source =
        "assumed: the machine has no bus link for the socket; five channels of DDR4-2666 carry 107 "
        "GB/s, rates::kMemoryBus";
  }
  return figures;
}

}  // namespace weft
