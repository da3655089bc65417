// Worlds without Python: falling boxes MODEL OUTPUT (boxes on a floor, each a body with a free joint), falling loops
// MODEL OUTPUT (a mechanism with loops). Writes q and v after every step.
#include <cmath>
#include <cstring>

#include "numbers.h"

// Corners of boxes of half a width of 0.1 m above the plane z = 0, as MuJoCo lists them.
void boxes(const dl::Model& model, Results& out) {
  constexpr double half = 0.1, reach = 2e-3, friction = 0.7;  // seen from as far as in Python
  dl::WorldOptions options{.timestep = 2e-3};
  options.shapes.push_back({});  // the floor
  for (int b = 1; b < model.nbody(); ++b) options.shapes.push_back({.body = model.body_name(b)});
  const auto corners = [&](std::span<const double> X, dl::ContactList& list) {
    for (int b = 1; b < model.nbody(); ++b) {
      const double* T = &X[16 * std::size_t(b)];
      int found = 0;
      for (int corner = 0; corner < 8 && found < 4; ++corner) {
        const double c[3] = {corner & 1 ? half : -half, corner & 2 ? half : -half, corner & 4 ? half : -half};
        double p[3];
        for (int r = 0; r < 3; ++r) p[r] = T[4 * r] * c[0] + T[4 * r + 1] * c[1] + T[4 * r + 2] * c[2] + T[4 * r + 3];
        if (p[2] > reach) continue;
        ++found;
        list.add({.shape = b, .other = 0, .position = {p[0], p[1], p[2] / 2}, .gap = p[2], .friction = friction});
      }
    }
  };
  dl::World world(model, corners, options);
  CHECK(world.time() == 0);
  std::vector<double> v(std::size_t(model.nv()));
  for (std::size_t k = 0; k < v.size(); k += 6) v[k] = 0.5, v[k + 4] = 1.0;
  OK(world.set_state(world.model().neutral(), v));
  std::vector<dl::ContactForce> forces(64);
  for (int k = 0; k < 600; ++k) {
    const dl::StepReport report = world.step();
    OK(report.status);
    CHECK(report.outcome == dl::ContactOutcome::solved);
    CHECK(report.flaw == dl::StepFlaw::none);
    out.add({world.q().begin(), world.q().end()}), out.add({world.v().begin(), world.v().end()});
  }
  CHECK(std::fabs(world.time() - 1.2) < 1e-9);
  // at rest the floor bears the weight
  double up = 0;
  const int count = world.contact_forces(forces);
  CHECK(count == 4 * (model.nbody() - 1));
  for (int k = 0; k < count; ++k) up += forces[std::size_t(k)].force[2];
  double weight = 0;
  for (int b = 1; b < model.nbody(); ++b) weight += 9.81 * model.body(b).mass;
  CHECK(std::fabs(up - weight) < 1e-3 * weight);

  // trouble of the caller's making
  const auto step_with = [&](dl::ContactFinder find, int room = 10) {
    dl::World w(model, std::move(find), {.shapes = options.shapes, .max_contacts = room});
    const std::vector<double> before(w.q().begin(), w.q().end());
    const dl::Status status = w.step().status;
    if (status != dl::Status::ok) CHECK(before == std::vector<double>(w.q().begin(), w.q().end()));
    return status;
  };
  OK(step_with({}));
  CHECK(step_with([](auto, dl::ContactList& list) { list.add({.shape = 99}); }) == dl::Status::out_of_range);
  CHECK(step_with([](auto, dl::ContactList& list) { list.add({.shape = 1, .normal = {0, 0, 2}}); }) ==
        dl::Status::out_of_range);
  CHECK(step_with([](auto, dl::ContactList& list) { list.add({.shape = 1, .gap = std::nan("")}); }) ==
        dl::Status::out_of_range);
  CHECK(step_with(
            [](auto, dl::ContactList& list) {
              for (int k = 0; k < 9; ++k) list.add({.shape = 1});
            },
            8) == dl::Status::capacity);
  CHECK(step_with([](auto, dl::ContactList&) { throw 1; }) == dl::Status::failed);
  const std::vector<double> bad(std::size_t(model.nv()), std::nan("")), huge(bad.size(), 1e308);
  CHECK(world.step(bad).status == dl::Status::not_finite);
  CHECK(world.step(std::span(bad).first(1)).status == dl::Status::wrong_size);
  const double time = world.time();
  CHECK(world.step(huge).status == dl::Status::overflow);
  CHECK(world.time() == time);
  OK(world.step().status);
}

void loops(const dl::Model& model, Results& out) {
  dl::World world(model.saved_constraints(), {}, {.timestep = 1e-3});
  std::vector<double> tau(std::size_t(model.nv()), 0.01);
  for (int k = 0; k < 300; ++k) {
    const dl::StepReport report = world.step(tau);
    CHECK(report);
    out.add({world.q().begin(), world.q().end()}), out.add({world.v().begin(), world.v().end()});
  }
}

int main(int, char** arguments) {
  const dl::Model model = dl::Model::load(arguments[2]);
  Results out;
  std::strcmp(arguments[1], "boxes") == 0 ? boxes(model, out) : loops(model, out);
  out.write(arguments[3]);
}
