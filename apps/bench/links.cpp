#include "apps/bench/links.hpp"

#include <algorithm>
#include <stdexcept>

#include "apps/bench/device_stopwatch.hpp"
#include "apps/common/output.hpp"
#include "apps/common/table.hpp"

namespace weft::bench {
namespace {

constexpr std::size_t kBytesInARun = std::size_t{256} << 20;
constexpr std::uint32_t kMostCopies = 64;

// An op that does nothing where its tensor is: what it waits for is the copy.
const Kernel<In<float>>& arrives() {
  static const Kernel<In<float>> kernel =
      Kernel("arrives").cpu([](Cpu&, In<float>) {}).cuda([](Cuda&, In<float>) {});
  return kernel;
}

// Makes the replica here the only valid one; its bytes stay as they are.
const Kernel<Out<float>>& written() {
  static const Kernel<Out<float>> kernel =
      Kernel("written").cpu([](Cpu&, Out<float>) {}).cuda([](Cuda&, Out<float>) {});
  return kernel;
}

Pattern both_ways(const Device& a, const Device& b) {
  return {"both_ways", a.name() + " and " + b.name(), {{a, b}, {b, a}}};
}

bool is_wanted(const LinkOptions& options, const std::string& kind) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), kind) != options.only.end();
}

void print(apps::Output& output, const std::vector<LinkRow>& rows) {
  std::vector<std::size_t> all;
  for (const LinkRow& row : rows) all.push_back(row.bytes);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::string> headings{"GB/s (latency: one copy of " + format_bytes(all.front()) + ")",
                                    "latency"};
  for (std::size_t bytes : all) headings.push_back(format_bytes(bytes));
  apps::Table table(headings);
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (cells.empty()) cells = {rows[i].name, format_figure(rows[i].alone_us) + " us"};
    cells.push_back(format_figure(rows[i].rate.median));
    if (i + 1 < rows.size() && rows[i + 1].name == rows[i].name) continue;
    table.add(std::move(cells));
    cells.clear();
  }
  output.print("\n%s", table.text().c_str());
}

}  // namespace

std::vector<Pattern> patterns(const Runtime& runtime) {
  std::vector<Pattern> made;
  const auto devices = runtime.devices();
  const auto apart = [](const Device& a, const Device& b) {
    return a.place().memory != b.place().memory;
  };
  for (const Device& from : devices)
    for (const Device& to : devices)
      if (apart(from, to)) made.push_back({"pair", from.name() + " to " + to.name(), {{from, to}}});
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = a + 1; b < devices.size(); ++b)
      if (apart(devices[a], devices[b])) made.push_back(both_ways(devices[a], devices[b]));
  const std::size_t gpus = runtime.gpu_count();
  if (gpus < 2) return made;
  const Device host = runtime.socket(0);
  Pattern down{"all", "all GPUs to " + host.name(), {}};
  Pattern up{"all", host.name() + " to all GPUs", {}};
  Pattern both{"all", "all GPUs and " + host.name() + ", both ways", {}};
  Pattern ring{"all", "all GPUs to their next", {}};
  for (std::size_t i = 0; i < gpus; ++i) {
    const Device gpu = runtime.gpu(i);
    down.flows.push_back({gpu, host});
    up.flows.push_back({host, gpu});
    both.flows.push_back({gpu, host});
    both.flows.push_back({host, gpu});
    ring.flows.push_back({gpu, runtime.gpu((i + 1) % gpus)});
  }
  for (Pattern* pattern : {&down, &up, &both, &ring}) made.push_back(*pattern);
  return made;
}

std::uint32_t copies_of(std::size_t bytes, std::size_t most) {
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(std::min(kBytesInARun, most) / bytes, 1, kMostCopies));
}

LinkRow measure(const Runtime& runtime, const Pattern& pattern, std::size_t bytes,
                std::uint32_t copies, std::uint32_t repeats) {
  const auto elements = static_cast<std::int64_t>(bytes / sizeof(float));
  std::vector<std::vector<Tensor<float>>> tensors;
  for (const Flow& flow : pattern.flows) {
    auto& list = tensors.emplace_back();
    // Real values: their pages are there, and no link is faster for zeros.
    for (std::uint32_t i = 0; i < copies; ++i)
      list.push_back(runtime.uniform({elements}, flow.from, i));
  }
  const auto run = [&](std::uint32_t count) {
    for (std::size_t f = 0; f < tensors.size(); ++f)
      for (std::uint32_t i = 0; i < count; ++i)
        pattern.flows[f].from.submit(written(), out(tensors[f][i]));
    runtime.wait_idle();
    std::vector<Future> arrived;
    const DeviceStopwatch watch(runtime);
    for (std::uint32_t i = 0; i < count; ++i)
      for (std::size_t f = 0; f < tensors.size(); ++f)
        arrived.push_back(pattern.flows[f].to.submit(arrives(), in(tensors[f][i])));
    when_all(arrived).wait();
    return watch.seconds();
  };
  std::vector<double> rates, alone;
  const double moved = static_cast<double>(bytes) * copies * static_cast<double>(tensors.size());
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    const double one = run(1), many = run(copies);
    if (r == 0) continue;
    alone.push_back(1e6 * one);
    rates.push_back(1e-9 * moved / many);
  }
  return {pattern.kind, pattern.name, bytes, copies, spread_of(rates), median(alone)};
}

int run_links(const LinkOptions& options, apps::Output& output) {
  const Runtime runtime(apps::to_runtime_options(options.common, false));
  const std::size_t most = options.most ? options.most : usual_largest(runtime);
  if (options.least < sizeof(float) || options.least > most)
    throw std::invalid_argument("--min " + format_bytes(options.least) +
                                ": wanted 4 B up to --max, " + format_bytes(most));
  print_devices(output, runtime, "links");
  if (runtime.gpu_count() == 0)
    throw std::runtime_error("links: no GPU, so no links to measure; give it GPUs with --gpus");
  std::vector<LinkRow> rows;
  for (const Pattern& pattern : patterns(runtime)) {
    if (!is_wanted(options, pattern.kind)) continue;
    for (std::size_t bytes : sizes(options.least, most, 4))
      rows.push_back(measure(runtime, pattern, bytes, copies_of(bytes, most), options.repeats));
  }
  if (is_wanted(options, "pageable")) {
    std::vector<LinkRow> pageable;
    for (std::size_t bytes : sizes(options.least, most, 4))
      for (LinkRow& row : measure_pageable(runtime, bytes, copies_of(bytes, most), options.repeats))
        pageable.push_back(std::move(row));
    std::stable_sort(pageable.begin(), pageable.end(),
                     [](const LinkRow& a, const LinkRow& b) { return a.name < b.name; });
    rows.insert(rows.end(), pageable.begin(), pageable.end());
  }
  if (rows.empty()) throw std::runtime_error("links: nothing to measure of what --only names");
  print(output, rows);
  auto document = document_head(runtime, "links", options.repeats);
  for (const LinkRow& row : rows) {
    nlohmann::ordered_json entry{
        {"kind", row.kind}, {"name", row.name}, {"bytes", row.bytes}, {"copies", row.copies}};
    put(entry, "gb_per_s", row.rate);
    entry["alone_us"] = row.alone_us;
    document["results"].push_back(std::move(entry));
  }
  output.write_json(document.dump(1));
  return 0;
}

}  // namespace weft::bench
