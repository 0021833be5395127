#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weft {

/// A vector of trivial values, the first `N` of them in place.
template <class T, std::uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  ~SmallVector() {
    if (data_ != inline_) delete[] data_;
  }
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;

  void push_back(T value) {
    if (size_ == capacity_) grow();
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize_down(std::uint32_t size) { size_ = size; }

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  void grow() {
    T* larger = new T[capacity_ * 2];
    std::memcpy(static_cast<void*>(larger), data_, size_ * sizeof(T));
    if (data_ != inline_) delete[] data_;
    data_ = larger;
    capacity_ *= 2;
  }

  T inline_[N];
  T* data_ = inline_;
  std::uint32_t size_ = 0, capacity_ = N;
};

}  // namespace weft
