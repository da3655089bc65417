// Constraints between bodies, with the world, and on joints.
//
// A constraint is a set of rows: their velocity J v, the set of their forces λ, and a bias γ = J̇v + k_d J v + k_p e of
// the acceleration, e its position error. Points and axes are in the coordinates of the body they are on; the world's
// are world coordinates. Rows between two bodies are the velocity of `point` on `body` minus that of `other_point` on
// `other`. Positive forces push `body` away from `other`.
//
// An optional value of the world that is not given is the current one in every state: that part of e is zero.
#pragma once

#include <variant>

#include "delassus/model.hpp"

namespace delassus {
inline namespace v0 {

/// Baumgarte gains: acceleration −k_d J v − k_p e of the rows; k_d = 2 √k_p is critical damping.
struct Baumgarte {
  double kp = 0;  ///< [1/s²]
  double kd = 0;  ///< [1/s]
};

/// A point contact: 3 rows, normal first, then two tangents, world axes; force in the cone ‖λ_T‖ ≤ µ λ_n. With
/// torsional friction 4 rows, with rolling friction 6, scaled so that all of λ is in newtons and in one cone.
struct PointContact {
  std::string body;
  Vec3 point{};                       ///< point on the body [m]
  std::string other = "world";        ///< body touched
  std::optional<Vec3> other_point{};  ///< point on the other [m]; on a body its origin by default
  Vec3 normal{0, 0, 1};               ///< unit vector from other to body, world axes
  double friction = 0.8;              ///< sliding coefficient µ
  double torsional_friction = 0;      ///< torque about the normal over normal force [m]
  double rolling_friction = 0;        ///< torque about the tangents over normal force [m]
  Baumgarte baumgarte{};
};

/// Two points stay together: 3 rows, world axes.
struct Connect {
  std::string body;
  std::string other = "world";
  Vec3 point{};                       ///< point on the body [m]
  std::optional<Vec3> other_point{};  ///< point on the other [m]; on a body its origin by default
  Baumgarte baumgarte{};
};

/// Two frames stay together: 3 rows of the points, 3 of the rotation, world axes.
struct Weld {
  std::string body;
  std::string other = "world";
  Vec3 point{};                            ///< origin of the frame on the body [m]
  Quat quaternion{1, 0, 0, 0};             ///< orientation of the frame on the body
  std::optional<Vec3> other_point{};       ///< point on the other [m]; on a body its origin by default
  std::optional<Quat> other_quaternion{};  ///< orientation on the other; on a body its axes by default
  Baumgarte baumgarte{};
};

/// Two points keep their distance: 1 row along the line between them; they must not coincide.
struct Distance {
  std::string body;
  std::string other = "world";
  Vec3 point{};                       ///< point on the body [m]
  std::optional<Vec3> other_point{};  ///< point on the other [m]; by default a body's origin, required in the world
  std::optional<double> length{};     ///< distance [m]; the current one by default
  Baumgarte baumgarte{};
};

/// Two bodies rotate about a common axis: 3 rows of the points, 2 of the rotation across the axis, all along or about
/// the axis and two tangents that the body carries.
struct Hinge {
  std::string body;
  std::string other = "world";
  Vec3 axis{0, 0, 1};                 ///< axis on the body
  std::optional<Vec3> other_axis{};   ///< axis on the other; on a body the same components by default
  Vec3 point{};                       ///< point on the body [m]
  std::optional<Vec3> other_point{};  ///< point on the other [m]; on a body its origin by default
  Baumgarte baumgarte{};
};

/// A hinge or slide follows another: 1 row, q − ref = p(q_other − ref_other); with no other it is held at
/// ref + polynomial[0].
struct JointCoupling {
  std::string joint;
  std::string other{};                              ///< leader; empty: none
  std::array<double, 5> polynomial{0, 1, 0, 0, 0};  ///< coefficients of p, lowest first
  Baumgarte baumgarte{};
};

/// Dry friction of a joint: one row per velocity, forces in [−friction, friction].
struct JointFriction {
  std::string joint;
  std::optional<double> friction{};  ///< largest force [N m or N]; the model's friction loss by default
  double kd = 0;                     ///< [1/s]
};

/// A limit of the range of a hinge or slide: 1 row, force ≥ 0 away from it.
struct JointLimit {
  enum Side { lower, upper };
  std::string joint;
  Side side = lower;
  std::optional<double> bound{};  ///< the limit [rad or m]; by default that of the joint's range
  Baumgarte baumgarte{};
};

/// The centre of mass of all moving bodies: 3 rows, world axes.
struct CenterOfMass {
  std::optional<Vec3> target{};  ///< position in the world [m]
  Baumgarte baumgarte{};
};

/// Any rows on any bodies: Σ_b K_b [velocity of the body's origin; angular velocity], world axes.
struct LinkConstraint {
  struct Term {
    std::string body;
    std::vector<double> K;  ///< (rows, 6), row-major
  };
  int rows = 1;
  std::vector<Term> terms;
  double kd = 0;  ///< [1/s]
};

using Constraint = std::variant<PointContact, Connect, Weld, Distance, Hinge, JointCoupling, JointFriction, JointLimit,
                                CenterOfMass, LinkConstraint>;

struct ConstraintsData;  // the content of Constraints

/// Constraints of one model in order; their rows in order are the rows of J. May be empty.
class DELASSUS_API Constraints {
 public:
  explicit Constraints(const Model& model);
  /// @throws ArgumentError that names the constraint, the argument and a remedy
  Constraints(const Model& model, const std::vector<Constraint>& list);
  Constraints(const Constraints&);
  Constraints(Constraints&&) noexcept;
  Constraints& operator=(const Constraints&);
  Constraints& operator=(Constraints&&) noexcept;
  ~Constraints();

  /// Adds a constraint, its rows last. @throws ArgumentError
  Constraints& add(const Constraint& constraint);
  /// Adds constraints of the same model, such as Model::saved_constraints(). @throws ArgumentError for those of another
  /// model
  Constraints& add(const Constraints& others);

  [[nodiscard]] int size() const noexcept;  ///< number of constraints
  [[nodiscard]] int rows() const noexcept;  ///< m, number of all rows
  /// First row of a constraint; of size() it is rows(). @throws ArgumentError
  [[nodiscard]] int first_row(int constraint) const;
  [[nodiscard]] const Model& model() const noexcept;

  [[nodiscard]] const ConstraintsData& data() const noexcept { return *data_; }

 private:
  friend class Model;
  void take_saved();
  std::unique_ptr<ConstraintsData> data_;
};

/// Errors, velocities and biases of the rows. One thread at a time.
class DELASSUS_API ConstraintRows {
 public:
  explicit ConstraintRows(const Constraints& constraints);
  ConstraintRows(ConstraintRows&&) noexcept;
  ConstraintRows& operator=(ConstraintRows&&) noexcept;
  ~ConstraintRows();

  [[nodiscard]] int rows() const noexcept;
  /// e (m,) ← position errors at q (nq,) [m or rad].
  Status error(std::span<const double> q, std::span<double> e) noexcept;
  /// out (m,) ← J v for q (nq,), v (nv,) [m/s or rad/s].
  Status velocity(std::span<const double> q, std::span<const double> v, std::span<double> out) noexcept;
  /// gamma (m,) ← J̇v + k_d J v + k_p e [m/s² or rad/s²].
  Status bias(std::span<const double> q, std::span<const double> v, std::span<double> gamma) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
