// The core under names of its own: some of its names are those of the surface, which hides it. Every source of the
// surface includes this first.
#pragma once

#ifdef DELASSUS_VERSION
#error "cpp/core.h comes before the headers of the surface"
#endif

#include "constraints/compiled.h"
#include "errors/typed.h"
#include "operators/verbs.h"
#include "simulator/world.h"
#include "solvers/contacts/solver.h"
#include "solvers/verbs.h"
#include "state/configuration.h"
#include "state/frames.h"

namespace delassus::core {

template <class Real>
using Model = delassus::Model<Real>;
template <class Real>
using ConstraintSet = delassus::ConstraintSet<Real>;
using Joint = delassus::Joint;
using Description = delassus::Description;
using ConstraintDescription = delassus::ConstraintDescription;
using Kind = delassus::Kind;
template <class Real>
using ConstraintRows = delassus::ConstraintRows<Real>;
using DynamicsMethod = delassus::DynamicsMethod;
using ContactSolver = delassus::ContactSolver;
using ContactOptions = delassus::ContactOptions;
using ContactReport = delassus::ContactReport;
using ContactOutcome = delassus::ContactOutcome;
using JointLimit = delassus::JointLimit;
using StepFlaw = delassus::StepFlaw;
using StepReport = delassus::StepReport;
using World = delassus::World;
using Point = delassus::Vec3<double>;
using Turn = delassus::Mat3<double>;

}  // namespace delassus::core
