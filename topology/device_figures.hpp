#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "topology/machine.hpp"

namespace weft {

/// Whether somebody published a figure or we assume it. `source` of the figures says who, or why.
enum class FigureOrigin : std::uint8_t { Published, Assumed };

/// What one GPU can do at most, as its vendor prints it. A rate of 0 means that the GPU has no
/// units for that type. Rates are dense: none counts on sparse matrices.
struct DeviceFigures {
  std::string_view model;  ///< the model these figures are of, e.g. `H100 SXM`

  double fp64 = 0;         ///< flop/s of the vector units
  double fp64_matrix = 0;  ///< flop/s of matrix (tensor) units; 0 where they do no double precision
  double fp32 = 0;         ///< flop/s of the vector units
  double fp32_matrix = 0;  ///< flop/s of matrix units in full single precision (AMD)
  double tf32 = 0;         ///< flop/s of matrix units on TF32
  double fp16 = 0;         ///< flop/s of matrix units on half precision, summed in single precision
  double bf16 = 0;         ///< the same on bfloat16
  double memory_bytes_per_second = 0;
  std::size_t memory_bytes = 0;       ///< 0 where it works in the host's memory
  std::uint32_t multiprocessors = 0;  ///< streaming multiprocessors, compute units, Xe cores …
  FigureOrigin origin = FigureOrigin::Assumed;  ///< of all the above
  std::string_view source;                      ///< of all the above: document, or reasoning

  /// From the submission of a kernel to an idle GPU until it runs.
  std::chrono::nanoseconds launch{0};
  /// Between two kernels of one stream of which the second waits already.
  std::chrono::nanoseconds launch_gap{0};
  FigureOrigin launch_origin = FigureOrigin::Assumed;
  std::string_view launch_source;

  /// DMA engines that copy in one direction at a time, host to GPU or GPU to host: so many copies
  /// of one direction overlap.
  std::uint32_t copy_engines_per_direction = 0;
  FigureOrigin copy_origin = FigureOrigin::Assumed;
  std::string_view copy_source;
};

/// The figures of a GPU by its model, however it is written: `NVIDIA H100 80GB HBM3`,
/// `H100-SXM5-80GB`, `Tesla V100-SXM2-16GB`, `MI250X`. Of a card with two dies that count as two
/// GPUs: of one die. Nothing for a model not in the table, for parts of a GPU (MIG) and for laptop
/// versions, whose figures differ. No allocation; from any thread.
std::optional<DeviceFigures> published_figures(std::string_view model);

/// Figures for a GPU of which nothing is known (`synthetic`, `emulated`): those of an A100 of 40
/// GB, all marked `Assumed`.
DeviceFigures default_gpu_figures();

/// `published_figures` of the model, else the default; `memory_bytes` is that of the machine's
/// GPU where it says one. Throws `std::out_of_range` for a GPU that is not there.
DeviceFigures gpu_figures(const Machine& machine, GpuId gpu);

/// What one core of a socket, and its memory, can do at most.
struct CpuFigures {
  double fp64_per_core = 0;  ///< flop/s
  double fp32_per_core = 0;  ///< flop/s
  FigureOrigin core_origin = FigureOrigin::Assumed;
  std::string_view core_source;
  double memory_bytes_per_second = 0;  ///< of the whole socket: all its memories together
  FigureOrigin memory_origin = FigureOrigin::Assumed;
  std::string_view memory_source;
};

/// The figures of a socket: cores by its model, memory from the machine's own `bus` links to it
/// (`Published` where the links are reported or measured). Throws `std::out_of_range` for a socket
/// that is not there.
CpuFigures cpu_figures(const Machine& machine, SocketId socket);

}  // namespace weft
