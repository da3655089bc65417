// Numbers that tests and their oracles exchange.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <delassus/delassus.hpp>

namespace dl = delassus;

// Ends the program where something is not so.
inline void check(bool so, int line, const char* what) {
  if (so) return;
  std::printf("line %d: not so: %s\n", line, what);
  std::exit(1);
}
#define CHECK(...) check(static_cast<bool>(__VA_ARGS__), __LINE__, #__VA_ARGS__)
#define OK(...) CHECK((__VA_ARGS__) == dl::Status::ok)

inline std::vector<double> read_numbers(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  CHECK(file != nullptr);
  std::vector<double> numbers;
  double x = 0;
  while (std::fread(&x, sizeof x, 1, file) == 1) numbers.push_back(x);
  std::fclose(file);
  return numbers;
}

// Numbers one after another, as they come.
class Numbers {
 public:
  explicit Numbers(std::vector<double> numbers) : numbers_(std::move(numbers)) {}
  std::vector<double> take(int n) {
    CHECK(at_ + std::size_t(n) <= numbers_.size());
    const auto first = numbers_.begin() + std::ptrdiff_t(at_);
    at_ += std::size_t(n);
    return {first, first + n};
  }
  bool all_taken() const { return at_ == numbers_.size(); }

 private:
  std::vector<double> numbers_;
  std::size_t at_ = 0;
};

class Results {
 public:
  void add(const std::vector<double>& x) { numbers_.insert(numbers_.end(), x.begin(), x.end()); }
  void add(double x) { numbers_.push_back(x); }
  void write(const char* path) const {
    std::FILE* file = std::fopen(path, "wb");
    CHECK(file != nullptr);
    CHECK(std::fwrite(numbers_.data(), sizeof(double), numbers_.size(), file) == numbers_.size());
    std::fclose(file);
  }

 private:
  std::vector<double> numbers_;
};
