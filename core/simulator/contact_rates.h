// First-order changes of an island's contact rows: how J v and Jᵀ λ change with q, for fixed v and λ. One sweep from
// root to tips and one back, O(n + contacts).
//
// A contact has a position p, axes E and a gap φ. They move with its two bodies (contact_motion.h): by dp, the rotation
// dθ and dφ. With V, Ω the relative velocity and spin of the two bodies at p, and the force f = E λ and torque m of its
// rows,
//
//   d(J v) = Eᵀ (d(V) + V × dθ + Ω × dp),   Eᵀ (d(Ω) + Ω × dθ) of rows of the rotation
//   d(f) = dθ × f,   d(m) = dθ × m,   moments about the tree's origin d(x × f) = dp × f + x × df
//
// where d(V) is the change of the links' velocities at fixed v: dV_i = dV_p + t_i × S v, with the twist t_i = t_p + S
// dq of a link that is displaced by dq.
#pragma once

#include <vector>

#include "dynamics/kinematics.h"
#include "simulator/contact_motion.h"
#include "simulator/row_system.h"

namespace delassus {

class ContactRates {
 public:
  explicit ContactRates(const Model<double>& model);

  // The contacts at the q of G's last update, their motions, v (nv,), and λ (rows of the system) of their rows.
  void update(const RowSystem& s, const ActiveRows& rows, const std::vector<const ContactMotion*>& motions,
              const double* v, const double* lambda);

  // Along dq (nv × columns, row-major): d(J) v added to the rows of contacts in `rows` (all rows × columns), dφ
  // (contacts × columns), and d(Jᵀ) λ (nv × columns).
  void tangents(const double* dq, int columns, double* rows, double* gaps, double* forces);
  // q_bar (nv × columns), added: of κᵀ d(J) v + gap_barᵀ φ + yᵀ d(Jᵀ) λ. κ: all rows × columns; y: nv × columns.
  void adjoints(const double* kappa, const double* gap_bar, const double* y, int columns, double* q_bar);

 private:
  // One of the two bodies of a contact: link, −1 for the ground, and place about the origin of its tree.
  struct Side {
    int link;
    Vec3<double> x;
  };
  struct Point {
    Side side[2];
    Vec3<double> axes[3];
    double scales[max_cone_rows];
    int row, rows;
    Vec3<double> velocity, spin;  // V, Ω
    Vec3<double> force, torque;   // f, m
    const ContactMotion* motion;
  };
  // What the bodies of a contact are displaced by there: displacement and rotation.
  static Vec6<double> displaced(const Side& side, const Vec6<double>& twist) {
    return {twist.lin + cross(twist.ang, side.x), twist.ang};
  }
  static int first_turning(const Link<double>& link) { return link.type == Joint::free ? link.iv + 3 : link.iv; }
  Vec6<double> turning_motion(int link, const double* x, int columns, int column) const;

  const Model<double>& model_;
  const std::vector<Vec6<double>>* S_ = nullptr;  // of G's placement
  std::vector<Point> points_;
  std::vector<Vec6<double>> own_, carried_;  // per link: S v of axes that turn with it; forces of its subtree's rows
  std::vector<Vec6<double>> twist_, velocity_, force_;            // per link, of a sweep along a direction
  std::vector<Vec6<double>> virtual_, twist_bar_, velocity_bar_;  // per link, of an adjoint sweep
};

}  // namespace delassus
