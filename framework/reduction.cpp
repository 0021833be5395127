#include "framework/reduction.hpp"

#include <cstring>
#include <vector>

#include "framework/call_builder.hpp"
#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/own_kernels.hpp"
#include "framework/plan_recorder.hpp"

namespace weft {
namespace {

// More contributions than this are summed up early, so that they do not pile up in memory.
constexpr std::size_t kMaxPartials = 16;

void sum_up(Op& op) {
  const Replica& into = *op.args()[0].replica();
  const std::size_t count = into.bytes / into.tensor->element_bytes;
  std::size_t next = 1;
  if (count == 0) return;
  if (op.args()[0].access() == Access::Out)
    std::memcpy(into.data, op.args()[next++].replica()->data, into.bytes);
  for (; next < op.arg_count; ++next)
    into.tensor->sum_partial(into.data, op.args()[next].replica()->data, count);
}

const std::shared_ptr<KernelCode>& make_sum() {
  static const std::shared_ptr<KernelCode> code = [] {
    auto made = std::make_shared<KernelCode>();
    made->name = "sum_partials";
    made->cpu = [](Cpu&, Op& op) { sum_up(op); };
    return made;
  }();
  return code;
}

const std::shared_ptr<const KernelCode>& sum_code() {
  static const std::shared_ptr<const KernelCode> code = make_sum();
  return code;
}

// The device that computes in `memory`, or any that shares the host's.
Place& place_at(const Fabric& fabric, std::uint32_t memory) {
  for (const auto& place : fabric.places)
    if (place->memory == memory) return *place;
  return *fabric.places.front();
}

// Submits the sum of all partial sums of `tensor`, whose lock is held.
void combine(Fabric& fabric, TensorState& tensor) {
  SmallVector<Argument, 12> arguments;
  arguments.push_back({&tensor, tensor.replicas.empty() ? Access::Out : Access::InOut, nullptr});
  for (const Partial& partial : *tensor.partials)
    arguments.push_back({partial.tensor, Access::In, nullptr});
  // Eviction may look at them, though no submission names them.
  struct Locked {
    const std::vector<Partial>& partials;
    explicit Locked(const std::vector<Partial>& all) : partials(all) {
      for (const Partial& partial : partials) partial.tensor->lock.lock();
    }
    ~Locked() {
      for (const Partial& partial : partials) partial.tensor->lock.unlock();
    }
  };
  {
    const Locked locked(*tensor.partials);
    const TensorState& first = *tensor.partials->front().tensor;
    Call call;
    call.place = &place_at(fabric, first.replicas.empty() ? 0 : first.replicas[0]->memory);
    call.code = &sum_code();
    call.arguments = {arguments.begin(), arguments.size()};
    Reservation reservation(fabric, Budget::Ignored);
    CallBuilder builder(fabric, call, call.arguments);
    builder.prepare(reservation);
    reservation.commit();
    release(builder.build(nullptr));
  }
  forget_partials(tensor);
}

bool has_partials(const TensorState& tensor) {
  return tensor.partials && !tensor.partials->empty();
}

}  // namespace

KernelCode& sum_partials_kernel() {
  return *make_sum();
}

void sum_up_partials(Fabric& fabric, TensorState& tensor) {
  if (has_partials(tensor)) combine(fabric, tensor);
}

PartialSet::PartialSet(Fabric& fabric, const Call& call) {
  for (const Argument& argument : call.arguments) {
    TensorState& tensor = *argument.tensor;
    if (argument.access != Access::Reduce) {
      if (tensor.partials && has_partials(tensor)) {
        if (argument.access == Access::Out) {  // overwritten: the contributions do not matter
          overwritten_.push_back(&tensor);
        } else {
          combine(fabric, tensor);
        }
      }
      arguments_.push_back(argument);
      continue;
    }
    if (!tensor.sum_partial) tensor.sum_partial = argument.sum;  // sums that run now read it
    if (has_partials(tensor) && tensor.partials->size() >= kMaxPartials) combine(fabric, tensor);
    TensorState* partial =
        make_tensor_state(fabric, tensor.shape, tensor.element_bytes, tensor.element_type);
    partial->is_partial = true;
    opened_.push_back({&tensor, partial});
    arguments_.push_back({partial, Access::Reduce, argument.sum});
  }
}

PartialSet::~PartialSet() {
  for (const Opened& opened : opened_) drop_handle(opened.partial);
}

void PartialSet::commit() {
  for (TensorState* tensor : overwritten_) forget_partials(*tensor);
  for (const Opened& opened : opened_) {
    if (!opened.tensor->partials) opened.tensor->partials = new std::vector<Partial>;
    opened.tensor->partials->push_back({opened.partial});
    if (PlanRecorder* recorder = PlanRecorder::of(*opened.tensor->fabric))
      recorder->add_reduced(*opened.tensor);
  }
  opened_.clear();
}

}  // namespace weft
