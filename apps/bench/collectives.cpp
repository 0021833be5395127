#include "apps/bench/collectives.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "apps/common/output.hpp"
#include "apps/common/table.hpp"

namespace weft::bench {
namespace {

constexpr std::array kKinds{CollectiveKind::AllReduce, CollectiveKind::Broadcast,
                            CollectiveKind::ReduceScatter, CollectiveKind::AllGather};
const char* const kAuto = "auto";

bool is_in(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

std::vector<Device> members_of(const CollectiveOptions& options, const Runtime& runtime) {
  std::vector<Device> members;
  for (const std::string& name : options.devices) members.push_back(runtime.device(name));
  if (options.devices.empty())
    for (std::size_t i = 0; i < runtime.gpu_count(); ++i) members.push_back(runtime.gpu(i));
  if (members.size() < 2)
    throw std::runtime_error("collectives: wanted 2 members or more, but there are " +
                             std::to_string(members.size()) +
                             "; name devices with --devices or give it GPUs with --gpus");
  return members;
}

std::string asked_for(const CollectiveRow& row) {
  return row.wanted.algorithm ? to_string(*row.wanted.algorithm) : kAuto;
}

double bus_rate(const CollectiveRow& row, std::size_t members, double us) {
  return 1e-3 * static_cast<double>(row.wanted.bytes) / us * bus_factor(row.wanted.kind, members);
}

// Rows of one kind: a line for each size; all figures of the first algorithm, the time of others.
void print(apps::Output& output, const std::vector<CollectiveRow>& rows, std::size_t members) {
  std::vector<std::string> names;
  for (const CollectiveRow& row : rows)
    if (std::find(names.begin(), names.end(), asked_for(row)) == names.end())
      names.push_back(asked_for(row));
  std::vector<std::string> headings{std::string(to_string(rows[0].wanted.kind)),
                                    names[0] + " us",
                                    "least",
                                    "alone",
                                    "bus GB/s",
                                    "which is"};
  for (std::size_t k = 1; k < names.size(); ++k) headings.push_back(names[k] + " us");
  apps::Table table(headings);
  for (std::size_t i = 0; i < rows.size(); i += names.size()) {
    const CollectiveRow& row = rows[i];
    std::vector<std::string> cells{format_bytes(row.wanted.bytes),
                                   format_figure(row.us.median),
                                   format_figure(row.us.least),
                                   format_figure(row.alone_us.median),
                                   format_figure(bus_rate(row, members, row.us.median)),
                                   row.algorithm};
    for (std::size_t k = 1; k < names.size(); ++k)
      cells.push_back(format_figure(rows[i + k].us.median));
    table.add(std::move(cells));
  }
  output.print("\n%s", table.text().c_str());
}

nlohmann::ordered_json entry_of(const CollectiveRow& row, std::size_t members) {
  nlohmann::ordered_json entry{{"operation", to_string(row.wanted.kind)},
                               {"asked_for", asked_for(row)},
                               {"algorithm", row.algorithm},
                               {"bytes", row.wanted.bytes},
                               {"in_a_row", row.in_a_row}};
  put(entry, "us", row.us);
  put(entry, "alone_us", row.alone_us);
  entry["algorithm_gb_per_s"] = 1e-3 * static_cast<double>(row.wanted.bytes) / row.us.median;
  entry["bus_gb_per_s"] = bus_rate(row, members, row.us.median);
  return entry;
}

std::vector<CollectiveCase> cases_of(const CollectiveOptions& options, const Collective& collective,
                                     CollectiveKind kind, std::size_t members, std::size_t most) {
  std::vector<CollectiveCase> cases;
  std::size_t before = 0;
  for (std::size_t size : sizes(options.least, most, 4)) {
    const std::size_t bytes = possible_bytes(kind, members, size);
    if (bytes == before) continue;
    before = bytes;
    if (is_in(options.algorithms, kAuto)) cases.push_back({kind, {}, bytes});
    const auto offered = collective.algorithms(kind, bytes);
    if (options.algorithms.empty() && offered.size() == 1) continue;  // auto is that one
    for (CollectiveAlgorithm algorithm : offered)
      if (is_in(options.algorithms, to_string(algorithm)))
        cases.push_back({kind, algorithm, bytes});
  }
  return cases;
}

}  // namespace

int run_collectives(const CollectiveOptions& options, apps::Output& output) {
  const Runtime runtime(apps::to_runtime_options(options.common, false));
  const std::vector<Device> members = members_of(options, runtime);
  const std::size_t most = options.most ? options.most : usual_largest(runtime);
  if (options.least < sizeof(float) || options.least > most)
    throw std::invalid_argument("--min " + format_bytes(options.least) +
                                ": wanted 4 B up to --max, " + format_bytes(most));
  Collective collective = runtime.collective(members);
  print_devices(output, runtime, "collectives");
  std::string names;
  for (const Device& member : members) names += (names.empty() ? "" : ", ") + member.name();
  output.print("members: %s; fp32; median of %u runs\n", names.c_str(), options.repeats);

  auto document = document_head(runtime, "collectives", options.repeats);
  document["members"] = nlohmann::ordered_json::array();
  for (const Device& member : members) document["members"].push_back(member.name());
  for (CollectiveKind kind : kKinds) {
    if (!is_in(options.operations, to_string(kind))) continue;
    std::vector<CollectiveRow> rows;
    for (const CollectiveCase& wanted : cases_of(options, collective, kind, members.size(), most)) {
      rows.push_back(measure(runtime, collective, wanted, options.repeats));
      document["results"].push_back(entry_of(rows.back(), members.size()));
    }
    if (!rows.empty()) print(output, rows, members.size());
  }
  if (document["results"].empty())
    throw std::runtime_error("collectives: none of the algorithms named is offered for these");
  output.print(
      "\nus: an operation, one behind the other; alone: until the host sees one done; bus: bytes "
      "/\n"
      "time x 2(n-1)/n for all_reduce, (n-1)/n for reduce_scatter and all_gather, 1 for "
      "broadcast,\n"
      "as NCCL-tests count\n");
  output.write_json(document.dump(1));
  return 0;
}

}  // namespace weft::bench
