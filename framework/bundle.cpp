#include "framework/bundle.hpp"

#include <algorithm>
#include <new>

#include "framework/admit.hpp"
#include "framework/cpu.hpp"
#include "framework/memory_pool.hpp"
#include "framework/op_cost.hpp"
#include "framework/tensor_state.hpp"

namespace weft {
namespace {

using Handle = std::shared_ptr<Bundle>;

Handle& handle_of(void* scalars) {
  return *static_cast<Handle*>(scalars);
}

}  // namespace

Bundle::~Bundle() {
  kept.reset();  // it refers to the ops' memory
  for (Op* op : ops_) {
    if (op->code->destroy_scalars) op->code->destroy_scalars(*op);
    release(op);
  }
}

std::string Bundle::name() const {
  std::vector<std::string> names;
  for (const Op* op : ops_)
    if (std::find(names.begin(), names.end(), op->code->name) == names.end())
      names.push_back(op->code->name);
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ", ") + each;
  return text + " (" + std::to_string(ops_.size()) + " ops)";
}

Cost Bundle::cost() {
  if (is_cost_known_) return cost_;
  for (Op* op : ops_) {
    const Cost cost = cost_of(*op);
    cost_.flops += cost.flops;
    cost_.bytes += cost.bytes;
  }
  is_cost_known_ = true;
  return cost_;
}

void Bundle::allocate() {
  for (Op* op : ops_)
    for (std::size_t i = 0; i < op->arg_count; ++i) {
      Replica& replica = *op->args()[i].replica();
      if (op->args()[i].access() == Access::In || replica.data || replica.bytes == 0) continue;
      replica.data = replica.pool->allocate(replica.bytes);
      if (!replica.data) throw DeviceError(out_of_memory(*replica.pool, replica.bytes));
    }
}

Bundle& bundle_of(Op& op) {
  return *handle_of(op.scalars());
}

KernelCode& bundle_kernel() {
  static KernelCode& code = *[] {
    auto* made = new KernelCode;  // lives as long as the process: no runtime adopts it
    made->name = "bundle";
    made->cpu = [](Cpu& cpu, Op& op) {
      Bundle& bundle = bundle_of(op);
      bundle.allocate();
      bundle.run_each([&](Op& member) { member.code->cpu(cpu, member); });
    };
    made->cost = [](Op& op) { return bundle_of(op).cost(); };
    made->destroy_scalars = [](Op& op) { handle_of(op.scalars()).~Handle(); };
    made->copy_scalars = [](const void* from, void* to) {
      new (to) Handle(*static_cast<const Handle*>(from));
    };
    return made;
  }();
  return code;
}

}  // namespace weft
