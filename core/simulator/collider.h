// Contacts by MuJoCo's collision detection, called through its shared library.
//
// The library is found at run time: building needs nothing of it. Whoever knows it says where its functions are and where its structures keep what is read here.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "spatial/spatial.h"

namespace delassus {

struct MujocoLibrary {
  void* (*make_data)(const void* model);
  void (*delete_data)(void* data);
  void (*kinematics)(const void* model, void* data);
  void (*collision)(const void* model, void* data);
  std::size_t qpos, xpos, xmat, contacts, count;               // in mjData: pointers, and an int
  std::size_t size, distance, position, frame, friction, geoms, dimension;  // in mjContact
};

// A point that touches, or is about to.
struct Touch {
  int geom[2];
  int body[2];                // the normal goes from the second to the first
  double distance;            // negative: penetration
  double base;                // what it was where the two places coincided
  double friction;
  Vec3<double> position, normal;
  Vec3<double> local[2];      // the position on each body
};

// Up to four of the points of a pair that span their patch: the outermost, the one farthest from it, and the farthest on both sides of their line. Deep ones come first among equals.
inline int spanning(const Touch* touches, int n, int* kept) {
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
  const int a = farthest([&](int k) { return away(middle, k); }), b = farthest([&](int k) { return away(touches[a].position, k); });
  const Vec3<double> line = touches[b].position - touches[a].position, normal = touches[a].normal;
  auto side = [&](int k) { return dot(cross(line, touches[k].position - touches[a].position), normal); };
  const int chosen[4] = {a, b, farthest(side), farthest([&](int k) { return -side(k); })};
  int count = 0;
  for (int k = 0; k < n; ++k)
    if (k == chosen[0] || k == chosen[1] || k == chosen[2] || k == chosen[3]) kept[count++] = k;
  return count;
}

class Collider {
 public:
  // model: an mjModel that outlives this. bodies: of every geom, by our numbers; parts: the same by MuJoCo's.
  Collider(const MujocoLibrary& library, const void* model, int nq, std::vector<int> bodies, std::vector<int> parts)
      : library_(library), model_(model), nq_(nq), bodies_(std::move(bodies)), parts_(std::move(parts)), data_(library.make_data(model)) {}
  ~Collider() { library_.delete_data(data_); }
  Collider(const Collider&) = delete;
  Collider& operator=(const Collider&) = delete;

  // Contacts at q, four a pair of geoms at most, in MuJoCo's order.
  void collide(const double* q, std::vector<Touch>& touches) {
    if (nq_ > 0) std::memcpy(at<double*>(data_, library_.qpos), q, std::size_t(nq_) * sizeof(double));  // of nothing there may be no address
    library_.kinematics(model_, data_);
    library_.collision(model_, data_);
    const int n = at<int>(data_, library_.count);
    const char* contacts = at<const char*>(data_, library_.contacts);
    const double *xpos = at<const double*>(data_, library_.xpos), *xmat = at<const double*>(data_, library_.xmat);
    touches.clear();
    found_.clear();
    for (int k = 0; k < n; ++k) {
      const char* c = contacts + std::size_t(k) * library_.size;
      const int* geoms = reinterpret_cast<const int*>(c + library_.geoms);
      if (geoms[0] < 0 || geoms[1] < 0) continue;  // flexible bodies are not ours
      const double *p = reinterpret_cast<const double*>(c + library_.position), *frame = reinterpret_cast<const double*>(c + library_.frame);
      Touch t{};
      // MuJoCo's normal goes from its first geom to its second
      for (int b = 0; b < 2; ++b) t.geom[b] = geoms[1 - b], t.body[b] = bodies_[std::size_t(geoms[1 - b])];
      t.distance = t.base = at<double>(c, library_.distance);
      t.friction = at<int>(c, library_.dimension) == 1 ? 0 : *reinterpret_cast<const double*>(c + library_.friction);
      t.position = {p[0], p[1], p[2]};
      t.normal = {frame[0], frame[1], frame[2]};
      for (int b = 0; b < 2; ++b) {
        const int part = parts_[std::size_t(t.geom[b])];
        const double *x = xpos + 3 * part, *R = xmat + 9 * part;
        const Vec3<double> d = t.position - Vec3<double>{x[0], x[1], x[2]};
        t.local[b] = {R[0] * d.x + R[3] * d.y + R[6] * d.z, R[1] * d.x + R[4] * d.y + R[7] * d.z, R[2] * d.x + R[5] * d.y + R[8] * d.z};
      }
      found_.push_back(t);
    }
    for (std::size_t first = 0; first < found_.size();) {
      std::size_t last = first + 1;
      while (last < found_.size() && found_[last].geom[0] == found_[first].geom[0] && found_[last].geom[1] == found_[first].geom[1]) ++last;
      int kept[4];
      const int count = spanning(&found_[first], int(last - first), kept);
      for (int k = 0; k < count; ++k) touches.push_back(found_[first + std::size_t(kept[k])]);
      first = last;
    }
  }

  // Where a point of the body that carries a geom is, at the q of the last call.
  Vec3<double> place(int geom, const Vec3<double>& local) const {
    const int part = parts_[std::size_t(geom)];
    const double *x = at<const double*>(data_, library_.xpos) + 3 * part, *R = at<const double*>(data_, library_.xmat) + 9 * part;
    return {x[0] + R[0] * local.x + R[1] * local.y + R[2] * local.z, x[1] + R[3] * local.x + R[4] * local.y + R[5] * local.z, x[2] + R[6] * local.x + R[7] * local.y + R[8] * local.z};
  }

 private:
  template <class V>
  static V at(const void* structure, std::size_t offset) {
    V value;
    std::memcpy(&value, static_cast<const char*>(structure) + offset, sizeof(V));
    return value;
  }

  MujocoLibrary library_;
  const void* model_;
  int nq_;
  std::vector<int> bodies_, parts_;
  void* data_;
  std::vector<Touch> found_;
};

}  // namespace delassus
