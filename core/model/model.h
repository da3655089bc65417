// A robot in the form that sweeps use: one link per joint, numbered depth first, so that a subtree is a range of links.
//
// A link's frame sits at its joint's anchor; the axis of a hinge or slide is its z axis. Bodies of the user's model are
// frames fixed to links: a body with k joints is carried by the last of k links, of which k − 1 are massless; a body
// without joints is fused into the link that carries its parent (link −1 is the ground).
#pragma once

#include <cstdint>
#include <vector>

#include "spatial/spatial.h"

namespace delassus {

enum class Joint : std::uint8_t { hinge, slide, ball, free };

constexpr int velocity_size(Joint j) { return j == Joint::free ? 6 : j == Joint::ball ? 3 : 1; }
constexpr int configuration_size(Joint j) { return j == Joint::free ? 7 : j == Joint::ball ? 4 : 1; }

// The user's view: bodies depth first (0 is the world) and their joints in order.
struct Description {
  struct Body {
    int parent;
    Vec3<double> position;  // of the body frame in its parent's
    double quaternion[4];   // w, x, y, z
    double mass;
    Vec3<double> center;   // of mass, in the body frame
    Sym3<double> inertia;  // about the centre of mass, body axes
  };
  struct Axis {
    Joint type;
    int body;
    Vec3<double> anchor, axis;  // in the body frame
    double reference;           // coordinate of a hinge or slide at which the body stands as described
  };
  std::vector<Body> bodies;
  std::vector<Axis> joints;
  std::vector<double> armature;  // one a degree of freedom
  Vec3<double> gravity;
};

// Mass, centre and central inertia of what a link carries, in its own axes.
template <class C>
struct Inertial {
  C mass;
  Vec3<C> center;
  Sym3<C> inertia;
};

template <class Real>
struct Link {
  // what every sweep reads
  Pose<Real> placement;  // of its frame at zero angle or displacement in the parent link
  Real reference;
  int parent;      // link, −1 for the ground
  int iq, iv, nv;  // where its coordinates and velocities start, how many velocities
  Joint type;
  bool branches;  // some link other than the next one hangs on it: what that one hands over has to wait in memory
  bool carriage;  // a slide below slides only, with nothing beside it: the tree's origin rides on it
  // the rest
  int tree;   // which root it descends from
  int end;    // one past the last link of its subtree
  int end_v;  // one past the last velocity of its subtree
  int depth;  // links above it
  Inertial<Real> inertial;
};

template <class Real>
struct Body {
  int link;              // −1: fixed to the ground
  Pose<Real> placement;  // in its link
  Real mass;
  Vec3<Real> center;  // in its link
};

template <class Real>
struct Model {
  int nq = 0, nv = 0, depth = 0;
  std::vector<Link<Real>> links;
  std::vector<int> roots;      // first link of each tree
  std::vector<int> carriages;  // a tree: its last carriage, or its root
  std::vector<Body<Real>> bodies;
  std::vector<int> dof_parent;  // velocity that precedes each on the way to the ground, −1 at a root
  std::vector<int> dof_link;
  std::vector<Real> armature;
  Vec3<Real> gravity{};
};

Model<double> build_model(const Description& description);

// Gives bodies other inertias: mass (nbody,), centre (nbody, 3) and inertia about it (nbody, 9), as a description has
// them. What links carry follows, to the last bit what build_model would make of it.
void set_inertias(Model<double>& model, const double* mass, const double* center, const double* inertia);

// Some trees of a model by themselves, with some of its bodies: these are of the trees or of the ground. Takes as long
// as it gives, however large the whole is.
Model<double> part(const Model<double>& whole, const std::vector<int>& trees, const std::vector<int>& bodies);

template <class Real>
Model<Real> converted(const Model<double>& model);

}  // namespace delassus
