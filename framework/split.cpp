#include "framework/split.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "framework/kernel_code.hpp"
#include "framework/placer.hpp"

namespace weft {
namespace {

// A kernel that was not submitted for so many submissions says nothing about the shares any more.
constexpr std::uint64_t kForgetAfter = 64;

Placer& placer_of(const Device& device) {
  Placer* const placer = device.fabric().placer.load(std::memory_order_acquire);
  if (!placer) throw UsageError("split: by speed only through Runtime::split");
  return *placer;
}

std::vector<double> first_weights(const std::vector<Device>& devices,
                                  const std::vector<double>& weights) {
  if (devices.empty()) throw UsageError("split: over at least one device");
  for (const Device& device : devices)
    if (device.is_anywhere()) throw UsageError("split: over devices, not over anywhere");
  if (!weights.empty() && weights.size() != devices.size())
    throw UsageError("split: " + std::to_string(weights.size()) + " weights for " +
                     std::to_string(devices.size()) + " devices; give one for each, or none");
  if (!weights.empty()) return weights;
  std::vector<double> speeds;
  for (const Device& device : devices)
    speeds.push_back(placer_of(device).published_speed(device.place()));
  // Where one of them is unknown nothing is.
  if (std::any_of(speeds.begin(), speeds.end(), [](double speed) { return !(speed > 0); }))
    return std::vector<double>(devices.size(), 1.0);
  return speeds;
}

std::shared_ptr<RowBlocks> uncut_rows(Fabric& fabric, const Shape& shape, std::uint32_t bytes,
                                      std::uint32_t type) {
  if (shape.rank() == 0) throw UsageError("split: a scalar has no rows");
  auto made = std::make_shared<RowBlocks>();
  made->fabric = &fabric;
  made->shape = shape;
  made->element_bytes = bytes;
  made->element_type = type;
  return made;
}

}  // namespace

Split::Split(std::vector<Device> devices, std::vector<double> weights)
    : devices_(std::move(devices)),
      is_by_speed_(weights.empty()),
      shares_(first_weights(devices_, weights)) {}

std::shared_ptr<RowBlocks> Split::make_rows(const Shape& shape, std::uint32_t bytes,
                                            std::uint32_t type) const {
  auto made = uncut_rows(devices_.front().fabric(), shape, bytes, type);
  recut(*made, cuts_of(shape[0]), devices_, OldRows::Dropped);
  return made;
}

std::shared_ptr<RowBlocks> Split::cut_tensor(TensorState* tensor, std::uint32_t bytes,
                                             std::uint32_t type) const {
  if (!tensor) throw UsageError("split: an empty tensor has no rows");
  auto made = uncut_rows(devices_.front().fabric(), tensor->shape, bytes, type);
  tensor->handles.fetch_add(1, std::memory_order_relaxed);
  made->blocks.push_back({0, tensor->shape[0], TensorHandle(tensor)});
  made->has_value = true;
  recut(*made, cuts_of(made->rows()), devices_, OldRows::Copied);
  return made;
}

void Split::prepare(const KernelCode& code, const std::vector<RowBlocks*>& blocks,
                    const std::vector<Access>& accesses) {
  if (blocks.empty())
    throw UsageError("split: kernel " + code.name + " gets no rows; give it Rows, or submit it");
  for (const RowBlocks* other : blocks)
    if (other->rows() != blocks.front()->rows())
      throw UsageError("split: kernel " + code.name + " gets " +
                       std::to_string(blocks.front()->rows()) + " and " +
                       std::to_string(other->rows()) + " rows; they must be as many");
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (accesses[i] != Access::Out && !blocks[i]->has_value)
      throw UsageError("split: kernel " + code.name + " reads rows that have no value yet");
  if (is_by_speed_) tune(blocks.front()->rows());
  const std::vector<std::int64_t> cuts = cuts_of(blocks.front()->rows());
  for (std::size_t part = 0; part < devices_.size(); ++part) {
    const Place& place = devices_[part].place();
    const bool can = place.domain == Domain::Cuda ? bool(code.cuda) : bool(code.cpu);
    if (cuts[part + 1] > cuts[part] && !can)
      throw UsageError("split: kernel " + code.name + " has no variant for " + place.name);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    bool is_read = false;  // in any of its arguments
    for (std::size_t j = 0; j < blocks.size(); ++j)
      is_read = is_read || (blocks[j] == blocks[i] && accesses[j] != Access::Out);
    recut(*blocks[i], cuts, devices_, is_read ? OldRows::Kept : OldRows::Dropped);
  }
}

// By the sum of what all kernels take that are in use.
void Split::tune(std::int64_t rows) {
  std::vector<double> seconds(devices_.size());
  for (auto kernel = known_.begin(); kernel != known_.end();) {
    const Known& known = kernel->second;
    if (submissions_ - known.submission > kForgetAfter) {
      kernel = known_.erase(kernel);
      continue;
    }
    for (std::size_t part = 0; part < devices_.size(); ++part)
      if (known.parts[part].is_there)
        seconds[part] +=
            placer_of(devices_[part])
                .seconds(*known.code, known.parts[part].forecast, devices_[part].place());
    ++kernel;
  }
  if (!known_.empty() && shares_.tune(seconds, rows)) known_.clear();
}

void Split::finish(const std::shared_ptr<const KernelCode>& code, std::vector<Part> parts,
                   const std::vector<RowBlocks*>& blocks, const std::vector<Access>& accesses) {
  ++submissions_;
  if (is_by_speed_) known_[code.get()] = {code, std::move(parts), submissions_};
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (accesses[i] != Access::In) blocks[i]->has_value = true;
}

std::vector<std::int64_t> Split::cuts_of(std::int64_t rows) const {
  return cut_rows(rows, shares_.weights(), is_by_speed_);
}

std::vector<double> Split::shares() const {
  std::vector<double> made = shares_.weights();
  const double sum = std::accumulate(made.begin(), made.end(), 0.0);
  for (double& share : made) share /= sum;
  return made;
}

}  // namespace weft
