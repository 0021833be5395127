#include "apps/bench/device_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/bench/cholesky.hpp"
#include "apps/bench/collectives.hpp"
#include "apps/bench/gpu_ops.hpp"
#include "apps/bench/links.hpp"
#include "apps/bench/placement.hpp"
#include "apps/bench/simulation.hpp"
#include "apps/common/output.hpp"

namespace weft::bench {
namespace {

// A size such as 4KB or 1GB, in powers of 1024.
CLI::Option* add_size(CLI::App& command, const char* name, std::size_t& value, const char* about) {
  return command.add_option(name, value, about)->transform(CLI::AsSizeValue(false));
}

template <class Options, class Run>
void finish(CLI::App& command, const std::shared_ptr<Options>& options, Run run) {
  apps::add_common_options(command, options->common);
  command
      .add_option("--repeats,--repeat", options->repeats, "timed runs of each; the median counts")
      ->check(CLI::Range(1u, 10'000u))
      ->capture_default_str();
  command.callback([options, run] {
    apps::Output output(options->common);
    if (const int exit_code = run(*options, output)) throw CLI::RuntimeError(exit_code);
  });
}

void add_links(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "links", "rates and latencies of copies: each pair of devices, both ways, all GPUs at once");
  auto options = std::make_shared<LinkOptions>();
  options->repeats = 3;
  add_size(*command, "--min", options->least, "smallest copy, e.g. 4KB");
  add_size(*command, "--max", options->most,
           "largest copy, e.g. 1GB (default: 1 GiB, with emulated GPUs 16 MiB)");
  command
      ->add_option("--only", options->only,
                   "some of pair, both_ways, all, pageable (memory that the program allocated)")
      ->delimiter(',')
      ->check(CLI::IsMember({"pair", "both_ways", "all", "pageable"}));
  command->footer(
      "Rates: several copies in a row, of all flows together, from submission until the host sees\n"
      "the last one done.\n"
      "JSON: {\"results\":[{\"kind\",\"name\",\"bytes\",\"copies\",\"gb_per_s\",\"gb_per_s_min\",\n"
      "\"gb_per_s_max\",\"alone_us\"}]}; GB are 10^9 bytes.");
  finish(*command, options, run_links);
}

void add_collectives(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "collectives", "all-reduce, broadcast, reduce-scatter and all-gather, by size and algorithm");
  auto options = std::make_shared<CollectiveOptions>();
  command
      ->add_option("--devices", options->devices, "the members, e.g. gpu0,gpu1 (default: all GPUs)")
      ->delimiter(',');
  command->add_option("--operation", options->operations, "some of them (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"all_reduce", "broadcast", "reduce_scatter", "all_gather"}));
  std::vector<std::string> algorithms{"auto"};
  for (CollectiveAlgorithm algorithm : algorithms_of(CollectiveKind::AllReduce))
    algorithms.emplace_back(to_string(algorithm));
  command
      ->add_option("--algorithm", options->algorithms,
                   "some of them; auto: by size and topology (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(algorithms));
  add_size(*command, "--min", options->least, "smallest size, e.g. 4B");
  add_size(*command, "--max", options->most,
           "largest size, e.g. 1GB (default: 1 GiB, with emulated GPUs 16 MiB)");
  command->footer(
      "Sizes as NCCL-tests count them: of a member's data before all_reduce and broadcast, of all\n"
      "data before reduce_scatter and after all_gather. Each result is checked first.\n"
      "JSON: {\"members\",\"results\":[{\"operation\",\"asked_for\",\"algorithm\",\"bytes\",\n"
      "\"in_a_row\",\"us\",\"us_min\",\"us_max\",\"alone_us\",…,\"algorithm_gb_per_s\",\n"
      "\"bus_gb_per_s\"}]}");
  finish(*command, options, run_collectives);
}

void add_gpu_ops(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "gpu-ops", "small ops that depend on each other: on a GPU, across GPUs, through the host");
  auto options = std::make_shared<GpuOpOptions>();
  command->add_option("--ops", options->ops, "ops of a run; rounds through the host: a fourth")
      ->check(CLI::Range(1u, 10'000'000u))
      ->capture_default_str();
  command
      ->add_option("--only", options->only,
                   "some of chain_4B, chain_1KB, chains_16, cross_gpu, host_round, host_read, "
                   "host_wait")
      ->delimiter(',');
  command->add_flag("--learn", options->learn,
                    "learn run times meanwhile, as a program does that calls anywhere()");
  command->footer(
      "JSON: "
      "{\"learn\",\"results\":[{\"name\",\"per\",\"count\",\"us\",\"us_min\",\"us_max\",\"submit_"
      "us\","
      "…}]}");
  finish(*command, options, run_gpu_ops);
}

void add_simulation(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "simulation", "how fast ops go through a simulated machine, in seconds of this one");
  auto options = std::make_shared<SimulationOptions>();
  command->add_option("--ops", options->ops, "ops of a run, fewest first")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{1}, std::size_t{100'000'000}));
  command->footer(
      "On one thread, without data unless --data real. JSON: {\"machine\",\"results\":[{\"ops\",\n"
      "\"seconds\",\"ops_per_second\",\"virtual_seconds\"}],\"most_to_fewest\"}");
  finish(*command, options, run_simulation);
}

void add_placement(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "placement", "what it costs a submitter that a policy places its ops, by policy");
  auto options = std::make_shared<PlacementOptions>();
  command
      ->add_option("--policy", options->policies,
                   "auto, earliest_finish, nearest, round_robin, fixed:DEVICE")
      ->delimiter(',');
  command->add_option("--ops", options->ops, "ops of a round")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}))
      ->capture_default_str();
  command->footer(
      "On a simulated machine, so that nothing runs meanwhile: by default 2 sockets and 8 GPUs.\n"
      "JSON: {\"machine\",\"devices\",\"results\":[{\"placement\",\"ns_per_op\",\n"
      "\"more_ns\"}]}");
  finish(*command, options, run_placement);
}

void add_cholesky(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "cholesky",
      "a tiled Cholesky factorisation that nobody places, beside cuSOLVER's or OpenBLAS's own");
  auto options = std::make_shared<CholeskyOptions>();
  options->repeats = 3;
  const auto extents = CLI::Range(std::int64_t{1}, std::int64_t{1} << 20);
  command->add_option("--n", options->n, "the matrix is n x n (default: 16384; without CUDA 2048)")
      ->check(extents);
  command
      ->add_option("--tile", options->tile,
                   "tiles are tile x tile (default: an eighth of n, 128 to 2048; from n = 65536 on "
                   "4096 where all of it fits)")
      ->check(extents);
  command
      ->add_option("--panel", options->panel,
                   "columns of tiles that are factored at a time (default: all that fit a GPU's "
                   "memory, else what half of it holds)")
      ->check(extents);
  command->add_option("--dtype", options->dtype, "fp32 or fp64")
      ->check(CLI::IsMember({"fp32", "fp64"}))
      ->capture_default_str();
  command
      ->add_option("--policy", options->policy,
                   "auto, earliest_finish, heft, late, nearest, round_robin, fixed:DEVICE")
      ->capture_default_str();
  command
      ->add_option("--devices", options->devices,
                   "where ops may be placed, e.g. gpu0,socket0 (default: everywhere)")
      ->delimiter(',');
  command->add_flag("--no-peer", options->no_peer, "weft alone");
  command->footer(
      "From the first submission until the last op is done; tiles are made before, where ops are\n"
      "placed. The peer factors the whole matrix on one GPU, without --memory. Sampled elements "
      "of\n"
      "the result are checked. JSON: "
      "{\"results\":[{\"n\",\"tile\",\"panel\",\"dtype\",\"policy\",\n"
      "\"memory\",\"devices\",\"ops\",\"seconds\",…,\"flops_per_second\",\"bytes_copied\",\n"
      "\"bytes_written_back\",\"evictions\",\"check\",\"peer\",\"peer_seconds\",…,\n"
      "\"ratio_to_peer\"}]}");
  finish(*command, options, run_cholesky);
}

}  // namespace

void add_device_commands(CLI::App& bench) {
  add_links(bench);
  add_collectives(bench);
  add_gpu_ops(bench);
  add_simulation(bench);
  add_placement(bench);
  add_cholesky(bench);
}

}  // namespace weft::bench
