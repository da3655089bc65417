// Work without the interpreter's lock. Signals can interrupt it, and it is safe when the interpreter exits.
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

#include "errors/interrupt.h"

namespace delassus::door {

// The lock is released for as long as this lives.
//
// Signals: Python handles them between its own instructions, so long work has to ask. When a handler raises (Ctrl-C),
// its exception stays set in this thread, the work is left by Interrupted, and `translate` in door.h hands the
// exception on.
//
// The end of the interpreter: a daemon thread that asks for the lock then is not given it; up to Python 3.13 its
// thread is ended, by unwinding its stack, through frames that hold Python's objects and must not be left that way:
// the process would abort. The thread stays here instead, asleep, until the process is gone.
class Unlocked final : public Interrupt {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { lock(); }

 private:
  void lock() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) pause();
    }
  }
  bool asked() override {
    lock();
    const bool raised = PyErr_CheckSignals() != 0;
    state_ = PyEval_SaveThread();
    return raised;
  }

  PyThreadState* state_;
};

}  // namespace delassus::door
