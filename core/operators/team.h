// Threads that wait for work between calls. The caller works too; results do not depend on how many they are.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

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
      for (int k = 0; k < n; ++k) work(k);
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
    announce();
    share(0);
    for (int left; (left = busy_.load(std::memory_order_acquire)) != 0;) wait_while(busy_, left);
  }

 private:
  static constexpr int patience = 4000;  // looks before a thread goes to sleep: some ten microseconds

  void start() {
    owner_ = getpid();
    const int now = round_.load();
    for (int t = 1; t < size_; ++t)
      threads_.emplace_back([this, t, now] {
        for (int seen = now;;) {
          wait_while(round_, seen);
          seen = round_.load(std::memory_order_acquire);
          if (stop_) return;
          share(t);
          if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
        }
      });
  }
  // threads that died with a fork cannot be joined; they are left as they are
  void abandon() {
    new std::vector<std::thread>(std::move(threads_));
    threads_.clear();
  }
  void announce() {
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  void share(int t) {
    const int last = first(t + 1, count_);
    for (int k = first(t, count_); k < last; ++k) call_(context_, k);
  }
  int first(int t, int n) const { return int(std::int64_t(n) * t / size_); }
  static void wait_while(std::atomic<int>& x, int value) {
    for (int look = 0; look < patience; ++look) {
      if (x.load(std::memory_order_acquire) != value) return;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
    x.wait(value, std::memory_order_acquire);
  }

  int size_;
  pid_t owner_ = 0;
  std::vector<std::thread> threads_;
  std::atomic<int> round_{0}, busy_{0};
  std::atomic<bool> stop_{false};
  int count_ = 0;
  void* context_ = nullptr;
  void (*call_)(void*, int) = nullptr;
};

}  // namespace delassus
