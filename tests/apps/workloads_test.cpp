// Each workload on several machines, and with each of its kernels made wrong.
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "actors/runtime.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/tiles.hpp"
#include "apps/workloads/workload.hpp"
#include "framework/op.hpp"
#include "framework/tensor_state.hpp"
#include "framework/trace.hpp"
#include "support/catch.hpp"
#include "support/leaks.hpp"
#include "support/sanitized.hpp"
#include "support/thrown.hpp"
#include "topology/discover.hpp"
#include "topology/shipped.hpp"

namespace weft::workloads {
namespace {

// A runtime on `gpus` emulated GPUs, or on a socket alone.
std::unique_ptr<Runtime> runtime_with(std::uint32_t gpus) {
  RuntimeOptions options;
  options.machine = parse_machine("1 sockets x 2 cores, memory 4 GB, gpu memory 1 GB" +
                                  (gpus ? ", " + std::to_string(gpus) + " gpus" : ""));
  options.gpus = gpus ? GpuMode::Emulated : GpuMode::None;
  options.trace = true;
  return std::make_unique<Runtime>(std::move(options));
}

Context context_of(const Runtime& runtime, const Workload& workload) {
  std::vector<Device> devices;
  for (std::size_t g = 0; g < runtime.gpu_count(); ++g) devices.push_back(runtime.gpu(g));
  if (devices.empty()) devices.push_back(runtime.socket(0));
  return {runtime, devices, Values(workload.parameters)};
}

/// While it lives, what a kernel leaves in its first output is wrong: each element, a number of
/// four or eight bytes, has the sign and exponent of some 10^4 or more.
class Sabotage {
 public:
  explicit Sabotage(const std::shared_ptr<const KernelCode>& code)
      : code_(std::const_pointer_cast<KernelCode>(code)), right_(code_->cpu) {
    code_->cpu = [this](Cpu& cpu, Op& op) {
      right_(cpu, op);
      for (std::size_t i = 0; i < op.arg_count; ++i) {
        if (op.args()[i].access() == Access::In) continue;
        const Replica& replica = *op.args()[i].replica();
        const std::size_t each = replica.tensor->element_bytes;
        for (std::size_t at = each - 1; at < replica.bytes; at += each)
          static_cast<unsigned char*>(replica.data)[at] = 0x47;
        return;
      }
    };
  }
  ~Sabotage() { code_->cpu = right_; }
  Sabotage(const Sabotage&) = delete;
  Sabotage& operator=(const Sabotage&) = delete;

 private:
  std::shared_ptr<KernelCode> code_;
  std::function<void(Cpu&, Op&)> right_;
};

// An op is counted for a moment after it has settled: until its actor has put it away.
bool is_at_rest_soon(const Runtime& runtime) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (runtime.in_flight() != 0 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  return runtime.in_flight() == 0;
}

TEST_CASE("every workload is right on a socket and on emulated GPUs", "[apps]") {
  using Counts = std::vector<std::uint32_t>;
  for (const std::uint32_t gpus : test::kUnderTsan ? Counts{0, 2} : Counts{0, 1, 2, 3}) {
    for (const Workload& workload : all()) {
      INFO(workload.name << " on " << gpus << " GPUs");
      const test::Leaks leaks;
      {
        const auto runtime = runtime_with(gpus);
        const Result result = workload.run(context_of(*runtime, workload));
        CHECK(result.seconds > 0);
        CHECK(result.ops > 0);
        CHECK(result.flops + result.bytes + (gpus < 2 ? 1 : 0) > 0);
        CHECK_THAT(result.check, contains_text("checked: "));
        CHECK(is_at_rest_soon(*runtime));
      }
      leaks.check();
    }
  }
}

TEST_CASE("a socket and GPUs together are right too", "[apps]") {
  const auto runtime = runtime_with(2);
  for (const Workload& workload : all()) {
    INFO(workload.name);
    Context context = context_of(*runtime, workload);
    context.devices.insert(context.devices.begin(), runtime->socket(0));
    CHECK_THAT(workload.run(context).check, contains_text("checked: "));
  }
}

TEST_CASE("a GPU in its processor's memory is right too", "[apps]") {
  RuntimeOptions options;
  options.machine = machine_from("laptop");
  options.gpus = GpuMode::Emulated;
  const Runtime runtime(std::move(options));
  for (const Workload& workload : all()) {
    INFO(workload.name);
    const Context context{runtime, runtime.devices(), Values(workload.parameters)};
    CHECK_THAT(workload.run(context).check, contains_text("checked: "));
  }
}

TEST_CASE("tiles are right wherever a policy puts their ops", "[apps]") {
  const auto runtime = runtime_with(3);
  for (const char* name : {"gemm", "cholesky"})
    for (const std::string& placement : placement_parameter().words) {
      INFO(name << " " << placement);
      Context context = context_of(*runtime, find(name));
      context.values.set("n", "100");
      context.values.set("tile", "24");
      context.values.set("placement", placement);
      CHECK_THAT(find(name).run(context).check, contains_text("checked: "));
    }
}

// What the program reads last of a workload: the same numbers whether its ops came from a plan.
TEST_CASE("a replayed workload computes what a submitted one does", "[apps]") {
  const std::map<std::string, std::vector<std::pair<std::string, std::string>>> sizes{
      {"cholesky", {{"n", "101"}, {"tile", "24"}}}, {"stencil", {{"n", "31"}, {"steps", "7"}}}};
  for (const std::uint32_t gpus : {0u, 3u}) {
    const auto runtime = runtime_with(gpus);
    for (const auto& [name, values] : sizes) {
      Context context = context_of(*runtime, find(name));
      for (const auto& [parameter, value] : values) context.values.set(parameter, value);
      const Result submitted = find(name).run(context);
      CHECK(submitted.digest != 0);
      context.values.set("plan", "1");
      for (const char* steps : {"1", "7", "8"}) {
        if (name == "stencil") context.values.set("steps", steps);
        INFO(name << " on " << gpus << " GPUs, " << context.values.to_string());
        const Result replayed = find(name).run(context);
        CHECK_THAT(replayed.check, contains_text("checked: "));
        CHECK(is_at_rest_soon(*runtime));
        if (name == "cholesky" || std::string(steps) == "7") {
          CHECK(replayed.ops == submitted.ops);
          CHECK(replayed.digest == submitted.digest);
        }
      }
    }
  }
}

TEST_CASE("sizes that do not divide are right", "[apps]") {
  const std::map<std::string, std::vector<std::pair<std::string, std::string>>> odd{
      {"cholesky", {{"n", "101"}, {"tile", "24"}}},
      {"gemm", {{"n", "70"}, {"tile", "64"}}},
      {"stencil", {{"n", "31"}, {"steps", "7"}}},
      {"fft", {{"log2_n", "5"}, {"log2_blocks", "5"}}},
      {"layers", {{"layers", "1"}, {"width", "3"}, {"elements", "1"}}},
      {"allreduce", {{"elements", "5"}}},
      {"alltoall", {{"elements", "1"}}},
      {"mlp", {{"samples", "77"}, {"batch", "32"}, {"input", "resident"}}},
      {"run-and-copy", {{"n", "17"}, {"kernels", "3"}, {"to", "pageable"}}},
      {"parameter-server", {{"elements", "3"}, {"rounds", "1"}, {"repeat", "1"}}}};
  const auto runtime = runtime_with(3);
  for (const auto& [name, values] : odd) {
    INFO(name);
    Context context = context_of(*runtime, find(name));
    for (const auto& [parameter, value] : values) context.values.set(parameter, value);
    CHECK_THAT(find(name).run(context).check, contains_text("checked: "));
  }
}

TEST_CASE("a wrong kernel makes the check fail", "[apps]") {
  const auto runtime = runtime_with(2);
  for (const Workload& workload : all()) {
    REQUIRE(!workload.kernels.empty());
    for (const auto& kernel : workload.kernels) {
      INFO(workload.name << ", kernel " << kernel->name);
      {
        const Sabotage sabotage(kernel);
        // A factorisation may notice by itself that its matrix is not what it should be.
        CHECK_THROWS_AS(workload.run(context_of(*runtime, workload)), std::runtime_error);
        runtime->wait_idle();
      }
      CHECK_NOTHROW(workload.run(context_of(*runtime, workload)));
    }
  }
}

TEST_CASE("every kernel has a cpu variant and a cost", "[apps]") {
  for (const Workload& workload : all())
    for (const auto& kernel : workload.kernels) {
      INFO(workload.name << ", kernel " << kernel->name);
      CHECK(kernel->cpu);
      CHECK(kernel->cost);
    }
}

TEST_CASE("the measured part alone is recorded", "[apps]") {
  const auto runtime = runtime_with(2);
  const Workload& workload = find("gemm");
  const Result result = workload.run(context_of(*runtime, workload));
  std::uint64_t kernels = 0;
  for (const auto& span : runtime->tracer()->collect().spans) {
    CHECK(span.name != "random_tile");
    kernels += span.kind == SpanKind::Kernel;
  }
  CHECK(kernels >= result.ops);
}

TEST_CASE("a random layered graph depends on its seed alone", "[apps]") {
  const auto runtime = runtime_with(2);
  const Workload& workload = find("layers");
  Context context = context_of(*runtime, workload);
  const auto ops = workload.run(context).ops;
  CHECK(workload.run(context).ops == ops);
  context.devices.resize(1, context.devices.front());
  CHECK(workload.run(context).ops == ops);
  context.values.set("seed", "2");
  CHECK(workload.run(context).ops != ops);
}

TEST_CASE("values that cannot be are refused", "[apps]") {
  using test::thrown;
  Values values(find("gemm").parameters);
  CHECK(thrown([&] { values.set("n", "0"); }) == "n: \"0\" is not a whole number from 1 to 65536");
  CHECK_THAT(thrown([&] { values.set("n", "12x"); }), contains_text("\"12x\" is not a whole"));
  CHECK_THAT(thrown([&] { values.set("m", "1"); }), contains_text("there are n, tile"));
  CHECK_THAT(thrown([&] { Values(find("mlp").parameters).set("data", "none"); }),
             contains_text("one of synthetic, fashion-mnist"));
  CHECK_THAT(thrown([] { find("gem"); }), contains_text("\"gem\" is no workload; there are all"));
}

TEST_CASE("values that do not fit together are refused", "[apps]") {
  const auto runtime = runtime_with(3);
  Context stencil = context_of(*runtime, find("stencil"));
  stencil.values.set("n", "2");
  CHECK_THAT(test::thrown([&] { find("stencil").run(stencil); }),
             contains_text("n = 2 has no row for each of 3 devices"));
  Context fft = context_of(*runtime, find("fft"));
  fft.values.set("log2_n", "3");
  fft.values.set("log2_blocks", "4");
  CHECK_THAT(test::thrown([&] { find("fft").run(fft); }), contains_text("is more than log2_n"));
}

}  // namespace
}  // namespace weft::workloads
