#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"

namespace weft::test {

/// What a command said: standard output and error.
struct Answer {
  int exit_code;
  std::string text;
};

/// Runs `command`, the path of `weft`.
inline Answer run_weft(const std::string& command, const std::string& arguments) {
  const std::string line = command + " " + arguments + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe);
  Answer answer{0, {}};
  char buffer[4096];
  while (const std::size_t got = fread(buffer, 1, sizeof buffer, pipe))
    answer.text.append(buffer, got);
  answer.exit_code = WEXITSTATUS(pclose(pipe));
  return answer;
}

/// What `weft`, which must succeed, writes with `--json`.
inline nlohmann::json weft_document(const std::string& command, const std::string& arguments) {
  const auto path =
      std::filesystem::temp_directory_path() / ("weft_test_" + std::to_string(getpid()) + ".json");
  const Answer answer = run_weft(command, arguments + " --json " + path.string());
  INFO(arguments << "\n" << answer.text);
  REQUIRE(answer.exit_code == 0);
  std::ifstream file(path);
  nlohmann::json document = nlohmann::json::parse(file);
  std::filesystem::remove(path);
  return document;
}

}  // namespace weft::test
