// Machines of which something is made faster.
#include "actors/simulated/scale.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "topology/discover.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const Machine kMachine = parse_machine("2 sockets x 2 cores, 2 gpus, nvlink 50 GB/s, pcie 20 GB/s");

std::uint32_t first_of(LinkKind kind) {
  std::uint32_t link = 0;
  while (kMachine.links[link].kind != kind) ++link;
  return link;
}

Machine scaled(const std::string& text) {
  return SimulatedScale(text, kMachine).applied(kMachine);
}

std::string refused(const std::string& text) {
  return thrown<DeviceError>([&] { SimulatedScale(text, kMachine); });
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

RuntimeOptions options_with(const std::string& scale) {
  RuntimeOptions options;
  options.machine = kMachine;
  options.simulate = true;
  options.data = SimulatedData::None;
  options.emulated = EmulatedOptions{};
  options.emulated->link_bytes_per_second = -1;
  options.serial = false;
  options.simulated_scale = scale;
  options.simulated_report = "";
  return options;
}

const auto kFill = Kernel("fill_with_cost").cpu([](Cpu&, Out<float>) {}).cost([](Out<float>) {
  return Cost{1e11, 0};
});

const auto kTake = Kernel("take").cpu([](Cpu&, In<float>, Out<float>) {});

// Seconds of a long kernel on a GPU, whose result another takes; that one's goes to the host.
double time_of(const RuntimeOptions& options, std::vector<std::string>* targets = nullptr) {
  Runtime rt(options);
  auto x = rt.gpu(0).tensor<float>({10 << 20});
  rt.gpu(0).submit(kFill, out(x));
  auto y = rt.gpu(1).tensor<float>({10 << 20});
  rt.gpu(1).submit(kTake, in(x), out(y));
  static_cast<void>(y.to_host());
  rt.wait_idle();
  if (targets) *targets = rt.scale_targets();
  return 1e-9 * static_cast<double>(rt.now().count());
}

}  // namespace

TEST_CASE("a scale changes the links it names", "[actors][scale]") {
  const std::uint32_t pcie = first_of(LinkKind::Pcie), nvlink = first_of(LinkKind::Nvlink);
  const Machine both = scaled("link:pcie=2,link" + std::to_string(nvlink) + "=3");
  for (std::uint32_t l = 0; l < kMachine.links.size(); ++l)
    for (int d = 0; d < 2; ++d) {
      const double factor = kMachine.links[l].kind == LinkKind::Pcie ? 2 : l == nvlink ? 3 : 1;
      CHECK(both.links[l].bytes_per_second[d] == factor * kMachine.links[l].bytes_per_second[d]);
      CHECK(both.links[l].latency == kMachine.links[l].latency);
    }
  const Machine sooner = scaled("link:pcie.latency=2");
  CHECK(kMachine.links[pcie].latency.count() > 1);
  CHECK(sooner.links[pcie].latency == kMachine.links[pcie].latency / 2);
  CHECK(sooner.links[pcie].bytes_per_second[0] == kMachine.links[pcie].bytes_per_second[0]);
  CHECK(scaled("") == kMachine);
}

TEST_CASE("a scale changes the models of devices it names", "[actors][scale]") {
  DeviceModel model;
  model.fp64 = 1, model.fp32 = 2, model.product = 3, model.memory = 4;
  model.launch_ns = 100, model.gap_ns = 50;
  const auto with = [&](const std::string& text, Node device) {
    return SimulatedScale(text, kMachine).applied(model, kMachine, device);
  };
  CHECK(with("gpu.flops=2", GpuId{1}).product == 6);
  CHECK(with("gpu.flops=2", GpuId{1}).memory == 4);
  CHECK(with("gpu0.flops=2", GpuId{1}).fp32 == 2);
  CHECK(with("gpu0.flops=2", SocketId{0}).fp32 == 2);
  CHECK(with("gpu.memory=2,gpu1.memory=2", GpuId{1}).memory == 16);
  CHECK(with("gpu:" + kMachine.gpus[0].model + ".launch=2", GpuId{0}).launch_ns == 50);
  CHECK(with("gpu.launch=2", GpuId{0}).gap_ns == 25);
  CHECK(with("socket1.cores=2", SocketId{1}).fp64 == 2);
  CHECK(with("socket1.cores=2", SocketId{0}).fp64 == 1);
  CHECK(SimulatedScale("program.submission=4", kMachine).submission_factor() == 4);
}

TEST_CASE("a scale that makes no sense is refused", "[actors][scale]") {
  CHECK(has(refused("link:xgmi=2"), "it has link:bus"));
  CHECK(has(refused("gpu7.flops=2"), "this machine has no such thing; it has gpu"));
  CHECK(has(refused("gpu=2"), "wanted gpu.flops, gpu.memory, gpu.launch"));
  CHECK(has(refused("link:pcie"), "wanted TARGET=FACTOR"));
  CHECK(has(refused("link:pcie=0"), "a factor above 0"));
  CHECK(has(refused("link:pcie=2x"), "a factor above 0"));
  CHECK(has(refused("disks=2"), "wanted link:KIND"));
  CHECK(has(refused("link=2"), "wanted link:pcie"));
  RuntimeOptions options = options_with("gpu.flops=2");
  options.simulate = false;
  CHECK(has(thrown<DeviceError>([&] { Runtime rt(options); }), "only a simulated machine"));
}

TEST_CASE("what was used may be made faster, and what bounds a run makes it faster",
          "[actors][scale]") {
  std::vector<std::string> targets;
  const double whole = time_of(options_with(""), &targets);
  for (const char* used : {"link:pcie", "link:nvlink", "gpu.flops", "program.submission"})
    CHECK(contains(targets, used));
  CHECK_FALSE(contains(targets, "socket.cores"));
  for (const std::string& target : targets) CHECK(has_scale_target(kMachine, target));

  constexpr double kBytes = 4 * (10 << 20);
  CHECK(whole - time_of(options_with("link:pcie=2")) == Approx(kBytes / 40e9).epsilon(0.05));
  // 0.9 of an NVLink's rate is payload.
  CHECK(whole - time_of(options_with("link:nvlink=2")) == Approx(kBytes / 90e9).epsilon(0.05));
  CHECK(time_of(options_with("gpu.flops=2")) < 0.9 * whole);
  CHECK(time_of(options_with("gpu0.memory=2")) == whole);
  // A rate that is given for all links is scaled too.
  RuntimeOptions given = options_with("link:pcie=2,link:socket=2");
  given.emulated->link_bytes_per_second = 5e9;
  const double scaled_time = time_of(given);
  given.simulated_scale = "";
  CHECK(time_of(given) - scaled_time == Approx(kBytes / 10e9).epsilon(0.05));
}

TEST_CASE("a simulated runtime reports how long it took", "[actors][scale]") {
  const auto file =
      std::filesystem::temp_directory_path() / ("weft_report_" + std::to_string(getpid()));
  RuntimeOptions options = options_with("");
  options.simulated_report = file.string();
  std::vector<std::string> targets;
  const double first = time_of(options, &targets), second = time_of(options);
  std::ifstream stream(file);
  std::string line;
  for (const double seconds : {first, second}) {
    REQUIRE(std::getline(stream, line));
    std::istringstream fields(line);
    std::string field;
    std::getline(fields, field, '\t');
    CHECK(std::stod(field) == Approx(seconds));
    for (const std::string& target : targets) {
      std::getline(fields, field, '\t');
      CHECK(field == target);
    }
  }
  CHECK_FALSE(std::getline(stream, line));
  std::filesystem::remove(file);
}
