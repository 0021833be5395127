#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/device.hpp"
#include "framework/future.hpp"
#include "framework/row_blocks.hpp"
#include "framework/share_tuner.hpp"

namespace weft {

class Split;

/// A tensor that is cut by rows (its first dimension) among the devices of a `Split`. A cheap
/// handle: copies name the same rows.
template <class T>
class Rows {
 public:
  Rows() = default;

  /// Of all rows.
  [[nodiscard]] const Shape& shape() const { return blocks_->shape; }
  /// All rows as one tensor with their value as of now, put together on `device`. Returns at once.
  /// Throws `UsageError` if nothing was written yet.
  [[nodiscard]] Tensor<T> whole(const Device& device) const {
    return Tensor<T>(join_rows(*blocks_, device));
  }
  [[nodiscard]] RowBlocks& blocks() const { return *blocks_; }
  explicit operator bool() const { return blocks_ != nullptr; }

 private:
  friend class Split;
  explicit Rows(std::shared_ptr<RowBlocks> blocks) : blocks_(std::move(blocks)) {}
  std::shared_ptr<RowBlocks> blocks_;
};

/// An argument of which each part of a split op gets its own rows.
template <class T, Access kMode>
struct RowsArgument {
  static constexpr Access kAccess = kMode;
  using Element = T;
  RowBlocks* blocks;

  [[nodiscard]] TensorArgument<T, kMode> part(std::size_t number) const {
    return {blocks->blocks[number].tensor.state()};
  }
};
template <class T>
RowsArgument<T, Access::In> in(const Rows<T>& rows) {
  return {&rows.blocks()};
}
template <class T>
RowsArgument<T, Access::Out> out(const Rows<T>& rows) {
  return {&rows.blocks()};
}
template <class T>
RowsArgument<T, Access::InOut> inout(const Rows<T>& rows) {
  return {&rows.blocks()};
}

namespace detail {

template <class T>
inline constexpr bool is_rows = false;
template <class T, Access kMode>
inline constexpr bool is_rows<RowsArgument<T, kMode>> = true;

// What part `number` of a split op gets of an argument.
template <class Given>
decltype(auto) part_of(Given& given, std::size_t number) {
  if constexpr (is_rows<std::remove_cvref_t<Given>>)
    return given.part(number);
  else
    return given;  // a copy: each part needs its own
}

}  // namespace detail

/// One op over several devices: each takes the rows that go with its share, and its share with its
/// speed.
///
///     weft::Split split = rt.split({rt.socket(0), rt.gpu(0), rt.gpu(1)});
///     weft::Rows<float> x = split.rows(data), y = split.rows<float>({n, 10});
///     split.submit(layer, in(x), in(weights), out(y));    // `layer` sees some rows of x and of y
///     weft::Tensor<float> all = y.whole(rt.socket(0));
///
/// Shares begin by the devices' published speeds and are corrected as runs of the split's kernels
/// are known; rows that change hands are copied, and none as long as all parts take about the same
/// time. Used by one thread at a time.
class Split {
 public:
  /// Without `weights` by speed: the placer of the devices' runtime must be there
  /// (`Runtime::split`). Throws `UsageError` for no devices, for one that is anywhere, or for
  /// weights that are not one number of 0 or more for each.
  explicit Split(std::vector<Device> devices, std::vector<double> weights = {});

  /// The rows of a tensor, with its value as of now. Throws `UsageError` for a scalar.
  template <class T>
  [[nodiscard]] Rows<T> rows(const Tensor<T>& tensor) const {
    return Rows<T>(cut_tensor(tensor.state(), sizeof(T), element_type_of<T>()));
  }
  /// Rows without a value. Throws `UsageError` for a scalar.
  template <class T>
  [[nodiscard]] Rows<T> rows(const Shape& shape) const {
    return Rows<T>(make_rows(shape, sizeof(T), element_type_of<T>()));
  }

  /// One op for each device that has rows, with arguments as `Device::submit` takes them: of `Rows`
  /// each gets its own, of all others the same. Sums (`reduce`) are over all parts. Done when all
  /// are. Throws `UsageError` for arguments without rows or with unequal numbers of them.
  template <class... Params, class... Given>
  Future submit(const Kernel<Params...>& kernel, Given&&... given) {
    std::vector<RowBlocks*> blocks;
    std::vector<Access> accesses;
    (note(given, blocks, accesses), ...);
    prepare(*kernel.code(), blocks, accesses);
    std::vector<Future> futures;
    std::vector<Part> parts(devices_.size());
    // First all that may throw: an op is never half submitted.
    for (std::size_t part = 0; is_by_speed_ && part < devices_.size(); ++part)
      if (count_of(*blocks.front(), part) > 0)
        parts[part] = {true, devices_[part].forecast(kernel, detail::part_of(given, part)...)};
    for (std::size_t part = 0; part < devices_.size(); ++part)
      if (count_of(*blocks.front(), part) > 0)
        futures.push_back(devices_[part].submit(kernel, detail::part_of(given, part)...));
    finish(kernel.code(), std::move(parts), blocks, accesses);
    return when_all(futures);
  }

  /// What part of the rows each device has, from 0 to 1.
  [[nodiscard]] std::vector<double> shares() const;
  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }

 private:
  // What one part of a kernel's last submission took, by what is learnt of it.
  struct Part {
    bool is_there = false;
    OpForecast forecast;
  };
  struct Known {
    std::shared_ptr<const KernelCode> code;
    std::vector<Part> parts;
    std::uint64_t submission = 0;
  };

  template <class Given>
  static void note(const Given& given, std::vector<RowBlocks*>& blocks,
                   std::vector<Access>& accesses) {
    if constexpr (detail::is_rows<Given>) {
      blocks.push_back(given.blocks);
      accesses.push_back(Given::kAccess);
    }
  }
  static std::int64_t count_of(const RowBlocks& blocks, std::size_t part) {
    return blocks.blocks[part].count;
  }
  [[nodiscard]] std::shared_ptr<RowBlocks> make_rows(const Shape& shape, std::uint32_t bytes,
                                                     std::uint32_t type) const;
  [[nodiscard]] std::shared_ptr<RowBlocks> cut_tensor(TensorState* tensor, std::uint32_t bytes,
                                                      std::uint32_t type) const;
  void prepare(const KernelCode& code, const std::vector<RowBlocks*>& blocks,
               const std::vector<Access>& accesses);
  void tune(std::int64_t rows);
  [[nodiscard]] std::vector<std::int64_t> cuts_of(std::int64_t rows) const;
  void finish(const std::shared_ptr<const KernelCode>& code, std::vector<Part> parts,
              const std::vector<RowBlocks*>& blocks, const std::vector<Access>& accesses);

  std::vector<Device> devices_;
  bool is_by_speed_ = false;
  ShareTuner shares_;
  std::map<const KernelCode*, Known> known_;
  std::uint64_t submissions_ = 0;
};

}  // namespace weft
