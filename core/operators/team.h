// Threads that wait for work between calls. The caller works too; results do not depend on how many they are.
//
// An exception of any thread, or an Interrupt of the caller's, ends the work of all, and leaves by the caller when
// they are done.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "errors/interrupt.h"
#include "spatial/target.h"

namespace delassus {

class Team {
 public:
  explicit Team(int threads) : size_(threads > 1 ? threads : 1) { start(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    if (owner_ != getpid()) {
      abandon();
      return;
    }
    stop_ = true;
    announce();
    for (auto& thread : threads_) thread.join();
  }

  int size() const { return size_; }
  // which thread does the k-th of n
  int whose(int k, int n) const {
    int t = int(std::int64_t(k) * size_ / n);
    while (first(t + 1, n) <= k) ++t;
    return t;
  }

  // work(k) for k = 0 … n − 1, each thread a range of them
  template <class F>
  void each(int n, F&& work) {
    if (size_ <= 1 || n <= 1) {
      for (int k = 0; k < n; ++k) {
        work(k);
        poll(item);
      }
      return;
    }
    // a forked child has no threads yet, only the memory of its parent's
    if (owner_ != getpid()) {
      abandon();
      start();
    }
    count_ = n;
    context_ = &work;
    call_ = [](void* context, int k) { (*static_cast<std::remove_reference_t<F>*>(context))(k); };
    busy_.store(size_ - 1, std::memory_order_relaxed);
    ends_.store(false, std::memory_order_relaxed);
    announce();
    attempt([&] { share(0); });
    attempt([&] { wait_for_others(true); });
    wait_for_others(false);
    if (ends_.load(std::memory_order_relaxed)) std::rethrow_exception(std::exchange(meeting_->error, nullptr));
  }

 private:
  static constexpr int patience = 4000;  // looks before a thread goes to sleep: some ten microseconds
  static constexpr double item = 2e4;    // operations that a piece of work counts for between two looks at the clock

  // Where the caller waits for the others, and what went wrong first; a forked child has its own.
  struct Meeting {
    std::mutex mutex;
    std::condition_variable done;
    std::exception_ptr error;
  };
  // Ends the other threads' work.
  class Called final : public Interrupt {
   public:
    explicit Called(const std::atomic<bool>& ends) : ends_(ends) {}
    bool asked() override { return ends_.load(std::memory_order_relaxed); }

   private:
    const std::atomic<bool>& ends_;
  };

  void start() {
    owner_ = getpid();
    meeting_ = std::make_unique<Meeting>();
    const int now = round_.load();
    for (int t = 1; t < size_; ++t)
      threads_.emplace_back([this, t, now] {
        const Called called(ends_);
        for (int seen = now;;) {
          wait_while(round_, seen);
          seen = round_.load(std::memory_order_acquire);
          if (stop_) return;
          attempt([&] { share(t); });
          const std::lock_guard lock(meeting_->mutex);
          if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) meeting_->done.notify_one();
        }
      });
  }
  // threads that died with a fork cannot be joined; they are left as they are, with what they waited on
  void abandon() {
    new std::pair(std::move(threads_), std::move(meeting_));
    threads_.clear();
  }
  void announce() {
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  void share(int t) {
    const int last = first(t + 1, count_);
    for (int k = first(t, count_); k < last; ++k) {
      call_(context_, k);
      poll(item);
    }
  }
  // Keeps the first exception, and lets everyone come to an end.
  template <class F>
  void attempt(F&& f) {
    try {
      f();
    } catch (...) {
      const std::lock_guard lock(meeting_->mutex);
      if (!ends_.exchange(true)) meeting_->error = std::current_exception();
    }
  }
  // Until all others are done; asks its own Interrupt meanwhile, if it may.
  void wait_for_others(bool asking) {
    const auto done = [&] { return busy_.load(std::memory_order_acquire) == 0; };
    for (int look = 0; look < patience; ++look) {
      if (done()) return;
      relax();
    }
    Interrupt* interrupt = asking ? Interrupt::here() : nullptr;
    std::unique_lock lock(meeting_->mutex);
    while (!done()) {
      if (!interrupt) {
        meeting_->done.wait(lock, done);
      } else if (!meeting_->done.wait_for(lock, std::chrono::milliseconds(50), done)) {
        lock.unlock();
        interrupt->look();
        lock.lock();
      }
    }
  }
  int first(int t, int n) const { return int(std::int64_t(n) * t / size_); }
  static void wait_while(std::atomic<int>& x, int value) {
    for (int look = 0; look < patience; ++look) {
      if (x.load(std::memory_order_acquire) != value) return;
      relax();
    }
    x.wait(value, std::memory_order_acquire);
  }

  int size_;
  pid_t owner_ = 0;
  std::vector<std::thread> threads_;
  std::atomic<int> round_{0}, busy_{0};
  std::atomic<bool> stop_{false}, ends_{false};
  std::unique_ptr<Meeting> meeting_;
  int count_ = 0;
  void* context_ = nullptr;
  void (*call_)(void*, int) = nullptr;
};

}  // namespace delassus
