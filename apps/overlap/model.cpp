#include "apps/overlap/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/common/progress.hpp"

namespace weft::apps {
std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

EmulatedOptions paced_gpus(std::int64_t n, std::size_t element_bytes) {
  EmulatedOptions options;
  const double side = static_cast<double>(n);
  const double seconds = std::clamp(1e-3 * std::pow(side / 128, 3), 1e-3, 10e-3);
  options.launch = std::chrono::nanoseconds(std::llround(1e9 * seconds));
  const double results_per_second = options.compute_lanes / seconds;
  options.link_bytes_per_second =
      1.25 * side * side * static_cast<double>(element_bytes) * results_per_second;
  return options;
}

std::string describe_pace(const EmulatedOptions& options) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (options.launch.count() > 0)
    add("a kernel takes " + format_seconds(1e-9 * static_cast<double>(options.launch.count())) +
        " at least");
  if (options.flops_per_second > 0)
    add(format("%.3g Gflop/s a lane", 1e-9 * options.flops_per_second));
  if (options.memory_bytes_per_second > 0)
    add(format("memory %.3g GB/s", 1e-9 * options.memory_bytes_per_second));
  if (options.link_bytes_per_second > 0)
    add(format("links %.3g MB/s", 1e-6 * options.link_bytes_per_second));
  if (options.link_bytes_per_second < 0) add("links as fast as the topology says");
  if (options.link_latency.count() > 0)
    add("link latency " + format_seconds(1e-9 * static_cast<double>(options.link_latency.count())));
  return text;
}

}  // namespace weft::apps
