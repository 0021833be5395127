#include "topology/device_figures.hpp"

#include <stdexcept>

#include "support/catch.hpp"
#include "topology/corpus.hpp"
#include "topology/discover.hpp"
#include "topology/import.hpp"
#include "topology/machine_edit.hpp"
#include "topology/shipped.hpp"

using namespace weft;

TEST_CASE("a GPU is known however its model is written", "[topology]") {
  struct Case {
    const char* written;
    const char* model;
  };
  for (const Case& c : {Case{"NVIDIA H100 80GB HBM3", "H100 SXM"},
                        {"H100-SXM5-80GB", "H100 SXM"},
                        {"NVIDIA H100 PCIe", "H100 PCIe"},
                        {"NVIDIA H100 NVL", "H100 NVL"},
                        {"NVIDIA H200", "H200 SXM"},
                        {"H200", "H200 SXM"},
                        {"NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"},
                        {"A100-SXM4-40GB", "A100 40GB"},
                        {"NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"},
                        {"Tesla V100-SXM2-16GB", "V100 SXM"},
                        {"Tesla V100-SXM2-32GB", "V100 SXM 32GB"},
                        {"Tesla V100-PCIE-32GB", "V100 PCIe 32GB"},
                        {"GH200 96GB", "GH200 96GB"},
                        {"NVIDIA GH200 480GB", "GH200 96GB"},
                        {"NVIDIA GH200 144G HBM3e", "GH200 144GB"},
                        {"NVIDIA B200", "B200"},
                        {"NVIDIA GB200", "GB200"},
                        {"NVIDIA L40S", "L40S"},
                        {"L40", "L40"},
                        {"NVIDIA GeForce RTX 4090", "RTX 4090"},
                        {"MI250X", "MI250X, one die"},
                        {"AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2", "MI250X, one die"},
                        {"AMD Instinct MI300X", "MI300X"},
                        {"Intel(R) Data Center GPU Max 1550", "Data Center GPU Max 1550"}}) {
    INFO(c.written);
    const auto figures = published_figures(c.written);
    REQUIRE(figures);
    CHECK(figures->model == c.model);
  }
}

TEST_CASE("figures are those of the data sheets", "[topology]") {
  const auto h100 = published_figures("NVIDIA H100 80GB HBM3");
  CHECK(h100->fp32 == 67e12);
  CHECK(h100->bf16 == 989.5e12);
  CHECK(h100->memory_bytes_per_second == 3.35e12);
  CHECK(h100->multiprocessors == 132);
  CHECK(published_figures("Tesla V100-SXM2-16GB")->bf16 == 0);
  CHECK(h100->fp32_matrix == 0);
  CHECK(published_figures("MI250X")->fp32_matrix == 47.9e12);
  CHECK(published_figures("MI250X")->memory_bytes == std::size_t{64} << 30);
}

TEST_CASE("what is no whole GPU of the table has no published figures", "[topology]") {
  for (const char* model : {"", "synthetic", "emulated", "RTX A1000",
                            "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D",
                            "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A1000", "XH100X", "GeForce 940"}) {
    INFO(model);
    CHECK_FALSE(published_figures(model));
  }
}

TEST_CASE("an unknown GPU gets figures that say that they are assumed", "[topology]") {
  const Machine machine = parse_machine("2 gpus, gpu memory 24 GB");
  const DeviceFigures figures = gpu_figures(machine, GpuId{1});
  CHECK(figures.origin == FigureOrigin::Assumed);
  CHECK(figures.source.starts_with("assumed: "));
  CHECK(figures.fp32 > 0);
  CHECK(figures.launch.count() > 0);
  CHECK(figures.memory_bytes == std::size_t{24} << 30);
  CHECK_THROWS_AS(gpu_figures(machine, GpuId{2}), std::out_of_range);
}

TEST_CASE("every GPU and processor of the shipped machines is known", "[topology]") {
  for (const std::string& name : shipped_machines()) {
    INFO(name);
    const Machine machine = machine_from(name);
    for (const Gpu& gpu : machine.gpus) {
      INFO(gpu.model);
      const auto figures = published_figures(gpu.model);
      REQUIRE(figures);
      CHECK(figures->fp32 > 0);
      CHECK(figures->memory_bytes_per_second > 0);
      CHECK(figures->multiprocessors > 0);
      CHECK(figures->copy_engines_per_direction > 0);
      CHECK_FALSE(figures->source.empty());
      CHECK_FALSE(figures->launch_source.empty());
      CHECK_FALSE(figures->copy_source.empty());
      const Memory& own = machine.memories[gpu.memory.value];
      if (own.kind == MemoryKind::Gpu) CHECK(figures->memory_bytes == own.bytes);
    }
    for (std::uint32_t s = 0; s < machine.sockets.size(); ++s) {
      const CpuFigures figures = cpu_figures(machine, SocketId{s});
      INFO(machine.sockets[s].model);
      CHECK(figures.core_origin == FigureOrigin::Published);
      CHECK(figures.fp32_per_core == 2 * figures.fp64_per_core);
      CHECK(figures.memory_origin == FigureOrigin::Published);
    }
  }
}

TEST_CASE("a socket's memory is as fast as its bus links", "[topology]") {
  const Machine machine = machine_from("dgx-a100");
  CHECK(cpu_figures(machine, SocketId{0}).memory_bytes_per_second == 4 * 51.2e9);
  const Machine slow = with_value(machine, "link0.bytes_per_second=1 GB/s");
  const CpuFigures figures = cpu_figures(slow, SocketId{0});
  CHECK(figures.memory_bytes_per_second == 3 * 51.2e9 + 1e9);
  CHECK(figures.memory_origin == FigureOrigin::Assumed);

  const CpuFigures unknown = cpu_figures(parse_machine("1 socket x 4 cores"), SocketId{0});
  CHECK(unknown.core_origin == FigureOrigin::Assumed);
  CHECK(unknown.core_source.starts_with("assumed: "));
  CHECK(unknown.memory_origin == FigureOrigin::Assumed);
  CHECK_THROWS_AS(cpu_figures(machine, SocketId{9}), std::out_of_range);
}

TEST_CASE("GPUs of captured machines are known or said to be assumed", "[topology]") {
  // Models that no data sheet gives all figures of, or that are too old to simulate.
  const auto may_be_unknown = [](const std::string& model) {
    for (const char* name : {"A10G", "Vega", "Xeon Phi", "gfx", "sm_", "Radeon", "GeForce",
                             "Quadro", "UHD", "HD Graphics", "Graphics", "Thunder", "ASPEED"})
      if (model.find(name) != std::string::npos) return true;
    return model.empty();
  };
  for (const std::string& file : corpus::good_files()) {
    INFO(file);
    const Machine machine = load_machine(file);
    for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) {
      const std::string& model = machine.gpus[g].model;
      INFO(model);
      const DeviceFigures figures = gpu_figures(machine, GpuId{g});
      CHECK(figures.fp32 > 0);
      if (!published_figures(model)) {
        CHECK(figures.origin == FigureOrigin::Assumed);
        CHECK(may_be_unknown(model));
      }
    }
  }
}
