// Contenders that take turns, and the states they walk through.
#pragma once

#include <chrono>
#include <functional>
#include <random>

#include "core_model.h"
#include "report.h"

namespace bench {

using Vector = std::vector<double>;

constexpr double sample_time = 100, most_time = 1e6;  // µs: of a sample, of all samples of a contender

// Configurations near one: joints up to 0.1 away, orientations up to about 0.1.
inline std::vector<Vector> states_near(const dl::Model<double>& model, const Vector& q, int count, std::mt19937& rng) {
  std::uniform_real_distribution<double> uniform(-0.1, 0.1);
  std::vector<Vector> out(std::size_t(count), q);
  for (std::size_t s = 1; s < out.size(); ++s) {
    for (double& x : out[s]) x += uniform(rng);
    for (const auto& link : model.links) {
      if (link.type != dl::Joint::free && link.type != dl::Joint::ball) continue;
      double* c = &out[s][link.iq + (link.type == dl::Joint::free ? 3 : 0)];
      const double n = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
      for (int k = 0; k < 4; ++k) c[k] /= n;
    }
  }
  return out;
}

struct Contender {
  std::string name;
  std::function<void(int)> call;  // with the number of the call
};
struct Timed {
  std::string name;
  Times times;
};

// Mean time of a call, calls numbered from 0, after one that brings its memory back into the caches.
inline double sample(const Contender& c, int calls) {
  using clock = std::chrono::steady_clock;
  c.call(0);
  const auto start = clock::now();
  for (int n = 0; n < calls; ++n) c.call(n);
  return std::chrono::duration<double, std::micro>(clock::now() - start).count() / calls;
}

inline std::vector<Timed> measure(const std::vector<Contender>& contenders, int repeats) {
  std::vector<int> calls, samples;
  std::vector<Vector> taken(contenders.size());
  for (const auto& c : contenders) {
    const double one = std::max(std::min(sample(c, 1), sample(c, 2)), 1e-3);
    calls.push_back(std::clamp(int(sample_time / one), 1, 256));
    samples.push_back(std::clamp(int(most_time / (calls.back() * one)), 3, repeats));
  }
  for (int r = 0; r < repeats; ++r)
    for (std::size_t k = 0; k < contenders.size(); ++k)
      if (r < samples[k]) taken[k].push_back(sample(contenders[k], calls[k]));
  std::vector<Timed> out;
  for (std::size_t k = 0; k < contenders.size(); ++k) out.push_back({contenders[k].name, summary(taken[k])});
  return out;
}

inline const Timed& fastest(const std::vector<Timed>& ways) {
  return *std::min_element(ways.begin(), ways.end(),
                           [](const Timed& a, const Timed& b) { return a.times.best < b.times.best; });
}

// Of results with `name`, `ours` and `times`: the fastest of a side, that of a name.
template <class Result>
const Result* best_of(const std::vector<Result>& all, bool ours) {
  const Result* best = nullptr;
  for (const auto& r : all)
    if (r.ours == ours && (!best || r.times.best < best->times.best)) best = &r;
  return best;
}
template <class Result>
const Result* named(const std::vector<Result>& all, bool ours, const std::string& name) {
  for (const auto& r : all)
    if (r.ours == ours && r.name == name) return &r;
  return nullptr;
}

// All contenders of one task, in the order of their results, timed in turn.
template <class Result>
void time_all(std::vector<Result>& results, const std::vector<Contender>& contenders, int repeats) {
  const auto timed = measure(contenders, repeats);
  for (std::size_t k = 0; k < results.size(); ++k) results[k].times = timed[k].times;
}

}  // namespace bench
