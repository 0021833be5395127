#include "tests/actors/cuda/through_host.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "framework/tensor_state.hpp"
#include "tests/actors/cuda/host_stream.hpp"

namespace weft::test {
namespace {

struct OneThread final : Cpu {
  [[nodiscard]] std::size_t team_size() const override { return 1; }
  void share(std::size_t n, std::size_t, Range range) override { range.run(range.body, 0, n); }
};

// An op with its replicas in host memory for the time of the call.
struct Visit {
  struct Argument {
    Replica* replica;
    void *device, *host;
    std::size_t bytes;
  };
  Op* op;
  std::vector<Argument> arguments;
};

// Other ops may look at a replica's address meanwhile: the op gets replicas of its own.
void run(void* argument) {
  auto& visit = *static_cast<Visit*>(argument);
  std::vector<Replica> here(visit.arguments.size());
  std::vector<ArgSlot> slots;
  for (std::size_t i = 0; i < here.size(); ++i) {
    slots.push_back(visit.op->args()[i]);
    here[i].data = visit.arguments[i].host;
    here[i].bytes = visit.arguments[i].bytes;
    here[i].tensor = visit.arguments[i].replica->tensor;
    visit.op->args()[i] = ArgSlot(&here[i], slots[i].access());
  }
  try {
    OneThread cpu;
    visit.op->code->cpu(cpu, *visit.op);
  } catch (...) {
    std::terminate();  // the op cannot fail any more: see the header
  }
  for (std::size_t i = 0; i < here.size(); ++i) visit.op->args()[i] = slots[i];
}

// The op on host memory of its own, for what it throws.
void try_on_zeros(const std::function<void(Cpu&, Op&)>& cpu, Op& op) {
  std::vector<std::vector<std::max_align_t>> memory(op.arg_count);
  std::vector<Replica> here(op.arg_count);
  std::vector<ArgSlot> slots;
  for (std::size_t i = 0; i < here.size(); ++i) {
    slots.push_back(op.args()[i]);
    const Replica& replica = *slots[i].replica();
    memory[i].resize(replica.bytes / sizeof(std::max_align_t) + 1);
    here[i].data = memory[i].data();
    here[i].bytes = replica.bytes;
    here[i].tensor = replica.tensor;
    op.args()[i] = ArgSlot(&here[i], slots[i].access());
  }
  std::exception_ptr thrown;
  try {
    OneThread one;
    cpu(one, op);
  } catch (...) {
    thrown = std::current_exception();
  }
  for (std::size_t i = 0; i < here.size(); ++i) op.args()[i] = slots[i];
  if (thrown) std::rethrow_exception(thrown);
}

void keep_for_ever(Visit* visit) {
  static std::mutex mutex;
  static auto* kept = new std::vector<Visit*>;  // until the process ends
  std::lock_guard lock(mutex);
  kept->push_back(visit);
}

void give_back(void* argument) {
  auto* visit = static_cast<Visit*>(argument);
  for (const Visit::Argument& a : visit->arguments)
    if (a.bytes > 0) give_pinned(a.host, a.bytes);
  delete visit;
}

}  // namespace

void run_through_host(Cuda& gpu, Op& op) {
  auto* visit = new Visit{&op, {}};
  for (std::size_t i = 0; i < op.arg_count; ++i) {
    Replica* replica = op.args()[i].replica();
    Visit::Argument a{replica, replica->data, nullptr, replica->bytes};
    if (a.bytes > 0) {
      a.host = take_pinned(a.bytes);
      if (!overwrites(op.args()[i].access()))
        copy_in_stream(gpu.stream(), a.host, a.device, a.bytes);
    }
    visit->arguments.push_back(a);
  }
  call_in_stream(gpu.stream(), run, visit);
  for (std::size_t i = 0; i < op.arg_count; ++i) {
    const Visit::Argument& a = visit->arguments[i];
    if (a.bytes > 0 && op.args()[i].access() != Access::In)
      copy_in_stream(gpu.stream(), a.device, a.host, a.bytes);
  }
  // What is captured is done again with each launch of its graph: it stays.
  if (is_captured(gpu.stream()))
    keep_for_ever(visit);
  else
    call_in_stream(gpu.stream(), give_back, visit);
}

void add_variant_through_host(KernelCode& code) {
  code.cuda = run_through_host;
}

void add_variant_at_launch(KernelCode& code) {
  code.cuda = [cpu = code.cpu](Cuda& gpu, Op& op) {
    try_on_zeros(cpu, op);
    run_through_host(gpu, op);
  };
}

}  // namespace weft::test
