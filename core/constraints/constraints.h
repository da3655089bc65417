// Constraints as rows on links and on joint velocities: velocity of the rows = Σ_i K_i v_i + Σ_k c_k ν_k.
//
// Three rows of a point along fixed axes A are by far the most frequent. They are stored as the positions p of the
// point on its links:
//
//   A (v₁ + ω₁ × p₁ − v₂ − ω₂ × p₂)
//
// All other rows have terms. A term is a block of rows on one link; its K has one motion-dual Vec6 per row, in world
// axes about the link's tree origin. Terms on the ground are left out, and terms on the same link are added up. Rows of
// joints are stored with the joint and touch no link.
#pragma once

#include <vector>

#include "state/frames.h"

namespace delassus {

enum class Kind : std::uint8_t { frame, distance, joint, coupling, center, links, combination, contact };

// A constraint as the user gave it, in body coordinates.
struct ConstraintDescription {
  Kind kind;
  int rows;
  std::vector<int> bodies;     // the first minus the second; `links`: any number
  std::vector<double> points;  // three per body
  std::vector<double> matrix;  // frame: 3×3 axes as rows; links: rows × 6 a body
  int axes_on = -1;  // frame: which of the bodies carries the axes, −1: the world. Rows of the point, then the rotation
                     // about the last axes; four rows with three of the point: about a × b, see `target`
  std::vector<int> joints;      // joint, combination: velocities; coupling: links of the two joints
  std::vector<double> numbers;  // joint, combination: coefficients; coupling: polynomial; contact: what the rows after
                                // the normal are scaled by: the second tangent, then the rotation about the normal and
                                // both tangents, as far as there are rows
  // what its position error is measured from; empty: there is none
  int measured = 0;            // frame: how many of the rows of the point have an error
  std::vector<double> target;  // frame: 3×3 C as rows, or the axis on the second body, or a on the first and b on the
                               // second that stay across each other; distance: length; joint: coordinate; center: place
  double kp = 0, kd = 0;       // Baumgarte's gains
  int point_rows = 3;  // frame: fewer than three let the second point slide: one row holds it in the plane across the
                       // first axis, two hold it on the line along it; the axes are the first body's
};

template <class Real>
struct Constraint {
  Kind kind;
  int row, rows;  // where its rows start, how many
  int block;      // its rows that have terms, −1: none
  int axes_on;    // frame: carrier of the axes, an index into `bodies`
  int point_rows;
  std::vector<int> bodies;
  std::vector<int> term_of;  // a body: its term, −1 on the ground
  std::vector<Vec3<Real>> points;
  std::vector<Real> matrix;
  std::vector<int> joints;
  std::vector<Real> numbers;
  int measured;
  std::vector<Real> target;
  Real kp, kd;

  // frame: its rows act where the second body's point is, on both bodies
  bool slides() const { return point_rows < 3; }
  // frame: the axis of the first row of the point
  int first_axis() const { return slides() ? point_rows - 1 : 0; }
  // frame: its last row keeps two axes across each other
  bool crosses() const { return rows == 4 && point_rows == 3; }
};

// Rows that have terms.
struct Block {
  int row, rows;
  int term, terms;  // where its terms start, how many
};

struct Term {
  int link;
  int K;  // where its rows start among the K
};

// Three rows of a point.
template <class Real>
struct Point {
  Vec3<Real> axes[3];  // world
  int row;
  int local;  // where its places are in `locals`
};

// Points between the same two links, one after another in `points`; other −1: the ground.
struct PointGroup {
  int link, other;
  int first, count;
  int local;      // where their places start in `locals`
  bool opens[2];  // no group before acts on its link; on the other
  int sides() const { return other < 0 ? 1 : 2; }
};

// The three rows of a point between two links, or a link and the ground, as they are given to a set.
template <class Real>
struct PointRows {
  int link, other;  // other −1: the ground
  Point<Real> point;
  Vec3<Real> local[2];  // the point on each link
};

template <class Real>
struct JointRow {
  int row, velocity;
  Real coefficient;
};

template <class Real>
struct ConstraintSet {
  int rows = 0;
  std::size_t K_size = 0;
  std::vector<Constraint<Real>> constraints;  // points may be without one: they have no errors, rates and bias then
  std::vector<PointGroup> groups;
  std::vector<Point<Real>> points;
  std::vector<Vec3<Real>> locals;  // a point: on its link, then on the other if there is one
  std::vector<Block> blocks;
  std::vector<Term> terms;
  std::vector<JointRow<Real>> joint_rows;
};

// Adds a constraint to a set, with its rows last; its points go to `points`, for `set_points`.
template <class Real>
void add_constraint(const Model<Real>& model, const ConstraintDescription& d, ConstraintSet<Real>& set,
                    std::vector<PointRows<Real>>& points);

template <class Real>
ConstraintSet<Real> make_constraints(const Model<Real>& model, const std::vector<ConstraintDescription>& list);

// Replaces the points of a set. Points of the same two links are stored next to each other, in the order given, as one
// group. O(points + links). `numbers`: for each point given, its index in the set.
template <class Real>
void set_points(std::size_t links, const std::vector<PointRows<Real>>& points, ConstraintSet<Real>& set,
                std::vector<int>& numbers);

// Position of a point of a body, as two summands: differences of positions are taken summand by summand, and so lose no
// digits far from the world's origin.
template <class T>
struct SplitPoint {
  Vec3<T> origin, offset;
};

template <class T>
inline SplitPoint<T> split_point(const Model<real_of<T>>& model, const Placement<T>& w, int b,
                                 const Vec3<real_of<T>>& point) {
  const auto& body = model.bodies[b];
  if (body.link < 0) return {Vec3<T>{} + body.placement * point, Vec3<T>{}};
  return {w.origin[model.links[body.link].tree], point_in_tree(model, w, b, Vec3<T>{} + point)};
}

// Position of a constraint's point relative to the tree origin of a moving body
template <class T>
inline Vec3<T> seen_from(const Model<real_of<T>>& model, const Placement<T>& w, const Constraint<real_of<T>>& c,
                         int point, int from) {
  const SplitPoint<T> x = split_point(model, w, c.bodies[point], c.points[point]);
  return (x.origin - w.origin[model.links[model.bodies[c.bodies[from]].link].tree]) + x.offset;
}

// x₁ − x₂ of a constraint between two points
template <class T>
inline Vec3<T> separation(const Model<real_of<T>>& model, const Placement<T>& w, const Constraint<real_of<T>>& c) {
  const SplitPoint<T> x1 = split_point(model, w, c.bodies[0], c.points[0]),
                      x2 = split_point(model, w, c.bodies[1], c.points[1]);
  return (x1.origin - x2.origin) + (x1.offset - x2.offset);
}

// Rotation of the body that carries the axes, or of the world
template <class T>
inline Mat3<T> carrier_axes(const Model<real_of<T>>& model, const Placement<T>& w, const Constraint<real_of<T>>& c) {
  return body_pose(model, w, c.axes_on < 0 ? 0 : c.bodies[c.axes_on]).R;
}

// a and b of rows that keep these two axes perpendicular, in world axes
template <class T>
struct CrossedAxes {
  Vec3<T> a, b;
};
template <class T>
inline CrossedAxes<T> crossed_axes(const Model<real_of<T>>& model, const Placement<T>& w,
                                   const Constraint<real_of<T>>& c) {
  using Real = real_of<T>;
  const Real* t = c.target.data();
  return {body_pose(model, w, c.bodies[0]).R * Vec3<Real>{t[0], t[1], t[2]},
          body_pose(model, w, c.bodies[1]).R * Vec3<Real>{t[3], t[4], t[5]}};
}

// p' of a coupling at the leader's x
template <class T>
inline T polynomial_slope(const std::vector<real_of<T>>& c, T x) {
  return ((x * (4 * c[4]) + 3 * c[3]) * x + 2 * c[2]) * x + c[1];
}

// What row r of a contact is scaled by.
template <class Real>
inline Real contact_scale(const Constraint<Real>& c, int r) {
  return r < 2 ? Real(1) : c.numbers[std::size_t(r - 2)];
}

// What takes a link's motion relative to its parent's to one of its joint's velocities: ν_k = s · (v_link − v_parent).
template <class T>
inline Vec6<T> speed_of(const Model<real_of<T>>& model, const Placement<T>& w, int velocity) {
  const int i = model.dof_link[velocity];
  const auto& link = model.links[i];
  const int k = velocity - link.iv;
  const Mat3<T>& R = w.pose[i].R;
  const auto column = [&](int c) { return c == 0 ? R.x : c == 1 ? R.y : R.z; };
  switch (link.type) {
    case Joint::hinge:
      return {Vec3<T>{}, R.z};
    case Joint::slide:
      return {R.z, Vec3<T>{}};
    case Joint::ball:
      return {Vec3<T>{}, column(k)};
    case Joint::free:
      break;
  }
  if (k >= 3) return {Vec3<T>{}, column(k - 3)};
  const Vec3<T> n{constant<T>(k == 0), constant<T>(k == 1), constant<T>(k == 2)};
  return {n, cross(w.pose[i].p, n)};
}

// K of every term at the present kinematics.
template <class T>
void evaluate(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, const Placement<T>& w, const T* q,
              Vec6<T>* K) {
  using Real = real_of<T>;
  if (set.K_size == 0) return;
  for (std::size_t e = 0; e < set.K_size; ++e) K[e] = Vec6<T>{};

  for (const auto& c : set.constraints) {
    if (c.block < 0) continue;
    const Block& block = set.blocks[c.block];
    const Term* terms = set.terms.data() + block.term;
    const int skipped = block.row - c.row;  // rows that are a point's
    // where rows act on body b, relative to its tree's origin: at its point, or at the second one where that slides
    auto place = [&](int b) {
      if (b == 0 && c.kind == Kind::frame && c.slides()) return seen_from(model, w, c, 1, 0);
      const auto& body = model.bodies[c.bodies[b]];
      return w.pose[body.link] * (body.placement.R * c.points[b] + body.placement.p);
    };
    // the velocity of the point along n, and of the rotation about n
    auto along = [&](int b, int row, Real sign, const Vec3<T>& n) {
      if (c.term_of[b] < 0) return;
      K[terms[c.term_of[b]].K + row] += Vec6<T>{n, cross(place(b), n)} * sign;
    };
    auto about = [&](int b, int row, Real sign, const Vec3<T>& n) {
      if (c.term_of[b] < 0) return;
      K[terms[c.term_of[b]].K + row] += Vec6<T>{Vec3<T>{}, n} * sign;
    };

    if (c.kind == Kind::frame) {
      const Mat3<T> R = carrier_axes(model, w, c);
      Vec3<T> points[3], axes[3];  // rows of the point are along, those of the rotation about
      for (int r = 0; r < 3; ++r)
        points[r] = axes[r] = R * Vec3<Real>{c.matrix[3 * r], c.matrix[3 * r + 1], c.matrix[3 * r + 2]};
      const int pushes = c.point_rows, turns = c.rows - pushes;
      if (c.crosses()) {
        const CrossedAxes<T> crossed = crossed_axes(model, w, c);
        axes[2] = cross(crossed.a, crossed.b);
      }
      for (std::size_t b = 0; b < c.bodies.size(); ++b) {
        const Real sign = b == 0 ? 1 : -1;
        for (int r = skipped; r < pushes; ++r) along(int(b), r - skipped, sign, points[c.first_axis() + r]);
        for (int r = 0; r < turns; ++r) about(int(b), pushes - skipped + r, sign, axes[3 - turns + r]);
      }
    } else if (c.kind == Kind::contact) {
      // the point along the axes, which are the world's, then the rotation about them
      for (std::size_t b = 0; b < c.bodies.size(); ++b)
        for (int r = 0; r < c.rows; ++r) {
          const Real sign = (b == 0 ? 1 : -1) * contact_scale(c, r);
          const Real* a = &c.matrix[3 * (r % 3)];
          const Vec3<T> n{constant<T>(a[0]), constant<T>(a[1]), constant<T>(a[2])};
          if (r < 3)
            along(int(b), r, sign, n);
          else
            about(int(b), r, sign, n);
        }
    } else if (c.kind == Kind::distance) {
      // n = (x₁ − x₂) / |x₁ − x₂|
      const Vec3<T> d = separation(model, w, c);
      const Vec3<T> n = d * (Real(1) / square_root(dot(d, d)));
      along(0, 0, 1, n);
      along(1, 0, -1, n);
    } else if (c.kind == Kind::coupling) {
      // ν₁ − p'(q₂) ν₂, with ν = axis · (v_link − v_parent)
      T slope = constant<T>(-1);
      for (std::size_t j = 0; j < c.joints.size(); ++j) {
        const auto& link = model.links[c.joints[j]];
        if (j == 1) slope = polynomial_slope(c.numbers, T(q[link.iq] - link.reference));
        const Vec3<T> z = w.pose[c.joints[j]].R.z;
        const Vec6<T> s =
            (link.type == Joint::hinge ? Vec6<T>{Vec3<T>{}, z} : Vec6<T>{z, Vec3<T>{}}) * (Real(-1) * slope);
        K[terms[c.term_of[2 * j]].K] += s;
        if (c.term_of[2 * j + 1] >= 0) K[terms[c.term_of[2 * j + 1]].K] -= s;
      }
    } else if (c.kind == Kind::combination) {
      // Σ c_k ν_k, with ν of a joint from the motion of its link relative to its parent's
      for (std::size_t j = 0; j < c.joints.size(); ++j) {
        const Vec6<T> s = speed_of(model, w, c.joints[j]) * c.numbers[j];
        K[terms[c.term_of[2 * j]].K] += s;
        if (c.term_of[2 * j + 1] >= 0) K[terms[c.term_of[2 * j + 1]].K] -= s;
      }
    } else if (c.kind == Kind::center) {
      // Σ m_i c_i / Σ m_i, along the world's axes
      for (int t = 0; t < block.terms; ++t) {
        const int i = terms[t].link;
        const Vec3<T> x = w.pose[i] * model.links[i].inertial.center;
        const Real share = model.links[i].inertial.mass * c.numbers[0];
        for (int r = 0; r < 3; ++r) {
          const Vec3<T> n{constant<T>(r == 0), constant<T>(r == 1), constant<T>(r == 2)};
          K[terms[t].K + r] = Vec6<T>{n, cross(x, n)} * share;
        }
      }
    } else if (c.kind == Kind::links) {
      // given K act on [velocity of the body's origin; angular velocity] in world axes
      for (std::size_t b = 0; b < c.bodies.size(); ++b) {
        if (c.term_of[b] < 0) continue;
        const Vec3<T> x = place(int(b));
        for (int r = 0; r < c.rows; ++r) {
          const Real* k = &c.matrix[6 * (b * c.rows + r)];
          const Vec3<T> lin{constant<T>(k[0]), constant<T>(k[1]), constant<T>(k[2])};
          const Vec3<T> ang{constant<T>(k[3]), constant<T>(k[4]), constant<T>(k[5])};
          K[terms[c.term_of[b]].K + r] += Vec6<T>{lin, ang + cross(x, lin)};
        }
      }
    }
  }
}

}  // namespace delassus
