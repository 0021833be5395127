#include "actors/simulated/calibration.hpp"

#include <algorithm>

namespace weft {

const Calibration::Device* Calibration::find(std::string_view model, bool is_gpu) const {
  for (const Device& device : devices)
    if (device.is_gpu == is_gpu && device.model == model) return &device;
  return nullptr;
}

Calibration::Figure figure_of(std::vector<double> sample) {
  if (sample.empty()) return {};
  std::sort(sample.begin(), sample.end());
  const std::size_t middle = sample.size() / 2;
  const double median =
      sample.size() % 2 ? sample[middle] : (sample[middle - 1] + sample[middle]) / 2;
  return {median, sample.front(), sample.back(), static_cast<std::uint32_t>(sample.size())};
}

}  // namespace weft
