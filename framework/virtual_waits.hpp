#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace weft {

/// What moves only while some thread waits: a runtime in virtual time.
class Steered {
 public:
  /// Lets things happen until `done`, or until virtual time would pass `nanoseconds` more
  /// (negative: however long it takes). Returns whether anything happened. Any thread; one at a
  /// time moves it.
  virtual bool move(const std::function<bool()>& done, std::int64_t nanoseconds) = 0;
  /// Its virtual time, in nanoseconds. Any thread.
  [[nodiscard]] virtual std::int64_t now() const = 0;
  /// A thread of the program has waited for what happened just now.
  virtual void waited() = 0;
  /// Who waits for whom, for a person.
  virtual std::string describe() = 0;

 protected:
  ~Steered() = default;
};

/// Where waits find the runtimes that their threads have to move.
namespace virtual_waits {

void add(Steered& steered);
/// Returns once no wait uses it any more.
void remove(Steered& steered);
/// Whether there is any. Cheap.
bool any();

/// Counts runtimes in real time, which need nobody to move them.
void count_real(int number);
/// Whether there are both.
bool are_mixed();

/// Moves all of them until `done`, which is asked after each event. Throws `UsageError` with who
/// waits for whom if nothing has happened and nothing was submitted for so long that nothing will.
void wait(const std::function<bool()>& done);
/// The same for a `done` that is true only when all is quiet: asked when nothing more can happen.
void wait_until_quiet(const std::function<bool()>& done);
/// Waits for `done` whatever runtimes there are: as `wait` if any is in virtual time; then it looks
/// again and again, for runtimes in real time.
void wait_in_any_time(const std::function<bool()>& done);
/// As `wait` for at most `nanoseconds` of virtual time, which have passed if it returns false,
/// unless a message that is on its way never arrives; returns `done()`.
bool wait_for(const std::function<bool()>& done, std::int64_t nanoseconds);
/// Moves them a little; for loops that look again and again.
void poll();

/// While one exists, a message is on its way to an actor of the program: virtual time stands still.
class MessageInFlight {
 public:
  MessageInFlight();
  ~MessageInFlight();
  MessageInFlight(const MessageInFlight&) = delete;
  MessageInFlight& operator=(const MessageInFlight&) = delete;
};
bool has_messages_in_flight();

/// Actors of the program that wait for a future: time must go on though no thread waits.
void add_awaited(int count);
bool are_futures_awaited();

}  // namespace virtual_waits
}  // namespace weft
