#include <limits>
#include <stdexcept>

#include "apps/bench/device_stopwatch.hpp"
#include "apps/bench/links.hpp"

namespace weft::bench {
namespace {

struct PageableFlow {
  Device gpu;
  bool to_gpu = false;
};

// What one flow copies: tensors on the GPU, and as much of the program's memory.
struct Buffers {
  std::vector<Tensor<float>> tensors;
  std::vector<std::vector<float>> memory;
};

Shape shape_of(std::size_t bytes) {
  return {static_cast<std::int64_t>(bytes / sizeof(float))};
}

Buffers make_buffers(const Runtime& runtime, const PageableFlow& flow, std::size_t bytes,
                     std::uint32_t copies) {
  Buffers buffers;
  for (std::uint32_t i = 0; i < copies; ++i) {
    const auto values = runtime.uniform(shape_of(bytes), runtime.socket(0), i).to_host();
    if (flow.to_gpu) {
      buffers.memory.push_back(values.to_vector());
    } else {
      buffers.tensors.push_back(runtime.uniform(shape_of(bytes), flow.gpu, i));
      // Touched, so that no page is missing, and not yet right.
      buffers.memory.emplace_back(bytes / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    }
  }
  return buffers;
}

// The last copy of each flow: the same in the program's memory and on the GPU, every element.
void check(const Runtime& runtime, const PageableFlow& flow, const Buffers& buffers) {
  const auto last = static_cast<std::uint32_t>(buffers.memory.size() - 1);
  const auto& memory = buffers.memory[last];
  const auto expected =
      flow.to_gpu
          ? buffers.tensors[last].to_host()
          : runtime.uniform({static_cast<std::int64_t>(memory.size())}, runtime.socket(0), last)
                .to_host();
  const auto span = expected.span();
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (!(memory[i] == span[i]))
      throw std::runtime_error("links: wrong bytes: element " + std::to_string(i) + " of " +
                               std::to_string(memory.size()) + " copied " +
                               (flow.to_gpu ? "to " : "from ") + flow.gpu.name() + " is " +
                               std::to_string(flow.to_gpu ? span[i] : memory[i]) + ", not " +
                               std::to_string(flow.to_gpu ? memory[i] : span[i]));
}

LinkRow measure_flows(const Runtime& runtime, const std::string& name,
                      const std::vector<PageableFlow>& flows, std::size_t bytes,
                      std::uint32_t copies, std::uint32_t repeats) {
  std::vector<Buffers> buffers;
  for (const PageableFlow& flow : flows)
    buffers.push_back(make_buffers(runtime, flow, bytes, copies));
  const auto run = [&](std::uint32_t count) {
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (flows[f].to_gpu) buffers[f].tensors.clear();
    runtime.wait_idle();
    std::vector<Future> arrived;
    const DeviceStopwatch watch(runtime);
    for (std::uint32_t i = 0; i < count; ++i)
      for (std::size_t f = 0; f < flows.size(); ++f) {
        auto& [tensors, memory] = buffers[f];
        if (flows[f].to_gpu) {
          tensors.push_back(flows[f].gpu.copy_from(memory[i], shape_of(bytes)));
          arrived.push_back(tensors.back().future());
        } else {
          arrived.push_back(tensors[i].copy_to(memory[i]));
        }
      }
    when_all(arrived).wait();
    return watch.seconds();
  };
  std::vector<double> rates, alone;
  const double moved = static_cast<double>(bytes) * copies * static_cast<double>(flows.size());
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    const double one = run(1), many = run(copies);
    if (r == 0) continue;
    alone.push_back(1e6 * one);
    rates.push_back(1e-9 * moved / many);
  }
  if (runtime.has_data())
    for (std::size_t f = 0; f < flows.size(); ++f) check(runtime, flows[f], buffers[f]);
  return {"pageable", name, bytes, copies, spread_of(rates), median(alone)};
}

}  // namespace

std::vector<LinkRow> measure_pageable(const Runtime& runtime, std::size_t bytes,
                                      std::uint32_t copies, std::uint32_t repeats) {
  std::vector<LinkRow> rows;
  const auto add = [&](const std::string& name, const std::vector<PageableFlow>& flows) {
    rows.push_back(measure_flows(runtime, name, flows, bytes, copies, repeats));
  };
  std::vector<PageableFlow> down, up;
  for (std::size_t i = 0; i < runtime.gpu_count(); ++i) {
    const Device gpu = runtime.gpu(i);
    down.push_back({gpu, false});
    up.push_back({gpu, true});
    add(gpu.name() + " to pageable", {down.back()});
    add("pageable to " + gpu.name(), {up.back()});
    add(gpu.name() + " and pageable", {down.back(), up.back()});
  }
  if (runtime.gpu_count() < 2) return rows;
  add("all GPUs to pageable", down);
  add("pageable to all GPUs", up);
  return rows;
}

}  // namespace weft::bench
