#include "framework/op_cost.hpp"

#include <algorithm>

#include "framework/op.hpp"
#include "framework/tensor_state.hpp"

namespace weft {

Cost cost_of(Op& op) {
  if (op.code->cost) return op.code->cost(op);
  Cost cost;
  for (std::size_t i = 0; i < op.arg_count; ++i) {
    const auto bytes = static_cast<double>(op.args()[i].replica()->bytes);
    cost.bytes += op.args()[i].access() == Access::InOut ? 2 * bytes : bytes;
  }
  return cost;
}

double amount_of(Op& op) {
  const Cost cost = cost_of(op);
  return std::max(1.0, cost.flops > 0 ? cost.flops : cost.bytes);
}

bool is_fp64(Op& op) {
  const Replica* largest = nullptr;
  for (std::size_t i = 0; i < op.arg_count; ++i) {
    const Replica* replica = op.args()[i].replica();
    if (!largest || replica->bytes > largest->bytes) largest = replica;
  }
  return largest && largest->tensor && largest->tensor->element_bytes == 8;
}

}  // namespace weft
