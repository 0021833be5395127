#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "framework/failure.hpp"

struct CUstream_st;

namespace weft::cuda {

/// One GPU as all its lanes see it. Any thread.
class DeviceState {
 public:
  DeviceState(std::string name, int ordinal) : name_(std::move(name)), ordinal_(ordinal) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Number of the device, as CUDA counts.
  [[nodiscard]] int ordinal() const { return ordinal_; }

  [[nodiscard]] bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  /// Everything on the device fails from now on; the first reason stays. Says so once.
  void lose(const std::string& reason);
  /// Why an op named `op` fails on the lost device. Counted for the caller.
  [[nodiscard]] Failure* loss(const std::string& op) const;

  /// Makes the device the thread's current one, which costs nothing if it is. A device that cannot
  /// be is lost.
  void make_current();
  /// After an error of a call on `stream`: whether the device is gone, which every later call would
  /// report too; loses it then. Takes the error out of the thread's slot.
  bool is_gone(CUstream_st* stream);
  /// Code that is not ours may have made another device this thread's current one.
  static void forget_current();

 private:
  const std::string name_;
  const int ordinal_;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string reason_;
};

/// Makes a device current for a scope and restores the thread's own afterwards.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace weft::cuda
