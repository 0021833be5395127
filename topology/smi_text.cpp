#include "topology/smi_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "topology/machine.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostMatrixBytes = 8u << 20;
constexpr std::size_t kMostDevices = 1024;

constexpr std::string_view kExpectedMatrix =
    "expected the matrix of nvidia-smi topo -m: a header GPU0 GPU1 … and a row for each GPU";

struct Word {
  std::string_view text;
  std::size_t column = 0;
};

/// The text without ANSI escapes and carriage returns, each line without a leading comment sign.
std::string cleaned(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\x1b') {
      while (i + 1 < text.size() && !std::isalpha(static_cast<unsigned char>(text[i + 1]))) ++i;
      ++i;
      continue;
    }
    if (c == '\r') continue;
    if (at_start && c == '#') {
      if (i + 1 < text.size() && text[i + 1] == ' ') ++i;
      at_start = false;
      continue;
    }
    at_start = c == '\n';
    out += c;
  }
  return out;
}

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  std::size_t column = 0;  // with tabs at every eighth column, as a terminal shows it
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t') {
      column = line[i] == '\t' ? (column / 8 + 1) * 8 : column + 1;
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < line.size() && line[i] != ' ' && line[i] != '\t') ++i;
    words.push_back({line.substr(begin, i - begin), column});
    column += i - begin;
  }
  return words;
}

bool is_gpu_name(std::string_view word) {
  if (!word.starts_with("GPU") || word.size() < 4 || word.size() > 8) return false;
  return std::all_of(word.begin() + 3, word.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
}

/// A network adapter's name: letters and digits, at least one digit at the end.
bool is_nic_name(std::string_view word) {
  return word.size() < 64 && std::isalpha(static_cast<unsigned char>(word[0])) &&
         std::isdigit(static_cast<unsigned char>(word.back())) && !is_gpu_name(word) &&
         !word.starts_with("NV") && std::all_of(word.begin(), word.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
         });
}

/// Device names of a header, or nothing if the line is none.
std::vector<std::string> header_of(const std::vector<Word>& words) {
  std::vector<std::string> names;
  for (const Word& word : words) {
    if (word.text == "CPU" || word.text == "NUMA" || word.text == "GPU") break;
    if (!is_gpu_name(word.text) && !is_nic_name(word.text)) return {};
    names.emplace_back(word.text);
  }
  const auto is_gpu = [](const std::string& name) { return is_gpu_name(name); };
  if (std::none_of(names.begin(), names.end(), is_gpu)) return {};
  return names;
}

struct Cell {
  SmiRelation relation = SmiRelation::Unknown;
  std::uint32_t nvlinks = 0;
};

std::optional<Cell> cell_of(std::string_view word) {
  static constexpr std::pair<std::string_view, SmiRelation> kWords[] = {
      {"X", SmiRelation::Self},  {"PIX", SmiRelation::Pix},   {"PXB", SmiRelation::Pxb},
      {"PHB", SmiRelation::Phb}, {"NODE", SmiRelation::Node}, {"SYS", SmiRelation::Sys},
      {"SOC", SmiRelation::Sys}, {"PSB", SmiRelation::Pxb},   {"N/A", SmiRelation::Unknown},
      {"QPI", SmiRelation::Sys}};
  for (const auto& [name, relation] : kWords)
    if (word == name) return Cell{relation, 0};
  if (word.starts_with("NV") && word.size() > 2) {
    Cell cell;
    const auto result = std::from_chars(word.data() + 2, word.data() + word.size(), cell.nvlinks);
    if (result.ec == std::errc() && result.ptr == word.data() + word.size() && cell.nvlinks > 0 &&
        cell.nvlinks <= 64)
      return cell;
  }
  return std::nullopt;
}

class SmiReader {
 public:
  SmiReader(std::string_view text, const std::string& name) : name_(name), text_(cleaned(text)) {
    if (text.size() > kMostMatrixBytes)
      throw TopologyError(name + ": too large for nvidia-smi topo -m; " +
                          std::string(kExpectedMatrix));
  }

  SmiMatrix read() {
    matrix_.hides_nvlinks = text_.find("topo -mp") != std::string::npos;
    std::size_t number = 0;
    bool in_matrix = false, done = false;
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      ++number;
      const std::vector<Word> words = words_of(line);
      if (!in_matrix && !done) {
        columns_ = header_of(words);
        if (columns_.empty()) continue;
        if (columns_.size() > kMostDevices) fail(number, "more than 1024 devices");
        for (std::size_t i = 0; i < columns_.size(); ++i)
          if (!column_of_.emplace(columns_[i], i).second)
            fail(number, columns_[i] + " has two columns");
        find_affinity_columns(words);
        in_matrix = true;
      } else if (in_matrix) {
        if (words.empty() || (!is_gpu_name(words[0].text) && !is_nic_name(words[0].text))) {
          in_matrix = rows_.empty();
          done = !in_matrix;
        } else {
          row(words, number);
        }
      }
      if (done) legend(words);
    }
    if (columns_.empty()) throw TopologyError(name_ + ": " + std::string(kExpectedMatrix));
    finish();
    return std::move(matrix_);
  }

 private:
  struct Row {
    std::size_t line = 0;
    std::vector<Cell> cells;  ///< as many of the columns as there are
    std::size_t affinity = 0;
    std::int64_t numa = -1;
  };

  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw TopologyError(name_ + ": line " + std::to_string(line) + ": " + what);
  }

  void find_affinity_columns(const std::vector<Word>& words) {
    for (std::size_t i = columns_.size(); i + 1 < words.size(); ++i) {
      if (words[i].text == "CPU" && words[i + 1].text == "Affinity")
        affinity_columns_.push_back({'c', words[i].column});
      if (words[i].text == "NUMA" && words[i + 1].text == "Affinity")
        affinity_columns_.push_back({'n', words[i].column});
      if (words[i].text == "GPU" && words[i + 1].text == "NUMA")
        affinity_columns_.push_back({'g', words[i].column});
    }
  }

  void row(const std::vector<Word>& words, std::size_t number) {
    const std::string device(words[0].text);
    Row row;
    row.line = number;
    std::size_t at = 1;
    for (; at < words.size() && at - 1 < columns_.size(); ++at) {
      const auto cell = cell_of(words[at].text);
      if (!cell) break;
      row.cells.push_back(*cell);
    }
    if (at - 1 < columns_.size() && at < words.size())
      fail(number, "\"" + std::string(words[at].text.substr(0, 40)) + "\" in the column of " +
                       columns_[at - 1] + "; expected X, NV1 to NV64, PIX, PXB, PHB, NODE or SYS");
    affinities(words, at, number, row);
    if (!rows_.emplace(device, std::move(row)).second) fail(number, device + " has two rows");
    order_.push_back(device);
    if (order_.size() > kMostDevices) fail(number, "more than 1024 devices");
  }

  void affinities(const std::vector<Word>& words, std::size_t first, std::size_t number, Row& row) {
    const std::size_t count = words.size() - first;
    for (std::size_t i = 0; i < count; ++i) {
      const Word& word = words[first + i];
      char column = 0;
      if (count == affinity_columns_.size()) {
        column = affinity_columns_[i].kind;  // one word for each column
      } else if (word.text == "N/A") {
        continue;
      } else if (word.text.find_first_of("-,") != std::string_view::npos) {
        column = 'c';
      } else {
        // The column whose heading is nearest above.
        std::size_t best = ~std::size_t{0};
        for (const AffinityColumn& candidate : affinity_columns_) {
          const std::size_t away =
              candidate.at > word.column ? candidate.at - word.column : word.column - candidate.at;
          if (away < best) best = away, column = candidate.kind;
        }
      }
      if (word.text == "N/A") continue;
      if (column == 'c') {
        row.affinity = affinity(word.text, number);
      } else if (column == 'n') {
        std::uint32_t numa = 0;
        const auto result =
            std::from_chars(word.text.data(), word.text.data() + word.text.size(), numa);
        if (result.ec != std::errc())
          fail(number,
               "NUMA affinity \"" + std::string(word.text.substr(0, 40)) + "\"; expected a number");
        row.numa = numa;
      }
    }
  }

  /// The index of a set of hardware threads. Many rows have the same text: it is read once.
  std::size_t affinity(std::string_view text, std::size_t line) {
    const auto known = by_text_.find(text);
    if (known != by_text_.end()) return known->second;
    auto cpus = parse_cpu_list(text, kMaxHostCpu);
    if (!cpus)
      fail(line, "CPU affinity \"" + std::string(text.substr(0, 40)) +
                     "\"; expected a list such as 0-31,64-95, up to " +
                     std::to_string(kMaxHostCpu));
    const auto [same, is_new] = by_cpus_.emplace(*cpus, matrix_.affinities.size());
    if (is_new) matrix_.affinities.push_back(std::move(*cpus));
    by_text_.emplace(text, same->second);
    return same->second;
  }

  /// `NIC0: mlx5_0` below the matrix.
  void legend(const std::vector<Word>& words) {
    if (words.size() == 2 && words[0].text.ends_with(':') && words[0].text.starts_with("NIC"))
      names_[std::string(words[0].text.substr(0, words[0].text.size() - 1))] = words[1].text;
  }

  void finish() {
    std::vector<std::string> devices = order_;
    std::stable_sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
      const bool gpu_a = is_gpu_name(a), gpu_b = is_gpu_name(b);
      if (gpu_a != gpu_b) return gpu_a;
      return gpu_a && (a.size() < b.size() || (a.size() == b.size() && a < b));
    });
    for (const std::string& column : columns_)
      if (is_gpu_name(column) && !rows_.count(column))
        throw TopologyError(name_ + ": " + column + " has a column and no row; " +
                            std::string(kExpectedMatrix));
    constexpr std::size_t kNone = ~std::size_t{0};
    std::vector<const Row*> rows;
    std::vector<std::size_t> columns;  // of each device, if it has one
    for (const std::string& name : devices) {
      rows.push_back(&rows_.at(name));
      const auto column = column_of_.find(name);
      columns.push_back(column == column_of_.end() ? kNone : column->second);
    }
    const auto cell_at = [&](std::size_t device, std::size_t other) -> const Cell* {
      const std::vector<Cell>& cells = rows[device]->cells;
      return columns[other] < cells.size() ? &cells[columns[other]] : nullptr;
    };
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::string& name = devices[i];
      const Row& row = *rows[i];
      SmiMatrix::Device device;
      const auto legend = names_.find(name);
      device.name = legend == names_.end() ? name : legend->second;
      device.is_gpu = is_gpu_name(name);
      device.line = row.line;
      device.affinity = row.affinity;
      device.numa = row.numa;
      for (std::size_t k = 0; k < devices.size(); ++k) {
        // A missing cell is told by the other device's row.
        const Cell *own = cell_at(i, k), *mirrored = cell_at(k, i);
        Cell cell;
        if (own) cell = *own;
        if (mirrored) {
          if (!own) cell = *mirrored;
          cell.nvlinks = std::max(cell.nvlinks, mirrored->nvlinks);
        }
        if (i == k) cell = {SmiRelation::Self, 0};
        device.relations.push_back(cell.relation);
        device.nvlinks.push_back(cell.nvlinks);
      }
      matrix_.devices.push_back(std::move(device));
    }
    if (matrix_.devices.empty())
      throw TopologyError(name_ + ": no row; " + std::string(kExpectedMatrix));
  }

  struct AffinityColumn {
    char kind;
    std::size_t at;
  };

  std::string name_;
  std::string text_;
  SmiMatrix matrix_;
  std::vector<std::string> columns_, order_;
  std::vector<AffinityColumn> affinity_columns_;
  std::map<std::string, std::size_t> column_of_;
  std::map<std::string_view, std::size_t> by_text_;  ///< of affinities; views of `text_`
  std::map<std::vector<std::uint32_t>, std::size_t> by_cpus_ = {{{}, 0}};
  std::map<std::string, Row> rows_;
  std::map<std::string, std::string> names_;
};

}  // namespace

bool looks_like_smi_matrix(std::string_view text) {
  const std::string clean = cleaned(text.substr(0, 1 << 16));
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (!header_of(words_of(rest.substr(0, end))).empty()) return true;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return false;
}

SmiMatrix parse_smi_matrix(std::string_view text, const std::string& name) {
  return SmiReader(text, name).read();
}

}  // namespace weft
