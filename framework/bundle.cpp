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

void end_member(Op* op) {
  if (op->code->destroy_scalars) op->code->destroy_scalars(*op);
  release(op);
}

}  // namespace

void Bundle::add(Op* op, std::vector<std::uint32_t> behind) {
  members_.emplace_back(op, end_member);
  order_->push_back(std::move(behind));
}

std::shared_ptr<Bundle> Bundle::with(
    const std::vector<std::pair<std::uint32_t, Op*>>& changed) const {
  auto made = std::make_shared<Bundle>();
  made->members_ = members_;
  made->order_ = order_;
  made->site_ = site_;
  for (const auto& [number, op] : changed) made->members_[number] = Member(op, end_member);
  return made;
}

std::string Bundle::name() const {
  std::vector<std::string> names;
  for (const Member& op : members_)
    if (std::find(names.begin(), names.end(), op->code->name) == names.end())
      names.push_back(op->code->name);
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ", ") + each;
  return text + " (" + std::to_string(members_.size()) + " ops)";
}

Cost Bundle::cost() const {
  Site& site = *site_;
  if (site.is_cost_known) return site.cost;
  for (const Member& op : members_) {
    const Cost cost = cost_of(*op);
    site.cost.flops += cost.flops;
    site.cost.bytes += cost.bytes;
  }
  site.is_cost_known = true;
  return site.cost;
}

void Bundle::allocate() const {
  for (const Member& op : members_)
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
