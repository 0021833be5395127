#include "apps/experiment/device_choice.hpp"

#include <algorithm>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace weft::experiment {

DeviceChoice::DeviceChoice(const std::string& text) : text_(text) {
  static const std::regex kCount("([1-9][0-9]{0,4}) (gpu|socket)s?"), kName("(gpu|socket)[0-9]+");
  std::smatch match;
  if (text == "all") return;
  if (text == "gpus" || text == "sockets") {
    wants_gpus_ = text == "gpus";
    wants_sockets_ = !wants_gpus_;
    return;
  }
  if (std::regex_match(text, match, kCount)) {
    count_ = std::stoul(match[1]);
    wants_gpus_ = match[2] == "gpu";
    wants_sockets_ = !wants_gpus_;
    return;
  }
  std::istringstream parts(text);
  for (std::string name; std::getline(parts, name, ',');) {
    if (!std::regex_match(name, kName) ||
        std::find(names_.begin(), names_.end(), name) != names_.end()) {
      names_.clear();
      break;
    }
    names_.push_back(name);
  }
  if (names_.empty())
    throw std::invalid_argument("\"" + text +
                                "\" names no devices; allowed are all, gpus, sockets, a number of "
                                "them such as \"2 gpus\", or different names such as gpu0,socket0");
}

std::vector<Device> DeviceChoice::of(const Runtime& runtime, std::string& reason) const {
  std::vector<Device> found;
  for (const Device& device : runtime.devices()) {
    if (names_.empty() && (device.kind() == DeviceKind::Gpu ? wants_gpus_ : wants_sockets_))
      found.push_back(device);
  }
  const auto has = [](std::size_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  const std::string there = "the machine has " + has(runtime.socket_count(), "socket") + " and " +
                            has(runtime.gpu_count(), "GPU");
  for (const std::string& name : names_) {
    for (const Device& device : runtime.devices())
      if (device.name() == name) found.push_back(device);
    if (!found.empty() && found.back().name() == name) continue;
    reason = "there is no " + name + "; " + there;
    return {};
  }
  if (found.empty() || found.size() < count_) {
    reason = there;
    return {};
  }
  if (count_ > 0) found.erase(found.begin() + static_cast<std::ptrdiff_t>(count_), found.end());
  return found;
}

}  // namespace weft::experiment
