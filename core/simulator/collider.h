// Contact detection by MuJoCo, called through its shared library.
//
// Contacts are found at a configuration q, up to four for each pair of shapes. If MuJoCo's arena is too small for the
// contacts or for finding them, detection is repeated with a larger arena, so that no contact is dropped.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/model.h"
#include "simulator/contact.h"
#include "simulator/mujoco_call.h"

namespace delassus {

// What a shape is where it touches a plane, as far as that is known in closed form: a plane itself, a ball, the end of
// a capsule, a corner.
enum class RoundShape : int { other, face, ball, end, corner };

// How to reach the collisions of one model of MuJoCo's.
struct CollisionSource {
  MujocoLibrary library;
  const void* model = nullptr;      // an mjModel that outlives every collider of it
  std::vector<int> geom_bodies;     // of every geom, by our numbers
  std::vector<int> geom_parts;      // the same by MuJoCo's
  std::vector<double> restitution;  // of every geom; a contact has the larger of two
  std::vector<int> round_shapes;    // of every geom: its RoundShape
  int mocap_signature = 0;          // of the poses of bodies that a user moves, in MuJoCo's state; 0: there are none
  double margin_shift = 0;          // by how much the margins of its contacts are too large [m]
  // of every geom, in the axes of its body: velocity of its surface at the body's origin, and its spin; empty where no
  // surface moves
  std::vector<double> surfaces;
};

class Collider {
 public:
  Collider(const CollisionSource& source, int nq);
  Collider(const Collider&) = delete;
  Collider& operator=(const Collider&) = delete;

  // Contacts at q, at most four per pair of geoms, in MuJoCo's order. still: flag per body in our numbering, null if
  // all may move. Contacts between two still bodies are left out; MuJoCo 3.4 and later does not even search for them.
  // Returns false if MuJoCo failed: failure() says why.
  bool collide(const double* q, std::vector<Touch>& touches, const std::vector<char>* still = nullptr);

  // How surfaces move at these contacts, at the q of the last call.
  void find_surfaces(std::vector<Touch>& touches) const;

  // Poses of bodies that a user moves, for all looks to come; as MuJoCo's state has them.
  void set_mocap(const std::vector<double>& poses) { mocap_ = poses; }

  // Friction (ngeom, 3) and restitution (ngeom,) of shapes, for all looks to come, in place of those of the model.
  void set_surfaces(const double* friction, const double* restitution);

  // Sizes of shapes likewise; they are looked at, not copied.
  void set_sizes(const mujoco::ShapeSizes& shapes) { mujoco::use_sizes(library_, model_.data(), shapes); }

  // Contacts as they would be with some links displaced by `by`, displacement and rotation about a centre of their own,
  // from where the last `collide` left them; `put_back` ends it. moved: per link of the model.
  bool collide_displaced(const Model<double>& model, const std::vector<char>& moved, const Vec6<double>& by,
                         std::vector<Touch>& touches);
  void put_back();
  // About which the link that carries a geom was turned.
  const Vec3<double>& center(int geom) const { return centers_[std::size_t(geom)]; }

  RoundShape round_shape(int geom) const { return RoundShape(round_shapes_[std::size_t(geom)]); }
  // Of a ball or of a capsule's end; zero of a corner [m].
  double radius(int geom) const;

  // What MuJoCo said where it could not go on; empty where it could.
  const std::string& failure() const { return failure_; }

  // Where a point of the body that carries a geom is, at the q of the last call.
  Vec3<double> place(int geom, const Vec3<double>& local) const;
  // A direction of that body in world axes.
  Vec3<double> turned(int geom, const Vec3<double>& local) const;
  // And which point of the body is at a position.
  Vec3<double> local(int geom, const Vec3<double>& position) const;

 private:
  bool detect(const double* q, const std::vector<char>* still);
  void leave_out(const std::vector<char>* still);
  void read_contacts();
  void choose_contacts(std::vector<Touch>& touches) const;
  void put_back_poses();
  double* poses(std::size_t offset) const { return data_.at<double*>(offset); }

  MujocoLibrary library_;
  int nq_;
  std::vector<int> bodies_, parts_, round_shapes_;
  std::vector<double> restitution_;
  int mocap_signature_;
  double margin_shift_;
  std::vector<double> surfaces_;
  std::vector<double> mocap_, friction_;
  std::vector<char>
      model_;  // the head of MuJoCo's model, with an arena size and flags of our own; its arrays are shared
  MujocoData data_;
  std::string failure_;
  std::vector<Touch> found_;
  // of `collide_displaced`: places and axes of geoms, then of MuJoCo's bodies, as they were, while links are displaced;
  // centres about which links turn, per geom; which of MuJoCo's bodies were displaced already
  std::vector<double> kept_poses_;
  std::vector<Vec3<double>> centers_, link_centers_;
  std::vector<char> displaced_, link_known_;
};

}  // namespace delassus
