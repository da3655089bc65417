// Motion of free single-link bodies after the impulses of the step: the centre of mass moves in a straight line, the
// rotation follows the midpoint rule on SO(3),
//
//   I ω⁺ = exp(−dt (ω̄ + u)) I ω,   R⁺ = R exp(dt (ω̄ + u)),   ω̄ = (ω + ω⁺) / 2
//
// in body axes, ω with impulses, u the turn of the position correction. By construction this conserves R I ω. Without u
// it also conserves ½ ω I ω, because exp(−dt ω̄) does not change ω̄ · I ω.
//
// Impulses act before that, at the q of J, where the two impulses of a contact balance. So a step conserves the momenta
// of bodies that only touch each other, Σ m v and Σ x × m v + R I ω, and only contacts change their energy. If ω were
// turned before the impulses, R⁺ would turn the impulses too. One error remains: u moves centres of mass without
// changing velocities, which changes the angular momentum by dt Σ u × m v.
#pragma once

#include <vector>

#include "simulator/description.h"
#include "spatial/quaternion.h"

namespace delassus {

class FreeBodies {
 public:
  // remaining: per velocity; bodies in loops, where it is not 1, step otherwise.
  FreeBodies(const WorldDescription& world, const std::vector<double>& remaining);

  // Whether a velocity belongs to such a body.
  bool owns(std::size_t velocity) const { return owned_[velocity] != 0; }
  // Whether there is nothing else.
  bool all() const { return roots_.size() == world_.model.roots.size(); }

  // way: the velocity that leads from q to q⁺ over dt, u included; v: with impulses on entry, at the end of the step on
  // exit. Those of other trees stay.
  void move(const double* q, const std::vector<double>& u, std::vector<double>& v, std::vector<double>& way) const;

  // Derivatives of this motion, per body: of v (6) at the end and of the displacement (6), with respect to a rotation
  // of q (3), u (6) and v (6) with impulses. By central differences of a function that is almost linear.
  static constexpr int inputs = 15, outputs = 12;
  struct Rates {
    int first, link;  // velocity of the body, and its link
    double by[outputs][inputs];
  };
  // Derivatives of the same by the inertial parameters of the link, in its axes about its origin (regressor.h).
  void find_inertial_rates(const double* q, const std::vector<double>& u, const std::vector<double>& v, int root,
                           double (&by)[outputs][10]) const;
  void find_rates(const double* q, const std::vector<double>& u, const std::vector<double>& v,
                  std::vector<Rates>& rates) const;

 private:
  void move_body(const Inertial<double>& inertial, const Quaternion<double>& R, const double* u, double* velocity,
                 double* to) const;

  const WorldDescription& world_;
  std::vector<int> roots_;   // links of such bodies
  std::vector<char> owned_;  // per velocity
};

}  // namespace delassus
