#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "actors/fabric_builder.hpp"
#include "actors/storage/io_threads.hpp"
#include "actors/storage/spill_file.hpp"

namespace weft {

/// Where host memories evict to: a directory on a disk, which becomes a memory of the machine.
class Spill {
 public:
  /// Gives the disk that holds `directory` a memory. On the live machine that is the one that the
  /// system says, on a described one its first; one is added where there is none, beside the first
  /// host memory. `is_simulated`: nothing is written, and the directory need not be there. Throws
  /// `DeviceError` naming a directory in which no file can be made.
  Spill(Machine& machine, std::string directory, bool is_simulated);
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  /// Tells `real` of the disk: its budget, which is 9/10 of what is free unless the options say,
  /// and, unless it is simulated, where its bytes come from and the lanes of its link. Borrows all.
  void add_to(Realisation& real, const EmulatedOptions& hooks, Tracer* tracer);
  /// What settled the last copy may still be about to tell others. While nothing is in flight.
  void join();

  /// Null for a simulated disk.
  [[nodiscard]] SpillFile* file() { return file_.get(); }

 private:
  const std::string directory_;
  MemoryId memory_;
  std::size_t bytes_ = 0;  // the budget
  // Shared with the memory's pool, which lives as long as the last tensor.
  std::shared_ptr<SpillFile> file_;
  std::unique_ptr<IoThreads> threads_;
};

}  // namespace weft
