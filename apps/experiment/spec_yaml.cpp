// Reads a spec. Everything is checked here, so that a mistake shows before anything runs.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "actors/runtime_options.hpp"
#include "actors/simulated/calibration.hpp"
#include "apps/experiment/spec.hpp"
#include "apps/workloads/workload.hpp"

namespace weft::experiment {
namespace {

using Check = std::function<std::string(const std::string& value)>;  // the value as it is kept

/// A node of the file with the path that leads to it, and errors that say where it is.
class Item {
 public:
  Item(YAML::Node node, std::string file, std::string path)
      : node_(std::move(node)), file_(std::move(file)), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw SpecError(where() + ": " + (path_.empty() ? "" : path_ + ": ") + what);
  }
  [[nodiscard]] std::string where() const {
    return file_ + ":" + std::to_string(std::max(node_.Mark().line, 0) + 1);
  }

  [[nodiscard]] bool is_list() const { return node_.IsSequence(); }
  [[nodiscard]] bool is_map() const { return node_.IsMap(); }

  [[nodiscard]] std::string text() const {
    if (!node_.IsScalar() || node_.Scalar().empty()) fail("expected a text, got " + what_it_is());
    return node_.Scalar();
  }

  /// Elements of a list; a single value is a list of one.
  [[nodiscard]] std::vector<Item> elements() const {
    std::vector<Item> items;
    if (!is_list()) return {*this};
    for (const YAML::Node& each : node_) items.emplace_back(each, file_, path_);
    if (items.empty()) fail("the list is empty; expected at least one value");
    return items;
  }

  /// The pairs of a map. Fails for keys other than `allowed` (empty: any) and for one given twice.
  [[nodiscard]] std::vector<std::pair<std::string, Item>> pairs(
      const std::vector<std::string>& allowed) const {
    if (!is_map()) fail("expected keys with values, got " + what_it_is());
    std::vector<std::pair<std::string, Item>> found;
    std::set<std::string> seen;
    for (const auto& pair : node_) {
      const Item key(pair.first, file_, path_);
      const std::string name = key.text();
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), name) == allowed.end())
        key.fail("\"" + name + "\" is no key here; allowed are " + list_of(allowed));
      if (!seen.insert(name).second) key.fail("\"" + name + "\" is given twice");
      Item value(pair.second, file_, path_.empty() ? name : path_ + "." + name);
      if (pair.second.IsNull()) Item(pair.first, file_, value.path_).fail("has no value");
      found.emplace_back(name, std::move(value));
    }
    return found;
  }

  /// One value or a list of them, each as `check` returns it, none twice.
  [[nodiscard]] std::vector<std::string> values(const Check& check) const {
    std::vector<std::string> kept;
    for (const Item& each : elements()) {
      std::string value = each.checked(check);
      if (std::find(kept.begin(), kept.end(), value) != kept.end())
        each.fail("\"" + value + "\" is in the list twice");
      kept.push_back(std::move(value));
    }
    return kept;
  }

  /// What `check` says about the text, with the place where it fails.
  [[nodiscard]] std::string checked(const Check& check) const {
    try {
      return check(text());
    } catch (const SpecError&) {
      throw;
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

  static std::string list_of(const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return list;
  }

 private:
  [[nodiscard]] std::string what_it_is() const {
    if (node_.IsMap()) return "keys with values";
    if (node_.IsSequence()) return "a list";
    if (node_.IsScalar() && !node_.Scalar().empty()) return "\"" + node_.Scalar() + "\"";
    return "nothing";
  }

  YAML::Node node_;
  std::string file_, path_;
};

Check one_of(const std::vector<std::string>& words) {
  return [words](const std::string& value) {
    if (std::find(words.begin(), words.end(), value) == words.end())
      throw std::invalid_argument("\"" + value + "\" is not one of " + Item::list_of(words));
    return value;
  };
}

const std::map<std::string, Check>& options() {
  static const std::map<std::string, Check> checks{{"precision", one_of({"fp32", "tf32", "bf16"})},
                                                   {"p2p", one_of({"true", "false"})},
                                                   {"relay", one_of({"true", "false"})},
                                                   {"data", one_of({"real", "none"})},
                                                   {"emulated", [](const std::string& value) {
                                                      parse_emulated_options(value);
                                                      return value;
                                                    }}};
  return checks;
}

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

int read_repeats(const Item& item) {
  const std::string text = item.text();
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 10'000)
    item.fail("\"" + text + "\" is not a whole number from 1 to 10000");
  return value;
}

std::vector<std::string> texts(const Item& item) {
  return item.values([](const std::string& value) { return value; });
}

// Read here, so that a file that is missing or not understood shows before anything runs. A path is
// taken from where the spec is.
CalibrationChoice read_calibration_choice(const Item& item, const std::string& spec_file) {
  CalibrationChoice choice;
  choice.file = item.checked([&](const std::string& name) {
    const auto path = std::filesystem::path(spec_file).parent_path() / name;
    choice.read = std::make_shared<Calibration>(read_calibration_file(path.string()));
    return name;
  });
  return choice;
}

MachineChoice read_machine(const Item& item, const std::string& spec_file) {
  MachineChoice machine;
  machine.where = item.where();
  if (!item.is_map()) {
    machine.source = item.text();
  } else {
    bool has_source = false;
    for (const auto& [key, value] :
         item.pairs({"machine", "label", "calibration", "set", "remove"})) {
      if (key == "machine") {
        machine.source = value.text();
        has_source = true;
      } else if (key == "label") {
        machine.label = value.text();
      } else if (key == "calibration") {
        machine.calibration = read_calibration_choice(value, spec_file);
      } else {
        (key == "set" ? machine.set : machine.remove) = texts(value);
      }
    }
    if (!has_source) item.fail("the key machine is missing: live, or what --machine takes");
  }
  if (machine.label.empty()) machine.label = machine.source;
  return machine;
}

std::vector<DeviceChoice> read_devices(const Item& item) {
  std::vector<DeviceChoice> choices;
  for (const std::string& text :
       item.values([](const std::string& value) { return DeviceChoice(value).text(); }))
    choices.emplace_back(text);
  return choices;
}

std::vector<Sweep> read_parameters(const Item& item, const workloads::Workload& workload) {
  std::vector<Sweep> sweeps;
  std::vector<std::string> names;
  for (const auto& each : workload.parameters) names.push_back(each.name);
  for (const auto& [key, value] : item.pairs(names))
    sweeps.emplace_back(key, value.values([&, name = key](const std::string& text) {
      workloads::Values values(workload.parameters);
      values.set(name, text);
      return values.text(name);
    }));
  return sweeps;
}

WorkloadChoice read_workload(const Item& item) {
  const auto known = [](const std::string& name) { return workloads::find(name).name; };
  WorkloadChoice choice;
  if (!item.is_map()) {
    choice.name = item.checked(known);
    return choice;
  }
  const auto pairs = item.pairs({"name", "parameters", "devices"});
  for (const auto& [key, value] : pairs)
    if (key == "name") choice.name = value.checked(known);
  if (choice.name.empty()) item.fail("the key name is missing: the name of a workload");
  for (const auto& [key, value] : pairs) {
    if (key == "parameters")
      choice.parameters = read_parameters(value, workloads::find(choice.name));
    if (key == "devices") choice.devices = read_devices(value);
  }
  return choice;
}

std::vector<Engine> read_engines(const Item& item) {
  std::vector<Engine> engines;
  for (const std::string& name : item.values(one_of({"real", "emulated", "simulated"})))
    for (const Engine engine : {Engine::Real, Engine::Emulated, Engine::Simulated})
      if (name == to_string(engine)) engines.push_back(engine);
  return engines;
}

// What holds for each machine or workload that has none of its own.
struct ForAll {
  std::vector<DeviceChoice> devices;
  CalibrationChoice calibration;
};

void read_key(Spec& spec, ForAll& for_all, const std::string& key, const Item& value) {
  if (key == "name") {
    spec.name = value.text();
  } else if (key == "machines") {
    std::set<std::string> labels;
    for (const Item& each : value.elements()) {
      spec.machines.push_back(read_machine(each, spec.file));
      const std::string& label = spec.machines.back().label;
      if (!labels.insert(label).second)
        each.fail("two machines are called \"" + label + "\"; give each a label of its own");
    }
  } else if (key == "engines") {
    spec.engines = read_engines(value);
  } else if (key == "workloads") {
    for (const Item& each : value.elements()) spec.workloads.push_back(read_workload(each));
  } else if (key == "devices") {
    for_all.devices = read_devices(value);
  } else if (key == "calibration") {
    for_all.calibration = read_calibration_choice(value, spec.file);
  } else if (key == "options") {
    for (const auto& [name, each] : value.pairs(keys_of(options())))
      spec.options.emplace_back(name, each.values(options().at(name)));
  } else {
    spec.repeats = read_repeats(value);
  }
}

// Times that no point would take are a mistake of who wrote the spec.
void refuse_unused_calibration(const Spec& spec) {
  if (std::find(spec.engines.begin(), spec.engines.end(), Engine::Simulated) != spec.engines.end())
    return;
  for (const MachineChoice& machine : spec.machines)
    if (machine.calibration.read)
      throw SpecError(machine.where + ": calibration: only simulated points use " +
                      machine.calibration.file + "; add simulated to engines, or leave it out");
}

void refuse_twice(const Spec& spec) {
  std::set<std::string> keys;
  for (const Point& point : expand(spec))
    if (!keys.insert(point.key()).second)
      throw SpecError(spec.file + ": workloads: " + point.workload + " with " +
                      point.values.to_string() + " on " + point.devices.text() +
                      " is there twice; leave one of them out");
}

}  // namespace

Spec parse_spec(const std::string& text, const std::string& file) {
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw SpecError(file + ":" + std::to_string(std::max(error.mark.line, 0) + 1) +
                    ": this is not YAML: " + error.msg);
  }
  Spec spec;
  spec.file = file;
  spec.text = text;
  ForAll for_all;
  const Item item(root, file, "");
  for (const auto& [key, value] : item.pairs({"name", "machines", "calibration", "engines",
                                              "workloads", "devices", "options", "repeats"}))
    read_key(spec, for_all, key, value);
  if (spec.name.empty()) item.fail("the key name is missing: what the experiment is called");
  if (spec.workloads.empty()) item.fail("the key workloads is missing: a list of workloads");
  if (spec.machines.empty()) spec.machines.push_back({"live", {}, {}, {}, "live", file});
  if (spec.engines.empty()) spec.engines = {Engine::Emulated};
  for (MachineChoice& machine : spec.machines)
    if (!machine.calibration.read) machine.calibration = for_all.calibration;
  refuse_unused_calibration(spec);
  if (for_all.devices.empty()) for_all.devices.emplace_back("all");
  for (WorkloadChoice& workload : spec.workloads)
    if (workload.devices.empty()) workload.devices = for_all.devices;
  refuse_twice(spec);
  return spec;
}

Spec read_spec(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!(text << stream.rdbuf()))
    throw SpecError(file + ": cannot be read; expected a file with an experiment in YAML");
  return parse_spec(text.str(), file);
}

}  // namespace weft::experiment
