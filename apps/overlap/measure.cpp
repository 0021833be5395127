#include "apps/overlap/measure.hpp"

#include <algorithm>
#include <utility>

#include "framework/trace.hpp"

namespace weft::apps {

Measure::Measure(const Runtime& runtime, int repeat, std::function<void()> on_run)
    : runtime_(runtime), repeat_(repeat), on_run_(std::move(on_run)) {}

Timing Measure::operator()(const std::function<void()>& work,
                           const std::function<void()>& before) const {
  const Tracer& clock = *runtime_.tracer();
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (int i = 0; i <= repeat_; ++i) {
    before();
    runtime_.wait_idle();
    const std::int64_t start = clock.now();
    work();
    const std::int64_t end = clock.now();
    if (i > 0) runs.emplace_back(start, end);  // the first warms up
    on_run_();
  }
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.second - a.first < b.second - b.first; });
  const auto seconds = [](const auto& run) {
    return 1e-9 * static_cast<double>(run.second - run.first);
  };
  const auto& median = runs[runs.size() / 2];
  return {seconds(median), seconds(runs.front()), seconds(runs.back()), median.first,
          median.second};
}

}  // namespace weft::apps
