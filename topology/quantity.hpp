#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A list of processor numbers as the kernel writes it: `0-15,32-47`. Empty for no number. Expects
/// a sorted list.
std::string format_cpu_list(const std::vector<std::uint32_t>& cpus);

/// No machine or cluster of ours has a hardware thread of a higher number.
inline constexpr std::uint32_t kMaxCpu = 1u << 20;
/// No host has: Linux counts up to 8,192 (CONFIG_NR_CPUS of x86-64, the most of all).
inline constexpr std::uint32_t kMaxHostCpu = 1u << 16;

/// The reverse; also takes blanks and one-element ranges (`8-8`). Sorted, without repeats. Nothing
/// if the text is no such list, a range runs backwards, or a number is above `most`.
std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text,
                                                         std::uint32_t most = kMaxCpu);

/// A mask as the kernel, hwloc and NCCL write it: 32-bit words in hexadecimal, highest first, with
/// or without 0x, an empty word for 0: `0x0000ffff,,0x0`. The numbers of its bits, rising. Nothing
/// if the text is no such mask or longer than `most` bits.
std::optional<std::vector<std::uint32_t>> parse_cpu_mask(std::string_view text,
                                                         std::uint32_t most = kMaxCpu);

/// Bytes for people: `64 GiB`, `1.5 TiB`, `0 B`.
std::string format_bytes(std::size_t bytes);

/// A rate for people, decimal as data sheets give it: `25 GB/s`, `1.2 TB/s`, `out of order` for 0.
std::string format_rate(double bytes_per_second);

/// `16 GB`, `16GiB`, `1.5 TB`, `4096`: a number and a unit, with or without a blank. Sizes are
/// binary however they are written, as memory is sold: 1 GB is 1 GiB. Nothing if it is no such
/// quantity, negative or above 2^60.
std::optional<double> parse_bytes(std::string_view text);

/// `25 GB/s`, `40 GiB/s`: decimal as data sheets give it, but for the units with an i.
std::optional<double> parse_rate(std::string_view text);

/// The text without blanks at its ends.
std::string_view trimmed(std::string_view text);

/// Whether `part` stands anywhere in `text`.
inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace weft
