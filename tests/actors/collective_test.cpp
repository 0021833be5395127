#include "actors/collective.hpp"

#include <cmath>
#include <weft/weft.hpp>

#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/shipped.hpp"

using namespace weft;

namespace {

std::vector<Device> members_of(const Runtime& runtime, bool with_socket) {
  std::vector<Device> members;
  for (std::size_t i = 0; i < runtime.gpu_count(); ++i) members.push_back(runtime.gpu(i));
  if (with_socket) members.push_back(runtime.socket(0));
  return members;
}

RuntimeOptions on(const char* machine) {
  RuntimeOptions options;
  options.machine = parse_machine(machine);
  return options;
}

constexpr const char* kMachines[] = {"1 sockets x 2 cores, 2 gpus",
                                     "2 sockets x 1 cores, 3 gpus, nvlink",
                                     "1 sockets x 1 cores, 4 gpus"};

void check_all(const Runtime& runtime, const Collective& group, std::int64_t size) {
  const auto& members = group.members();
  const std::size_t n = members.size();
  const auto wide = size * static_cast<std::int64_t>(n);
  std::vector<Tensor<float>> data, spread, parts, whole, gathered;
  std::vector<HostArray<float>> before, wide_before;
  for (std::size_t i = 0; i < n; ++i) {
    data.push_back(runtime.uniform({size}, members[i], i));
    spread.push_back(i == 1 % n ? runtime.uniform({size}, members[i], 77)
                                : members[i].tensor<float>({size}));
    whole.push_back(runtime.uniform({wide}, members[i], 100 + i));
    parts.push_back(members[i].tensor<float>({size}));
    gathered.push_back(members[i].tensor<float>({wide}));
    before.push_back(data[i].to_host());
    wide_before.push_back(whole[i].to_host());
  }
  group.all_gather(data, gathered);
  group.all_reduce(data);
  group.broadcast(spread, 1 % n);
  group.reduce_scatter(whole, parts);
  const auto root = spread[1 % n].to_host();
  bool right = true;
  for (std::size_t i = 0; i < n; ++i) {
    const auto sum = data[i].to_host(), same = spread[i].to_host(), part = parts[i].to_host(),
               all = gathered[i].to_host();
    for (std::size_t k = 0; k < static_cast<std::size_t>(size); ++k) {
      double expected = 0, expected_part = 0;
      for (std::size_t j = 0; j < n; ++j) {
        expected += before[j][k];
        expected_part += wide_before[j][i * static_cast<std::size_t>(size) + k];
        right = right && all[j * static_cast<std::size_t>(size) + k] == before[j][k];
      }
      right = right && std::abs(sum[k] - expected) < 1e-5 && same[k] == root[k] &&
              std::abs(part[k] - expected_part) < 1e-5;
    }
  }
  CHECK(right);
}

}  // namespace

TEST_CASE("collectives give the right values with every algorithm, size and group",
          "[collective]") {
  for (const char* machine : kMachines) {
    Runtime runtime(on(machine));
    for (bool with_socket : {false, true}) {
      Collective group = runtime.collective(members_of(runtime, with_socket));
      for (auto algorithm :
           {CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree, CollectiveAlgorithm::Star}) {
        CAPTURE(machine, with_socket, to_string(algorithm));
        group.set_algorithm(algorithm);
        for (std::int64_t size : {0, 1, 5, 1000, 20000}) check_all(runtime, group, size);
      }
    }
  }
  CHECK(live_tensors() == 0);
}

TEST_CASE("members that share a memory take part in collectives", "[collective]") {
  RuntimeOptions options;
  options.machine = machine_from("laptop");  // its GPU works in the processor's memory
  options.gpus = GpuMode::Emulated;
  Runtime runtime(options);
  REQUIRE(runtime.gpu(0).place().memory == runtime.socket(0).place().memory);
  Collective group = runtime.collective(members_of(runtime, true));
  for (auto algorithm :
       {CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree, CollectiveAlgorithm::Star}) {
    CAPTURE(to_string(algorithm));
    group.set_algorithm(algorithm);
    for (std::int64_t size : {1, 1000}) check_all(runtime, group, size);
  }
}

TEST_CASE("a sum is the same to the bit in every run", "[collective]") {
  std::vector<float> first;
  for (int run = 0; run < 3; ++run) {
    Runtime runtime(on("1 sockets x 2 cores, 4 gpus"));
    const Collective group = runtime.collective(members_of(runtime, true));
    std::vector<Tensor<float>> data;
    for (std::size_t i = 0; i < group.members().size(); ++i)
      data.push_back(runtime.uniform({30000}, group.members()[i], i));
    group.all_reduce(data);
    const auto sum = data[2].to_host().to_vector();
    if (run == 0) first = sum;
    CHECK(sum == first);
  }
}

TEST_CASE("overlapping groups used from two threads do not wait in a circle", "[collective]") {
  Runtime runtime(on("1 sockets x 2 cores, 3 gpus"));
  const Collective left = runtime.collective({runtime.gpu(0), runtime.gpu(1)});
  const Collective right = runtime.collective({runtime.gpu(1), runtime.gpu(2)});
  auto work = [&](const Collective& group, std::uint64_t seed) {
    std::vector<Tensor<float>> data;
    for (const Device& member : group.members())
      data.push_back(runtime.uniform({5000}, member, seed++));
    for (int i = 0; i < 50; ++i) group.broadcast(data, static_cast<std::size_t>(i % 2));
    data[0].to_host().wait();
  };
  std::thread other([&] { work(left, 1); });
  work(right, 5);
  other.join();
  runtime.wait_idle();
  CHECK(runtime.in_flight() == 0);
}

TEST_CASE("a fault in one step fails the collective and what depends on it, nothing else",
          "[collective]") {
  RuntimeOptions options = on("1 sockets x 2 cores, 2 gpus");
  options.emulated.emplace();
  std::atomic<bool> armed{false};
  options.emulated->fault = [&](const LaneOp& op) -> std::optional<std::string> {
    if (op.name == "copy" && armed.exchange(false)) return "a cable was pulled";
    return std::nullopt;
  };
  Runtime runtime(options);
  const Collective group = runtime.collective(members_of(runtime, false));
  std::vector<Tensor<float>> data{runtime.uniform({1000}, runtime.gpu(0), 0),
                                  runtime.uniform({1000}, runtime.gpu(1), 1)};
  const auto other = runtime.uniform({10}, runtime.gpu(0), 3);
  runtime.wait_idle();
  armed = true;
  const Future reduced = group.all_reduce(data);
  CHECK(reduced.wait_for(std::chrono::seconds(20)));
  REQUIRE(reduced.has_failed());
  CHECK(reduced.failure()->kind() == FailureKind::Injected);
  CHECK(reduced.failure()->root_message() == "a cable was pulled");
  CHECK_THROWS_AS(data[0].to_host().wait(), OpError);
  CHECK_NOTHROW(other.to_host().wait());
}

TEST_CASE("wrong groups and shapes are refused before anything is sent", "[collective]") {
  Runtime runtime(on("1 sockets x 1 cores, 2 gpus"));
  const Device a = runtime.gpu(0), b = runtime.gpu(1);
  CHECK_THROWS_AS(runtime.collective({}), UsageError);
  CHECK_THROWS_AS(runtime.collective({a, a}), UsageError);
  const Collective group = runtime.collective({a, b});
  const auto x = runtime.zeros({4}, a), y = runtime.zeros({5}, b);
  CHECK_THROWS_AS(group.all_reduce<float>({x}), UsageError);
  CHECK_THROWS_AS(group.all_reduce<float>({x, y}), UsageError);
  CHECK_THROWS_AS(group.broadcast<float>({x, x}, 2), UsageError);
  CHECK_THROWS_AS(group.all_reduce<float>({x, x}), UsageError);
  CHECK_THROWS_AS(group.all_gather<float>({x, runtime.zeros({4}, b)}, {x, y}), UsageError);
}
