#include "framework/planned.hpp"

#include <algorithm>

#include "framework/fabric.hpp"
#include "framework/failure.hpp"
#include "framework/kernel_code.hpp"
#include "framework/plan.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/plan_state.hpp"

namespace weft {

PlanCache::PlanCache(Fabric& fabric, std::size_t most) : fabric_(fabric), most_(most) {
  fabric_.references.fetch_add(1, std::memory_order_relaxed);
}

PlanCache::~PlanCache() {
  entries_.clear();
  release(&fabric_);
}

PlanCache::Key PlanCache::key_of(const std::vector<TensorState*>& tensors,
                                 const std::vector<std::byte>& values) const {
  Key key;
  key.push_back(static_cast<std::uint64_t>(
      std::count_if(fabric_.places.begin(), fabric_.places.end(),
                    [](const auto& place) { return place->is_lost.load(); })));
  key.push_back(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorState& tensor = *tensors[i];
    key.push_back(static_cast<std::uint64_t>(std::find(tensors.begin(), tensors.end(), tensors[i]) -
                                             tensors.begin()));
    key.push_back(tensor.element_type);
    key.push_back(tensor.shape.rank());
    for (std::size_t d = 0; d < tensor.shape.rank(); ++d)
      key.push_back(static_cast<std::uint64_t>(tensor.shape[d]));
  }
  for (const std::byte value : values) key.push_back(std::to_integer<std::uint64_t>(value));
  return key;
}

bool PlanCache::Entry::takes(const std::vector<TensorState*>& tensors) const {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!is_free[i] && tensors[i] != recorded_with[i].state()) return false;
  return true;
}

PlanCache::Entries::iterator PlanCache::find(const Key& key) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.key == key; });
}

Future PlanCache::call(const std::vector<TensorState*>& tensors,
                       const std::vector<std::byte>& values, void (*body)(void* context),
                       void* context) {
  for (const TensorState* tensor : tensors) {
    if (!tensor) throw UsageError("planned step: a tensor is an empty handle");
    if (tensor->fabric != &fabric_)
      throw UsageError("planned step: a tensor is of another runtime");
  }
  Key key = key_of(tensors, values);
  std::unique_lock lock(mutex_);
  const auto known = find(key);
  if (known != entries_.end() && known->takes(tensors)) {
    std::vector<PlanState::Binding> bindings;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (known->numbers[i]) bindings.push_back({*known->numbers[i], tensors[i]});
    entries_.splice(entries_.begin(), entries_, known);
    const std::shared_ptr<PlanState> plan = known->plan;
    lock.unlock();
    // One that is given may be one that is captured: another program.
    if (auto done = plan->replay_with(bindings)) return std::move(*done);
  } else {
    lock.unlock();
  }
  return record(std::move(key), tensors, body, context);
}

namespace {

using Tensors = std::vector<TensorHandle>;

// A tensor of a plan as its body names it: the argument that it was given as, which of those that
// the body makes, or itself.
std::uintptr_t name_of(const PlanGraph& graph, std::uint32_t number, const Tensors& arguments) {
  constexpr std::uintptr_t kMade = std::uintptr_t{1} << 62;
  const PlanGraph::Tensor& tensor = graph.tensors[number];
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].state() == tensor.recorded) return i;
  if (!tensor.is_made_inside) return reinterpret_cast<std::uintptr_t>(tensor.recorded);
  return kMade + number;
}

// Whether it changes a tensor whose first value the body brings along: a replay would go on with
// the value that the one before has left.
bool changes_its_own_values(const PlanGraph& graph) {
  return std::any_of(graph.slots.begin(), graph.slots.end(), [&](const PlanGraph::Slot& slot) {
    const PlanGraph::Tensor& tensor = graph.tensors[slot.tensor];
    return tensor.is_made_inside && slot.is_read_first && tensor.writer != PlanGraph::kNone;
  });
}

bool are_alike(const PlanGraph& a, const PlanGraph::Node& x, const Tensors& x_given,
               const PlanGraph& b, const PlanGraph::Node& y, const Tensors& y_given) {
  if (x.code != y.code || x.device != y.device || x.priority != y.priority || x.after != y.after ||
      x.scalar_bytes != y.scalar_bytes || x.arguments.size() != y.arguments.size())
    return false;
  if (x.pattern && !x.code->is_copy &&
      !(x.code->same_scalars && x.code->same_scalars(x.pattern->scalars(), y.pattern->scalars())))
    return false;
  for (std::size_t i = 0; i < x.arguments.size(); ++i) {
    const PlanGraph::Slot& from = a.slots[x.arguments[i].slot];
    const PlanGraph::Slot& to = b.slots[y.arguments[i].slot];
    if (x.arguments[i].access != y.arguments[i].access || from.memory != to.memory ||
        name_of(a, from.tensor, x_given) != name_of(b, to.tensor, y_given))
      return false;
  }
  return true;
}

// Whether both were made by the same calls, but for the tensors that were given.
bool are_alike(const PlanGraph& a, const Tensors& a_given, const PlanGraph& b,
               const Tensors& b_given) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (std::size_t n = 0; n < a.nodes.size(); ++n)
    if (!are_alike(a, a.nodes[n], a_given, b, b.nodes[n], b_given)) return false;
  return true;
}

}  // namespace

Future PlanCache::record(Key key, const std::vector<TensorState*>& tensors,
                         void (*body)(void* context), void* context) {
  {
    std::lock_guard lock(mutex_);
    ++recordings_;
  }
  if (const PlanRecorder* const outer = PlanRecorder::of(fabric_)) {
    body(context);  // the caller's own plan has the ops
    return outer->all_done();
  }
  PlanRecorder recorder(fabric_);
  body(context);
  Entry made{std::move(key), recorder.finish(), {}, {}, std::vector<bool>(tensors.size())};
  for (TensorState* tensor : tensors) {
    tensor->handles.fetch_add(1, std::memory_order_relaxed);
    made.recorded_with.emplace_back(tensor);
    made.numbers.push_back(made.plan->number_of(tensor));
  }
  if (!changes_its_own_values(made.plan->graph())) keep(std::move(made));
  return recorder.all_done();
}

void PlanCache::keep(Entry made) {
  std::lock_guard lock(mutex_);
  const auto known = find(made.key);
  if (known == entries_.end()) {
    entries_.push_front(std::move(made));
    if (entries_.size() > most_) entries_.pop_back();
    return;
  }
  entries_.splice(entries_.begin(), entries_, known);
  if (!are_alike(known->plan->graph(), known->recorded_with, made.plan->graph(),
                 made.recorded_with)) {
    *known = std::move(made);
    return;
  }
  for (std::size_t i = 0; i < made.recorded_with.size(); ++i)
    if (made.recorded_with[i].state() != known->recorded_with[i].state()) known->is_free[i] = true;
}

std::size_t PlanCache::recordings() const {
  std::lock_guard lock(mutex_);
  return recordings_;
}

std::string PlanCache::explain() const {
  std::lock_guard lock(mutex_);
  return entries_.empty() ? "an empty plan\n" : Plan(entries_.front().plan).explain();
}

}  // namespace weft
