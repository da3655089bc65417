#include <nanobind/stl/shared_ptr.h>

#include "held.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

Vec3<double> three(const double* x) { return {x[0], x[1], x[2]}; }

}  // namespace

// The arrays come from delassus.model.Model, which has checked them.
void bind_model(nb::module_& m) {
  using Ints = nb::ndarray<const int, nb::ndim<1>, nb::c_contig>;
  using Reals = nb::ndarray<const double, nb::c_contig>;
  nb::class_<HeldModel>(m, "Model")
      .def_prop_ro("trees", [](const HeldModel& h) { return h.wide.roots.size(); })
      .def_prop_ro("depth", [](const HeldModel& h) { return h.wide.depth; });

  m.def(
      "build_model",
      [](Ints parent, Reals position, Reals quaternion, Reals mass, Reals com, Reals inertia, Ints joint_type,
         Ints joint_body, Reals anchor, Reals axis, Reals reference, Reals armature, Reals gravity) {
        Description d;
        for (std::size_t b = 0; b < parent.size(); ++b) {
          const double* I = inertia.data() + 9 * b;
          const double* c = quaternion.data() + 4 * b;
          d.bodies.push_back({parent.data()[b],
                              three(position.data() + 3 * b),
                              {c[0], c[1], c[2], c[3]},
                              mass.data()[b],
                              three(com.data() + 3 * b),
                              {I[0], I[1], I[2], I[4], I[5], I[8]}});
        }
        for (std::size_t j = 0; j < joint_type.size(); ++j)
          d.joints.push_back({Joint(joint_type.data()[j]), joint_body.data()[j], three(anchor.data() + 3 * j),
                              three(axis.data() + 3 * j), reference.data()[j]});
        d.armature.assign(armature.data(), armature.data() + armature.size());
        d.gravity = three(gravity.data());
        Model<double> model = build_model(d);
        Model<float> narrow = converted<float>(model);
        return std::make_shared<HeldModel>(HeldModel{std::move(model), std::move(narrow)});
      },
      "parent"_a, "position"_a, "quaternion"_a, "mass"_a, "com"_a, "inertia"_a, "joint_type"_a, "joint_body"_a,
      "anchor"_a, "axis"_a, "reference"_a, "armature"_a, "gravity"_a);
}

}  // namespace delassus
