#include "spatial/quaternion.h"

#include "door.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

void bind_spatial(nb::module_& m) {
  m.def(
      "rotation_matrix",
      [](nb::handle quaternion) {
        door::Input<double> c(quaternion, "quaternion", {4});
        door::Output<double> out(nb::none(), {3, 3});
        const Mat3<double> R = rotation(c.data[0], c.data[1], c.data[2], c.data[3]);
        const double rows[9] = {R.x.x, R.y.x, R.z.x, R.x.y, R.y.y, R.z.y, R.x.z, R.y.z, R.z.z};
        std::copy(rows, rows + 9, out.data);
        return out.object;
      },
      "quaternion"_a.none());

  m.def(
      "exponential",
      [](nb::handle vector) {
        door::Input<double> r(vector, "rotation_vector", {3});
        door::Output<double> out(nb::none(), {4});
        const auto e = exponential(Vec3<double>{r.data[0], r.data[1], r.data[2]});
        out.data[0] = e.w, out.data[1] = e.x, out.data[2] = e.y, out.data[3] = e.z;
        return out.object;
      },
      "rotation_vector"_a.none());

  m.def(
      "logarithm",
      [](nb::handle quaternion) {
        door::Input<double> c(quaternion, "quaternion", {4});
        door::Output<double> out(nb::none(), {3});
        const auto r = logarithm(normalized(c.data));
        out.data[0] = r.x, out.data[1] = r.y, out.data[2] = r.z;
        return out.object;
      },
      "quaternion"_a.none());

  // sin and cos as the sweeps compute them, eight angles at a time
  m.def(
      "sincos",
      [](nb::ndarray<const double, nb::ndim<1>, nb::c_contig> angles) {
        const int n = int(angles.size());
        std::vector<double> a(trig_room(n)), s(trig_room(n)), c(trig_room(n));
        std::copy(angles.data(), angles.data() + n, a.begin());
        sincos(a.data(), s.data(), c.data(), n);
        door::Output<double> out(nb::none(), {2, std::size_t(n)});
        std::copy(s.begin(), s.begin() + n, out.data);
        std::copy(c.begin(), c.begin() + n, out.data + n);
        return out.object;
      },
      "angles"_a);
}

}  // namespace delassus
