#include <algorithm>
#include <nlohmann/json.hpp>

#include "topology/doctor.hpp"

namespace weft {

const char* to_string(Severity severity) {
  switch (severity) {
    case Severity::Note:
      return "note";
    case Severity::Warning:
      return "warning";
    case Severity::Broken:
      return "broken";
  }
  return "";
}

bool is_broken(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::Broken; });
}

std::string print_findings(const std::vector<Finding>& findings) {
  if (findings.empty()) return "nothing found that would surprise you\n";
  std::vector<const Finding*> order;
  for (const Finding& finding : findings) order.push_back(&finding);
  std::stable_sort(order.begin(), order.end(),
                   [](const Finding* a, const Finding* b) { return a->severity > b->severity; });
  std::string text;
  for (const Finding* finding : order) {
    text += std::string(to_string(finding->severity)) + ": " + finding->text + "  [" +
            finding->code + "]\n";
    if (!finding->consequence.empty()) text += "  so:     " + finding->consequence + "\n";
    if (!finding->remedy.empty()) text += "  do:     " + finding->remedy + "\n";
  }
  return text;
}

std::string findings_as_json(const Machine& machine, const std::vector<Finding>& findings) {
  nlohmann::ordered_json document;
  document["machine"] = machine.source;
  document["broken"] = is_broken(findings);
  document["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    document["findings"].push_back({{"code", finding.code},
                                    {"severity", to_string(finding.severity)},
                                    {"text", finding.text},
                                    {"consequence", finding.consequence},
                                    {"remedy", finding.remedy}});
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace weft
