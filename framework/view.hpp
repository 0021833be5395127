#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "framework/op.hpp"
#include "framework/shape.hpp"

namespace weft {

/// A tensor argument inside a kernel: elements in the memory of the device that runs it, row-major.
/// Borrowed for the call. `T` is const for `In`.
template <class T, Access kMode>
class View {
 public:
  using Element = std::remove_const_t<T>;
  static constexpr Access kAccess = kMode;

  View(T* data, const Shape& shape)
      : data_(data), size_(static_cast<std::size_t>(shape.size())), shape_(&shape) {}

  [[nodiscard]] T* data() const { return data_; }
  /// Number of elements.
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Shape& shape() const { return *shape_; }
  /// Extent of one dimension.
  [[nodiscard]] std::int64_t dim(std::size_t dimension) const { return (*shape_)[dimension]; }
  T& operator[](std::size_t i) const { return data_[i]; }
  [[nodiscard]] T* begin() const { return data_; }
  [[nodiscard]] T* end() const { return data_ + size_; }

 private:
  T* data_;
  std::size_t size_;
  const Shape* shape_;
};

template <class T>
using In = View<const T, Access::In>;  ///< read
template <class T>
using Out = View<T, Access::Out>;  ///< written whole; the old value does not matter
template <class T>
using InOut = View<T, Access::InOut>;  ///< read and written
/// Zero at first; what the kernel leaves there is added to the tensor. Contributions of several ops
/// run in parallel and are added in submission order.
template <class T>
using Reduce = View<T, Access::Reduce>;

template <class T>
struct IsView : std::false_type {};
template <class T, Access kMode>
struct IsView<View<T, kMode>> : std::true_type {};

}  // namespace weft
