// Thread sanitizer with a CAF that was built without it.
//
// The distributions' CAF hides the atomics of its mailboxes, so every message would look like a
// race. These functions stand before CAF's own of the same name (by symbol interposition), tell the
// sanitizer of the order that CAF makes, and call CAF's own:
//  - what is done before a message is put into a mailbox happens before that message is handled;
//  - what is done before an actor is launched, and in one turn of it, happens before its next turn;
//  - what is done before an actor is let go happens before it is destroyed.
// No other order is claimed, so a race between two actors is still found. Linked into every program
// of a build with WEFT_SANITIZE=thread, and into no other. For CAF 0.17; a CAF 1.x from source can
// be built with the sanitizer itself.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <utility>

#include <caf/config.hpp>

#if CAF_MAJOR_VERSION == 0

#include <caf/actor_control_block.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/scheduled_actor.hpp>

namespace {

/// CAF's own function with this mangled name.
template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace caf {

void scheduled_actor::enqueue(mailbox_element_ptr element, execution_unit* unit) {
  static auto* const enqueue = original<void(scheduled_actor*, mailbox_element_ptr,
                                             execution_unit*)>(
      "_ZN3caf15scheduled_actor7enqueueESt10unique_ptrINS_15mailbox_elementENS_6detail8disposerEE"
      "PNS_14execution_unitE");
  __tsan_release(element.get());
  enqueue(this, std::move(element), unit);
}

void blocking_actor::enqueue(mailbox_element_ptr element, execution_unit* unit) {
  static auto* const enqueue = original<void(blocking_actor*, mailbox_element_ptr,
                                             execution_unit*)>(
      "_ZN3caf14blocking_actor7enqueueESt10unique_ptrINS_15mailbox_elementENS_6detail8disposerEE"
      "PNS_14execution_unitE");
  __tsan_release(element.get());
  enqueue(this, std::move(element), unit);
}

intrusive::task_result scheduled_actor::mailbox_visitor::operator()(mailbox_element& element) {
  static auto* const visit = original<intrusive::task_result(mailbox_visitor*, mailbox_element&)>(
      "_ZN3caf15scheduled_actor15mailbox_visitorclERNS_15mailbox_elementE");
  auto* const actor = self->ctrl();
  __tsan_acquire(&element);
  const auto result = visit(this, element);
  __tsan_release(actor);  // already here: when a turn ends, another thread may have taken the actor
  return result;
}

intrusive::task_result blocking_actor::mailbox_visitor::operator()(mailbox_element& element) {
  static auto* const visit = original<intrusive::task_result(mailbox_visitor*, mailbox_element&)>(
      "_ZN3caf14blocking_actor15mailbox_visitorclERNS_15mailbox_elementE");
  __tsan_acquire(&element);
  return visit(this, element);
}

void scheduled_actor::launch(execution_unit* unit, bool lazy, bool hide) {
  static auto* const launch = original<void(scheduled_actor*, execution_unit*, bool, bool)>(
      "_ZN3caf15scheduled_actor6launchEPNS_14execution_unitEbb");
  __tsan_release(ctrl());
  launch(this, unit, lazy, hide);
}

bool scheduled_actor::activate(execution_unit* unit) {
  static auto* const activate = original<bool(scheduled_actor*, execution_unit*)>(
      "_ZN3caf15scheduled_actor8activateEPNS_14execution_unitE");
  __tsan_acquire(ctrl());
  const bool is_alive = activate(this, unit);
  __tsan_release(ctrl());
  return is_alive;
}

// The two counts are taken down here, in code that the sanitizer sees, instead of in CAF.
void intrusive_ptr_release(actor_control_block* block) {
  if (block->strong_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    block->data_dtor(block->get());
    intrusive_ptr_release_weak(block);
  }
}

void intrusive_ptr_release_weak(actor_control_block* block) {
  if (block->weak_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) block->block_dtor(block);
}

}  // namespace caf

// The insides of CAF's own scheduler and logger, which nothing of ours waits for. Nothing of weft
// may stand here, and no frame below a handler of an actor (caf::scheduler::worker,
// caf::scheduled_actor): that would hide weft's races too.
extern "C" const char* __tsan_default_suppressions() {
  return "race:caf::detail::double_ended_queue\n"
         "race:caf::scheduler::coordinator\n"
         "race:std::_Hashtable<std::thread::id, std::pair<std::thread::id const, unsigned long>\n";
}

#endif
