// The methods of this library's core and what they are called.
#pragma once

#include "operators/explicit/cost.h"
#include "solvers/verbs.h"

namespace bench {

namespace dl = delassus;
using dl::DynamicsMethod, dl::InverseMethod, dl::MatrixMethod;

template <class Method>
struct Named {
  const char* name;
  Method method;
};
constexpr Named<MatrixMethod> matrix_methods[] = {
    {"ltl", MatrixMethod::ltl},         {"kjr", MatrixMethod::kjr},           {"efpa", MatrixMethod::efpa},
    {"pv-osim", MatrixMethod::pv_osim}, {"pv-osimr", MatrixMethod::pv_osimr}, {"oscm", MatrixMethod::oscm},
    {"columns", MatrixMethod::columns}};
constexpr Named<InverseMethod> inverse_methods[] = {
    {"caba-osim", InverseMethod::caba_osim},   {"caba-osimf", InverseMethod::caba_osimf},
    {"pv-osimf", InverseMethod::pv_osimf},     {"ltl", InverseMethod::ltl},
    {"lcaba-osim", InverseMethod::lcaba_osim}, {"lcaba", InverseMethod::lcaba}};
constexpr Named<DynamicsMethod> dynamics_methods[] = {
    {"lcaba", DynamicsMethod::lcaba}, {"prox-ltl", DynamicsMethod::prox_ltl}, {"prox-ltls", DynamicsMethod::prox_ltls},
    {"pv", DynamicsMethod::pv},       {"prox-pv", DynamicsMethod::prox_pv},   {"pv-early", DynamicsMethod::pv_early}};

}  // namespace bench
