#include "actors/cuda/nvml.hpp"

#include "support/catch.hpp"
#include "topology/names.hpp"

using namespace weft;

TEST_CASE("NVML is read through the layouts of its manual", "[cuda]") {
  for (int again = 0; again < 2; ++again) {  // the library counts its starts and ends
    const NvmlFacts facts = read_nvml(WEFT_FAKE_NVML);
    REQUIRE(facts.problem.empty());
    CHECK(facts.driver == "580.65.06");
    REQUIRE(facts.gpus.size() == 3);
    const GpuFact& first = facts.gpus[0];
    CHECK(first.pci == parse_pci_address("0000:3b:00.0"));
    CHECK(first.name == "NVIDIA H200");
    CHECK(first.uuid == "GPU-a");
    CHECK(first.memory_bytes == std::size_t{1} << 37);
    CHECK(first.compute_capability == 90);
    CHECK(first.is_prohibited);
    CHECK_FALSE(first.is_mig_enabled);
    CHECK(first.has_c2c);
    CHECK_FALSE(facts.gpus[1].has_c2c);
    CHECK(first.pcie_generation == 1);
    CHECK(first.max_pcie_generation == 5);
    CHECK(first.pcie_width == 16);
    CHECK(first.max_pcie_width == 0);  // this version does not tell
    REQUIRE(first.nvlinks.size() == 16);
    CHECK(first.nvlinks[0].remote == NvlinkRemote::Gpu);
    CHECK(first.nvlinks[0].pci == parse_pci_address("0000:86:00.0"));
    CHECK(first.nvlinks[0].generation == 4);
    CHECK(first.nvlinks[0].bytes_per_second == 26562e6);
    CHECK(first.nvlinks[4].remote == NvlinkRemote::Switch);
    CHECK_FALSE(first.nvlinks[4].pci);
    CHECK(facts.gpus[1].is_mig_enabled);
    CHECK(facts.gpus[1].nvlinks.empty());
    CHECK(facts.gpus[2].mig_parent == "GPU-b");
    CHECK(facts.gpus[2].pci == parse_pci_address("0000:86:00.0"));
    CHECK(facts.gpus[2].max_pcie_generation == 5);
    CHECK(facts.gpus[2].memory_bytes == std::size_t{1} << 34);
  }
}

TEST_CASE("an absent NVML is a reason, not an error", "[cuda]") {
  const NvmlFacts facts = read_nvml("libno-such-nvml.so.1");
  CHECK(facts.gpus.empty());
  CHECK_THAT(facts.problem, contains_text("libno-such-nvml.so.1"));
  CHECK_THAT(read_nvml("libm.so.6").problem, contains_text("libm.so.6 is no NVML"));
}
