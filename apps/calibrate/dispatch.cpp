#include "apps/calibrate/dispatch.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

#include "framework/trace.hpp"

namespace weft::calibrate {
namespace {

constexpr std::uint32_t kOps = 2000;  // fewer than a device takes in ahead of execution
constexpr std::int64_t kLongElements = 1 << 20;

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Submits `kOps` ops that wait for a promise, then lets them run. Nanoseconds an op of both.
template <class Submit>
std::pair<double, double> behind_promise(const Runtime& runtime, const Submit& submit) {
  Promise promise("start");
  const Future start = promise.future();
  const auto submitting = Clock::now();
  submit(start);
  const double submitted = ns_since(submitting);
  const auto running = Clock::now();
  promise.fulfil();
  runtime.wait_idle();
  return {submitted / kOps, ns_since(running) / kOps};
}

// Start and end of each op, over all lanes that ran it.
std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> kernels_of(const TraceData& data) {
  std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> ops;
  for (const TraceData::Span& span : data.spans) {
    if (span.kind != SpanKind::Kernel) continue;
    const auto [op, is_new] = ops.try_emplace(span.op, span.start_ns, span.end_ns);
    if (is_new) continue;
    op->second.first = std::min(op->second.first, span.start_ns);
    op->second.second = std::max(op->second.second, span.end_ns);
  }
  return ops;
}

}  // namespace

DispatchFigures measure_dispatch(const Runtime& runtime, const Device& device,
                                 std::uint32_t repeats) {
  const auto one = runtime.zeros({1}, device);
  std::vector<Tensor<float>> many;
  for (std::uint32_t i = 0; i < kOps; ++i) many.push_back(runtime.zeros({1}, device));
  runtime.wait_idle();
  std::vector<double> submission, chain, independent;
  for (std::uint32_t repeat = 0; repeat <= repeats; ++repeat) {
    const auto in_chain = behind_promise(runtime, [&](const Future& start) {
      device.submit(kernels::fill(), 0.0f, out(one), after(start));
      for (std::uint32_t i = 1; i < kOps; ++i) device.submit(kernels::fill(), 0.0f, out(one));
    });
    const auto apart = behind_promise(runtime, [&](const Future& start) {
      for (const auto& each : many) device.submit(kernels::fill(), 0.0f, out(each), after(start));
    });
    if (repeat == 0) continue;  // the warm-up
    submission.push_back(in_chain.first);
    chain.push_back(in_chain.second);
    independent.push_back(apart.second);
  }
  return {figure_of(submission), figure_of(chain), figure_of(independent)};
}

HandOffFigures measure_hand_off(const Runtime& runtime, const Device& device,
                                std::uint32_t repeats) {
  Tracer& tracer = *runtime.tracer();
  const auto x = runtime.zeros({kLongElements}, device), one = runtime.zeros({1}, device);
  runtime.wait_idle();
  std::vector<double> start, notice, short_ops;
  for (std::uint32_t repeat = 0; repeat <= 4 * repeats; ++repeat) {
    tracer.clear();
    device.submit(kernels::fill(), 1.0f, out(x)).wait();
    const std::int64_t back = tracer.now();
    runtime.wait_idle();
    const TraceData data = tracer.collect();
    const auto ops = kernels_of(data);
    if (repeat == 0 || ops.size() != 1 || data.submissions.empty()) continue;
    const auto& [began, ended] = ops.begin()->second;
    start.push_back(
        static_cast<double>(std::max<std::int64_t>(0, began - data.submissions.front().at_ns)));
    notice.push_back(static_cast<double>(std::max<std::int64_t>(0, back - ended)));
  }
  tracer.clear();
  for (std::uint32_t i = 0; i < kOps; ++i) device.submit(kernels::fill(), 1.0f, out(one));
  runtime.wait_idle();
  for (const auto& [op, span] : kernels_of(tracer.collect()))
    short_ops.push_back(static_cast<double>(span.second - span.first));
  tracer.clear();
  return {figure_of(start), figure_of(notice), figure_of(short_ops)};
}

}  // namespace weft::calibrate
