#include "actors/simulated/scale.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "framework/failure.hpp"
#include "topology/names.hpp"

namespace weft {
namespace {

using Names = std::vector<std::string>;

// What may be changed of each kind of thing; nothing: a link's rate.
const std::map<std::string, Names>& kinds() {
  static const std::map<std::string, Names> all{{"link", {"", "latency"}},
                                                {"gpu", {"flops", "memory", "launch"}},
                                                {"socket", {"cores"}},
                                                {"program", {"submission"}}};
  return all;
}

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string list_of(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string end_name(const Machine& machine, Node node) {
  if (node.kind == NodeKind::Hub) return to_string(machine.hubs[node.index].kind);
  const std::string name = to_string(node);
  return name.substr(0, name.find_first_of("0123456789"));
}

std::string role_of(const Machine& machine, const Link& link) {
  std::string a = end_name(machine, link.a), b = end_name(machine, link.b);
  if (b < a) std::swap(a, b);
  return a + "-" + b;
}

Names names_of_link(const Machine& machine, std::uint32_t link) {
  const std::string kind = std::string("link:") + to_string(machine.links[link].kind);
  return {kind, kind + ":" + role_of(machine, machine.links[link]), "link" + std::to_string(link)};
}

std::string model_of(const Machine& machine, std::uint32_t gpu) {
  std::string model = machine.gpus[gpu].model;
  std::replace_if(
      model.begin(), model.end(), [](char c) { return c == ',' || c == '='; }, ' ');
  return model;
}

Names names_of_device(const Machine& machine, Node device) {
  if (device.kind == NodeKind::Socket) return {"socket", to_string(device)};
  return {"gpu", "gpu:" + model_of(machine, device.index), to_string(device)};
}

// `link`, `gpu`, `socket` or `program`, of `link:pcie`, `gpu1`, …
std::string kind_of(const std::string& of) {
  return of.substr(0, of.find_first_of(":0123456789"));
}

// `gpu1.flops` as `gpu1` and `flops`. A model's name may have dots.
std::pair<std::string, std::string> parted(const std::string& target) {
  const std::size_t dot = target.rfind('.');
  if (dot == std::string::npos) return {target, ""};
  const std::string of = target.substr(0, dot), what = target.substr(dot + 1);
  const auto known = kinds().find(kind_of(of));
  if (known == kinds().end() || !contains(known->second, what)) return {target, ""};
  return {of, what};
}

std::set<std::string> all_names(const Machine& machine) {
  std::set<std::string> names{"program"};
  const auto add = [&](const Names& more) { names.insert(more.begin(), more.end()); };
  for (std::uint32_t l = 0; l < machine.links.size(); ++l) add(names_of_link(machine, l));
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) add(names_of_device(machine, GpuId{g}));
  for (std::uint32_t s = 0; s < machine.sockets.size(); ++s)
    add(names_of_device(machine, SocketId{s}));
  return names;
}

double parse_factor(const std::string& text, const std::string& change) {
  double factor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (error != std::errc() || end != text.data() + text.size() || !(factor > 0) || !(factor <= 1e9))
    throw DeviceError("scale \"" + change + "\": wanted TARGET=FACTOR with a factor above 0");
  return factor;
}

std::int64_t divided(std::int64_t ns, double factor) {
  return std::llround(static_cast<double>(ns) / factor);
}

}  // namespace

void check_scale_target(const std::string& text) {
  const auto [of, what] = parted(text);
  const auto known = kinds().find(kind_of(of));
  if (known == kinds().end())
    throw DeviceError("scale \"" + text +
                      "\": wanted link:KIND, linkN, gpu, gpuN, gpu:MODEL, socket, socketN or "
                      "program, each with what of it, such as gpu.flops");
  if (contains(known->second, what) && (of != "link" && of.find_first_of(",=") == of.npos)) return;
  Names right;
  for (const std::string& each : known->second)
    right.push_back((of == "link" ? "link:pcie" : of) + (each.empty() ? "" : "." + each));
  throw DeviceError("scale \"" + text + "\": wanted " + list_of(right));
}

bool has_scale_target(const Machine& machine, const std::string& target) {
  return all_names(machine).contains(parted(target).first);
}

SimulatedScale::SimulatedScale(const std::string& text, const Machine& machine) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string change = text.substr(at, comma - at);
    at = comma + 1;
    const std::size_t equals = change.rfind('=');
    if (equals == std::string::npos)
      throw DeviceError("scale \"" + change + "\": wanted TARGET=FACTOR, such as link:pcie=2");
    const std::string target = change.substr(0, equals);
    check_scale_target(target);
    if (!has_scale_target(machine, target)) {
      // Those of its kind, without single ones.
      Names there;
      for (const std::string& name : all_names(machine))
        if (kind_of(name) == kind_of(target) &&
            (name == kind_of(name) || name.find(':') != name.npos))
          there.push_back(name);
      throw DeviceError("scale \"" + target + "\": this machine has no such thing; it has " +
                        (there.empty() ? "none of that kind" : list_of(there)));
    }
    const auto [of, what] = parted(target);
    changes_.push_back({of, what, parse_factor(change.substr(equals + 1), change)});
  }
}

double SimulatedScale::factor(const Names& names, const char* what) const {
  double product = 1;
  for (const Change& change : changes_)
    if (change.what == what && contains(names, change.of)) product *= change.factor;
  return product;
}

double SimulatedScale::rate_factor(const Machine& machine, std::uint32_t link) const {
  return changes_.empty() ? 1 : factor(names_of_link(machine, link), "");
}

Machine SimulatedScale::applied(Machine machine) const {
  if (changes_.empty()) return machine;
  for (std::uint32_t l = 0; l < machine.links.size(); ++l) {
    const Names names = names_of_link(machine, l);
    Link& link = machine.links[l];
    for (double& rate : link.bytes_per_second) rate *= factor(names, "");
    link.latency =
        std::chrono::nanoseconds(divided(link.latency.count(), factor(names, "latency")));
  }
  return machine;
}

DeviceModel SimulatedScale::applied(DeviceModel model, const Machine& machine, Node device) const {
  if (changes_.empty()) return model;
  const Names names = names_of_device(machine, device);
  const double cores = factor(names, "cores");
  const double flops = cores * factor(names, "flops");
  const double launch = factor(names, "launch");
  model.fp64 *= flops;
  model.fp32 *= flops;
  model.product *= flops;
  model.memory *= cores * factor(names, "memory");
  model.launch_ns = divided(model.launch_ns, launch);
  model.gap_ns = divided(model.gap_ns, cores * launch);
  return model;
}

double SimulatedScale::submission_factor() const {
  return factor({"program"}, "submission");
}

std::vector<std::string> scale_targets(const Machine& machine, const SimulatedUse& use) {
  struct Kind {
    std::set<std::string> roles;
    bool has_latency = false;
  };
  std::map<LinkKind, Kind> links;
  for (std::uint32_t l = 0; l < machine.links.size(); ++l) {
    if (l >= use.links.size() || !use.links[l]) continue;
    Kind& kind = links[machine.links[l].kind];
    kind.roles.insert(role_of(machine, machine.links[l]));
    kind.has_latency = kind.has_latency || machine.links[l].latency.count() > 0;
  }
  std::vector<std::string> targets;
  for (const auto& [kind, found] : links) {
    const std::string name = std::string("link:") + to_string(kind);
    targets.push_back(name);
    if (found.roles.size() > 1)
      for (const std::string& role : found.roles) targets.push_back(name + ":" + role);
    if (found.has_latency) targets.push_back(name + ".latency");
  }
  std::set<std::string> models;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
    if (g < use.gpus.size() && use.gpus[g]) models.insert(model_of(machine, g));
  for (const std::string& model : models)
    for (const std::string& what : kinds().at("gpu"))
      targets.push_back((models.size() > 1 ? "gpu:" + model : "gpu") + "." + what);
  if (std::find(use.sockets.begin(), use.sockets.end(), true) != use.sockets.end())
    targets.push_back("socket.cores");
  targets.push_back("program.submission");
  return targets;
}

}  // namespace weft
