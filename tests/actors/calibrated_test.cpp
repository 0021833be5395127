// That a calibration changes what simulated devices and links take exactly as it says.
#include "actors/simulated/calibrated.hpp"

#include <algorithm>
#include <cmath>

#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "topology/discover.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kWork =
    Kernel("work").cpu([](Cpu&, double, InOut<float>) {}).cost([](double flops, InOut<float>) {
      return Cost{flops, 0};
    });
const auto kOther =
    Kernel("other").cpu([](Cpu&, double, InOut<float>) {}).cost([](double flops, InOut<float>) {
      return Cost{flops, 0};
    });
const auto kMove =
    Kernel("move").cpu([](Cpu&, double, InOut<float>) {}).cost([](double bytes, InOut<float>) {
      return Cost{0, bytes};
    });
const auto kSet = Kernel("set").cpu([](Cpu&, Out<float>) {}).cost([](Out<float>) {
  return Cost{0, 0};
});

Calibration::Figure exactly(double value) {
  return {value, value, value, 1};
}

Calibration::Device device(const std::string& model, bool is_gpu) {
  Calibration::Device made;
  made.model = model;
  made.is_gpu = is_gpu;
  made.launch_ns = exactly(2000);
  made.gap_ns = exactly(500);
  return made;
}

Calibration::Point flops(double flops, double seconds, double cores = 1) {
  return {flops, 0, exactly(seconds), cores, "fp32"};
}

Machine machine() {
  Machine made = parse_machine("1 socket x 4 cores, 1 gpu, pcie 20 GB/s");
  made.sockets[0].model = "a processor";
  made.gpus[0].model = "a GPU";
  return made;
}

RuntimeOptions simulated(Calibration calibration, Machine on = machine()) {
  RuntimeOptions options;
  options.machine = std::move(on);
  options.simulate = true;
  options.data = SimulatedData::None;
  options.emulated = EmulatedOptions{};
  options.serial = false;
  options.precision = Precision::Fp32;
  options.calibration = std::make_shared<Calibration>(std::move(calibration));
  return options;
}

Calibration empty() {
  Calibration made;
  made.submission_ns = exactly(1000);
  made.notice_ns = exactly(7000);
  return made;
}

// Nanoseconds from the program's view until what it submitted is done.
template <class Submit>
double ns_of(const Runtime& rt, Submit submit) {
  rt.wait_idle();
  const auto start = rt.now();
  submit().wait();
  return static_cast<double>((rt.now() - start).count());
}

Tensor<float> ready(const Runtime& rt, const Device& device, std::int64_t elements = 1) {
  auto x = device.tensor<float>({elements});
  device.submit(kSet, out(x)).wait();
  rt.wait_idle();
  return x;
}

Link& pcie(Machine& machine) {
  return *std::find_if(machine.links.begin(), machine.links.end(),
                       [](const Link& link) { return link.kind == LinkKind::Pcie; });
}

}  // namespace

TEST_CASE("an op on a measured GPU takes submission, launch, gap, itself and notice",
          "[calibrated]") {
  Calibration calibration = empty();
  calibration.devices.push_back(device("a GPU", true));
  calibration.devices[0].kernels["work"] = {flops(1e6, 1e-4), flops(1e8, 1e-3)};
  Runtime rt(simulated(calibration));
  const auto x = ready(rt, rt.gpu(0));
  const auto work = [&](double amount) {
    return ns_of(rt, [&] { return rt.gpu(0).submit(kWork, amount, inout(x)); });
  };
  const double beside = 1000 + 2000 + 500 + 7000;
  CHECK(work(1e6) == Approx(beside + 1e5).margin(2));
  CHECK(work(1e8) == Approx(beside + 1e6).margin(2));
  CHECK(work(1e7) == Approx(beside + 1e6 / std::sqrt(10)).margin(2));
  CHECK(work(1e9) == Approx(beside + 1e7).margin(2));
}

TEST_CASE("ops in a chain on a measured GPU have the gap between them", "[calibrated]") {
  Calibration calibration = empty();
  calibration.devices.push_back(device("a GPU", true));
  calibration.devices[0].kernels["work"] = {flops(1e6, 1e-4)};
  Runtime rt(simulated(calibration));
  const auto x = ready(rt, rt.gpu(0));
  const double took = ns_of(rt, [&] {
    Future last;
    for (int i = 0; i < 10; ++i) last = rt.gpu(0).submit(kWork, 1e6, inout(x));
    return last;
  });
  CHECK(took == Approx(1000 + 2000 + 10 * (500 + 1e5) + 7000).margin(20));
}

TEST_CASE("a kernel that was not measured takes the best rate of those that were", "[calibrated]") {
  Calibration calibration = empty();
  calibration.devices.push_back(device("a GPU", true));
  calibration.devices[0].kernels["work"] = {flops(1e6, 1e-4), flops(1e8, 1e-3)};  // 1e11 at best
  calibration.devices[0].kernels["fill"] = {{0, 1e3, exactly(1e-9), 1, "fp32"},   // from a cache
                                            {0, 1e9, exactly(1e-2), 1, "fp32"}};
  Runtime rt(simulated(calibration));
  const auto x = ready(rt, rt.gpu(0));
  const double beside = 1000 + 2000 + 500 + 7000;
  CHECK(ns_of(rt, [&] { return rt.gpu(0).submit(kOther, 1e9, inout(x)); }) ==
        Approx(beside + 1e7).margin(2));
  CHECK(ns_of(rt, [&] { return rt.gpu(0).submit(kMove, 1e9, inout(x)); }) ==
        Approx(beside + 1e7).margin(2));
}

TEST_CASE("an op on a measured socket takes what it took with as many cores", "[calibrated]") {
  Calibration calibration = empty();
  calibration.devices.push_back(device("a processor", false));
  calibration.devices[0].kernels["work"] = {flops(1e6, 1e-3, 4)};
  calibration.devices[0].kernels["other"] = {flops(1e6, 1e-3, 1)};
  Runtime rt(simulated(calibration));
  const auto x = ready(rt, rt.socket(0)), y = ready(rt, rt.socket(0));
  const auto both = [&](const auto& kernel) {
    return ns_of(rt, [&] {
      return when_all(
          {rt.socket(0).submit(kernel, 1e6, inout(x)), rt.socket(0).submit(kernel, 1e6, inout(y))});
    });
  };
  const double beside = 1000 + 2000 + 500 + 7000;
  CHECK(ns_of(rt, [&] { return rt.socket(0).submit(kWork, 1e6, inout(x)); }) ==
        Approx(beside + 1e6).margin(2));
  // All four cores are wanted twice; one each is not.
  CHECK(both(kWork) == Approx(beside + 2e6).margin(2000));
  CHECK(both(kOther) == Approx(beside + 1e6).margin(2000));
}

TEST_CASE("products are looked up in the runtime's precision", "[calibrated]") {
  Calibration calibration = empty();
  calibration.devices.push_back(device("a GPU", true));
  Calibration::Point point = flops(2e6, 1e-3);  // 100 x 100 x 100
  calibration.devices[0].kernels["matmul"].push_back(point);
  point.precision = "bf16";
  point.seconds = exactly(1e-4);
  calibration.devices[0].kernels["matmul"].push_back(point);
  const auto took = [&](Precision precision) {
    RuntimeOptions options = simulated(calibration);
    options.precision = precision;
    Runtime rt(options);
    auto x = rt.gpu(0).tensor<float>({100, 100});
    rt.gpu(0).submit(kSet, out(x)).wait();
    return ns_of(rt, [&] { return rt.gpu(0).matmul(x, x).future(); });
  };
  const double beside = 1000 + 2000 + 500 + 7000;
  CHECK(took(Precision::Fp32) == Approx(beside + 1e6).margin(2));
  CHECK(took(Precision::Bf16) == Approx(beside + 1e5).margin(2));
}

TEST_CASE("links of the same kind, width and generation get what was measured", "[calibrated]") {
  Machine on = machine();
  const Link& own = pcie(on);
  const bool from_gpu = own.a.kind == NodeKind::Gpu;
  Calibration calibration = empty();
  Calibration::Link link{LinkKind::Pcie, own.width, own.generation, SocketId{3},
                         GpuId{5},       false,     exactly(10e9),  exactly(5000)};
  calibration.links.push_back(link);
  std::swap(link.from, link.to);
  link.bytes_per_second = exactly(8e9);
  calibration.links.push_back(link);

  Machine changed = with_calibrated_links(on, calibration);
  CHECK(pcie(changed).bytes_per_second[from_gpu ? 1 : 0] == 10e9);
  CHECK(pcie(changed).bytes_per_second[from_gpu ? 0 : 1] == 8e9);
  CHECK(pcie(changed).latency.count() == 5000);
  CHECK(pcie(changed).provenance == Provenance::Measured);

  Runtime rt(simulated(calibration, on));
  const auto x = ready(rt, rt.gpu(0), 1 << 20);
  const double took = ns_of(rt, [&] { return x.to_host().future(); });
  CHECK(took == Approx(1e9 * (4 << 20) / 8e9).epsilon(0.05));

  SECTION("but not those that are measured themselves") {
    pcie(on).provenance = Provenance::Measured;
    CHECK(with_calibrated_links(on, calibration) == on);
  }
  SECTION("nor wider ones, other generations and other kinds") {
    Machine wider = on, newer = on, other = on;
    pcie(wider).width = own.width + 1;
    pcie(newer).generation = own.generation + 1;
    pcie(other).kind = LinkKind::C2c;
    CHECK(with_calibrated_links(wider, calibration) == wider);
    CHECK(with_calibrated_links(newer, calibration) == newer);
    CHECK(with_calibrated_links(other, calibration) == other);
  }
  SECTION("nor links of emulated GPUs what real ones have") {
    on.gpus[0].model = "emulated";
    CHECK(with_calibrated_links(on, calibration) == on);
  }
}

TEST_CASE("a bus to a socket of a measured model has its memory's rates", "[calibrated]") {
  Calibration calibration = empty();
  calibration.memories.push_back({"a processor", exactly(30e9), exactly(15e9), exactly(80)});
  const auto bus = [&](Machine on) {
    const Machine changed = with_calibrated_links(std::move(on), calibration);
    return *std::find_if(changed.links.begin(), changed.links.end(), [](const Link& link) {
      return link.kind == LinkKind::Bus && link.a.kind == NodeKind::Memory;
    });
  };
  CHECK(bus(machine()).bytes_per_second[0] == 30e9);
  CHECK(bus(machine()).bytes_per_second[1] == 15e9);
  CHECK(bus(machine()).latency.count() == 80);
  Machine another = machine();
  another.sockets[0].model = "another processor";
  CHECK(bus(another).provenance != Provenance::Measured);
}

TEST_CASE("devices that were not measured are named", "[calibrated]") {
  Calibration calibration = empty();
  calibration.devices.push_back(device("a GPU", true));
  CHECK(models_not_in(calibration, machine(), true) == std::vector<std::string>{"a processor"});
  calibration.devices[0].is_gpu = false;
  CHECK(models_not_in(calibration, machine(), true) ==
        std::vector<std::string>{"a processor", "a GPU"});
  CHECK(models_not_in(calibration, machine(), false) == std::vector<std::string>{"a processor"});
}

TEST_CASE("a runtime in real time refuses a calibration", "[calibrated]") {
  RuntimeOptions options = simulated(empty());
  options.simulate = false;
  CHECK(has(thrown<DeviceError>([&] { Runtime rt(options); }), "only simulated devices use it"));
}
