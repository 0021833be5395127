#pragma once

#include <exception>
#include <string>

namespace weft::test {

/// What the `Error` thrown by `action` says; empty if none was thrown.
template <class Error = std::exception, class Action>
std::string thrown(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Whether `text` contains `part`.
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace weft::test
