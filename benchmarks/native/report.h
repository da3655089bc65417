// What every native benchmark is called with, says and writes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

// ‖a − b‖ / ‖b‖
inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double d = 0, n = 0;
  for (std::size_t k = 0; k < a.size(); ++k) d += (a[k] - b[k]) * (a[k] - b[k]), n += b[k] * b[k];
  const double e = std::sqrt(d / n);
  return std::isfinite(e) ? e : HUGE_VAL;
}

std::string text(const char* format, auto... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

inline std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// as JSON has it, which knows no infinity
inline std::string number(double x) { return std::isfinite(x) ? text("%.3g", x) : "null"; }

// µs a call: one sample in ten is below `lower`, nine in ten are below `upper`.
struct Times {
  double best, median, lower, upper;
  Times share(int n) const { return {best / n, median / n, lower / n, upper / n}; }
};

inline Times summary(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return {x.front(), x[x.size() / 2], x[x.size() / 10], x[x.size() * 9 / 10]};
}

// geometric mean, least and largest
struct Spread {
  double sum = 0, least = HUGE_VAL, largest = 0;
  int count = 0;
  void add(double x) { sum += std::log(x), least = std::min(least, x), largest = std::max(largest, x), ++count; }
  double mean() const { return std::exp(sum / count); }
};

// One measurement: who did what on which robot in what time, and how wrong its result was.
struct Record {
  std::string name;  // of the robot, scene or contact set
  int nv, rows;
  std::string task;
  bool ours;
  std::string way;
  Times times;
  double error;
  double bound;      // the error above which the time means nothing
  std::string more;  // further members of its JSON, each with a comma before
};

// All measurements of a program. Each is printed as it comes.
class Records {
 public:
  void add(Record r) {
    if (list_.empty() || list_.back().name != r.name) {
      std::printf("\n%s: nv %d", r.name.c_str(), r.nv);
      if (r.rows) std::printf(", m %d", r.rows);
      std::printf("\n  %-20s %-10s %-30s %10s %10s %10s %10s %9s\n", "µs a call", "", "", "best", "median", "10 %",
                  "90 %", "error");
    }
    std::printf("  %-20s %-10s %-30s %10.3f %10.3f %10.3f %10.3f %9.0e\n", r.task.c_str(),
                r.ours ? "delassus" : "Pinocchio", r.way.c_str(), r.times.best, r.times.median, r.times.lower,
                r.times.upper, r.error);
    std::fflush(stdout);
    list_.push_back(std::move(r));
  }

  // How many are wrong, named on the way.
  int wrong() const {
    int count = 0;
    for (const auto& r : list_)
      if (!(r.error <= r.bound))
        ++count, std::fprintf(stderr, "%s: %s by %s's %s is wrong by %g, more than %g: its time means nothing\n",
                              r.name.c_str(), r.task.c_str(), r.ours ? "delassus" : "Pinocchio", r.way.c_str(), r.error,
                              r.bound);
    return count;
  }

  std::string json() const {
    std::ostringstream out;
    out << "[";
    for (const auto& r : list_) {
      out << (&r == list_.data() ? "\n    " : ",\n    ") << "{\"name\": " << quoted(r.name) << ", \"nv\": " << r.nv
          << ", \"rows\": " << r.rows << ", \"task\": " << quoted(r.task)
          << ", \"side\": " << quoted(r.ours ? "delassus" : "Pinocchio") << ", \"way\": " << quoted(r.way)
          << ", \"best\": " << r.times.best << ", \"median\": " << r.times.median << ", \"p10\": " << r.times.lower
          << ", \"p90\": " << r.times.upper << ", \"error\": " << number(r.error) << r.more << "}";
    }
    out << "\n  ]";
    return out.str();
  }

 private:
  std::vector<Record> list_;
};

inline std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

inline void write(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << text;
  if (!out) throw std::runtime_error("cannot write `" + file + "`");
}

// What the programs are called with: FILE [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
struct Options {
  std::string input, json_file, markdown_file, only;
  int repeats = 300;
};

inline Options read_options(int argc, char** argv) {
  Options o;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    const bool more = k + 1 < argc;
    if (word == "--json" && more)
      o.json_file = argv[++k];
    else if (word == "--markdown" && more)
      o.markdown_file = argv[++k];
    else if (word == "--repeats" && more)
      o.repeats = std::stoi(argv[++k]);
    else if (word == "--only" && more)
      o.only = argv[++k];
    else if (word[0] != '-' && o.input.empty())
      o.input = word;
    else
      throw std::runtime_error(std::string("usage: ") + argv[0] +
                               " FILE [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]");
  }
  if (o.repeats < 1) throw std::runtime_error("--repeats: expected at least 1, got " + std::to_string(o.repeats));
  return o;
}

// Those of a file that --only names, or all.
inline std::vector<Robot> chosen_robots(const Options& o) {
  std::ifstream in(o.input);
  if (!in) throw std::runtime_error("cannot read robots from `" + o.input + "`");
  std::vector<Robot> out;
  std::string names;
  for (auto& robot : read_robots(in)) {
    names += " " + robot.name;
    if (o.only.empty() || robot.name == o.only) out.push_back(std::move(robot));
  }
  if (out.empty()) throw std::runtime_error("--only: `" + o.only + "` is none of" + names);
  return out;
}

// What keeps a program from running is said in a line.
template <class Run>
int guarded(Run run) {
  try {
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}

// A whole benchmark beside a peer. `run` takes the robots, how often to repeat and where to put the measurements, and
// returns the tables of benchmarks/README.md; `sampling` says how it measures. 1: some result is wrong; 2: it could not
// be run.
template <class Peer, class Run>
int program(int argc, char** argv, const std::string& sampling, Run run) {
  return guarded([&] {
    const Options o = read_options(argc, argv);
    const auto robots = chosen_robots(o);
    const std::pair<const char*, std::string> facts[] = {{"cpu", cpu_model()},
                                                         {"compiler", BENCH_COMPILER},
                                                         {"flags", BENCH_FLAGS},
                                                         {"pinocchio", Peer::version()},
                                                         {"eigen", Peer::eigen_version()},
                                                         {"sampling", text("at most %d ", o.repeats) + sampling}};
    for (const auto& [key, value] : facts) std::printf("%-10s %s\n", key, value.c_str());

    Records records;
    const std::string tables = run(robots, o.repeats, records);
    std::printf("\n%s", tables.c_str());
    write(o.markdown_file, tables);
    std::string json = "{\n";
    for (const auto& [key, value] : facts) json += "  " + quoted(key) + ": " + quoted(value) + ",\n";
    write(o.json_file,
          json + "  \"unit\": \"microseconds a call, of a batch a state\",\n  \"rows\": " + records.json() + "\n}\n");
    return records.wrong() ? 1 : 0;
  });
}

}  // namespace bench
