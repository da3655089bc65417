#include "simulator/sensing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace delassus {

namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

constexpr std::size_t gravity_bytes = 3 * sizeof(double);

// Where a body is in MuJoCo's data.
Pose<double> mujoco_pose(const MujocoLibrary& l, const void* data, int part) {
  const double *x = mujoco::at<const double*>(data, l.data.xpos) + 3 * part,
               *R = mujoco::at<const double*>(data, l.data.xmat) + 9 * part;
  return {{{R[0], R[3], R[6]}, {R[1], R[4], R[7]}, {R[2], R[5], R[8]}}, {x[0], x[1], x[2]}};
}

Vec3<double> three(const double* x) { return {x[0], x[1], x[2]}; }

// Effect of the rows of a loop on its first body: the force, its point of application, and the torque about that point.
struct LoopPush {
  Vec3<double> force{}, torque{}, place{};
};

LoopPush loop_push(const ConstraintDescription& loop, const Pose<double>& one, const Pose<double>& two,
                   const double* f) {
  const Vec3<double> x = one * three(loop.points.data()), other = two * three(loop.points.data() + 3);
  LoopPush push{{}, {}, x};
  if (loop.kind == Kind::distance) {
    const Vec3<double> apart = x - other;
    push.force = apart * (f[0] / std::sqrt(dot(apart, apart)));
    return push;
  }
  // rows of the point along the axes, then rotations about the last of them; a point that slides is pushed where it is
  const int pushes = loop.point_rows, first = pushes < 3 ? pushes - 1 : 0, turns = loop.rows - pushes;
  if (pushes < 3) push.place = other;
  const auto axis = [&](int k) {
    const Vec3<double> own = three(loop.matrix.data() + 3 * k);
    return loop.axes_on < 0 ? own : (loop.axes_on == 0 ? one : two).R * own;
  };
  for (int k = 0; k < pushes; ++k) push.force += axis(first + k) * f[k];
  if (loop.rows == 4 && pushes == 3)
    push.torque = cross(one.R * three(loop.target.data()), two.R * three(loop.target.data() + 3)) * f[3];
  else
    for (int k = 0; k < turns; ++k) push.torque += axis(3 - turns + k) * f[pushes + k];
  return push;
}

}  // namespace

Sensing::Sensing(const SensingSource& source)
    : source_(source),
      model_(static_cast<const char*>(source.model),
             static_cast<const char*>(source.model) + source.library.model.size),
      quiet_(model_),
      contact_(source.library.contact.size, 0),
      joint_limits_(source.joint_coordinates.size(), 0.0),
      tendon_limits_(std::size_t(source.tendons), 0.0),
      smooth_(std::size_t(source.nv)),
      wrenches_(6 * source.bodies.size()),
      data_(source_.library) {
  const std::size_t flags = source.library.model.disable_flags;
  mujoco::put(quiet_.data(), flags, mujoco::at<int>(quiet_.data(), flags) | source.contact_bit);
  for (std::size_t b = 0; b < source.bodies.size(); ++b) {
    const std::size_t own = std::size_t(source.bodies[b]);
    if (parts_.size() <= own) parts_.resize(own + 1, -1);
    parts_[own] = int(b);
  }
}

// ---- numbers of a model of a world's own ----

std::size_t Sensing::numbers_size(const SensingSource& source) {
  std::size_t bytes = gravity_bytes;
  for (const auto& field : source.fields) bytes += padded(field.bytes);
  return bytes;
}

void Sensing::copy_numbers(const SensingSource& source, const void* model, unsigned char* to) {
  std::memcpy(to, static_cast<const char*>(model) + source.library.model.gravity, gravity_bytes);
  to += gravity_bytes;
  for (const auto& field : source.fields) {
    if (field.bytes > 0) std::memcpy(to, mujoco::at<const void*>(model, field.offset), field.bytes);
    to += padded(field.bytes);
  }
}

void Sensing::use_numbers(const unsigned char* numbers) {
  const std::size_t gravity = source_.library.model.gravity;
  if (numbers == nullptr) {
    std::memcpy(model_.data() + gravity, static_cast<const char*>(source_.model) + gravity, gravity_bytes);
    for (const auto& field : source_.fields)
      mujoco::put(model_.data(), field.offset, mujoco::at<const void*>(source_.model, field.offset));
    return;
  }
  std::memcpy(model_.data() + gravity, numbers, gravity_bytes);
  numbers += gravity_bytes;
  for (const auto& field : source_.fields) {
    mujoco::put(model_.data(), field.offset, numbers);
    numbers += padded(field.bytes);
  }
}

// ---- sensors ----

bool Sensing::read(const StepRecord& record, const StepForces& applied, double* values) {
  const auto& at = source_.library.data;
  for (;;) {
    if (data_.get() == nullptr && !data_.renew(model_.data())) {
      failure_ = data_.error();
      return false;
    }
    if (!fill(data_.get(), record, applied)) {
      data_.renew(model_.data());  // its stack is open
      return false;
    }
    if (data_.at<int>(at.dropped) == 0 && data_.at<int>(at.rows_dropped) == 0) break;
    if (!mujoco::enlarge_arena(source_.library, model_.data())) {
      failure_ = "rows of contacts found no room in its arena";
      return false;
    }
    data_.renew(model_.data());
  }
  std::copy_n(data_.at<const double*>(at.sensordata), source_.values, values);
  return true;
}

bool Sensing::fill(void* data, const StepRecord& record, const StepForces& applied) {
  failure_.clear();
  find_limit_forces(record);
  const bool fine = data_.call([&] {
    const auto& l = source_.library;
    const void* const model = model_.data();
    clear(data, record, applied);
    find_positions(data);
    l.collision(quiet_.data(), data);
    add_contacts(data, record);
    l.make_constraint(model, data);
    l.transmission(model, data);
    write_row_forces(data, record);
    l.energy_position(model, data);
    l.sensor_position(model, data);
    l.forward_velocity(model, data);
    l.energy_velocity(model, data);
    l.subtree_velocity(model, data);
    l.sensor_velocity(model, data);
    l.forward_actuation(model, data);
    find_accelerations(data, record);
    write_limit_sensors(data);
  });
  if (!fine) failure_ = data_.error();
  return fine;
}

// The state and what acts; nothing was found of it yet.
void Sensing::clear(void* data, const StepRecord& record, const StepForces& applied) {
  const auto& l = source_.library;
  const unsigned char no = 0;
  for (const std::size_t flag : source_.found) mujoco::put(data, flag, no);
  mujoco::put(data, l.data.time, record.time);
  std::copy(record.q.begin(), record.q.end(), mujoco::at<double*>(data, l.data.qpos));
  std::copy(record.v.begin(), record.v.end(), mujoco::at<double*>(data, l.data.qvel));
  if (source_.mocap_signature != 0) l.set_state(model_.data(), data, record.mocap.data(), source_.mocap_signature);
  if (!record.hidden.empty()) l.set_state(model_.data(), data, record.hidden.data(), source_.signature);
  const auto write = [&](std::size_t offset, const double* from, int n) {
    double* const to = mujoco::at<double*>(data, offset);
    if (from != nullptr)
      std::copy_n(from, n, to);
    else
      std::fill_n(to, n, 0.0);
  };
  write(l.data.ctrl, applied.control, source_.nu);
  write(l.data.qfrc_applied, applied.tau, source_.nv);
  double* wrench = mujoco::at<double*>(data, l.data.xfrc_applied);
  for (const int body : source_.bodies) {
    for (int k = 0; k < 6; ++k) wrench[k] = applied.external != nullptr ? applied.external[6 * body + k] : 0;
    wrench += 6;
  }
}

// All that follows from q.
void Sensing::find_positions(void* data) {
  const auto& l = source_.library;
  const void* const model = model_.data();
  l.kinematics(model, data);
  l.com_pos(model, data);
  l.camera_light(model, data);
  l.flex(model, data);
  l.tendon(model, data);
  l.make_M(model, data);
  l.factor_M(model, data);
}

// Our contacts, each of which counts, however far apart it is.
void Sensing::add_contacts(void* data, const StepRecord& record) {
  const auto& l = source_.library;
  const auto& at = l.contact;
  const double *friction = mujoco::at<const double*>(model_.data(), l.model.geom_friction),
               *solref = mujoco::at<const double*>(model_.data(), l.model.geom_solref),
               *solimp = mujoco::at<const double*>(model_.data(), l.model.geom_solimp);
  char* const contact = contact_.data();
  const auto number = [&](std::size_t offset, auto value) { mujoco::put(contact, offset, value); };
  const auto numbers = [&](std::size_t offset, const double* from, std::size_t n) {
    std::memcpy(contact + offset, from, n * sizeof(double));
  };
  for (const ContactRow& row : record.contacts) {
    const auto [n, t, b] = contact_frame(three(row.normal));
    const double frame[9] = {n.x, n.y, n.z, t.x, t.y, t.z, b.x, b.y, b.z};
    // MuJoCo's normal goes from its first geom to its second
    const int one = int(row.geoms[1]), two = int(row.geoms[0]);
    const double* const own = friction + 3 * one;
    const double mu[5] = {row.friction, row.friction, own[1], own[2], own[2]};
    std::fill(contact_.begin(), contact_.end(), 0);
    numbers(at.pos, row.position, 3), numbers(at.frame, frame, 9), numbers(at.friction, mu, 5);
    numbers(at.solref, solref + 2 * one, 2), numbers(at.solimp, solimp + 5 * one, 5);
    number(at.dist, row.distance), number(at.margin, row.distance + 1.0);
    number(at.dim, row.friction > 0 ? int(row.rows) : 1);
    number(at.geom, one), number(at.geom + sizeof(int), two), number(at.geom1, one), number(at.geom2, two);
    for (const std::size_t none : {at.flex, at.elem, at.vert}) number(none, -1), number(none + sizeof(int), -1);
    number(at.efc_address, -1);
    l.add_contact(model_.data(), data, contact);
  }
}

// Forces of MuJoCo's rows: of limits and contacts; others have none.
void Sensing::write_row_forces(void* data, const StepRecord& record) const {
  const auto& at = source_.library.data;
  const int rows = mujoco::at<int>(data, at.nefc);
  const int *type = mujoco::at<const int*>(data, at.efc_type), *id = mujoco::at<const int*>(data, at.efc_id);
  double* const force = mujoco::at<double*>(data, at.efc_force);
  for (int r = 0; r < rows; ++r) {
    const std::size_t object = std::size_t(id[r]);
    force[r] = type[r] == source_.joint_limit    ? joint_limits_[object]
               : type[r] == source_.tendon_limit ? tendon_limits_[object]
                                                 : 0;
  }
  write_contact_forces(data, record);
}

// Normal and tangents; or edges p± of MuJoCo's pyramids, with f_n = Σ p and f_k = µ_k (p₊ − p₋): not negative only
// inside of the pyramid, but read as these forces everywhere.
void Sensing::write_contact_forces(void* data, const StepRecord& record) const {
  const auto& l = source_.library;
  const int count = mujoco::at<int>(data, l.data.ncon);
  const char* contact = mujoco::at<const char*>(data, l.data.contact);
  double* const forces = mujoco::at<double*>(data, l.data.efc_force);
  for (int k = 0; k < count; ++k, contact += l.contact.size) {
    const int address = mujoco::at<int>(contact, l.contact.efc_address), n = mujoco::at<int>(contact, l.contact.dim);
    if (address < 0) continue;
    const ContactRow& row = record.contacts[std::size_t(k)];
    const auto frame = contact_frame(three(row.normal));
    double local[6];
    for (int i = 0; i < 3; ++i) {
      const Vec3<double>& axis = frame[std::size_t(i)];
      local[i] = dot(axis, three(row.force)), local[3 + i] = dot(axis, three(row.torque));
    }
    double* const to = forces + address;
    if (n == 1 || !source_.pyramids) {
      std::copy_n(local, n, to);
      continue;
    }
    const double* mu = reinterpret_cast<const double*>(contact + l.contact.friction);
    const double share = local[0] / (2 * (n - 1));
    for (int i = 1; i < n; ++i) {
      const double half = local[i] / (2 * mu[i - 1]);
      to[2 * i - 2] = share + half, to[2 * i - 1] = share - half;
    }
  }
}

// qacc = M⁻¹ (smooth forces + those of rows). Forces between bodies feel those of loops, as wrenches on both.
void Sensing::find_accelerations(void* data, const StepRecord& record) {
  const auto& l = source_.library;
  const void* const model = model_.data();
  l.forward_acceleration(model, data);
  std::copy(record.row_forces.begin(), record.row_forces.end(), mujoco::at<double*>(data, l.data.qfrc_constraint));
  const double* const smooth = mujoco::at<const double*>(data, l.data.qfrc_smooth);
  for (std::size_t k = 0; k < smooth_.size(); ++k) smooth_[k] = smooth[k] + record.row_forces[k];
  l.solve_M(model, data, mujoco::at<double*>(data, l.data.qacc), smooth_.data(), 1);
  double* const wrenches = mujoco::at<double*>(data, l.data.xfrc_applied);
  std::copy_n(wrenches, wrenches_.size(), wrenches_.begin());
  add_loop_wrenches(data, record);
  l.forces_between_bodies(model, data);
  l.sensor_acceleration(model, data);
  std::copy(wrenches_.begin(), wrenches_.end(), wrenches);
}

// Wrenches of loops at centres of mass, to those of the user.
void Sensing::add_loop_wrenches(void* data, const StepRecord& record) const {
  if (record.loop_forces.empty()) return;
  const auto& l = source_.library;
  const double* f = record.loop_forces.data();
  for (const auto& loop : record.description->loops) {
    if (loop.kind == Kind::frame || loop.kind == Kind::distance) {
      const int parts[2] = {parts_[std::size_t(loop.bodies[0])], parts_[std::size_t(loop.bodies[1])]};
      const Pose<double> one = mujoco_pose(l, data, parts[0]), two = mujoco_pose(l, data, parts[1]);
      const LoopPush push = loop_push(loop, one, two, f);
      const Vec3<double> places[2] = {push.place, two * three(loop.points.data() + 3)};
      for (int side = 0; side < 2; ++side) {
        const double sign = side == 0 ? 1 : -1;
        const Vec3<double> center = three(mujoco::at<const double*>(data, l.data.xipos) + 3 * parts[side]),
                           torque = push.torque + cross(places[side] - center, push.force);
        double* const w = mujoco::at<double*>(data, l.data.xfrc_applied) + 6 * parts[side];
        const Vec3<double> both[2] = {push.force * sign, torque * sign};
        for (int k = 0; k < 2; ++k) w[3 * k] += both[k].x, w[3 * k + 1] += both[k].y, w[3 * k + 2] += both[k].z;
      }
    }
    f += loop.rows;
  }
}

// MuJoCo reads its own rows, which are not there where an end is just reached and not passed.
void Sensing::write_limit_sensors(void* data) const {
  double* const values = mujoco::at<double*>(data, source_.library.data.sensordata);
  for (const auto& s : source_.limit_sensors) {
    const double force = (s.of_tendon ? tendon_limits_ : joint_limits_)[std::size_t(s.object)];
    values[s.address] = s.cutoff > 0 ? std::min(force, s.cutoff) : force;
  }
}

// By MuJoCo's numbers of joints and tendons.
void Sensing::find_limit_forces(const StepRecord& record) {
  const auto &joints = record.joint_limit_forces, &tendons = record.tendon_limit_forces;
  for (std::size_t j = 0; j < joint_limits_.size(); ++j)
    joint_limits_[j] = joints.empty() ? 0 : joints[std::size_t(source_.joint_coordinates[j])];
  for (std::size_t t = 0; t < tendon_limits_.size(); ++t) tendon_limits_[t] = t < tendons.size() ? tendons[t] : 0;
}

}  // namespace delassus
