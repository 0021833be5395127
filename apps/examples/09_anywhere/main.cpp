// Ops that nobody places by name, a policy of one's own, and a working set that does not fit.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>
#include <weft/weft.hpp>

// The device that takes the least energy for an op. Watts under load, by kind: figures of the data
// sheets of one's own machine belong here.
class LeastEnergy final : public weft::PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "least_energy"; }
  std::size_t choose(std::span<const weft::PlacementOption> options) override {
    std::size_t best = 0;
    for (std::size_t i = 1; i < options.size(); ++i)
      if (joules(options[i]) < joules(options[best])) best = i;
    return best;
  }

 private:
  static double joules(const weft::PlacementOption& option) {
    const bool is_gpu = option.place->kind == weft::DeviceKind::Gpu;
    return option.run * (is_gpu ? 300.0 : 15.0);
  }
};

int main() {
  weft::RuntimeOptions options;
  options.gpus = weft::GpuMode::Emulated;
  options.emulated_gpus = 2;
  options.memory = "gpu*=1MB";  // 16 matrices of 64 KiB fit, there are 40
  weft::Runtime rt(std::move(options));

  std::vector<weft::Tensor<float>> x;
  for (std::uint64_t i = 0; i < 40; ++i) x.push_back(rt.uniform({128, 128}, rt.socket(0), i));

  int wrong = 0;
  const auto square = [&](const char* who, const weft::Device& where) {
    std::vector<weft::Tensor<float>> y;
    for (const auto& each : x) y.push_back(where.matmul(each, each));
    std::printf("%s: %zu products", who, y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto wanted = rt.socket(0).matmul(x[i], x[i]).to_host(), reached = y[i].to_host();
      // Sums in another order differ in the last bits.
      for (std::size_t k = 0; k < wanted.size(); ++k)
        wrong += std::abs(reached[k] - wanted[k]) > 1e-4f;
    }
    std::printf(", %s\n", wrong == 0 ? "all right" : "WRONG");
  };
  square("earliest finish", rt.anywhere());
  square("least energy", rt.anywhere(std::make_shared<LeastEnergy>()));
  square("all on gpu0", rt.gpu(0));
  return wrong != 0;
}
