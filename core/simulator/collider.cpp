#include "simulator/collider.h"

#include <algorithm>
#include <cstring>

#include "spatial/quaternion.h"

namespace delassus {

namespace {

using mujoco::at;

Mat3<double> rotation_by(const Vec3<double>& turn) {
  const Quaternion<double> e = exponential(turn);
  return rotation(e.w, e.x, e.y, e.z);
}

// Number of rows of a contact, and their scales. MuJoCo's coefficients: two tangents, torsion, two rolling directions.
template <class Offsets>
void read_friction(const char* contact, const Offsets& offsets, const double* frame, Touch& t) {
  const int dim = at<int>(contact, offsets.dim);
  const double* mu = reinterpret_cast<const double*>(contact + offsets.friction);
  t.friction = dim == 1 ? 0 : mu[0];
  t.rows = std::max(dim, 3);
  for (int r = 0; r < 4; ++r) t.scales[r] = t.friction > 0 && r + 2 < t.rows ? mu[r + 1] / mu[0] : 1;
  if (t.scales[0] != 1 || t.scales[2] != t.scales[3]) t.tangent = {frame[3], frame[4], frame[5]};
}

std::size_t at_body(const Touch& t, int side) { return std::size_t(t.body[side]); }

// Up to four of the points of a pair that span their patch: the outermost, the one farthest from it, and the farthest
// on both sides of their line. Deep ones come first among equals. Returns how many, and which in `kept`.
int spanning_points(const Touch* touches, int n, int* kept) {
  if (n <= 4) {
    for (int k = 0; k < n; ++k) kept[k] = k;
    return n;
  }
  Vec3<double> middle{};
  for (int k = 0; k < n; ++k) middle += touches[k].position * (1.0 / n);
  auto farthest = [&](auto&& measure) {
    int best = 0;
    for (int k = 1; k < n; ++k)
      if (measure(k) > measure(best)) best = k;
    return best;
  };
  auto away = [&](const Vec3<double>& from, int k) {
    const Vec3<double> d = touches[k].position - from;
    return dot(d, d);
  };
  const int a = farthest([&](int k) { return away(middle, k); }),
            b = farthest([&](int k) { return away(touches[a].position, k); });
  const Vec3<double> line = touches[b].position - touches[a].position, normal = touches[a].normal;
  auto side = [&](int k) { return dot(cross(line, touches[k].position - touches[a].position), normal); };
  int chosen[4] = {a, b, farthest(side), farthest([&](int k) { return -side(k); })};
  // what bears must be among them: the deepest takes the place of the nearest
  const int deepest = farthest([&](int k) { return -touches[k].distance; });
  double reached = touches[chosen[0]].distance;
  for (const int k : chosen) reached = std::min(reached, touches[k].distance);
  if (touches[deepest].distance < reached - 1e-9) {
    int nearest = 0;
    for (int j = 1; j < 4; ++j)
      if (away(touches[deepest].position, chosen[j]) < away(touches[deepest].position, chosen[nearest])) nearest = j;
    chosen[nearest] = deepest;
  }
  int count = 0;
  for (int k = 0; k < n; ++k)
    if (k == chosen[0] || k == chosen[1] || k == chosen[2] || k == chosen[3]) kept[count++] = k;
  return count;
}

}  // namespace

Collider::Collider(const CollisionSource& source, int nq)
    : library_(source.library),
      nq_(nq),
      bodies_(source.geom_bodies),
      parts_(source.geom_parts),
      round_shapes_(source.round_shapes),
      restitution_(source.restitution),
      mocap_signature_(source.mocap_signature),
      margin_shift_(source.margin_shift),
      surfaces_(source.surfaces),
      model_(static_cast<const char*>(source.model),
             static_cast<const char*>(source.model) + source.library.model.size),
      data_(library_) {
  if (!data_.renew(model_.data())) failure_ = data_.error();
}

void Collider::set_surfaces(const double* friction, const double* restitution) {
  std::copy_n(restitution, restitution_.size(), restitution_.begin());
  friction_.assign(friction, friction + 3 * restitution_.size());
  mujoco::put(model_.data(), library_.model.geom_friction, friction_.data());
}

bool Collider::collide(const double* q, std::vector<Touch>& touches, const std::vector<char>* still) {
  touches.clear();
  if (!detect(q, still)) return false;
  read_contacts();
  if (still) std::erase_if(found_, [&](const Touch& t) { return (*still)[at_body(t, 0)] && (*still)[at_body(t, 1)]; });
  choose_contacts(touches);
  return true;
}

// Keeps at most four of the detected contacts per pair of geoms.
void Collider::choose_contacts(std::vector<Touch>& touches) const {
  for (std::size_t first = 0; first < found_.size();) {
    std::size_t last = first + 1;
    while (last < found_.size() && same_pair(found_[last], found_[first])) ++last;
    int kept[4];
    const int count = spanning_points(&found_[first], int(last - first), kept);
    for (int k = 0; k < count; ++k) touches.push_back(found_[first + std::size_t(kept[k])]);
    first = last;
  }
}

double Collider::radius(int geom) const {
  const RoundShape shape = round_shape(geom);
  if (shape != RoundShape::ball && shape != RoundShape::end) return 0;
  return at<const double*>(model_.data(), library_.model.geom_size)[3 * geom];
}

bool Collider::collide_displaced(const Model<double>& model, const std::vector<char>& moved, const Vec6<double>& by,
                                 std::vector<Touch>& touches) {
  const std::size_t geoms = parts_.size();
  std::size_t parts = 0;
  for (const int part : parts_) parts = std::max(parts, std::size_t(part) + 1);
  const std::size_t places[] = {library_.data.geom_xpos, library_.data.geom_xmat, library_.data.xpos,
                                library_.data.xmat};
  const std::size_t counts[] = {3 * geoms, 9 * geoms, 3 * parts, 9 * parts};
  // as they were: kept the first time, put back after that
  if (kept_poses_.empty())
    for (int k = 0; k < 4; ++k) kept_poses_.insert(kept_poses_.end(), poses(places[k]), poses(places[k]) + counts[k]);
  else
    put_back_poses();

  // every link about the place of the first of MuJoCo's bodies that carries a shape of it
  centers_.assign(geoms, {});
  const Mat3<double> turn = rotation_by(by.ang);
  displaced_.assign(parts, 0);
  const auto displace = [&](double* p, double* R, const Vec3<double>& center) {
    const Vec3<double> x = turn * (Vec3<double>{p[0], p[1], p[2]} - center) + center + by.lin;
    p[0] = x.x, p[1] = x.y, p[2] = x.z;
    for (int column = 0; column < 3; ++column) {
      const Vec3<double> axis = turn * Vec3<double>{R[column], R[3 + column], R[6 + column]};
      R[column] = axis.x, R[3 + column] = axis.y, R[6 + column] = axis.z;
    }
  };
  link_centers_.assign(model.links.size(), {});
  link_known_.assign(model.links.size(), 0);
  for (std::size_t g = 0; g < geoms; ++g) {
    const int link = model.bodies[std::size_t(bodies_[g])].link;
    if (link < 0 || !moved[std::size_t(link)]) continue;
    const std::size_t part = std::size_t(parts_[g]);
    double *x = poses(places[2]) + 3 * part, *X = poses(places[3]) + 9 * part;
    if (!link_known_[std::size_t(link)]) {
      link_known_[std::size_t(link)] = 1;
      link_centers_[std::size_t(link)] = {x[0], x[1], x[2]};
    }
    const Vec3<double> center = link_centers_[std::size_t(link)];
    centers_[g] = center;
    displace(poses(places[0]) + 3 * g, poses(places[1]) + 9 * g, center);
    if (!displaced_[part]) displace(x, X, center);
    displaced_[part] = 1;
  }

  touches.clear();
  const bool fine = data_.call([&] { library_.collision(model_.data(), data_.get()); });
  if (!fine || data_.at<int>(library_.data.dropped) != 0) {
    failure_ = fine ? "contacts found no room in its arena" : data_.error();
    kept_poses_.clear();
    data_.renew(model_.data());
    return false;
  }
  read_contacts();
  choose_contacts(touches);
  return true;
}

void Collider::put_back() {
  if (!kept_poses_.empty()) put_back_poses();
  kept_poses_.clear();
}

void Collider::put_back_poses() {
  const std::size_t geoms = parts_.size(), parts = (kept_poses_.size() / 12) - geoms;
  const double* from = kept_poses_.data();
  const auto put = [&](std::size_t offset, std::size_t count) {
    std::copy_n(from, count, poses(offset));
    from += count;
  };
  put(library_.data.geom_xpos, 3 * geoms), put(library_.data.geom_xmat, 9 * geoms);
  put(library_.data.xpos, 3 * parts), put(library_.data.xmat, 9 * parts);
}

// All contacts of MuJoCo's data into found_.
void Collider::read_contacts() {
  const int n = data_.at<int>(library_.data.ncon);
  const char* contacts = data_.at<const char*>(library_.data.contact);
  found_.clear();
  for (int k = 0; k < n; ++k) {
    const char* c = contacts + std::size_t(k) * library_.contact.size;
    const int* geoms = reinterpret_cast<const int*>(c + library_.contact.geom);
    if (geoms[0] < 0 || geoms[1] < 0) continue;  // flexible bodies are not ours
    const double* p = reinterpret_cast<const double*>(c + library_.contact.pos);
    const double* frame = reinterpret_cast<const double*>(c + library_.contact.frame);
    Touch t{};
    // MuJoCo's normal goes from its first geom to its second
    for (int b = 0; b < 2; ++b) t.geom[b] = geoms[1 - b], t.body[b] = bodies_[std::size_t(geoms[1 - b])];
    // shapes rest at the distance of their margin
    t.separation = at<double>(c, library_.contact.dist);
    t.distance = t.base = t.separation - (at<double>(c, library_.contact.margin) - margin_shift_);
    read_friction(c, library_.contact, frame, t);
    t.restitution = std::max(restitution_[std::size_t(geoms[0])], restitution_[std::size_t(geoms[1])]);
    t.position = {p[0], p[1], p[2]};
    t.normal = {frame[0], frame[1], frame[2]};
    for (int b = 0; b < 2; ++b) t.local[b] = t.anchor[b] = local(t.geom[b], t.position);
    found_.push_back(t);
  }
}

// R (v + ω × p) and R ω of both
void Collider::find_surfaces(std::vector<Touch>& touches) const {
  if (surfaces_.empty()) return;
  for (Touch& t : touches) {
    t.surface = t.surface_spin = {};
    for (int side = 0; side < 2; ++side) {
      const double* f = surfaces_.data() + 6 * t.geom[side];
      const Vec3<double> v{f[0], f[1], f[2]}, spin{f[3], f[4], f[5]};
      const double sign = side == 0 ? 1 : -1;
      t.surface += turned(t.geom[side], v + cross(spin, t.anchor[side])) * sign;
      t.surface_spin += turned(t.geom[side], spin) * sign;
    }
  }
}

Vec3<double> Collider::place(int geom, const Vec3<double>& local) const {
  const double* x = data_.at<const double*>(library_.data.xpos) + 3 * parts_[std::size_t(geom)];
  return Vec3<double>{x[0], x[1], x[2]} + turned(geom, local);
}

Vec3<double> Collider::turned(int geom, const Vec3<double>& local) const {
  const double* R = data_.at<const double*>(library_.data.xmat) + 9 * parts_[std::size_t(geom)];
  return {R[0] * local.x + R[1] * local.y + R[2] * local.z, R[3] * local.x + R[4] * local.y + R[5] * local.z,
          R[6] * local.x + R[7] * local.y + R[8] * local.z};
}

// Rᵀ (position − origin) of the body that carries the geom
Vec3<double> Collider::local(int geom, const Vec3<double>& position) const {
  const int part = parts_[std::size_t(geom)];
  const double* x = data_.at<const double*>(library_.data.xpos) + 3 * part;
  const double* R = data_.at<const double*>(library_.data.xmat) + 9 * part;
  const Vec3<double> d = position - Vec3<double>{x[0], x[1], x[2]};
  return {R[0] * d.x + R[3] * d.y + R[6] * d.z, R[1] * d.x + R[4] * d.y + R[7] * d.z,
          R[2] * d.x + R[5] * d.y + R[8] * d.z};
}

// Contacts at q in data_. After an error other than lack of room the data is made anew: its stack is open.
bool Collider::detect(const double* q, const std::vector<char>* still) {
  failure_.clear();
  if (data_.get() == nullptr && !data_.renew(model_.data())) {
    failure_ = data_.error();
    return false;
  }
  for (;;) {
    // of nothing there may be no address
    if (nq_ > 0) std::memcpy(data_.at<double*>(library_.data.qpos), q, std::size_t(nq_) * sizeof(double));
    if (!mocap_.empty()) library_.set_state(model_.data(), data_.get(), mocap_.data(), mocap_signature_);
    leave_out(nullptr);
    bool fine = data_.call([&] { library_.kinematics(model_.data(), data_.get()); });
    if (fine) {
      leave_out(still);
      fine = data_.call([&] { library_.collision(model_.data(), data_.get()); });
    }
    if (fine && data_.at<int>(library_.data.dropped) == 0) return true;
    const std::string error = fine ? "contacts found no room in its arena" : data_.error();
    const auto lacks = [&](const char* what) { return error.find(what) != std::string::npos; };
    const bool full = lacks("arena") || lacks("memory") || lacks("overflow");
    if (full && mujoco::enlarge_arena(library_, model_.data()) && data_.renew(model_.data())) continue;
    data_.renew(model_.data());
    failure_ = error;
    return false;
  }
}

// Bodies that stand still are for MuJoCo's collisions asleep, so that it leaves out their pairs. Where nothing is said
// to stand still, and for kinematics, which would leave such bodies where they were, nothing sleeps.
void Collider::leave_out(const std::vector<char>* still) {
  const auto& sleep = library_.sleep;
  if (sleep.bit == 0) return;
  int flags = at<int>(model_.data(), library_.model.flags);
  flags = still ? flags | sleep.bit : flags & ~sleep.bit;
  std::memcpy(model_.data() + library_.model.flags, &flags, sizeof flags);
  if (!still) return;
  int* states = data_.at<int*>(sleep.states);
  for (std::size_t g = 0; g < bodies_.size(); ++g)
    states[parts_[g]] = (*still)[std::size_t(bodies_[g])] ? sleep.asleep : sleep.awake;
  const int awake = 0;  // fewer than all: it looks at the states
  mujoco::put(data_.get(), sleep.count, awake);
}

}  // namespace delassus
