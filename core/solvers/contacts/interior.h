// Contact forces by an interior point: Newton's method on a smooth path to the solution. Needs the matrix; a handful of
// factorizations, whatever slides.
//
//   r ∈ K, v ∈ K*,   v = G r + g + Γ(v),   r ∘ v = µ e,   µ → 0
//       Γ: ‖v_T‖ on normals, in units in which cones have an opening of 45°
//   H r = v by Nesterov and Todd,   H Δr + Δv = c,   (1 − e tᵀ) Δv = G Δr + …
//       t = v_T / ‖v_T‖: how Γ changes is part of it
//   ⇒ (G + (1 − e tᵀ) H) Δr = (1 − e tᵀ) c − what is left
//
// Predictor and corrector as Mehrotra's. With Γ held, which is usual, each problem is convex, but the sequence of them
// need not settle where much slides; with its change it does. Intervals have one or two barriers, rows without a set
// none. Coulomb's problem is not convex: where the way is blocked, another start is tried.
#pragma once

#include <array>

#include "solvers/contacts/problem.h"

namespace delassus {

class Interior {
 public:
  // G: m × m, row-major. One iteration is a factorization. What λ is on entry is taken if it solves the problem, and
  // not used otherwise.
  ContactReport solve(const ContactProblem& p, const double* G, const ContactOptions& options, double* lambda,
                      double* sigma, double* history) {
    begin(p, G);
    ContactReport report;
    double best = std::numeric_limits<double>::infinity();
    best_.assign(std::size_t(p.rows()), 0.0);
    const auto judged = [&] {
      report.left = judge(p, true, d_.data(), lambda, sigma);
      const double worst = report.left.worst(options.share);
      if (worst < best) {
        best = worst;
        std::copy_n(lambda, p.rows(), best_.data());
      }
      if (worst <= options.tolerance) report.outcome = ContactOutcome::solved;
      return worst <= options.tolerance;
    };
    if (!options.warm) std::fill_n(lambda, p.rows(), 0.0);
    project(p.sets, lambda, lambda);
    if (judged()) return report;
    for (const auto& start : starts) {
      set_start(start[0]);
      int blocked = 0;
      const int last = std::min(options.most, report.iterations + patience);
      while (report.iterations < last && blocked < 4) {
        const double step = advance(start[1]);
        if (!(step > 0)) break;
        history[report.iterations++] = report.left.natural;
        ++report.factorizations;
        blocked = step < 0.02 ? blocked + 1 : 0;
        forces(p, lambda);
        if (judged()) return report;
      }
    }
    std::copy_n(best_.data(), p.rows(), lambda);
    report.left = judge(p, true, d_.data(), lambda, sigma);
    report.outcome = report.iterations >= options.most ? ContactOutcome::unfinished : ContactOutcome::stalled;
    return report;
  }

 private:
  using V = std::array<double, 3>;
  static constexpr double starts[][2] = {
      {0.1, 0.95}, {1.0, 0.5}, {0.01, 0.7}};  // size of the forces; share of the way to the border
  static constexpr int patience = 40;
  static constexpr double rough = 1e-6;  // friction below which a contact has none
  static constexpr double nearly =
      1e-9;  // damping of rows without a set, which may be redundant, towards the forces before

  // The algebra of the cone ‖x_T‖ ≤ x_n.
  static double det(const V& x) {
    const double t = std::sqrt(x[1] * x[1] + x[2] * x[2]);
    return (x[0] - t) * (x[0] + t);
  }
  static V inverse(const V& x) {
    const double d = 1 / det(x);
    return {x[0] * d, -x[1] * d, -x[2] * d};
  }
  static V root(const V& x) {
    const double t = std::sqrt(x[1] * x[1] + x[2] * x[2]), a = std::sqrt(x[0] + t),
                 b = std::sqrt(std::max(x[0] - t, 1e-300)), c = t > 0 ? (a - b) / (2 * t) : 0;
    return {(a + b) / 2, c * x[1], c * x[2]};
  }
  // Q_x y, which scales
  static V scaled(const V& x, const V& y) {
    const double s = 2 * (x[0] * y[0] + x[1] * y[1] + x[2] * y[2]), d = det(x);
    return {s * x[0] - d * y[0], s * x[1] + d * y[1], s * x[2] + d * y[2]};
  }
  static V product(const V& x, const V& y) {
    return {x[0] * y[0] + x[1] * y[1] + x[2] * y[2], x[0] * y[1] + y[0] * x[1], x[0] * y[2] + y[0] * x[2]};
  }
  // y with x ∘ y = c
  static V quotient(const V& x, const V& c) {
    const double y = (x[0] * c[0] - x[1] * c[1] - x[2] * c[2]) / det(x);
    return {y, (c[1] - y * x[1]) / x[0], (c[2] - y * x[2]) / x[0]};
  }
  // The largest a with x + a d in the cone.
  static double reach(const V& x, const V& d) {
    const double a = d[0] * d[0] - d[1] * d[1] - d[2] * d[2], b = x[0] * d[0] - x[1] * d[1] - x[2] * d[2],
                 c = std::max(det(x), 0.0);
    double most = d[0] < 0 ? -x[0] / d[0] : far;
    const double disc = b * b - a * c;
    if (disc < 0) return most;
    const double q = -(b + std::copysign(std::sqrt(disc), b));
    if (a != 0 && q / a > 0) most = std::min(most, q / a);
    if (q != 0 && c / q > 0) most = std::min(most, c / q);
    return most;
  }
  static double reach(double x, double d) { return d < 0 ? -x / d : far; }
  static constexpr double far = 1e300;

  struct ConeState {
    int at;  // first of its three unknowns
    double friction;
    V r, v;             // force, velocity with Γ
    V w, z, c, dr, dv;  // Nesterov and Todd's point, both in its units, right-hand side, steps
  };
  struct IntervalState {
    int at;
    double lower, upper;  // infinite: there is none
    double r, a, b;       // force; pressures of the two ends
    double dr, da, db;
    bool bounded() const { return std::isfinite(lower) || std::isfinite(upper); }
  };

  // Units with a unit diagonal and cones of 45°; rows that cannot have a force, and those fixed to one, are left out.
  void begin(const ContactProblem& p, const double* G) {
    const int m = p.rows();
    d_.resize(std::size_t(m));
    feel(p.sets, p.G, d_.data());
    cones_.clear();
    intervals_.clear();
    row_.clear();
    unit_.clear();
    fixed_.assign(std::size_t(m), 0.0);
    const auto unknown = [&](int row, double unit) {
      row_.push_back(row);
      unit_.push_back(unit);
      return int(row_.size()) - 1;
    };
    constexpr double open = std::numeric_limits<double>::infinity();
    for (const auto& c : p.sets.cones) {
      const double w = 1 / std::sqrt(d_[std::size_t(c.row)]);
      if (c.friction < rough) {
        intervals_.push_back({unknown(c.row, w), 0, open, 0, 0, 0, 0, 0, 0});
        continue;
      }
      ConeState s{};
      s.at = unknown(c.row, w / c.friction);
      unknown(c.row + 1, w);
      unknown(c.row + 2, w);
      s.friction = c.friction;
      cones_.push_back(s);
    }
    for (const auto& i : p.sets.intervals) {
      const double w = 1 / std::sqrt(d_[std::size_t(i.row)]);
      if (!(i.upper > i.lower)) {
        fixed_[std::size_t(i.row)] = i.lower;
        continue;
      }
      intervals_.push_back({unknown(i.row, w), i.lower / w, i.upper / w, 0, 0, 0, 0, 0, 0});
    }
    n_ = int(row_.size());
    for (auto* x : {&g_, &left_, &x_}) x->assign(std::size_t(n_), 0.0);
    G_.resize(std::size_t(n_) * n_);
    K_.resize(G_.size());
    pivot_.resize(std::size_t(n_));
    speed_ = 0;
    for (int i = 0; i < n_; ++i) {
      const double* row = G + std::size_t(row_[std::size_t(i)]) * m;
      const double u = unit_[std::size_t(i)];
      for (int j = 0; j < n_; ++j) G_[std::size_t(i) * n_ + j] = u * row[row_[std::size_t(j)]] * unit_[std::size_t(j)];
      double g = p.g[row_[std::size_t(i)]];
      for (int r = 0; r < m; ++r) g += row[r] * fixed_[std::size_t(r)];
      g_[std::size_t(i)] = u * g;
      speed_ = std::max(speed_, std::abs(u * g));
    }
    speed_ = std::max(speed_, 1e-12);
  }

  void set_start(double share) {
    for (auto& c : cones_) c.r = {share * speed_, 0, 0}, c.v = {speed_, 0, 0};
    for (auto& i : intervals_) {
      const bool low = std::isfinite(i.lower), high = std::isfinite(i.upper);
      i.r = low && high ? (i.lower + i.upper) / 2
            : low       ? i.lower + share * speed_
            : high      ? i.upper - share * speed_
                        : 0;
      i.a = low ? speed_ : 0;
      i.b = high ? speed_ : 0;
    }
  }

  void forces(const ContactProblem& p, double* lambda) const {
    std::copy_n(fixed_.data(), p.rows(), lambda);
    for (const auto& c : cones_)
      for (int k = 0; k < 3; ++k)
        lambda[row_[std::size_t(c.at + k)]] = c.r[std::size_t(k)] * unit_[std::size_t(c.at + k)];
    for (const auto& i : intervals_) lambda[row_[std::size_t(i.at)]] = i.r * unit_[std::size_t(i.at)];
    project(p.sets, lambda, lambda);
  }

  // One step; returns its length, 0: the matrix is singular or numbers are lost.
  double advance(double share) {
    double mean = 0;
    int count = 0;
    for (const auto& c : cones_) mean += c.r[0] * c.v[0] + c.r[1] * c.v[1] + c.r[2] * c.v[2], ++count;
    for (const auto& i : intervals_) {
      if (std::isfinite(i.lower)) mean += (i.r - i.lower) * i.a, ++count;
      if (std::isfinite(i.upper)) mean += (i.upper - i.r) * i.b, ++count;
    }
    mean /= std::max(count, 1);
    find_left();
    if (!factor()) return 0;

    // predictor: straight to the end
    for (auto& c : cones_) c.c = {-c.v[0], -c.v[1], -c.v[2]};
    find_step(0, false);
    const double ahead = std::min(1.0, longest());
    double after = 0;
    for (const auto& c : cones_)
      for (int k = 0; k < 3; ++k)
        after +=
            (c.r[std::size_t(k)] + ahead * c.dr[std::size_t(k)]) * (c.v[std::size_t(k)] + ahead * c.dv[std::size_t(k)]);
    for (const auto& i : intervals_) {
      if (std::isfinite(i.lower)) after += (i.r + ahead * i.dr - i.lower) * (i.a + ahead * i.da);
      if (std::isfinite(i.upper)) after += (i.upper - i.r - ahead * i.dr) * (i.b + ahead * i.db);
    }
    const double ratio = mean > 0 ? after / std::max(count, 1) / mean : 0,
                 aim = mean * std::clamp(ratio * ratio * ratio, 1e-6, 1.0);

    // corrector: to the path, with what the predictor left
    for (auto& c : cones_) {
      const V w = root(c.w), over = inverse(w), a = scaled(over, c.dr), b = scaled(w, c.dv), e = product(a, b);
      const V q = scaled(over, quotient(c.z, {aim - e[0], -e[1], -e[2]}));
      c.c = {q[0] - c.v[0], q[1] - c.v[1], q[2] - c.v[2]};
    }
    find_step(aim, true);
    const double step = std::min(1.0, share * longest());
    if (!std::isfinite(step)) return 0;
    for (auto& c : cones_)
      for (std::size_t k = 0; k < 3; ++k) c.r[k] += step * c.dr[k], c.v[k] += step * c.dv[k];
    for (auto& i : intervals_) i.r += step * i.dr, i.a += step * i.da, i.b += step * i.db;
    return step;
  }

  // G r + g + Γ − v
  void find_left() {
    for (const auto& c : cones_)
      for (int k = 0; k < 3; ++k) x_[std::size_t(c.at + k)] = c.r[std::size_t(k)];
    for (const auto& i : intervals_) x_[std::size_t(i.at)] = i.r;
    for (int i = 0; i < n_; ++i)
      left_[std::size_t(i)] = g_[std::size_t(i)] + inner(n_, &G_[std::size_t(i) * n_], x_.data());
    for (const auto& c : cones_) {
      left_[std::size_t(c.at)] += std::sqrt(c.v[1] * c.v[1] + c.v[2] * c.v[2]);
      for (int k = 0; k < 3; ++k) left_[std::size_t(c.at + k)] -= c.v[std::size_t(k)];
    }
    for (const auto& i : intervals_) left_[std::size_t(i.at)] -= i.a - i.b;
  }

  // x_n − t · x_T: (1 − e tᵀ) x
  static double untilted(const ConeState& c, const V& x) {
    const double t = std::sqrt(c.v[1] * c.v[1] + c.v[2] * c.v[2]);
    return t > 1e-300 ? x[0] - (c.v[1] * x[1] + c.v[2] * x[2]) / t : x[0];
  }

  // G + (1 − e tᵀ) H, as L U with rows exchanged
  bool factor() {
    std::copy(G_.begin(), G_.end(), K_.begin());
    for (auto& c : cones_) {
      const V r = root(c.r);
      c.w = scaled(r, inverse(root(scaled(r, c.v))));
      c.z = scaled(inverse(root(c.w)), c.r);
      const V over = inverse(c.w);
      for (int k = 0; k < 3; ++k) {
        V e{};
        e[std::size_t(k)] = 1;
        const V h = scaled(over, e);
        K_[std::size_t(c.at) * n_ + c.at + k] += untilted(c, h);
        for (int l = 1; l < 3; ++l) K_[std::size_t(c.at + l) * n_ + c.at + k] += h[std::size_t(l)];
      }
    }
    for (const auto& i : intervals_) K_[std::size_t(i.at) * n_ + i.at] += i.bounded() ? stiffness(i) : nearly;
    for (int k = 0; k < n_; ++k) {
      poll(2.0 * (n_ - k) * (n_ - k));
      int p = k;
      for (int i = k + 1; i < n_; ++i)
        if (std::abs(K_[std::size_t(i) * n_ + k]) > std::abs(K_[std::size_t(p) * n_ + k])) p = i;
      pivot_[std::size_t(k)] = p;
      if (p != k) std::swap_ranges(&K_[std::size_t(k) * n_], &K_[std::size_t(k) * n_] + n_, &K_[std::size_t(p) * n_]);
      const double* top = &K_[std::size_t(k) * n_];
      if (!(std::abs(top[k]) > 1e-300)) return false;
      const double over = 1 / top[k];
      for (int i = k + 1; i < n_; ++i) {
        double* row = &K_[std::size_t(i) * n_];
        if (row[k] == 0) continue;
        const double f = row[k] *= over;
        for (int j = k + 1; j < n_; ++j) row[j] -= f * top[j];
      }
    }
    return true;
  }
  static double stiffness(const IntervalState& i) {
    return (std::isfinite(i.lower) ? i.a / (i.r - i.lower) : 0) + (std::isfinite(i.upper) ? i.b / (i.upper - i.r) : 0);
  }

  // Δr, and Δv = c − H Δr
  void find_step(double aim, bool corrected) {
    for (auto& i : intervals_) {
      // what the predictor's steps leave of the products is taken off
      const double low = std::isfinite(i.lower) ? (aim - (corrected ? i.dr * i.da : 0)) / (i.r - i.lower) - i.a : 0;
      const double high = std::isfinite(i.upper) ? (aim + (corrected ? i.dr * i.db : 0)) / (i.upper - i.r) - i.b : 0;
      i.da = low;
      i.db = high;
      x_[std::size_t(i.at)] = low - high - left_[std::size_t(i.at)];
    }
    for (const auto& c : cones_) {
      x_[std::size_t(c.at)] = untilted(c, c.c) - left_[std::size_t(c.at)];
      for (int k = 1; k < 3; ++k) x_[std::size_t(c.at + k)] = c.c[std::size_t(k)] - left_[std::size_t(c.at + k)];
    }
    for (int k = 0; k < n_; ++k) std::swap(x_[std::size_t(k)], x_[std::size_t(pivot_[std::size_t(k)])]);
    for (int i = 0; i < n_; ++i) x_[std::size_t(i)] -= inner(i, &K_[std::size_t(i) * n_], x_.data());
    for (int i = n_; i-- > 0;) {
      const double* row = &K_[std::size_t(i) * n_];
      x_[std::size_t(i)] = (x_[std::size_t(i)] - inner(n_ - i - 1, row + i + 1, &x_[std::size_t(i)] + 1)) / row[i];
    }
    for (auto& c : cones_) {
      for (int k = 0; k < 3; ++k) c.dr[std::size_t(k)] = x_[std::size_t(c.at + k)];
      const V h = scaled(inverse(c.w), c.dr);
      for (std::size_t k = 0; k < 3; ++k) c.dv[k] = c.c[k] - h[k];
    }
    for (auto& i : intervals_) {
      i.dr = x_[std::size_t(i.at)];
      i.da = std::isfinite(i.lower) ? i.da - i.a / (i.r - i.lower) * i.dr : 0;
      i.db = std::isfinite(i.upper) ? i.db + i.b / (i.upper - i.r) * i.dr : 0;
    }
  }

  double longest() const {
    double most = far;
    for (const auto& c : cones_) most = std::min({most, reach(c.r, c.dr), reach(c.v, c.dv)});
    for (const auto& i : intervals_) {
      if (std::isfinite(i.lower)) most = std::min({most, reach(i.r - i.lower, i.dr), reach(i.a, i.da)});
      if (std::isfinite(i.upper)) most = std::min({most, reach(i.upper - i.r, -i.dr), reach(i.b, i.db)});
    }
    return most;
  }

  int n_ = 0;
  double speed_ = 0;  // largest of g, in the units used here
  std::vector<ConeState> cones_;
  std::vector<IntervalState> intervals_;
  std::vector<int> row_, pivot_;  // an unknown: its row; with which it was exchanged
  std::vector<double> unit_, g_, left_, x_, G_, K_;
  std::vector<double> d_, fixed_, best_;  // a row
};

}  // namespace delassus
