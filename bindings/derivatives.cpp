#include <nanobind/stl/shared_ptr.h>

#include "derivatives/compiled.h"
#include "derivatives/verbs.h"
#include "rooms.h"
#include "workspace.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

template <class T>
using HeldDerivatives = HeldSweeps<T, DerivativeWorkspace<T>>;

// Arguments and results of derivatives of tree dynamics: of one state, or with the batch before.
template <class T>
struct TreeArguments {
  door::Input<T> v, given, external;
  door::Output<T> found, by_q, by_v, by_given;

  TreeArguments(std::size_t nv, std::size_t bodies, const char* name, bool optional, nb::handle v_, nb::handle given_,
                nb::handle external_, nb::handle out)
      : v(v_, "v", {nv}),
        given(given_, name, {nv}, optional),
        external(external_, "external_forces", {bodies, 6}, true),
        found(nb::borrow<nb::tuple>(out)[0], {nv}),
        by_q(nb::borrow<nb::tuple>(out)[1], {nv, nv}),
        by_v(nb::borrow<nb::tuple>(out)[2], {nv, nv}),
        by_given(nb::borrow<nb::tuple>(out)[3], {nv, nv}) {}
  TreeArguments(std::size_t batch, std::size_t nv, std::size_t bodies, const char* name, bool optional, nb::handle v_,
                nb::handle given_, nb::handle external_, nb::handle out)
      : v(v_, "v", {batch, nv}),
        given(given_, name, {batch, nv}, optional),
        external(external_, "external_forces", {batch, bodies, 6}, true),
        found(nb::borrow<nb::tuple>(out)[0], {batch, nv}),
        by_q(nb::borrow<nb::tuple>(out)[1], {batch, nv, nv}),
        by_v(nb::borrow<nb::tuple>(out)[2], {batch, nv, nv}),
        by_given(nb::borrow<nb::tuple>(out)[3], {batch, nv, nv}) {}

  // Results lie apart from arguments.
  void check(const door::Input<T>& q) const {
    for (const auto* out : {&found, &by_q, &by_v, &by_given}) {
      for (const auto* in : {&q, &v, &given, &external})
        if (in->data && in->data < out->data + out->array.size() && out->data < in->data + in->array.size())
          door::raise("ArgumentError", "out: it shares memory with " + std::string(in->name) +
                                           ". Give the result of an earlier call, or none.");
    }
  }
  nb::tuple results(const char* what) const {
    return nb::make_tuple(found.finite(what), by_q.finite(what), by_v.finite(what), by_given.finite(what));
  }
};

constexpr const char* inverse_name = "inverse_dynamics_derivatives";
constexpr const char* forward_name = "forward_dynamics_derivatives";

template <class T>
void bind_tree(nb::class_<HeldDerivatives<T>>& c) {
  using Self = HeldDerivatives<T>;
  c.def(
      inverse_name,
      [](Self& s, nb::handle q, nb::handle v, nb::handle a, nb::handle external, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        const TreeArguments<T> x(s.nv(), s.bodies(), "acceleration", false, v, a, external, out);
        x.check(q_);
        s.work(q_, [&] {
          rnea_derivatives(s.model, s.w, x.v.data, x.given.data, x.external.data, x.found.data, x.by_q.data,
                           x.by_v.data, x.by_given.data);
        });
        return x.results(inverse_name);
      },
      "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "external_forces"_a.none(), "out"_a);
  c.def(
      forward_name,
      [](Self& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle external, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        const TreeArguments<T> x(s.nv(), s.bodies(), "tau", true, v, tau, external, out);
        x.check(q_);
        bool regular = false;
        s.work(q_, [&] {
          aba_derivatives(s.model, s.w, x.v.data, x.given.data, x.external.data, x.found.data, x.by_q.data, x.by_v.data,
                          x.by_given.data);
          world_inertias(s.w);
          regular = is_regular(s.model, s.w);
        });
        if (!regular) door::raise_singular(forward_name);
        return x.results(forward_name);
      },
      "q"_a.none(), "v"_a.none(), "tau"_a.none(), "external_forces"_a.none(), "out"_a);
}

template <class T>
Vec3<T> vec3(const door::Input<T>& x) {
  return {x.data[0], x.data[1], x.data[2]};
}

template <class T>
void bind_frames(nb::class_<HeldDerivatives<T>>& c) {
  using Self = HeldDerivatives<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  c.def(
      "frame_derivatives",
      [](Self& s, nb::handle q, nb::handle v, nb::handle a, int body, nb::handle point) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()}), a_(a, "acceleration", {s.nv()}, true), p(point, "point", {3});
        Out velocity(nb::none(), {6}), acceleration(nb::none(), {6}), J(nb::none(), {6, s.nv()}),
            velocity_q(nb::none(), {6, s.nv()}), acceleration_q(nb::none(), {6, s.nv()}),
            acceleration_v(nb::none(), {6, s.nv()});
        s.work(q_, [&] {
          subspace_rates(s.model, s.w, s.w, s.w.rates, v_.data, a_.data, Vec3<T>{});
          frame_derivatives(s.model, s.w, body, vec3(p), velocity.data, acceleration.data, J.data, velocity_q.data,
                            acceleration_q.data, acceleration_v.data);
        });
        constexpr const char* what = "frame_derivatives";
        return nb::make_tuple(velocity.finite(what), acceleration.finite(what), J.finite(what), velocity_q.finite(what),
                              acceleration_q.finite(what), acceleration_v.finite(what));
      },
      "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "body"_a, "point"_a.none());
  c.def(
      "frame_force_derivatives",
      [](Self& s, nb::handle q, nb::handle force, int body, nb::handle point) {
        auto q_ = door::configuration(s.model, q);
        In f(force, "force", {6}), p(point, "point", {3});
        Out tau(nb::none(), {s.nv()}), tau_q(nb::none(), {s.nv(), s.nv()});
        s.work(q_, [&] {
          const Vec6<T> wrench{{f.data[0], f.data[1], f.data[2]}, {f.data[3], f.data[4], f.data[5]}};
          frame_force_derivatives(s.model, s.w, body, vec3(p), wrench, tau.data, tau_q.data);
        });
        constexpr const char* what = "frame_force_derivatives";
        return nb::make_tuple(tau.finite(what), tau_q.finite(what));
      },
      "q"_a.none(), "force"_a.none(), "body"_a, "point"_a.none());
}

template <class T>
void bind_masses(nb::class_<HeldDerivatives<T>>& c) {
  using Self = HeldDerivatives<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  c.def(
      "center_of_mass_derivatives",
      [](Self& s, nb::handle q, nb::handle v, nb::handle a) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()}), a_(a, "acceleration", {s.nv()}, true);
        Out velocity(nb::none(), {3}), acceleration(nb::none(), {3}), J(nb::none(), {3, s.nv()}),
            velocity_q(nb::none(), {3, s.nv()}), acceleration_q(nb::none(), {3, s.nv()}),
            acceleration_v(nb::none(), {3, s.nv()});
        T mass = 0;
        for (const auto& link : s.model.links) mass += link.inertial.mass;
        if (!(mass > 0))
          door::raise("SingularError",
                      "center_of_mass_derivatives: nothing that moves has mass, so there is no centre of mass.");
        s.work(q_, [&] {
          center_of_mass_derivatives(s.model, s.w, v_.data, a_.data, velocity.data, acceleration.data, J.data,
                                     velocity_q.data, acceleration_q.data, acceleration_v.data);
        });
        constexpr const char* what = "center_of_mass_derivatives";
        return nb::make_tuple(velocity.finite(what), acceleration.finite(what), J.finite(what), velocity_q.finite(what),
                              acceleration_q.finite(what), acceleration_v.finite(what));
      },
      "q"_a.none(), "v"_a.none(), "acceleration"_a.none());
  c.def(
      "energy_derivatives",
      [](Self& s, nb::handle q, nb::handle v) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()});
        Out kinetic_q(nb::none(), {s.nv()}), kinetic_v(nb::none(), {s.nv()}), gravitational_q(nb::none(), {s.nv()});
        s.work(q_, [&] {
          energy_derivatives(s.model, s.w, v_.data, kinetic_q.data, kinetic_v.data, gravitational_q.data);
        });
        constexpr const char* what = "energy_derivatives";
        return nb::make_tuple(kinetic_q.finite(what), kinetic_v.finite(what), gravitational_q.finite(what));
      },
      "q"_a.none(), "v"_a.none());
  c.def(
      "torque_regressor",
      [](Self& s, nb::handle q, nb::handle v, nb::handle a, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()}), a_(a, "acceleration", {s.nv()});
        Out Y(out, {s.nv(), 10 * s.bodies()});
        Y.apart_from(q_, v_, a_);
        s.work(q_, [&] {
          const auto& g = s.model.gravity;
          motions(s.model, s.w, s.w, v_.data, a_.data, Vec3<T>{-g.x, -g.y, -g.z});
          torque_regressor(s.model, s.w, s.w, Y.data);
        });
        return Y.finite("torque_regressor");
      },
      "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "out"_a.none());
}

template <class T>
void bind_single(nb::module_& m, const char* name) {
  nb::class_<HeldDerivatives<T>> c(m, name);
  c.def(nb::init<std::shared_ptr<const HeldModel>>(), "model"_a);
  bind_tree<T>(c);
  bind_frames<T>(c);
  bind_masses<T>(c);
}

template <class T>
struct HeldBatchDerivatives : SingleUser {
  std::shared_ptr<const HeldModel> held;
  const Model<T>& model;
  std::unique_ptr<BatchTreeDerivatives<T>> core;
  HeldBatchDerivatives(std::shared_ptr<const HeldModel> m, int threads)
      : SingleUser("this Workspace"),
        held(std::move(m)),
        model(held->in<T>()),
        core(make_batch_tree_derivatives(model, threads)) {}
};

template <class T>
void bind_batch(nb::module_& m, const char* name) {
  using Self = HeldBatchDerivatives<T>;
  nb::class_<Self> c(m, name);
  c.def(nb::init<std::shared_ptr<const HeldModel>, int>(), "model"_a, "threads"_a);
  c.def(
      inverse_name,
      [](Self& s, nb::handle q, nb::handle v, nb::handle a, nb::handle external, nb::handle out, int batch) {
        const std::size_t n = std::size_t(batch);
        auto q_ = door::configurations(s.model, q, n);
        const TreeArguments<T> x(n, std::size_t(s.model.nv), s.model.bodies.size(), "acceleration", false, v, a,
                                 external, out);
        x.check(q_);
        s.work([&] {
          s.core->inverse_dynamics(batch, q_.data, x.v.data, x.given.data, x.external.data, x.found.data, x.by_q.data,
                                   x.by_v.data, x.by_given.data);
        });
        return x.results(inverse_name);
      },
      "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "external_forces"_a.none(), "out"_a, "batch"_a);
  c.def(
      forward_name,
      [](Self& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle external, nb::handle out, int batch) {
        const std::size_t n = std::size_t(batch);
        auto q_ = door::configurations(s.model, q, n);
        const TreeArguments<T> x(n, std::size_t(s.model.nv), s.model.bodies.size(), "tau", true, v, tau, external, out);
        x.check(q_);
        int singular = -1;
        s.work([&] {
          singular = s.core->forward_dynamics(batch, q_.data, x.v.data, x.given.data, x.external.data, x.found.data,
                                              x.by_q.data, x.by_v.data, x.by_given.data);
        });
        if (singular >= 0)
          door::raise_singular(
              (std::string(forward_name) + ", at or soon after state " + std::to_string(singular)).c_str());
        return x.results(forward_name);
      },
      "q"_a.none(), "v"_a.none(), "tau"_a.none(), "external_forces"_a.none(), "out"_a, "batch"_a);
}

}  // namespace

void bind_derivatives(nb::module_& m) {
  bind_single<double>(m, "Derivatives64");
  bind_single<float>(m, "Derivatives32");
  bind_batch<double>(m, "BatchDerivatives64");
  bind_batch<float>(m, "BatchDerivatives32");
}

}  // namespace delassus
