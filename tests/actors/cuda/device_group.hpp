#pragma once

// No CUDA header and nothing beyond C++17: between tests and a .cu file.

#include <cstddef>
#include <vector>

struct CUstream_st;

namespace weft::test {

/// Whether devices 0 to `devices - 1` are there and all reach each other's memory.
bool are_peers(int devices);

/// A stream on each of the devices 0 to `devices - 1`, and memory there. Everything throws
/// `DeviceError`.
class DeviceGroup {
 public:
  explicit DeviceGroup(int devices);
  /// Waits for the devices.
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(streams_.size()); }
  [[nodiscard]] CUstream_st* stream(int device) const {
    return streams_[static_cast<std::size_t>(device)];
  }
  /// Filled with `0xff` bytes; lives as long as the group.
  void* allocate(int device, std::size_t bytes);
  /// Both wait for the device's stream.
  void upload(int device, void* to, const void* from, std::size_t bytes);
  void download(int device, void* to, const void* from, std::size_t bytes);
  /// Keeps the device's stream busy for some `microseconds`.
  void delay(int device, unsigned microseconds);
  /// Whether all that was enqueued has ended.
  [[nodiscard]] bool is_idle(int device) const;
  void synchronise(int device) const;

 private:
  std::vector<CUstream_st*> streams_;
  std::vector<std::vector<void*>> blocks_;
};

/// A graph of what is enqueued on a device's stream between construction and `end`.
class CapturedStream {
 public:
  CapturedStream(const DeviceGroup& group, int device);
  ~CapturedStream();
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;
  void end();
  void instantiate();
  void launch() const;

 private:
  int device_;
  CUstream_st* stream_;
  void* graph_ = nullptr;
  void* executable_ = nullptr;
};

}  // namespace weft::test
