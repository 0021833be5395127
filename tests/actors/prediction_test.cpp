// What simulated machines predict for what others measured on real ones. In virtual time: the same
// in every run.
#include <algorithm>
#include <cstdio>
#include <string>

#include "actors/collective.hpp"
#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "tests/actors/published_figures.hpp"
#include "topology/shipped.hpp"

using namespace weft;

namespace {

constexpr std::int64_t kElements = 64 << 20;  // 256 MiB: large, as in the measurements
constexpr double kBytes = 4.0 * kElements;

const auto kTouch =
    Kernel("touch").cpu([](Cpu&, Out<float>) {}).cost([](Out<float>) { return Cost{}; });

RuntimeOptions options_for(const std::string& machine) {
  RuntimeOptions options;
  options.machine = machine_from(machine);
  options.simulate = true;
  options.data = SimulatedData::None;
  options.relay = false;  // each GPU's own link, as the measuring programs do it
  options.serial = false;
  return options;
}

Device device_at(const Runtime& rt, Node node) {
  if (node.kind == NodeKind::Gpu) return rt.gpu(node.index);
  for (std::size_t s = 0; s < rt.socket_count(); ++s) {
    const auto& near = rt.machine().memories[node.index].near;
    if (std::find(near.begin(), near.end(), SocketId{static_cast<std::uint32_t>(s)}) != near.end())
      return rt.socket(s);
  }
  return rt.socket(0);
}

template <class Submit>
double seconds_of(const Runtime& rt, Submit submit) {
  rt.wait_idle();
  const auto start = rt.now();
  submit();
  rt.wait_idle();
  return std::chrono::duration<double>(rt.now() - start).count();
}

Tensor<float> written(const Device& on) {
  auto made = on.tensor<float>({kElements});
  on.submit(kTouch, out(made));
  return made;
}

const auto kUse = Kernel("use").cpu([](Cpu&, In<float>) {}).cost([](In<float>) { return Cost{}; });

double predicted(const PublishedFigure& figure) {
  Runtime rt(options_for(figure.machine));
  if (figure.what == Measured::AllReduce) {
    std::vector<Device> gpus;
    std::vector<Tensor<float>> data;
    for (std::size_t g = 0; g < figure.gpus; ++g) {
      gpus.push_back(rt.gpu(g));
      data.push_back(written(gpus.back()));
    }
    auto group = rt.collective(gpus);
    group.set_algorithm(CollectiveAlgorithm::Ring);
    const double n = figure.gpus;
    return 2 * (n - 1) / n * kBytes / seconds_of(rt, [&] { group.all_reduce(data); });
  }
  const Device from = device_at(rt, figure.from), to = device_at(rt, figure.to);
  const bool both = figure.what == Measured::PeerCopyBothWays;
  const auto there = written(from), back = written(to);
  const double seconds = seconds_of(rt, [&] {
    to.submit(kUse, in(there));
    if (both) from.submit(kUse, in(back));
  });
  return (both ? 2 : 1) * kBytes / seconds;
}

const char* name_of(Measured what) {
  switch (what) {
    case Measured::HostToGpu:
      return "host to GPU";
    case Measured::GpuToHost:
      return "GPU to host";
    case Measured::PeerCopy:
      return "GPU to GPU";
    case Measured::PeerCopyBothWays:
      return "GPU to GPU, both ways";
    case Measured::AllReduce:
      return "all-reduce";
    case Measured::AllReduceSwitch:
      return "all-reduce in the switch";
  }
  return "?";
}

}  // namespace

TEST_CASE("predictions for machines that others measured are within 20 %", "[actors][simulated]") {
  std::printf("%-12s %-24s %-14s %9s %9s %7s\n", "machine", "what", "between", "measured",
              "predicted", "error");
  for (const PublishedFigure& figure : kPublishedFigures) {
    const std::string between = figure.what == Measured::AllReduce
                                    ? std::to_string(figure.gpus) + " GPUs"
                                    : to_string(figure.from) + ", " + to_string(figure.to);
    if (figure.what == Measured::AllReduceSwitch) {
      std::printf("%-12s %-24s left out: sums made in the switches are not modelled\n",
                  figure.machine, name_of(figure.what));
      continue;
    }
    const double rate = predicted(figure);
    const double error = rate / figure.bytes_per_second - 1;
    std::printf("%-12s %-24s %-14s %7.1f G %7.1f G %+5.1f %%\n", figure.machine,
                name_of(figure.what), between.c_str(), 1e-9 * figure.bytes_per_second, 1e-9 * rate,
                100 * error);
    INFO(figure.machine << ", " << name_of(figure.what) << ", " << between << ", measured by "
                        << figure.source);
    CHECK(std::abs(error) <= 0.2);
  }
}
