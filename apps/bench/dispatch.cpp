#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "apps/bench/campaign.hpp"
#include "apps/bench/cores.hpp"
#include "apps/bench/executor.hpp"
#include "apps/common/output.hpp"

namespace weft::bench {
namespace {

struct GraphChoice {
  std::string pattern;
  std::uint32_t width = 0;
};

GraphChoice parse_graph(const std::string& text) {
  const auto colon = text.find(':');
  GraphChoice choice{text.substr(0, colon), 0};
  if (colon != std::string::npos) {
    const std::string width = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(width.data(), width.data() + width.size(), choice.width);
    if (error != std::errc() || end != width.data() + width.size() || choice.width == 0)
      throw std::invalid_argument("graph \"" + text + "\": wanted PATTERN or PATTERN:WIDTH");
  }
  (void)OpGraph(choice.pattern, choice.width, 1);  // throws for what it does not know
  return choice;
}

std::vector<GraphChoice> graphs_of(const DispatchOptions& options,
                                   const std::vector<std::string>& usual) {
  std::vector<GraphChoice> chosen;
  for (const auto& text : options.graphs.empty() ? usual : options.graphs)
    chosen.push_back(parse_graph(text));
  return chosen;
}

std::vector<std::string> systems_of(const DispatchOptions& options) {
  std::vector<std::string> chosen;
  for (const System& system : systems()) {
    const bool named = std::find(options.systems.begin(), options.systems.end(), system.name) !=
                       options.systems.end();
    if (options.systems.empty() ? system.is_usual && system.left_out.empty() : named) {
      if (!system.left_out.empty())
        throw std::invalid_argument("system " + system.name + " is left out: " + system.left_out);
      chosen.push_back(system.name);
    }
  }
  for (const auto& name : options.systems)
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) {
      std::string names;
      for (const System& system : systems()) names += (names.empty() ? "" : ", ") + system.name;
      throw std::invalid_argument("system \"" + name + "\": wanted one of " + names);
    }
  return chosen;
}

bool is_ours(const std::string& system) {
  return system.rfind("weft-", 0) == 0;
}

class Plan {
 public:
  explicit Plan(const DispatchOptions& options)
      : options_(options), systems_(systems_of(options)), threads_(options.threads) {
    const auto cores = static_cast<std::uint32_t>(core_cpus().size());
    if (threads_.empty()) threads_ = cores > 1 ? std::vector{1u, cores} : std::vector{1u};
    for (std::uint32_t threads : threads_) (void)machine_of(threads);  // throws for too many
  }

  void add_dispatch() {
    for (const auto& graph :
         graphs_of(options_, {"chain", "wide", "fork-join", "stencil", "fft", "random"}))
      for (std::uint32_t ops : ops_or({1'000, 10'000, 100'000, 1'000'000}))
        for (std::uint32_t threads : threads_)
          for (const auto& system : systems_) {
            Measurement& m = add(Aim::Dispatch, system, threads);
            set_graph(m, graph);
            m.ops = ops;
            m.check = options_.check;
            if (ops >= 1'000'000) m.repeats = 1;
          }
  }

  void add_metg() {
    const std::uint32_t threads = threads_.back();
    for (const auto& graph :
         graphs_of(options_, {"stencil", "fft", "random", "stencil:" + std::to_string(threads)}))
      for (const auto& system : systems_) set_graph(add(Aim::Metg, system, threads), graph);
  }

  void add_hand_off() {
    for (const auto& system : systems_) add(Aim::HandOff, system, 1);
  }

  void add_memory() {
    for (const auto& graph : graphs_of(options_, {"chain", "stencil"}))
      for (std::uint32_t ops : ops_or({10'000, 100'000, 1'000'000}))
        for (const auto& system : systems_) {
          Measurement& m = add(Aim::Memory, system, 1);
          set_graph(m, graph);
          m.ops = ops;
        }
  }

  void add_trace_cost() {
    for (const auto& system : systems_) {
      if (!is_ours(system)) continue;
      for (const auto& graph : graphs_of(options_, {"stencil"}))
        for (double op_ns : {1'000.0, 10'000.0, 100'000.0})
          for (bool trace : {false, true}) {
            Measurement& m = add(Aim::Dispatch, system, threads_.back());
            set_graph(m, graph);
            m.ops = std::min(op_ns > 50'000 ? 10'000u : 100'000u, ops_or({100'000}).front());
            m.op_ns = op_ns;
            m.trace = trace;
          }
    }
  }

  [[nodiscard]] const std::vector<Measurement>& all() const { return all_; }

 private:
  Measurement& add(Aim aim, const std::string& system, std::uint32_t threads) {
    Measurement& m = all_.emplace_back();
    m.aim = aim;
    m.system = system;
    m.threads = threads;
    m.admission = options_.admission;
    return m;
  }
  static void set_graph(Measurement& m, const GraphChoice& graph) {
    m.graph = graph.pattern;
    m.width = graph.width;
  }
  [[nodiscard]] std::vector<std::uint32_t> ops_or(const std::vector<std::uint32_t>& usual) const {
    return options_.ops.empty() ? usual : options_.ops;
  }

  const DispatchOptions& options_;
  std::vector<std::string> systems_;
  std::vector<std::uint32_t> threads_;
  std::vector<Measurement> all_;
};

}  // namespace

void print_head(std::FILE* out, const HostProbe& probe) {
  std::fprintf(out, "weft %s, %s, %zu cores; hop %.0f ns, wake %.1f us, two cores at once %.2f\n",
               WEFT_VERSION, WEFT_BUILD, core_cpus().size(), probe.hop_ns, probe.wake_ns * 1e-3,
               probe.both_ratio);
  for (const System& system : systems())
    if (!system.left_out.empty())
      std::fprintf(out, "left out: %s: %s\n", system.name.c_str(), system.left_out.c_str());
  std::fflush(out);
}

int run_dispatch(const DispatchOptions& options, apps::Output& output) {
  Plan plan(options);
  const bool only_dispatch =
      !options.metg && !options.hand_off && !options.memory && !options.trace_cost;
  if (only_dispatch) plan.add_dispatch();
  if (options.metg) plan.add_metg();
  if (options.hand_off) plan.add_hand_off();
  if (options.memory) plan.add_memory();
  if (options.trace_cost) plan.add_trace_cost();

  const HostProbe probe = probe_host();
  print_head(output.text(), probe);
  const std::vector<Measured> all = run_rounds(plan.all(), options.repeats, output.text());
  print_tables(output.text(), all);
  output.write_json(to_document(all, probe));
  for (const Measured& measured : all)
    if (!measured.failure.empty() && is_ours(measured.wanted.system)) return 1;
  return 0;
}

}  // namespace weft::bench
