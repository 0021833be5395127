#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// Things of a machine that a text names.
struct Things {
  std::vector<Node> nodes;
  std::vector<LinkId> links;
};

/// What `text` names: an id (`gpu1`, `link3`), or all that a pattern fits in which `*` stands for
/// any letters: `gpu*`, `link*`, and for links by kind or by ends `link:nvlink*`,
/// `link:gpu0-gpu*`, whichever end is first. Throws `TopologyError` if `text` is neither, or fits
/// nothing; the message says what the machine has.
Things find_things(const Machine& machine, const std::string& text);

/// Whether `pattern` fits all of `text`; `*` stands for any characters, none too.
bool fits(std::string_view pattern, std::string_view text);

/// Throws the `TopologyError` that refuses what a text asks: `"text": what`.
[[noreturn]] void refuse_thing(const std::string& text, const std::string& what);

}  // namespace weft
