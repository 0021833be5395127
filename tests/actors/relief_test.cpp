#include <map>
#include <mutex>
#include <numeric>

#include "actors/runtime.hpp"
#include "framework/fabric.hpp"
#include "support/catch.hpp"
#include "topology/discover.hpp"

using namespace weft;

namespace {

const auto kIota = Kernel("iota").cpu([](Cpu& cpu, int first, Out<int> x) {
  cpu.parallel_for(x.size(), [&](std::size_t i) { x[i] = first + static_cast<int>(i); });
});

// What each lane has moved.
class Moved {
 public:
  std::optional<std::string> operator()(const LaneOp& op) {
    std::lock_guard lock(mutex_);
    bytes_[op.lane] += op.bytes;
    return std::nullopt;
  }
  [[nodiscard]] std::size_t on(const std::string& link) const {
    std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [lane, bytes] : bytes_)
      if (lane.rfind(link + " ", 0) == 0) sum += bytes;
    return sum;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t> bytes_;
};

constexpr std::int64_t kElements = 12 << 20;  // 48 MiB
constexpr std::size_t kBytes = 4 * kElements;

RuntimeOptions options_for(const std::string& machine, const std::shared_ptr<Moved>& moved) {
  RuntimeOptions options;
  options.machine = parse_machine(machine);
  options.gpus = GpuMode::Emulated;
  options.emulated = EmulatedOptions{};
  options.emulated->link_bytes_per_second = 2e9;
  options.emulated->poison = false;
  options.emulated->fault = [moved](const LaneOp& op) { return (*moved)(op); };
  options.serial = false;
  options.pin = false;
  return options;
}

// The link that the GPU's copies to the host are sent to.
std::string link_of(const Runtime& rt, std::uint32_t gpu) {
  const auto& machine = rt.machine();
  for (std::uint32_t l = 0; l < machine.links.size(); ++l)
    if (machine.links[l].kind == LinkKind::Pcie &&
        (machine.links[l].a == Node(GpuId{gpu}) || machine.links[l].b == Node(GpuId{gpu})))
      return "link" + std::to_string(l);
  return "none";
}

void copy_and_check(const Runtime& rt, std::uint32_t gpu, int count) {
  std::vector<Tensor<int>> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(rt.tensor<int>({kElements}));
    rt.gpu(gpu).submit(kIota, 100 * i, out(made.back()));
  }
  rt.wait_idle();
  std::vector<HostArray<int>> hosts;
  for (const auto& tensor : made) hosts.push_back(tensor.to_host());
  for (int i = 0; i < count; ++i) {
    const auto values = hosts[static_cast<std::size_t>(i)].span();
    for (std::size_t at :
         {std::size_t{0}, values.size() / 2 - 1, values.size() / 2, values.size() - 1})
      REQUIRE(values[at] == 100 * i + static_cast<int>(at));
  }
}

}  // namespace

TEST_CASE("an idle link takes copies of a GPU that has more than its own can carry", "[actors]") {
  const auto moved = std::make_shared<Moved>();
  const Runtime rt(options_for("1 socket x 1 core, 2 gpus, nvlink", moved));
  copy_and_check(rt, 0, 5);
  const std::size_t own = moved->on(link_of(rt, 0)), other = moved->on(link_of(rt, 1));
  CHECK(own + other == 5 * kBytes);
  CHECK(other >= kBytes / 2);
  CHECK(own >= kBytes);
}

TEST_CASE("without a link between the GPUs every copy takes its own way", "[actors]") {
  const auto moved = std::make_shared<Moved>();
  const Runtime rt(options_for("1 socket x 1 core, 2 gpus", moved));
  copy_and_check(rt, 0, 4);
  CHECK(moved->on(link_of(rt, 0)) == 4 * kBytes);
  CHECK(moved->on(link_of(rt, 1)) == 0);
}

TEST_CASE("without direct copies between GPUs data go through the host, and links do not help",
          "[actors]") {
  const auto moved = std::make_shared<Moved>();
  RuntimeOptions options = options_for("1 socket x 1 core, 2 gpus, nvlink", moved);
  options.p2p = false;
  const Runtime rt(options);
  auto x = rt.tensor<int>({1000});
  rt.gpu(0).submit(kIota, 5, out(x));
  rt.gpu(1).submit(Kernel("touch").cpu([](Cpu&, InOut<int> y) { y[0] += 1; }), inout(x)).wait();
  CHECK(moved->on(link_of(rt, 0)) == 4000);
  CHECK(moved->on(link_of(rt, 1)) == 4000);
  CHECK(x.to_host()[0] == 6);
}

TEST_CASE("a relieved copy that fails fails its reader alone", "[actors]") {
  const auto moved = std::make_shared<Moved>();
  RuntimeOptions options = options_for("1 socket x 1 core, 2 gpus, nvlink", moved);
  auto failed = std::make_shared<std::atomic<int>>(0);
  options.emulated->fault = [moved, failed](const LaneOp& op) -> std::optional<std::string> {
    static_cast<void>((*moved)(op));
    if (op.bytes == 0 || failed->fetch_add(1) != 3) return std::nullopt;
    return "broken on " + op.lane;
  };
  const Runtime rt(options);
  std::vector<HostArray<int>> hosts;
  auto x = rt.tensor<int>({kElements});
  rt.gpu(0).submit(kIota, 7, out(x)).wait();
  for (int i = 0; i < 4; ++i) hosts.push_back(x.to_host());
  int broken = 0;
  for (const auto& host : hosts) {
    try {
      host.wait();
      CHECK(host[kElements - 1] == 7 + static_cast<int>(kElements) - 1);
    } catch (const OpError& error) {
      ++broken;
      CHECK(error.failure().root_message().find("broken on link") == 0);
    }
  }
  CHECK(broken == 1);
}
