#include <algorithm>
#include <memory>
#include <stdexcept>

#include "apps/bench/gpu_ops.hpp"
#include "framework/builtin.hpp"

namespace weft::bench {
namespace {

constexpr std::uint32_t kChains = 16;

// An op on the host between two on a GPU, which counts itself.
const Kernel<std::uint32_t*>& seen() {
  static const Kernel<std::uint32_t*> kernel =
      Kernel("seen").cpu([](Cpu&, std::uint32_t* count) { ++*count; });
  return kernel;
}

// The same, and counts only if it sees what the GPU wrote last.
const Kernel<float, std::uint32_t*, In<float>>& read_kernel() {
  static const Kernel<float, std::uint32_t*, In<float>> kernel = Kernel("read").cpu(
      [](Cpu&, float wanted, std::uint32_t* count, In<float> x) { *count += x[0] == wanted; });
  return kernel;
}

// A number for op i that a float holds exactly.
float value_of(std::uint32_t i) {
  return static_cast<float>(i % (1u << 24));
}

void expect(const std::string& name, const Tensor<float>& tensor, float wanted) {
  const auto values = tensor.to_host();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] == wanted))
      throw std::runtime_error(name + ": the last op left " + std::to_string(values[i]) + ", not " +
                               std::to_string(wanted));
}

Tensor<float> zeros(const Runtime& runtime, const Device& device, std::int64_t elements) {
  return runtime.zeros({elements}, device);
}

GpuOpCase chain(const Runtime& runtime, std::uint32_t ops, std::int64_t elements,
                const std::string& size) {
  const Device gpu = runtime.gpu(0);
  const auto x = zeros(runtime, gpu, elements);
  const std::string name = "chain_" + size;
  return {name,
          "each op on gpu0 overwrites the " + size + " of the one before",
          "op",
          1,
          ops,
          [=] {
            Future last;
            for (std::uint32_t i = 0; i < ops; ++i)
              last = gpu.submit(kernels::fill(), value_of(i), out(x));
            return last;
          },
          [=] { expect(name, x, value_of(ops - 1)); }};
}

GpuOpCase chains(const Runtime& runtime, std::uint32_t ops) {
  const Device gpu = runtime.gpu(0);
  std::vector<Tensor<float>> x;
  for (std::uint32_t c = 0; c < kChains; ++c) x.push_back(zeros(runtime, gpu, 1));
  const std::uint32_t each = std::max(ops / kChains, 1u);
  return {"chains_16",
          "16 chains of their own on gpu0, submitted in turn",
          "op",
          1,
          each * kChains,
          [=] {
            std::vector<Future> last(kChains);
            for (std::uint32_t i = 0; i < each; ++i)
              for (std::uint32_t c = 0; c < kChains; ++c)
                last[c] = gpu.submit(kernels::fill(), value_of(i), out(x[c]));
            return when_all(std::span<const Future>(last));
          },
          [=] {
            for (const auto& tensor : x) expect("chains_16", tensor, value_of(each - 1));
          }};
}

GpuOpCase cross_gpu(const Runtime& runtime, std::uint32_t ops) {
  const Device gpus[] = {runtime.gpu(0), runtime.gpu(1)};
  const Tensor<float> x[] = {zeros(runtime, gpus[0], 1), zeros(runtime, gpus[1], 1)};
  const std::uint32_t hops = std::max(ops / 2, 1u) * 2;
  return {"cross_gpu",
          "ops on gpu0 and gpu1 in turn, each after the one before, no data between them",
          "hop",
          2,
          hops,
          [gpu0 = gpus[0], gpu1 = gpus[1], x0 = x[0], x1 = x[1], hops] {
            Future last;
            for (std::uint32_t i = 0; i < hops; i += 2) {
              last = gpu0.submit(kernels::fill(), value_of(i), out(x0), after(last));
              last = gpu1.submit(kernels::fill(), value_of(i + 1), out(x1), after(last));
            }
            return last;
          },
          [x0 = x[0], x1 = x[1], hops] {
            expect("cross_gpu", x0, value_of(hops - 2));
            expect("cross_gpu", x1, value_of(hops - 1));
          }};
}

void expect_count(const std::string& name, const std::uint32_t& count, std::uint32_t wanted) {
  if (count != wanted)
    throw std::runtime_error(name + ": the host's op saw " + std::to_string(count) + " of " +
                             std::to_string(wanted) + " rounds");
}

GpuOpCase host_round(const Runtime& runtime, std::uint32_t rounds) {
  const Device gpu = runtime.gpu(0), host = runtime.socket(0);
  const auto x = zeros(runtime, gpu, 1);
  const auto count = std::make_shared<std::uint32_t>(0);
  return {"host_round",
          "an op on gpu0, one on socket0 after it, the next on gpu0 after that",
          "round",
          1,
          rounds,
          [=] {
            *count = 0;
            Future last;
            for (std::uint32_t i = 0; i < rounds; ++i) {
              last = gpu.submit(kernels::fill(), value_of(i), out(x), after(last));
              last = host.submit(seen(), count.get(), after(last));
            }
            return last;
          },
          [=] {
            expect_count("host_round", *count, rounds);
            expect("host_round", x, value_of(rounds - 1));
          }};
}

GpuOpCase host_read(const Runtime& runtime, std::uint32_t rounds) {
  const Device gpu = runtime.gpu(0), host = runtime.socket(0);
  const auto x = zeros(runtime, gpu, 1);
  const auto count = std::make_shared<std::uint32_t>(0);
  return {"host_read",
          "the same, and the op on socket0 reads the 4 B that gpu0 wrote",
          "round",
          1,
          rounds,
          [=] {
            *count = 0;
            Future last;
            for (std::uint32_t i = 0; i < rounds; ++i) {
              gpu.submit(kernels::fill(), value_of(i), out(x), after(last));
              last = host.submit(read_kernel(), value_of(i), count.get(), in(x));
            }
            return last;
          },
          [=] { expect_count("host_read", *count, rounds); }};
}

GpuOpCase host_wait(const Runtime& runtime, std::uint32_t rounds) {
  const Device gpu = runtime.gpu(0);
  const auto x = zeros(runtime, gpu, 1);
  return {"host_wait",
          "an op on gpu0, the program waits for it, then submits the next",
          "round",
          1,
          rounds,
          [=] {
            for (std::uint32_t i = 0; i < rounds; ++i)
              gpu.submit(kernels::fill(), value_of(i), out(x)).wait();
            return Future();
          },
          [=] { expect("host_wait", x, value_of(rounds - 1)); }};
}

}  // namespace

std::vector<GpuOpCase> gpu_op_cases(const Runtime& runtime, std::uint32_t ops) {
  const std::uint32_t rounds = std::max(ops / 4, 1u);
  std::vector<GpuOpCase> cases{chain(runtime, ops, 1, "4B"), chain(runtime, ops, 256, "1KB"),
                               chains(runtime, ops)};
  if (runtime.gpu_count() > 1) cases.push_back(cross_gpu(runtime, ops));
  cases.push_back(host_round(runtime, rounds));
  cases.push_back(host_read(runtime, rounds));
  cases.push_back(host_wait(runtime, rounds));
  return cases;
}

}  // namespace weft::bench
