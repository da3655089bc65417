// What every native benchmark says and measures alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

// ‖a − b‖ / ‖b‖
inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double d = 0, n = 0;
  for (std::size_t k = 0; k < a.size(); ++k) d += (a[k] - b[k]) * (a[k] - b[k]), n += b[k] * b[k];
  const double e = std::sqrt(d / n);
  return std::isfinite(e) ? e : HUGE_VAL;
}

struct Times {
  double best, median, upper;  // µs; upper: nine samples in ten are below
};

inline Times summary(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return {x.front(), x[x.size() / 2], x[x.size() * 9 / 10]};
}

inline std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

using Facts = std::vector<std::pair<std::string, std::string>>;

inline std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

inline std::string json(const Times& t) {
  std::ostringstream out;
  out << "{\"best\": " << t.best << ", \"median\": " << t.median << ", \"p90\": " << t.upper << "}";
  return out.str();
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
    if (word == "--json" && more) o.json_file = argv[++k];
    else if (word == "--markdown" && more) o.markdown_file = argv[++k];
    else if (word == "--repeats" && more) o.repeats = std::stoi(argv[++k]);
    else if (word == "--only" && more) o.only = argv[++k];
    else if (word[0] != '-' && o.input.empty()) o.input = word;
    else throw std::runtime_error(std::string("usage: ") + argv[0] + " FILE [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]");
  }
  if (o.repeats < 1) throw std::runtime_error("--repeats: expected at least 1, got " + std::to_string(o.repeats));
  return o;
}

// Those that --only names, or all.
template <class Robot>
std::vector<Robot> chosen(const std::vector<Robot>& all, const std::string& only) {
  std::vector<Robot> out;
  std::string names;
  for (const auto& robot : all) {
    if (only.empty() || robot.name == only) out.push_back(robot);
    names += " " + robot.name;
  }
  if (out.empty()) throw std::runtime_error("--only: `" + only + "` is none of" + names);
  return out;
}

}  // namespace bench
