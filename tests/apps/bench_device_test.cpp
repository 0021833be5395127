// Runs the benchmarks of devices, links and collectives as a user does, on emulated GPUs. What they
// print depends on the machine; that they check what they measure, and name it, does not.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "apps/bench/collectives.hpp"
#include "apps/bench/links.hpp"
#include "apps/weft_command.hpp"
#include "support/catch.hpp"

namespace {

using nlohmann::json;
using namespace weft;

test::Answer weft_bench(const std::string& arguments) {
  return test::run_weft(WEFT_COMMAND, "bench " + arguments);
}

json document_of(const std::string& arguments) {
  return test::weft_document(WEFT_COMMAND, "bench " + arguments);
}

TEST_CASE("links are measured between every two devices, both ways and all at once", "[bench]") {
  const json document = document_of(
      "links --gpus emulated:2 --min 4KB --max 64KB --repeats 2 --only "
      "pair,both_ways,all");
  CHECK(document.at("bench") == "links");
  CHECK(document.at("devices").size() >= 3);
  std::map<std::string, std::set<std::size_t>> sizes;
  for (const json& row : document.at("results")) {
    sizes[row.at("name")].insert(row.at("bytes").get<std::size_t>());
    CHECK(row.at("gb_per_s").get<double>() > 0);
    CHECK(row.at("gb_per_s_min") <= row.at("gb_per_s"));
    CHECK(row.at("gb_per_s") <= row.at("gb_per_s_max"));
    CHECK(row.at("alone_us").get<double>() > 0);
  }
  const std::set<std::size_t> all{4096, 16384, 65536};
  for (const char* name :
       {"gpu0 to socket0", "socket0 to gpu0", "gpu0 to gpu1", "gpu1 to gpu0", "gpu0 and gpu1",
        "socket0 and gpu0", "all GPUs to socket0", "socket0 to all GPUs",
        "all GPUs and socket0, both ways", "all GPUs to their next"}) {
    INFO(name);
    CHECK(sizes[name] == all);
  }
}

TEST_CASE("copies to and from the program's memory are measured, or their lack is named",
          "[bench]") {
  const std::string arguments = "links --gpus emulated:2 --max 64KB --repeats 1 --only pageable";
  std::set<std::string> names;
  const json document = document_of(arguments);
  for (const json& row : document.at("results")) {
    names.insert(row.at("name").get<std::string>());
    CHECK(row.at("kind") == "pageable");
    CHECK(row.at("gb_per_s").get<double>() > 0);
  }
  for (const char* name : {"gpu0 to pageable", "pageable to gpu0", "gpu0 and pageable",
                           "all GPUs to pageable", "pageable to all GPUs"})
    CHECK(names.count(name) == 1);
}

TEST_CASE("links without data are timed and not checked", "[bench]") {
  const json document = document_of(
      "links --machine \"1 socket x 2 cores, 1 gpu\" --simulate --data none --max 64KB --repeats "
      "1");
  CHECK_FALSE(document.at("results").empty());
}

TEST_CASE("a tiled factorisation is right and stands beside a library's own", "[bench]") {
  for (const char* arguments :
       {"--n 300 --tile 64", "--n 257 --tile 100 --dtype fp64 --policy round_robin",
        "--n 256 --policy late --devices gpu0,socket0", "--n 100 --tile 500 --devices socket0"}) {
    INFO(arguments);
    const json row = document_of("cholesky --gpus emulated:2 --repeats 1 " + std::string(arguments))
                         .at("results")
                         .at(0);
    CHECK(row.at("seconds").get<double>() > 0);
    CHECK(row.at("ratio_to_peer").get<double>() > 0);
    CHECK(row.at("check").get<std::string>().find("checked: ") == 0);
    CHECK(row.at("evictions") == 0);
  }
}

TEST_CASE("a factorisation that does not fit says what it moved", "[bench]") {
  const json row = document_of(
                       "cholesky --gpus emulated:1 --devices gpu0 --n 512 --tile 64 --repeats 1 "
                       "--no-peer --memory gpu0=256KB")
                       .at("results")
                       .at(0);
  CHECK(row.at("evictions").get<int>() > 0);
  CHECK(row.at("bytes_written_back").get<double>() > 0);
  CHECK(row.at("bytes_copied") >= row.at("bytes_written_back"));
  CHECK(row.at("panel") == 1);
  CHECK_FALSE(row.contains("peer"));
}

TEST_CASE("a factorisation without data is timed and not checked", "[bench]") {
  const json row = document_of(
                       "cholesky --machine \"1 socket x 2 cores, 2 gpus\" --simulate --data none "
                       "--n 8192 --repeats 1")
                       .at("results")
                       .at(0);
  CHECK(row.at("check") == "not checked: no data");
  CHECK(row.at("seconds").get<double>() > 0);
}

TEST_CASE("a factorisation that cannot be is refused with a reason", "[bench]") {
  for (const auto& [arguments, reason] :
       std::map<std::string, std::string>{{"--devices gpu9", "gpu9"},
                                          {"--policy best", "best"},
                                          {"--dtype fp16", "fp16"},
                                          {"--n 0", "--n"},
                                          {"--memory pinned=much", "pinned=much"}}) {
    INFO(arguments);
    const test::Answer answer = weft_bench("cholesky --gpus emulated:1 --n 64 " + arguments);
    CHECK(answer.exit_code != 0);
    CHECK(answer.text.find(reason) != std::string::npos);
  }
}

TEST_CASE("what a policy costs is measured beside naming the device", "[bench]") {
  const json document = document_of(
      "placement --machine \"1 socket x 2 cores, 2 gpus\" --policy nearest --ops 50 --repeats 1");
  REQUIRE(document.at("results").size() == 3);
  CHECK(document.at("devices") == 3);
  for (const json& row : document.at("results")) CHECK(row.at("ns_per_op").get<double>() > 0);
  const auto refused = weft_bench("placement --policy best");
  CHECK(refused.exit_code != 0);
  CHECK(refused.text.find("best") != std::string::npos);
}

TEST_CASE("a copy arrives over a link at the rate that the link has", "[bench]") {
  // 1 MiB at 100 MB/s takes 10.5 ms at the least, whatever else the machine does.
  const json document = document_of(
      "links --gpus emulated:1 --emulated link=100MB --min 1MB --max 1MB --repeats 1 --only pair");
  REQUIRE(document.at("results").size() == 2);
  for (const json& row : document.at("results")) {
    CHECK(row.at("gb_per_s").get<double>() < 0.11);
    CHECK(row.at("alone_us").get<double>() > 9'900);
  }
}

TEST_CASE("every collective is checked and measured with every algorithm it has", "[bench]") {
  const json document =
      document_of("collectives --gpus emulated:3 --min 4B --max 5000B --repeats 1");
  CHECK(document.at("members") == json({"gpu0", "gpu1", "gpu2"}));
  std::map<std::string, std::set<std::string>> asked;
  for (const json& row : document.at("results")) {
    asked[row.at("operation")].insert(row.at("asked_for").get<std::string>());
    const double us = row.at("us"), bytes = row.at("bytes");
    CHECK(us > 0);
    CHECK(row.at("alone_us").get<double>() > 0);
    CHECK(row.at("algorithm_gb_per_s").get<double>() == Approx(1e-3 * bytes / us));
    const double factor = row.at("operation") == "all_reduce"  ? 4.0 / 3
                          : row.at("operation") == "broadcast" ? 1.0
                                                               : 2.0 / 3;
    CHECK(row.at("bus_gb_per_s").get<double>() == Approx(1e-3 * bytes / us * factor));
  }
  const std::set<std::string> all{"auto", "ring", "tree", "star"};
  CHECK(asked["all_reduce"] == all);
  CHECK(asked["broadcast"] == all);
  CHECK(asked["reduce_scatter"] == std::set<std::string>{"auto"});
  CHECK(asked["all_gather"] == std::set<std::string>{"auto"});
}

TEST_CASE("members of a collective may be chosen, sockets among them", "[bench]") {
  const json document = document_of(
      "collectives --gpus emulated:2 --devices gpu1,socket0 --operation all_reduce --algorithm "
      "star --min 64B --max 64B --repeats 1");
  CHECK(document.at("members") == json({"gpu1", "socket0"}));
  REQUIRE(document.at("results").size() == 1);
  CHECK(document.at("results")[0].at("algorithm") == "star");
}

TEST_CASE("small ops on GPUs, across them and through the host give what they should", "[bench]") {
  const json document = document_of("gpu-ops --gpus emulated:2 --ops 200 --repeats 2");
  std::map<std::string, json> rows;
  for (const json& row : document.at("results")) {
    rows[row.at("name")] = row;
    CHECK(row.at("us").get<double>() > 0);
    CHECK(row.at("submit_us") <= row.at("us"));
  }
  CHECK(rows.size() == 7);
  CHECK(rows.at("chain_4B").at("count") == 200);
  CHECK(rows.at("chain_1KB").at("per") == "op");
  CHECK(rows.at("chains_16").at("count") == 192);
  CHECK(rows.at("cross_gpu").at("per") == "hop");
  for (const char* name : {"host_round", "host_read", "host_wait"})
    CHECK(rows.at(name).at("count") == 50);
}

TEST_CASE("with one GPU what needs two is left out and said", "[bench]") {
  const test::Answer answer = weft_bench("gpu-ops --gpus emulated:1 --ops 20 --repeats 1");
  CHECK(answer.exit_code == 0);
  CHECK(answer.text.find("cross_gpu: it needs 2 GPUs") != std::string::npos);
  CHECK(answer.text.find("host_round") != std::string::npos);
}

TEST_CASE("device benchmarks refuse by name what cannot be measured", "[bench]") {
  const auto refused = [](const std::string& arguments, const std::string& word) {
    const test::Answer answer = weft_bench(arguments);
    INFO(arguments << "\n" << answer.text);
    CHECK(answer.exit_code != 0);
    CHECK(answer.text.find(word) != std::string::npos);
  };
  refused("links --gpus none", "--gpus");
  refused("links --gpus emulated:1 --only wires", "wires");
  refused("links --gpus emulated:1 --min 2MB --max 1MB", "--min 2 MiB");
  refused("links --gpus emulated:1 --min 2B", "--min 2 B");
  refused("collectives --gpus emulated:1", "2 members");
  refused("collectives --devices gpu0,gpu7 --gpus emulated:2", "gpu7");
  refused("collectives --gpus emulated:2 --operation all_reduce --algorithm butterfly",
          "butterfly");
  refused("collectives --gpus emulated:2 --operation all_gather --algorithm tree", "none of the");
  refused("gpu-ops --gpus none", "--gpus");
  refused("gpu-ops --gpus emulated:1 --only cross_gpu", "cross_gpu");
  refused("gpu-ops --gpus emulated:1 --ops 0", "ops");
}

TEST_CASE("bus bandwidth counts as NCCL-tests do", "[bench]") {
  CHECK(bench::bus_factor(CollectiveKind::AllReduce, 2) == Approx(1));
  CHECK(bench::bus_factor(CollectiveKind::AllReduce, 8) == Approx(1.75));
  CHECK(bench::bus_factor(CollectiveKind::ReduceScatter, 4) == Approx(0.75));
  CHECK(bench::bus_factor(CollectiveKind::AllGather, 2) == Approx(0.5));
  CHECK(bench::bus_factor(CollectiveKind::Broadcast, 8) == 1);
}

TEST_CASE("sizes are whole floats, in parts of one size where they are parted", "[bench]") {
  CHECK(bench::sizes(4, 64, 4) == std::vector<std::size_t>{4, 16, 64});
  CHECK(bench::sizes(4, 60, 4) == std::vector<std::size_t>{4, 16, 60});
  CHECK(bench::sizes(8, 8, 4) == std::vector<std::size_t>{8});
  CHECK(bench::possible_bytes(CollectiveKind::AllReduce, 3, 4099) == 4096);
  CHECK(bench::possible_bytes(CollectiveKind::AllGather, 3, 4096) == 4092);
  CHECK(bench::possible_bytes(CollectiveKind::ReduceScatter, 3, 4) == 12);
  CHECK(bench::copies_of(1 << 30, 1 << 30) == 1);
  CHECK(bench::copies_of(16 << 20, 1 << 30) == 16);
  CHECK(bench::copies_of(4096, 1 << 30) == 64);
  CHECK(bench::copies_of(4096, 8192) == 2);
  CHECK(bench::format_bytes(4) == "4 B");
  CHECK(bench::format_bytes(std::size_t{64} << 10) == "64 KiB");
  CHECK(bench::format_bytes(std::size_t{1} << 30) == "1 GiB");
}

}  // namespace
