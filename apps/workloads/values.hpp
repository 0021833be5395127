#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weft::workloads {

/// A parameter of a workload: a whole number in a range, or one of some words.
struct Parameter {
  std::string name;
  std::string meaning;               ///< for a person
  std::string standard;              ///< the value where none is given
  std::int64_t least = 0, most = 0;  ///< of a number
  std::vector<std::string> words;    ///< empty: a number

  [[nodiscard]] bool is_number() const { return words.empty(); }
  /// `a whole number from 1 to 4096`, `one of a, b`.
  [[nodiscard]] std::string allowed() const;
};

/// A number from `least` to `most`.
Parameter number(std::string name, std::int64_t standard, std::int64_t least, std::int64_t most,
                 std::string meaning);
/// The first of `words` unless another is given.
Parameter word(std::string name, std::vector<std::string> words, std::string meaning);

/// Parameters by name with checked values.
class Values {
 public:
  Values() = default;
  /// The standard values of `parameters`.
  explicit Values(std::vector<Parameter> parameters);

  /// Throws `std::invalid_argument` naming parameter, value and what is allowed.
  void set(const std::string& name, const std::string& value);

  /// Of a parameter there is; anything else is a bug and throws `std::out_of_range`.
  [[nodiscard]] std::int64_t number(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const { return values_.at(name); }

  /// `name=value,…` in the order of the parameters.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  std::vector<Parameter> parameters_;
  std::map<std::string, std::string> values_;
};

}  // namespace weft::workloads
