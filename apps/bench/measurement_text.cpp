#include <nlohmann/json.hpp>
#include <stdexcept>

#include "apps/bench/measurement.hpp"

namespace weft::bench {

using nlohmann::json;

std::string to_text(const Measurement& m) {
  return json{{"aim", static_cast<int>(m.aim)},
              {"system", m.system},
              {"graph", m.graph},
              {"width", m.width},
              {"ops", m.ops},
              {"threads", m.threads},
              {"repeats", m.repeats},
              {"op_ns", m.op_ns},
              {"trace", m.trace},
              {"check", m.check},
              {"admission", m.admission}}
      .dump();
}

Measurement measurement_from(const std::string& text) {
  try {
    const json j = json::parse(text);
    Measurement m;
    m.aim = static_cast<Aim>(j.at("aim").get<int>());
    j.at("system").get_to(m.system);
    j.at("graph").get_to(m.graph);
    j.at("width").get_to(m.width);
    j.at("ops").get_to(m.ops);
    j.at("threads").get_to(m.threads);
    j.at("repeats").get_to(m.repeats);
    j.at("op_ns").get_to(m.op_ns);
    j.at("trace").get_to(m.trace);
    j.at("check").get_to(m.check);
    j.at("admission").get_to(m.admission);
    return m;
  } catch (const json::exception& error) {
    throw std::invalid_argument("not a measurement: " + text + ": " + error.what());
  }
}

std::string to_text(const Figures& figures) {
  return json(figures).dump();
}

Figures figures_from(const std::string& text) {
  try {
    return json::parse(text).get<Figures>();
  } catch (const json::exception& error) {
    throw std::invalid_argument("not figures: " + text + ": " + error.what());
  }
}

}  // namespace weft::bench
