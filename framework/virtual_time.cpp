#include "framework/virtual_time.hpp"

#include <algorithm>

namespace weft {

void VirtualTime::rise(std::size_t slot, Event* event) {
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (!is_before(*event, *heap_[parent])) break;
    put(slot, heap_[parent]);
    slot = parent;
  }
  put(slot, event);
}

void VirtualTime::sink(std::size_t slot, Event* event) {
  for (;;) {
    std::size_t child = 2 * slot + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && is_before(*heap_[child + 1], *heap_[child])) ++child;
    if (!is_before(*heap_[child], *event)) break;
    put(slot, heap_[child]);
    slot = child;
  }
  put(slot, event);
}

void VirtualTime::take_out(Event& event) {
  const std::size_t slot = event.slot_;
  event.slot_ = Event::kNone;
  Event* last = heap_.back();
  heap_.pop_back();
  if (slot == heap_.size()) return;
  if (slot > 0 && is_before(*last, *heap_[(slot - 1) / 2]))
    rise(slot, last);
  else
    sink(slot, last);
}

void VirtualTime::schedule(Event& event, Ns at) {
  if (event.is_scheduled()) take_out(event);
  event.at_ = std::max(at, now());
  event.order_ = next_order_++;
  heap_.push_back(nullptr);
  rise(heap_.size() - 1, &event);
}

void VirtualTime::cancel(Event& event) {
  if (event.is_scheduled()) take_out(event);
}

bool VirtualTime::step() {
  if (heap_.empty()) return false;
  Event& event = *heap_.front();
  now_.store(event.at_, std::memory_order_relaxed);
  take_out(event);
  event.happens();
  return true;
}

void VirtualTime::pass_until(Ns at) {
  if (at > now() && at <= next()) now_.store(at, std::memory_order_relaxed);
}

}  // namespace weft
