// Times work in the core without Python's share, and counts the memory that it touches when the program runs in
// Valgrind's callgrind.
#pragma once

#include <nanobind/nanobind.h>

#include <ctime>

namespace delassus {

// A request to callgrind: a sequence of instructions without effect that Valgrind recognises as a message of six words.
// 0 writes the counts and resets them, 2 starts or stops counting, 4 starts the cache simulation with an empty cache, 5
// stops it.
inline void callgrind(int request) {
#if defined(__x86_64__)
  volatile std::size_t words[6] = {(std::size_t('C') << 24 | std::size_t('T') << 16) + std::size_t(request)};
  std::size_t answer = 0;
  asm volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
               : "=d"(answer)
               : "a"(&words[0]), "0"(answer)
               : "cc", "memory");
#else
  static_cast<void>(request);
#endif
}

struct Stopwatch {
  int repeats = 1;      // of the work that follows; Python sees the last
  bool traced = false;  // whether callgrind is to count it
  double seconds = 0;   // of this thread, a repeat in the mean, where there are several

  template <class F>
  void run(F&& f) {
    if (traced) {
      callgrind(2);
      f();
      callgrind(2);
    } else if (repeats == 1) {
      f();
    } else {
      const double start = now();
      for (int k = 0; k < repeats; ++k) f();
      seconds = (now() - start) / repeats;
    }
  }

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }
};

// Of a class whose instances have a `watch`.
template <class Self>
nanobind::class_<Self> with_stopwatch(nanobind::class_<Self> c) {
  c.def_prop_rw("repeats", [](const Self& s) { return s.watch.repeats; }, [](Self& s, int n) { s.watch.repeats = n; });
  c.def_prop_rw(
      "traced", [](const Self& s) { return s.watch.traced; }, [](Self& s, bool yes) { s.watch.traced = yes; });
  c.def_prop_ro("seconds", [](const Self& s) { return s.watch.seconds; });
  return c;
}

}  // namespace delassus
