#include "rooms.h"
#include "state/configuration.h"
#include "state/energy.h"
#include "state/frames.h"
#include "workspace.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

template <class T>
Vec3<T> vec3(const door::Input<T>& x) {
  return {x.data[0], x.data[1], x.data[2]};
}

// A number, if it is finite.
template <class T>
T finite(T x, const char* what) {
  if (!std::isfinite(x))
    door::raise("SingularError",
                std::string(what) + ": the result is not finite: numbers overflowed. Check the size of the arguments.");
  return x;
}

template <class T>
void bind_configurations(WorkspaceClass<T>& c) {
  using Self = HeldWorkspace<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  c.def(
      "integrate",
      [](Self& s, nb::handle q, nb::handle v, double dt, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()});
        Out next(out, {s.nq()});
        next.apart_from(q_, v_);
        integrate(s.model, q_.data, v_.data, T(dt), next.data);
        return next.finite("integrate");
      },
      "q"_a.none(), "v"_a.none(), "dt"_a, "out"_a.none());

  c.def(
      "difference",
      [](Self& s, nb::handle from, nb::handle to, nb::handle out) {
        auto a = door::configuration(s.model, from, "q_from");
        auto b = door::configuration(s.model, to, "q_to");
        Out v(out, {s.nv()});
        v.apart_from(a, b);
        difference(s.model, a.data, b.data, v.data);
        return v.finite("difference");
      },
      "q_from"_a.none(), "q_to"_a.none(), "out"_a.none());
}

// Velocity or bias acceleration of a frame, after `motions` at rest on the ground.
template <class T>
using FrameRate = Vec6<T> (*)(const Model<T>&, const Placement<T>&, const Motions<T>&, int, const Vec3<T>&);

template <class T>
void bind_frame_rate(WorkspaceClass<T>& c, const char* name, FrameRate<T> rate) {
  c.def(
      name,
      [name, rate](HeldWorkspace<T>& s, nb::handle q, nb::handle v, int body, nb::handle point, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        door::Input<T> v_(v, "v", {s.nv()}), p(point, "point", {3});
        door::Output<T> x(out, {6});
        s.work(q_, [&] {
          motions(s.model, s.w, s.w, v_.data, static_cast<const T*>(nullptr), Vec3<T>{});
          const auto [lin, ang] = rate(s.model, s.w, s.w, body, vec3(p));
          const T numbers[6] = {lin.x, lin.y, lin.z, ang.x, ang.y, ang.z};
          std::copy(numbers, numbers + 6, x.data);
        });
        return x.finite(name);
      },
      "q"_a.none(), "v"_a.none(), "body"_a, "point"_a.none(), "out"_a.none());
}

template <class T>
void bind_frames(WorkspaceClass<T>& c) {
  using Self = HeldWorkspace<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  c.def(
      "body_placements",
      [](Self& s, nb::handle q, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        Out X(out, {s.bodies(), 4, 4});
        s.work(q_, [&] {
          for (std::size_t b = 0; b < s.bodies(); ++b) {
            const Pose<T> P = body_pose(s.model, s.w, int(b));
            const T rows[16] = {P.R.x.x, P.R.y.x, P.R.z.x, P.p.x, P.R.x.y, P.R.y.y, P.R.z.y, P.p.y,
                                P.R.x.z, P.R.y.z, P.R.z.z, P.p.z, 0,       0,       0,       1};
            std::copy(rows, rows + 16, X.data + 16 * b);
          }
        });
        return X.finite("body_placements");
      },
      "q"_a.none(), "out"_a.none());

  c.def(
      "frame_jacobian",
      [](Self& s, nb::handle q, int body, nb::handle point, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        In p(point, "point", {3});
        Out J(out, {6, s.nv()});
        s.work(q_, [&] { frame_jacobian(s.model, s.w, body, vec3(p), J.data); });
        return J.finite("frame_jacobian");
      },
      "q"_a.none(), "body"_a, "point"_a.none(), "out"_a.none());

  bind_frame_rate<T>(c, "frame_velocity", &frame_velocity<T>);
  bind_frame_rate<T>(c, "frame_bias_acceleration", &frame_bias<T>);
}

template <class T>
void bind_mass_and_energy(WorkspaceClass<T>& c) {
  using Self = HeldWorkspace<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  c.def(
      "center_of_mass",
      [](Self& s, nb::handle q, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        Out x(out, {3});
        bool moves = false;
        s.work(q_, [&] {
          T mass;
          const Vec3<T> h = first_moment(s.model, s.w, mass);
          x.data[0] = h.x / mass, x.data[1] = h.y / mass, x.data[2] = h.z / mass;
          moves = mass > 0;
        });
        if (!moves)
          door::raise("SingularError", "center_of_mass: nothing that moves has mass, so there is no centre of mass.");
        return x.finite("center_of_mass");
      },
      "q"_a.none(), "out"_a.none());

  c.def(
      "kinetic_energy",
      [](Self& s, nb::handle q, nb::handle v) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()});
        T energy{};
        s.work(q_, [&] { energy = kinetic_energy(s.model, s.w, v_.data); });
        return finite(energy, "kinetic_energy");
      },
      "q"_a.none(), "v"_a.none());

  c.def(
      "gravitational_energy",
      [](Self& s, nb::handle q) {
        auto q_ = door::configuration(s.model, q);
        T energy{};
        s.work(q_, [&] { energy = gravitational_energy(s.model, s.w); });
        return finite(energy, "potential_energy");
      },
      "q"_a.none());
}

}  // namespace

template <class T>
void bind_state(WorkspaceClass<T>& c) {
  bind_configurations<T>(c);
  bind_frames<T>(c);
  bind_mass_and_energy<T>(c);
}

template void bind_state<double>(WorkspaceClass<double>&);
template void bind_state<float>(WorkspaceClass<float>&);

}  // namespace delassus
