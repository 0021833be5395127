#include "actors/simulated/socket.hpp"

#include <algorithm>
#include <cmath>

#include "actors/simulated/measured_kernels.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_cost.hpp"
#include "framework/submit.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

// An op is shared among cores in parts of at least this many seconds of one core.
constexpr double kPart = 10e-6;

}  // namespace

class SimulatedSocket::Core final : public SimulatedLane {
 public:
  Core(Setup setup, SimulatedSocket& socket, std::uint32_t cores)
      : SimulatedLane(std::move(setup)), socket_(socket), cores_(cores) {}

  bool is_busy = false;

 private:
  Failure* prepare(Op& op) override { return allocate_outputs(op, socket_.place_); }
  void execute(Op& op) override { op.code->cpu(socket_, op); }
  // In bytes, for all cores share the memory; what touches none counts as one.
  void estimate(Op& op, Work& work) override {
    const DeviceModel& core = socket_.setup_.core;
    const double bytes = std::max(1.0, cost_of(op).bytes);
    work.fixed = core.gap_ns;
    work.amount = bytes;
    if (const auto measured = core.measured ? core.measured->find(op) : std::nullopt) {
      add_measured(*measured, bytes, work);
      return;
    }
    const double seconds = seconds_on(core, op);
    const double all = static_cast<double>(socket_.cores_.size());
    const double others = static_cast<double>(socket_.busy_ - 1);
    const double width = std::clamp(std::floor(seconds / kPart), 1.0, all - others);
    if (seconds <= 0) {
      work.amount = 0;
      return;
    }
    work.uses.push_back({cores_, seconds / bytes});
    if (socket_.setup_.memory) work.uses.push_back({*socket_.setup_.memory, 1});
    work.limit = width * bytes / seconds;
  }
  // Alone it takes what was measured. Of the memory it takes no more than there is: what was faster
  // found its data in caches.
  void add_measured(const MeasuredTime& measured, double bytes, Work& work) const {
    const double all = static_cast<double>(socket_.cores_.size());
    const double cores = std::min(measured.cores, all);
    const double seconds = measured.seconds * measured.cores / cores;
    work.limit = bytes / seconds;
    work.uses.push_back({cores_, cores * seconds / bytes});
    if (!socket_.setup_.memory) return;
    const double capacity = setup().simulation->share().capacity(*socket_.setup_.memory);
    work.uses.push_back({*socket_.setup_.memory, std::min(1.0, capacity / work.limit)});
  }
  void ended(std::int64_t) override {
    is_busy = false;
    --socket_.busy_;
    if (socket_.waiting_.empty()) return;
    socket_.mailbox_.nudge();
  }

  SimulatedSocket& socket_;
  const std::uint32_t cores_;  // a resource
};

SimulatedSocket::SimulatedSocket(Place& place, Setup setup)
    : setup_(std::move(setup)), place_(place), mailbox_(place.admission.get()) {
  FairShare& share = setup_.lane.simulation->share();
  const std::uint32_t count = std::max(1u, setup_.core.lanes);
  const std::uint32_t cores = share.add_resource(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    SimulatedLane::Setup own = setup_.lane;
    const std::string name = "core " + std::to_string(i);
    own.name += " " + name;
    own.track = own.tracer ? own.tracer->add_track(place.name, name, TrackKind::Socket) : 0;
    cores_.push_back(std::make_unique<Core>(std::move(own), *this, cores));
  }
  place.lanes.push_back(&mailbox_);
}

SimulatedSocket::~SimulatedSocket() = default;

SimulatedSocket::Core* SimulatedSocket::free_core() {
  for (auto& core : cores_)
    if (!core->is_busy) return core.get();
  return nullptr;
}

// When it is there for the cores: an op that was made ready by another is at once.
VirtualTime::Ns SimulatedSocket::came(const Op& op) const {
  const VirtualTime::Ns submitted = setup_.lane.simulation->program().of(op.id);
  return submitted ? submitted + setup_.core.launch_ns : 0;
}

bool SimulatedSocket::run_some() {
  waiting_.append(mailbox_.take_ready());
  waiting_.append(mailbox_.take_submitted());
  bool did = false;
  while (busy_ < cores_.size() && !waiting_.empty()) {
    Core* core = free_core();
    core->is_busy = true;
    ++busy_;
    Op* op = waiting_.pop_front();
    core->enqueue(*op, came(*op));
    did = was_used_ = true;
  }
  return did;
}

// In the parts that a team of threads would work on.
void SimulatedSocket::share(std::size_t n, std::size_t grain, Range range) {
  const std::size_t parts = std::min<std::size_t>(4 * cores_.size(), (n + grain - 1) / grain);
  const std::size_t step = std::max(grain, (n + parts - 1) / parts);
  for (std::size_t begin = 0; begin < n; begin += step)
    range.run(range.body, begin, std::min(n, begin + step));
}

}  // namespace weft
