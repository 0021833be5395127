#include "framework/row_blocks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "framework/cpu.hpp"
#include "framework/kernel_code.hpp"
#include "framework/own_kernels.hpp"
#include "framework/submit.hpp"

namespace weft {
namespace {

const std::shared_ptr<KernelCode>& make_row_copy() {
  static const std::shared_ptr<KernelCode> code = [] {
    auto made = std::make_shared<KernelCode>();
    made->name = "copy_rows";
    made->cpu = [](Cpu& cpu, Op& op) {
      const auto& range = *static_cast<const ByteRange*>(op.scalars());
      const auto* from = static_cast<const char*>(op.args()[0].replica()->data) + range.from_offset;
      auto* to = static_cast<char*>(op.args()[1].replica()->data) + range.to_offset;
      cpu.parallel_ranges(range.bytes, 1 << 20, [&](std::size_t begin, std::size_t end) {
        std::memcpy(to + begin, from + begin, end - begin);
      });
    };
    made->same_scalars = [](const void* a, const void* b) {
      return *static_cast<const ByteRange*>(a) == *static_cast<const ByteRange*>(b);
    };
    made->cost = [](Op& op) {
      return Cost{0, 2.0 * static_cast<double>(static_cast<const ByteRange*>(op.scalars())->bytes)};
    };
    return made;
  }();
  return code;
}

const std::shared_ptr<const KernelCode>& row_copy_code() {
  static const std::shared_ptr<const KernelCode> code = make_row_copy();
  return code;
}

void copy_range(const Device& device, TensorState* from, TensorState* to, bool is_first,
                ByteRange range) {
  if (range.bytes == 0 && !is_first) return;
  const std::array<Argument, 2> arguments{
      Argument{from, Access::In, nullptr},
      Argument{to, is_first ? Access::Out : Access::InOut, nullptr}};
  Call call;
  call.place = &device.place();
  call.code = &row_copy_code();
  call.arguments = arguments;
  call.scalar_bytes = sizeof range;
  call.context = &range;
  call.write_scalars = [](void* where, void* context) {
    new (where) ByteRange(*static_cast<const ByteRange*>(context));
  };
  release(submit(device.fabric(), call));
}

// The rows from `first` on, `count` of them, as one tensor on `device`.
TensorHandle gather(const RowBlocks& rows, std::int64_t first, std::int64_t count,
                    const Device& device) {
  TensorHandle made(
      make_tensor_state(*rows.fabric, rows.shape_of(count), rows.element_bytes, rows.element_type));
  bool is_first = true;
  for (const RowBlocks::Block& block : rows.blocks) {
    const std::int64_t begin = std::max(first, block.first);
    const std::int64_t end = std::min(first + count, block.first + block.count);
    if (begin >= end || !block.tensor) continue;
    const std::size_t bytes = rows.row_bytes();
    copy_range(device, block.tensor.state(), made.state(), std::exchange(is_first, false),
               {.from_offset = static_cast<std::size_t>(begin - block.first) * bytes,
                .to_offset = static_cast<std::size_t>(begin - first) * bytes,
                .bytes = static_cast<std::size_t>(end - begin) * bytes});
  }
  return made;
}

}  // namespace

KernelCode& row_copy_kernel() {
  return *make_row_copy();
}

Shape RowBlocks::shape_of(std::int64_t count) const {
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  extents[0] = count;
  for (std::size_t i = 1; i < shape.rank(); ++i) extents[i] = shape[i];
  return Shape(std::span<const std::int64_t>(extents.data(), shape.rank()));
}

std::size_t RowBlocks::row_bytes() const {
  return static_cast<std::size_t>(shape_of(1).size()) * element_bytes;
}

void recut(RowBlocks& rows, const std::vector<std::int64_t>& cuts, std::span<const Device> devices,
           OldRows old) {
  std::vector<RowBlocks::Block> made(devices.size());
  bool is_any_new = false;
  for (std::size_t part = 0; part < devices.size(); ++part) {
    RowBlocks::Block& block = made[part];
    block.first = cuts[part];
    block.count = cuts[part + 1] - cuts[part];
    if (block.count == 0) continue;
    const auto same =
        std::find_if(rows.blocks.begin(), rows.blocks.end(), [&](const RowBlocks::Block& other) {
          return other.first == block.first && other.count == block.count && other.tensor;
        });
    if (same != rows.blocks.end() && old != OldRows::Copied)
      block.tensor = same->tensor;
    else if (old != OldRows::Dropped && rows.has_value)
      block.tensor = gather(rows, block.first, block.count, devices[part]);
    else
      block.tensor = TensorHandle(make_tensor_state(*rows.fabric, rows.shape_of(block.count),
                                                    rows.element_bytes, rows.element_type));
    is_any_new = is_any_new || same == rows.blocks.end();
  }
  rows.blocks = std::move(made);
  if (old == OldRows::Dropped && is_any_new) rows.has_value = false;
}

TensorHandle join_rows(const RowBlocks& rows, const Device& device) {
  if (!rows.has_value) throw UsageError("rows have no value yet: write them first");
  return gather(rows, 0, rows.rows(), device);
}

}  // namespace weft
