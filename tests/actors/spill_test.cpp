#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "actors/runtime_parts.hpp"
#include "framework/gate.hpp"
#include "framework/trace.hpp"
#include "framework/trace_chrome.hpp"
#include "support/catch.hpp"
#include "tests/actors/graph_runs.hpp"

using namespace weft;
using namespace weft::test;

// Working sets that do not fit into the host's memory.
namespace {

constexpr std::size_t kTile = 64 << 10;  // bytes: a size that pools hand out as it is
constexpr std::int64_t kValues = kTile / sizeof(float);

/// A directory of the test's own, which must be empty in the end.
class SpillDirectory {
 public:
  SpillDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-spill-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~SpillDirectory() { std::filesystem::remove_all(path_); }
  SpillDirectory(const SpillDirectory&) = delete;
  SpillDirectory& operator=(const SpillDirectory&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

/// A runtime's spill file, opened for less than reading and writing meanwhile.
class SpillFd {
 public:
  explicit SpillFd(const SpillFile& file)
      : descriptor_(file.descriptor()), whole_(dup(descriptor_)) {}
  ~SpillFd() {
    restore();
    close(whole_);
  }
  SpillFd(const SpillFd&) = delete;
  SpillFd& operator=(const SpillFd&) = delete;

  void reopen(int flags) {
    const std::string itself = "/proc/self/fd/" + std::to_string(whole_);
    const int opened = open(itself.c_str(), flags | O_CLOEXEC);
    if (opened < 0 || dup2(opened, descriptor_) < 0) throw std::runtime_error("no descriptor");
    close(opened);
  }
  void restore() { dup2(whole_, descriptor_); }

 private:
  const int descriptor_, whole_;
};

RuntimeOptions spill_options(const std::string& directory, bool simulate, std::size_t host,
                             std::size_t gpu) {
  RuntimeOptions options;
  options.machine = parse_machine("1 socket x 1 core, 2 gpus");
  options.gpus = GpuMode::Emulated;
  options.emulated = EmulatedOptions{};
  options.emulated->memory_bytes = gpu;
  options.simulate = simulate;
  options.data = SimulatedData::Real;
  options.host_memory_bytes = host;
  options.spill = directory;
  options.serial = false;
  options.pin = false;
  options.trace = true;
  options.watchdog = std::chrono::seconds(20);
  return options;
}

const auto increase = Kernel("increase").cpu([](Cpu&, InOut<float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] * 1.5f + static_cast<float>(i % 7);
});
const auto take_first =
    Kernel("take_first").cpu([](Cpu&, In<float> x, InOut<float> sum) { sum[0] += x[0]; });

void increase_by_hand(std::vector<float>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] * 1.5f + static_cast<float>(i % 7);
}

std::vector<std::vector<float>> some_values(std::size_t count) {
  std::vector<std::vector<float>> values(count, std::vector<float>(kValues));
  for (std::size_t b = 0; b < count; ++b)
    for (std::size_t i = 0; i < values[b].size(); ++i)
      values[b][i] = static_cast<float>(b) + 0.001f * static_cast<float>(i % 1000);
  return values;
}

std::vector<Tensor<float>> tiles_of(const Runtime& runtime,
                                    const std::vector<std::vector<float>>& values) {
  std::vector<Tensor<float>> tiles;
  for (const auto& each : values) tiles.push_back(runtime.from_host(each, {kValues}));
  return tiles;
}

bool equals(const Tensor<float>& tile, const std::vector<float>& expected) {
  const auto values = tile.to_host();
  values.wait();
  return std::equal(expected.begin(), expected.end(), values.span().begin());
}

/// Bytes that copies moved to and from the disk.
struct DiskTraffic {
  std::size_t written = 0, read = 0;
};

DiskTraffic disk_traffic(const Runtime& runtime) {
  const TraceData trace = runtime.tracer()->collect();
  std::string link;
  for (const TraceData::Track& track : trace.tracks)
    if (track.lane.rfind("to disk", 0) == 0) link = track.actor;
  DiskTraffic traffic;
  for (const TraceData::Span& span : trace.spans) {
    const TraceData::Track& track = trace.tracks[span.track];
    if (span.kind != SpanKind::Copy || track.actor != link) continue;
    const bool is_write = track.lane.rfind("to disk", 0) == 0;
    (is_write ? traffic.written : traffic.read) += span.bytes;
  }
  return traffic;
}

// The largest op of a random graph fits; of these tensors eight do.
constexpr std::size_t kLittle = 2560;

Program little_program(std::uint64_t seed) {
  Program program = make_program(seed, 0);
  for (Graph& thread : program.threads) {
    thread.reads_away = true;
    for (std::size_t t = program.shared.size(); t < thread.tensors.size(); ++t)
      thread.tensors[t].size = 33;
  }
  return program;
}

}  // namespace

TEST_CASE("a working set of four times the host's memory is spilled and comes back to the bit",
          "[actors][spill]") {
  constexpr std::size_t kTiles = 64, kHost = 16, kGpu = 8;
  constexpr int kPasses = 6;
  for (const bool on_gpu : {false, true}) {
    for (const bool simulate : {false, true}) {
      INFO((on_gpu ? "gpu" : "socket") << (simulate ? ", simulated" : ", real files"));
      const SpillDirectory directory;
      {
        Runtime runtime(spill_options(directory.path(), simulate, kHost * kTile, kGpu * kTile));
        auto expected = some_values(kTiles);
        const auto tiles = tiles_of(runtime, expected);
        const Device device = on_gpu ? runtime.gpu(0) : runtime.socket(0);
        for (int pass = 0; pass < kPasses; ++pass)
          for (std::size_t t = 0; t < kTiles; ++t) device.submit(increase, inout(tiles[t]));
        for (int pass = 0; pass < kPasses; ++pass)
          for (std::size_t t = 0; t < kTiles; ++t) increase_by_hand(expected[t]);
        runtime.wait_idle();
        const DiskTraffic traffic = disk_traffic(runtime);
        // In turn through 4 times the memory: Belady misses (n - k) / (n - 1) of the uses (k of n
        // fit), and whatever is changed is written once for each time it is read, and once at
        // first.
        const std::size_t fit = kHost + (on_gpu ? kGpu : 0);
        const double reads = kPasses * static_cast<double>(kTiles * (kTiles - fit)) / (kTiles - 1);
        const double bound = (2 * reads + (kTiles - fit)) * kTile;
        const double moved = static_cast<double>(traffic.read + traffic.written);
        WARN((on_gpu ? "gpu" : "socket")
             << (simulate ? ", simulated: " : ", real files: ") << traffic.written / kTile
             << " tiles written, " << traffic.read / kTile << " read, " << moved / bound
             << " x Belady's traffic");
        CHECK(traffic.written >= (kTiles - fit) * kTile);
        CHECK(traffic.read >= (kTiles - fit) * kTile);
        CHECK(moved <= 1.3 * bound);
        for (std::size_t t = 0; t < kTiles; ++t) {
          INFO("tile " << t);
          CHECK(equals(tiles[t], expected[t]));
        }
      }
      CHECK(directory.is_empty());
    }
  }
}

TEST_CASE("GPUs and the host may both be short: room is made from the bottom up",
          "[actors][spill]") {
  for (const bool simulate : {false, true}) {
    const SpillDirectory directory;
    Runtime runtime(spill_options(directory.path(), simulate, 4 * kTile, 3 * kTile));
    auto expected = some_values(40);
    const auto tiles = tiles_of(runtime, expected);
    auto sum = runtime.from_host(std::vector<float>(kValues, 0.0f), {kValues});
    float expected_sum = 0;
    for (int pass = 0; pass < 5; ++pass)
      for (std::size_t t = 0; t < tiles.size(); ++t) {
        const Device device = t % 3 == 2 ? runtime.socket(0) : runtime.gpu(t % 3);
        device.submit(increase, inout(tiles[t]));
        runtime.gpu(t % 2).submit(take_first, in(tiles[t]), inout(sum));
        increase_by_hand(expected[t]);
        expected_sum += expected[t][0];
      }
    CHECK(sum.to_host()[0] == expected_sum);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      INFO("tile " << t);
      CHECK(equals(tiles[t], expected[t]));
    }
    runtime.wait_idle();
    CHECK(runtime.fabric().gate->evictions() > 0);
    CHECK(disk_traffic(runtime).read > 0);
    CHECK(directory.is_empty());
  }
}

TEST_CASE("a disk that is too small fails what does not fit and says what it wanted",
          "[actors][spill]") {
  for (const bool simulate : {false, true}) {
    const SpillDirectory directory;
    RuntimeOptions options = spill_options(directory.path(), simulate, 4 * kTile, 2 * kTile);
    options.memory = "disk0=" + std::to_string(3 * kTile);
    Runtime runtime(std::move(options));
    const auto values = some_values(7);
    const auto tiles = tiles_of(runtime, values);  // 4 in memory, 3 on the disk
    const auto one_more = runtime.tensor<float>({kValues});
    const auto fill = Kernel("fill").cpu([](Cpu&, Out<float> x) { x[0] = 1; });
    const Future never = runtime.socket(0).submit(fill, out(one_more));
    CHECK_THROWS_WITH(never.wait(),
                      Catch::Matchers::Contains("out of memory") &&
                          Catch::Matchers::Contains("wanted " + std::to_string(kTile)) &&
                          Catch::Matchers::Contains("spill to " + directory.path()) &&
                          Catch::Matchers::Contains(std::to_string(3 * kTile) + " bytes"));
    CHECK_THROWS_WITH(runtime.from_host(values[0], {kValues}),
                      Catch::Matchers::Contains("spill to " + directory.path()));
  }
}

TEST_CASE("a disk without room still lets values go that it has beside the host",
          "[actors][spill]") {
  const SpillDirectory directory;
  RuntimeOptions options = spill_options(directory.path(), false, 4 * kTile, 2 * kTile);
  options.memory = "disk0=" + std::to_string(3 * kTile);
  Runtime runtime(std::move(options));
  auto expected = some_values(6);
  const auto tiles = tiles_of(runtime, expected);
  for (int pass = 0; pass < 4; ++pass)
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      runtime.socket(0).submit(increase, inout(tiles[t]));
      increase_by_hand(expected[t]);
    }
  runtime.wait_idle();
  std::vector<float> read(kValues);
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    tiles[t].copy_to(std::span<float>(read)).wait();
    CHECK(read == expected[t]);
  }
}

TEST_CASE("an op that can never fit still fails at once", "[actors][spill]") {
  for (const bool simulate : {false, true}) {
    const SpillDirectory directory;
    Runtime runtime(spill_options(directory.path(), simulate, 8 * kTile, 4 * kTile));
    const auto large = runtime.from_host(std::vector<float>(6 * kValues), {6 * kValues});
    const Future never = runtime.gpu(0).submit(increase, inout(large));
    CHECK_THROWS_WITH(never.wait(), Catch::Matchers::Contains(std::to_string(6 * kTile)) &&
                                        Catch::Matchers::Contains(std::to_string(4 * kTile)));
    CHECK_THROWS_WITH(runtime.from_host(std::vector<float>(9 * kValues), {9 * kValues}),
                      Catch::Matchers::Contains(std::to_string(9 * kTile)) &&
                          Catch::Matchers::Contains(std::to_string(8 * kTile)));
  }
}

TEST_CASE("a directory that cannot be used is named when the runtime starts", "[actors][spill]") {
  const SpillDirectory directory;
  const std::string file = directory.path() + "/file";
  std::ofstream(file) << "not a directory";
  const std::string locked = directory.path() + "/locked";
  std::filesystem::create_directory(locked);
  std::filesystem::permissions(locked, std::filesystem::perms::owner_read);
  // Permissions do not bind the superuser; nobody can write there.
  const std::string unwritable = geteuid() == 0 ? "/proc" : locked;
  struct Case {
    std::string directory, why;
  };
  for (const Case& each :
       {Case{directory.path() + "/missing", "No such file"}, Case{file, "is no directory"},
        Case{unwritable, "no file can be made"}}) {
    INFO(each.directory);
    CHECK_THROWS_WITH(Runtime(spill_options(each.directory, false, 8 * kTile, 4 * kTile)),
                      Catch::Matchers::Contains("spill \"" + each.directory + "\"") &&
                          Catch::Matchers::Contains(each.why) &&
                          Catch::Matchers::Contains("wanted a directory"));
  }
  RuntimeOptions options = spill_options("", false, 8 * kTile, 4 * kTile);
  options.memory = "disk0=1GB";
  CHECK_THROWS_WITH(Runtime(std::move(options)), Catch::Matchers::Contains("disk0"));
}

TEST_CASE("what the system refuses fails the copy and all that needs it, and the rest goes on",
          "[actors][spill]") {
  const SpillDirectory directory;
  Runtime runtime(spill_options(directory.path(), false, 4 * kTile, 2 * kTile));
  const auto expected = some_values(8);
  const auto tiles = tiles_of(runtime, expected);  // at least four are on the disk
  const auto sum = runtime.from_host(std::vector<float>{0.0f}, {1});
  runtime.wait_idle();
  SpillFd fd(*runtime.parts().spill->file());

  fd.reopen(O_WRONLY);
  std::vector<Future> reads;
  for (std::size_t t = 0; t < 4; ++t)
    reads.push_back(runtime.gpu(0).submit(take_first, in(tiles[t]), inout(sum)));
  CHECK_THROWS_WITH(reads[0].wait(),
                    Catch::Matchers::Contains("device error") &&
                        Catch::Matchers::Contains("spill directory \"" + directory.path() + "\"") &&
                        Catch::Matchers::Contains("pread: Bad file descriptor"));
  for (const Future& read : reads) {
    REQUIRE_THROWS_AS(read.wait(), OpError);
    CHECK(read.failure()->root_op() == "copy");
  }
  CHECK_THROWS_AS(sum.to_host().wait(), OpError);
  runtime.wait_idle();

  // It can be read again: nothing was lost.
  fd.restore();
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    INFO("tile " << t);
    CHECK(equals(tiles[t], expected[t]));
  }

  // What cannot be written is lost, and whoever wants it is told.
  fd.reopen(O_RDONLY);
  std::vector<Future> changes;
  for (int pass = 0; pass < 3; ++pass)
    for (const auto& tile : tiles)
      changes.push_back(runtime.socket(0).submit(increase, inout(tile)));
  runtime.wait_idle();
  std::size_t refused = 0;
  for (const Future& change : changes) {
    if (!change.failure()) continue;
    const std::string message = change.failure()->root_message();
    INFO(message);
    CHECK_THAT(message, Catch::Matchers::Contains(directory.path()));
    // Space for it had been set aside before, or could not be.
    const bool is_write = change.failure()->kind() == FailureKind::DeviceError;
    if (is_write) CHECK_THAT(message, Catch::Matchers::Contains("pwrite: Bad file descriptor"));
    if (!is_write) CHECK_THAT(message, Catch::Matchers::Contains("the rest cannot be had"));
    refused += is_write;
  }
  CHECK(refused > 0);
  fd.restore();
  const auto fresh = runtime.from_host(expected[0], {kValues});
  CHECK(equals(fresh, expected[0]));
}

TEST_CASE("a disk that is full before its budget is costs no value", "[actors][spill]") {
  const SpillDirectory directory;
  Runtime runtime(spill_options(directory.path(), false, 4 * kTile, 2 * kTile));
  const auto expected = some_values(5);
  std::vector<Tensor<float>> tiles;
  for (std::size_t t = 0; t < 4; ++t) tiles.push_back(runtime.from_host(expected[t], {kValues}));
  SpillFd fd(*runtime.parts().spill->file());
  fd.reopen(O_RDONLY);  // no space can be set aside
  CHECK_THROWS_WITH(runtime.from_host(expected[4], {kValues}),
                    Catch::Matchers::Contains("spill to " + directory.path()) &&
                        Catch::Matchers::Contains("the rest cannot be had"));
  std::vector<float> read(kValues);
  for (std::size_t t = 0; t < 4; ++t) {
    tiles[t].copy_to(std::span<float>(read)).wait();
    CHECK(read == expected[t]);
  }
  fd.restore();
  tiles.push_back(runtime.from_host(expected[4], {kValues}));
  for (std::size_t t = 0; t < 5; ++t) CHECK(equals(tiles[t], expected[t]));
}

TEST_CASE("a full file system is out of memory, not a write that fails", "[actors][spill]") {
  const SpillDirectory directory;
  SpillFile file(directory.path());
  CHECK(file.free_bytes() > 0);
  CHECK(file.allocate(std::size_t{1} << 62) == nullptr);
  void* const token = file.allocate(kTile);
  REQUIRE(token != nullptr);
  std::vector<char> written(kTile, 'x'), read(kTile);
  CHECK(file.write(written.data(), token, 0, kTile) == "");
  CHECK(file.read(read.data(), token, 0, kTile) == "");
  CHECK(read == written);
  CHECK_THAT(file.read(read.data(), token, 1, kTile),
             Catch::Matchers::Contains("then the file ended"));
}

TEST_CASE("space that is given back is handed out again", "[actors][spill]") {
  const SpillDirectory directory;
  SpillFile file(directory.path());
  void* const a = file.allocate(4096);
  void* const b = file.allocate(8192);
  void* const c = file.allocate(4096);
  file.free(a, 4096);
  file.free(b, 8192);
  CHECK(file.allocate(12288) == a);  // neighbours are joined
  file.free(c, 4096);
  CHECK(file.allocate(64) == c);
}

TEST_CASE("faults on the disk's link are failures as on any other", "[actors][spill]") {
  for (const bool simulate : {false, true}) {
    const SpillDirectory directory;
    RuntimeOptions options = spill_options(directory.path(), simulate, 4 * kTile, 2 * kTile);
    std::atomic<int> copies{0};
    options.emulated->fault = [&](const LaneOp& op) -> std::optional<std::string> {
      if (op.lane.find("to disk") == std::string::npos) return std::nullopt;
      return ++copies == 3 ? std::optional<std::string>("no more") : std::nullopt;
    };
    Runtime runtime(std::move(options));
    const auto expected = some_values(12);
    const auto tiles = tiles_of(runtime, expected);
    runtime.wait_idle();
    std::size_t lost = 0;
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      const auto values = tiles[t].to_host();
      try {
        values.wait();
        CHECK(values[5] == expected[t][5]);
      } catch (const OpError& error) {
        ++lost;
        CHECK_THAT(error.what(), Catch::Matchers::Contains("no more"));
      }
    }
    CHECK(lost == 1);
  }
}

TEST_CASE("random graphs that spill equal the oracle to the bit", "[actors][spill][random]") {
  const SpillDirectory directory;
  struct Case {
    std::string machine;
    bool simulate, serial;
    std::uint64_t share;  // of the seeds
  };
  const std::string small = "1 socket x 2 cores, 1 gpu", large = "2 sockets x 2 cores, 3 gpus";
  for (const Case& each :
       {Case{small, false, false, 1}, Case{large, false, false, 1}, Case{small, false, true, 8},
        Case{small, true, false, 2}, Case{large, true, false, 4}, Case{small, true, true, 8}}) {
    const std::string name =
        each.machine + (each.simulate ? ", simulated" : "") + (each.serial ? ", serial" : "");
    RuntimeOptions options = spill_options(directory.path(), each.simulate, kLittle, kLittle);
    options.machine = parse_machine(each.machine);
    options.serial = each.serial;
    options.trace = false;
    Runtime runtime(std::move(options));
    Footprint before = Footprint::of(runtime.fabric());
    if (each.serial) ++before.ops;  // the last op of all
    const std::uint64_t count = seeds_or_part(400, 2, each.share);
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      INFO("seed " << seed << " on " << name);
      REQUIRE(run_program(runtime, little_program(seed)) == "");
      const Footprint after = settled_footprint(runtime, before);
      INFO(before.to_string() << " before, " << after.to_string() << " after");
      REQUIRE((after == before));
    }
    const MemoryPool& disk = *runtime.fabric().memories[*runtime.fabric().spill];
    WARN(name << ": " << runtime.fabric().gate->evictions() << " evictions, "
              << disk.peak_reserved() << " bytes on the disk at most");
    CHECK(disk.peak_reserved() > 0);
  }
  CHECK(directory.is_empty());
}

TEST_CASE("simulated spilling is the same in every run and takes the disk's time",
          "[actors][spill]") {
  auto run = [](std::chrono::nanoseconds& time) {
    Runtime runtime(spill_options("/nowhere", true, 8 * kTile, 4 * kTile));
    const auto tiles = tiles_of(runtime, some_values(32));
    for (int pass = 0; pass < 3; ++pass)
      for (const auto& tile : tiles) runtime.gpu(0).submit(increase, inout(tile));
    runtime.wait_idle();
    time = runtime.now();
    std::ostringstream trace;
    write_chrome_trace(runtime.tracer()->collect(), trace);
    const DiskTraffic traffic = disk_traffic(runtime);
    // 3 GB/s each way and 80 us a copy: see rates.hpp.
    const double busy = 1e-9 * static_cast<double>(time.count());
    CHECK(busy > static_cast<double>(std::max(traffic.read, traffic.written)) / 3e9);
    return trace.str();
  };
  std::chrono::nanoseconds first{}, second{};
  const std::string a = run(first), b = run(second);
  CHECK(first == second);
  CHECK((a == b));
  CHECK(a.find("disk0") != std::string::npos);
}

TEST_CASE("copies to the disk overlap with each other and with kernels", "[actors][spill]") {
  for (const bool simulate : {false, true}) {
    const SpillDirectory directory;
    Runtime runtime(spill_options(directory.path(), simulate, 16 * kTile, 8 * kTile));
    const auto tiles = tiles_of(runtime, some_values(48));
    for (int pass = 0; pass < 4; ++pass)
      for (const auto& tile : tiles) runtime.gpu(0).submit(increase, inout(tile));
    runtime.wait_idle();
    const TraceData trace = runtime.tracer()->collect();
    std::size_t copies = 0, overlaps = 0, beside_kernels = 0;
    for (const auto& copy : trace.spans) {
      if (trace.tracks[copy.track].lane.rfind("to disk", 0) != 0) continue;
      ++copies;
      overlaps += std::any_of(trace.spans.begin(), trace.spans.end(), [&](const auto& other) {
        return other.track != copy.track && other.start_ns < copy.end_ns &&
               copy.start_ns < other.end_ns;
      });
      beside_kernels += std::any_of(trace.spans.begin(), trace.spans.end(), [&](const auto& other) {
        return other.kind == SpanKind::Kernel && other.start_ns < copy.end_ns &&
               copy.start_ns < other.end_ns;
      });
    }
    WARN(overlaps << " of " << copies << " writes overlap with something"
                  << (simulate ? ", simulated" : ", real files"));
    CHECK(copies > 0);
    if (!simulate) continue;  // in real time it depends on the machine's load
    CHECK(overlaps > copies / 2);
    CHECK(beside_kernels > copies / 10);
  }
}
