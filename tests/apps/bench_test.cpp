#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "apps/weft_command.hpp"
#include "support/catch.hpp"

namespace {

using nlohmann::json;

using weft::test::Answer;

Answer run_weft(const std::string& arguments) {
  return weft::test::run_weft(WEFT_COMMAND, arguments);
}

json document_of(const std::string& arguments) {
  return weft::test::weft_document(WEFT_COMMAND, arguments);
}

}  // namespace

TEST_CASE("every system runs every graph in order and says what an op costs", "[bench]") {
  const json document = document_of(
      "bench dispatch --graph chain,wide,fork-join,stencil,fft,random,nocomm --ops 300 --threads 1 "
      "--repeats 1 --check");
  std::set<std::string> systems, graphs;
  for (const json& result : document.at("results")) {
    systems.insert(result.at("system").get<std::string>());
    graphs.insert(result.at("graph").get<std::string>());
    CHECK(result.at("ops") == 300);
    CHECK(result.at("threads") == 1);
    CHECK(result.at("ns_per_op").get<double>() > 0);
    CHECK(result.at("min_ns_per_op") <= result.at("ns_per_op"));
    CHECK(result.at("ns_per_op") <= result.at("max_ns_per_op"));
    CHECK(result.at("peak_rss_bytes").is_number_integer());
    CHECK(result.at("peak_rss_bytes").get<std::int64_t>() > 0);
  }
  CHECK(systems.count("weft-host") == 1);
  CHECK(systems.count("weft-emulated") == 1);
  CHECK(graphs.size() == 7);
  CHECK(document.at("results").size() == systems.size() * graphs.size());
  CHECK(document.at("failed").empty());
  for (const auto& [system, why] : document.at("left_out").items()) {
    CHECK(systems.count(system) == 0);
    CHECK_FALSE(why.get<std::string>().empty());
  }
  CHECK(document.at("machine").at("cores").get<int>() > 0);
}

TEST_CASE("the modes say what they measured", "[bench]") {
  const json document = document_of(
      "bench dispatch --handoff --memory --trace-cost --graph stencil:4 --ops 2000 --system "
      "weft-host,weft-emulated --threads 1 --repeats 1");
  CHECK(document.at("hand_off").size() == 2);
  for (const json& entry : document.at("hand_off")) {
    CHECK(entry.at("round_trip_ns").get<double>() > 0);
    CHECK(entry.at("idle_cores").get<double>() >= 0);
  }
  CHECK(document.at("memory").size() == 2);
  for (const json& entry : document.at("memory")) CHECK(entry.at("bytes_per_op").is_number());
  CHECK(document.at("trace_cost").size() == 12);
  CHECK(document.at("results").empty());
}

TEST_CASE("the product and overlap figures are given as JSON", "[bench]") {
  const json matmul = document_of("bench matmul --n 64 --threads 1 --repeats 1");
  CHECK(matmul.at("results").size() == 2);
  CHECK(matmul.at("ratio").get<double>() > 0);
  const json overlap = document_of("bench overlap --kernels 3 --repeats 1");
  CHECK(overlap.at("experiments").size() == 2);
  for (const json& experiment : overlap.at("experiments"))
    CHECK(experiment.at("ratio").get<double>() > 0);
}

TEST_CASE("what cannot be measured is refused by name", "[bench]") {
  const auto refused = [](const std::string& arguments, const std::string& word) {
    const Answer answer = run_weft("bench dispatch " + arguments);
    INFO(arguments << "\n" << answer.text);
    CHECK(answer.exit_code != 0);
    CHECK(answer.text.find(word) != std::string::npos);
  };
  refused("--graph ring", "ring");
  refused("--graph stencil:0", "stencil:0");
  refused("--graph fork-join:9", "1 to 8");
  refused("--system weft-host,charm", "charm");
  refused("--threads 100000", "100000");
  refused("--ops 0 --graph chain --system weft-host --repeats 1", "ops");
}
