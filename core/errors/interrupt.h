// Long work asks now and then whether it shall go on, and ends with an exception if not.
//
// Whoever starts the work puts an Interrupt up for its thread; whoever iterates calls `poll` with the size of an
// iteration. Between two looks at the clock lie about 100,000 operations, between two questions 50 ms: a poll is a
// load, a subtraction and a branch. Polls stand only where everything that outlives the call is valid.
#pragma once

#include <chrono>

namespace delassus {

// Thrown out of work that shall not go on.
struct Interrupted {};

class Interrupt {
 public:
  Interrupt() : before_(here()) { here() = this; }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Of this thread, or null.
  static Interrupt*& here() {
    static constinit thread_local Interrupt* current = nullptr;
    return current;
  }

  void spend(double operations) {
    budget_ -= operations;
    if (budget_ < 0) look();
  }
  // Asks, if it is time to.
  void look() {
    budget_ = 1e5;
    const auto now = std::chrono::steady_clock::now();
    if (next_ == Time{}) next_ = now + rest;
    if (now < next_) return;
    const bool ends = asked();
    next_ = std::chrono::steady_clock::now() + rest;
    if (ends) throw Interrupted{};
  }

 protected:
  ~Interrupt() { here() = before_; }
  // Whether the work shall end.
  virtual bool asked() = 0;

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr auto rest = std::chrono::milliseconds(50);

  Interrupt* before_;
  double budget_ = 1e5;
  Time next_{};  // when to ask next; the first look says
};

// After some operations of this thread.
inline void poll(double operations) {
  if (Interrupt* interrupt = Interrupt::here()) interrupt->spend(operations);
}

}  // namespace delassus
