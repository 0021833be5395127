#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "tests/actors/cuda/host_stream.hpp"
#include "tests/actors/cuda/through_host.hpp"

using namespace weft;
using namespace weft::test;

namespace {

bool has_no_device() {
  if (cuda_device_count() > 0) return false;
  WARN("skipped: there is no CUDA device");
  return true;
}

std::string output_of(const std::string& command, int& status) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 512> buffer{};
  while (pipe && std::fgets(buffer.data(), buffer.size(), pipe)) text += buffer.data();
  status = pipe ? pclose(pipe) : -1;
  return text;
}

}  // namespace

TEST_CASE("a kernel with an illegal access loses its device, and the rest goes on", "[gpu]") {
  if (has_no_device()) return;
  int status = 0;
  const std::string text = output_of(WEFT_LOST_CHILD, status);
  INFO(text);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (const char* line : {"wild: device lost\n", "dependent: device lost\n",
                           "its copy: device lost\n", "later: device lost\n",
                           "neighbour: settled\n", "elsewhere: done\n", "value: 104\n", "end\n"}) {
    INFO("wanted: " << line);
    CHECK(has(text, line));
  }
  CHECK(has(text, "gpu0 is lost: an illegal memory access was encountered"));
}

TEST_CASE("a device that has less memory than its budget says so in the op's future", "[gpu]") {
  if (has_no_device()) return;
  const auto nothing = on_all(Kernel("nothing").cpu([](Cpu&, Out<std::uint8_t>) {}));
  RuntimeOptions options;
  options.gpus = GpuMode::Cuda;
  options.gpu_memory_bytes = std::size_t{1} << 44;
  Runtime rt(options);
  auto large = rt.tensor<std::uint8_t>({std::int64_t{1} << 42});
  const Future write = rt.gpu(0).submit(nothing, out(large));
  CHECK(has(thrown<OpError>([&] { write.wait(); }), "nothing on gpu0: out of memory: wanted"));
  auto small = rt.zeros({1000}, rt.gpu(0));
  CHECK(small.to_host()[999] == 0.0f);
}

TEST_CASE("a launch that CUDA refuses fails its op alone", "[gpu]") {
  if (has_no_device()) return;
  const auto refused =
      Kernel("refused").cuda([](Cuda& gpu, InOut<float>) { launch_too_large(gpu.stream()); });
  RuntimeOptions options;
  options.gpus = GpuMode::Cuda;
  Runtime rt(options);
  auto x = rt.zeros({1000}, rt.gpu(0)), y = rt.zeros({1000}, rt.gpu(0));
  const Future failed = rt.gpu(0).submit(refused, inout(x));
  CHECK(has(thrown<OpError>([&] { failed.wait(); }), "refused on gpu0: device error: "));
  CHECK(y.to_host()[999] == 0.0f);
  CHECK(rt.zeros({10}, rt.gpu(0)).to_host()[9] == 0.0f);
}
