// A box on a slope: four contacts, the operator that couples them, and the impulses of one time step. Below the
// friction angle it stays where it is, above it slides with Coulomb's acceleration.
#include <cmath>
#include <cstdio>
#include <vector>

#include <delassus/delassus.hpp>

namespace dl = delassus;

// Speed down the slope after one step of 1 ms from rest [m/s]; a negative number if anything failed.
double speed_after_a_step(double slope, double friction) {
  constexpr double half = 0.1, mass = 2.0, dt = 1e-3, gravity = 9.81;
  dl::ModelDescription robot;
  // world axes: x down the slope, z away from it
  robot.gravity = {gravity * std::sin(slope), 0, -gravity * std::cos(slope)};
  const double moment = mass * (2 * half) * (2 * half) / 6;
  robot.bodies = {{.name = "box", .position = {0, 0, half}, .mass = mass, .inertia = {moment, moment, moment}}};
  robot.joints = {{.name = "root", .type = dl::JointType::free, .body = "box"}};
  const dl::Model model(robot);

  dl::Constraints corners(model);
  for (const double x : {-half, half})
    for (const double y : {-half, half})
      corners.add(dl::PointContact{.body = "box", .point = {x, y, -half}, .friction = friction});

  dl::DelassusOperator G(corners);
  dl::ContactSolver contacts(G);
  dl::TreeDynamics dynamics(model);
  const std::vector<double> q = model.neutral();
  const std::size_t m = std::size_t(G.rows()), n = std::size_t(model.nv());
  std::vector<double> v(n), h(n), free_velocity(n), g(m), impulses(m), velocities(m), joint_impulse(n), change(n);
  if (G.update(q) != dl::Status::ok) return -1;

  // v_f = v − dt M⁻¹ h, g = J v_f, then v⁺ = v_f + M⁻¹ Jᵀ λ
  if (dynamics.bias_forces(q, v, h) != dl::Status::ok || G.mass_inverse(h, free_velocity) != dl::Status::ok) return -1;
  for (double& x : free_velocity) x *= -dt;
  if (G.jacobian(free_velocity, g) != dl::Status::ok) return -1;
  const dl::ContactReport report = contacts.solve(g, impulses, velocities);
  if (!report) {
    std::printf("contacts: %s\n", report.status == dl::Status::ok ? describe(report.outcome) : describe(report.status));
    return -1;
  }
  if (G.jacobian_transpose(impulses, joint_impulse) != dl::Status::ok ||
      G.mass_inverse(joint_impulse, change) != dl::Status::ok)
    return -1;
  return free_velocity[0] + change[0];
}

int main() {
  constexpr double friction = 0.5, dt = 1e-3, gravity = 9.81;
  bool right = true;
  for (const double degrees : {10.0, 20.0, 30.0, 40.0}) {
    const double slope = degrees * 3.14159265358979 / 180;
    const double speed = speed_after_a_step(slope, friction);
    const double expected = dt * gravity * std::fmax(0, std::sin(slope) - friction * std::cos(slope));
    std::printf("slope %2.0f deg: speed %9.6f m/s, Coulomb %9.6f m/s\n", degrees, speed, expected);
    right = right && std::fabs(speed - expected) < 1e-6;
  }
  return right ? 0 : 1;
}
