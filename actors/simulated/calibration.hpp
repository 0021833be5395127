#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "framework/cuda.hpp"
#include "topology/machine.hpp"

namespace weft {

/// Measured figures of devices, links and memories, by model, for simulated ones of the same
/// models. What `weft calibrate` writes; the format is in docs/calibration.md.
struct Calibration {
  /// A sample in four numbers.
  struct Figure {
    double median = 0, least = 0, most = 0;
    std::uint32_t samples = 0;
    friend bool operator==(const Figure&, const Figure&) = default;
  };
  /// A kernel with so much to do.
  struct Point {
    double flops = 0, bytes = 0;
    Figure seconds;                  ///< alone on the device
    double cores = 1;                ///< of a socket that worked on it, in the mean; 1 of a GPU
    std::string precision = "fp32";  ///< fp32, tf32, bf16, fp64
    friend bool operator==(const Point&, const Point&) = default;
  };
  struct Device {
    std::string model;  ///< `NVIDIA H200`, `emulated`, the processor's
    bool is_gpu = false;
    /// GPU: of the thread that launches, an op. Socket: from a submission until a core starts.
    Figure launch_ns;
    Figure gap_ns;  ///< between two ops of a lane or core
    std::map<std::string, std::vector<Point>> kernels;
    friend bool operator==(const Device&, const Device&) = default;
  };
  /// One direction of a link.
  struct Link {
    LinkKind kind = LinkKind::Pcie;
    std::uint32_t width = 0, generation = 0;  ///< 0: unknown
    Node from, to;
    bool is_emulated = false;  ///< it ends at emulated GPUs, and is one for such alone
    Figure bytes_per_second, latency_ns;
    friend bool operator==(const Link&, const Link&) = default;
  };
  /// A socket's own memory, with all cores.
  struct Memory {
    std::string model;  ///< the processor's
    Figure read_bytes_per_second, write_bytes_per_second, latency_ns;
    friend bool operator==(const Memory&, const Memory&) = default;
  };

  std::string made;     ///< day: `2025-01-31`
  std::string machine;  ///< for a person
  std::vector<Device> devices;
  Figure submission_ns;  ///< what submitting an op costs the program
  Figure notice_ns;      ///< from an op's end until the thread that waits for it goes on
  std::vector<Link> links;
  std::vector<Memory> memories;

  /// The device of this model; null if there is none.
  [[nodiscard]] const Device* find(std::string_view model, bool is_gpu) const;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// `what()` names the file, the key, what is there and what was expected.
class CalibrationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The median, least and most of `sample`; all 0 of an empty one.
Calibration::Figure figure_of(std::vector<double> sample);

/// As JSON, and back. `name` is the source's in messages. Both throw `CalibrationError` for figures
/// that cannot be: no samples, rates and times that are not above 0.
std::string write_calibration(const Calibration& calibration);
Calibration read_calibration(std::string_view text, const std::string& name);
/// Throws `CalibrationError`, also for a file that cannot be read.
Calibration read_calibration_file(const std::string& path);

}  // namespace weft
