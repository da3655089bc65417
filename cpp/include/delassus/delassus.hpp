// The C++ package of delassus: models, constraints, the Delassus operator, dynamics,
// contacts, and worlds that are stepped in time.
//
//   #include <delassus/delassus.hpp>
//
//   delassus::Model model = delassus::Model::load("robot.delassus");
//   delassus::Constraints feet(model, {delassus::PointContact{.body = "foot", .friction = 0.8}});
//   delassus::DelassusOperator G(feet, {.damping = 1e-6});
//   if (G.update(q) == delassus::Status::ok) G.solve(y, x);
//
// C++20. The headers need nothing but the standard library, and no flags; docs/cpp.md is the manual.
#pragma once

#include "delassus/version.hpp"
//
#include "delassus/constraints.hpp"
#include "delassus/contacts.hpp"
#include "delassus/dynamics.hpp"
#include "delassus/model.hpp"
#include "delassus/operator.hpp"
#include "delassus/status.hpp"
#include "delassus/world.hpp"
