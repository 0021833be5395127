#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>

#include "framework/fabric.hpp"
#include "framework/memory_pool.hpp"
#include "framework/small_vector.hpp"
#include "framework/submit.hpp"

namespace weft {

/// Whoever sets bytes aside has one of these from before that until the bytes are a replica's or
/// given back: meanwhile nobody else sees what will become of them, so nobody may conclude that
/// they will never be given back. Who has one must not wait for memory.
class InHand {
 public:
  explicit InHand(Fabric& fabric) : fabric_(fabric) { fabric.in_hand.take_in(); }
  ~InHand();
  InHand(const InHand&) = delete;
  InHand& operator=(const InHand&) = delete;

 private:
  Fabric& fabric_;
};

/// The locks of all tensors of a call, in address order, each once. In serial mode the fabric's
/// too.
class TensorLocks {
 public:
  explicit TensorLocks(Fabric& fabric, std::span<const Argument> arguments) : fabric_(fabric) {
    for (const Argument& argument : arguments) {
      std::uint32_t at = locked_.size();
      while (at > 0 && locked_[at - 1] > argument.tensor) --at;
      if (at > 0 && locked_[at - 1] == argument.tensor) continue;
      locked_.push_back(argument.tensor);
      for (std::uint32_t i = locked_.size() - 1; i > at; --i) std::swap(locked_[i], locked_[i - 1]);
    }
    if (fabric_.serial) fabric_.serial_mutex.lock();
    for (TensorState* tensor : locked_) {
      tensor->lock.lock();
      prefetch(*tensor);
    }
  }
  ~TensorLocks() {
    for (TensorState* tensor : locked_) tensor->lock.unlock();
    if (fabric_.serial) fabric_.serial_mutex.unlock();
  }
  TensorLocks(const TensorLocks&) = delete;
  TensorLocks& operator=(const TensorLocks&) = delete;

 private:
  // The ops it names were often last written by the core that ran them; soon we write to them.
  static void prefetch(const TensorState& tensor) {
    if (tensor.writer) fetch(tensor.writer);
    for (Op* reader : tensor.readers) fetch(reader);
  }

  static void fetch(const Op* op) {
    __builtin_prefetch(&op->references, 1);  // and its slots
  }

  Fabric& fabric_;
  SmallVector<TensorState*, 12> locked_;
};

/// Waits at the admission limit; not on an actor's thread.
void wait_for_room(Admission& admission);

/// Waits until `bytes`, as pools hand them out, fit into `pool`, which ops in flight may bring
/// about. False if they cannot.
bool wait_for_memory(const Fabric& fabric, const MemoryPool& pool, std::size_t bytes);

/// `wanted 64 bytes in mem1, which has …`, and what the memory has that it evicts to.
std::string out_of_memory(const MemoryPool& pool, std::size_t bytes);

}  // namespace weft
