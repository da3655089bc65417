#include "model/model.h"

#include <algorithm>
#include <cmath>

namespace delassus {
namespace {

using V = Vec3<double>;
using R3 = Mat3<double>;

constexpr Pose<double> identity{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0, 0, 0}};

// A rotation whose z column is the unit vector k: the other two columns complete it, exactly for coordinate axes.
R3 frame_along(const V& k) {
  const double ax = std::abs(k.x), ay = std::abs(k.y), az = std::abs(k.z);
  const V helper = (ax <= ay && ax <= az) ? V{1, 0, 0} : (ay <= az ? V{0, 1, 0} : V{0, 0, 1});
  V x = cross(helper, k);
  x = x * (1 / std::sqrt(dot(x, x)));
  return {x, cross(k, x), k};
}

Pose<double> inverse(const Pose<double>& X) {
  const R3 Rt = transpose(X.R);
  return {Rt, Rt * X.p * -1.0};
}

// Adds a rigid part (mass, centre, central inertia) to a link: both centres meet in their common one.
void fuse(Inertial<double>& link, double mass, const V& center, const Sym3<double>& inertia) {
  const double total = link.mass + mass;
  if (total > 0) {
    const V apart = center - link.center;
    const double reduced = link.mass * mass / total;
    link.inertia += inertia_about_reference(reduced, apart, inertia).I;
    link.center += apart * (mass / total);
  } else {
    link.inertia += inertia;
  }
  link.mass = total;
}

// Gives a body its inertia, which its link carries from now on too.
void carry(Model<double>& model, Body<double>& body, double mass, const V& center, const Sym3<double>& inertia) {
  body.mass = mass;
  body.center = body.placement * center;
  if (body.link >= 0)
    fuse(model.links[std::size_t(body.link)].inertial, mass, body.center, congruence(body.placement.R, inertia));
}

template <class Real>
Vec3<Real> cast(const V& a) {
  return {Real(a.x), Real(a.y), Real(a.z)};
}
template <class Real>
Pose<Real> cast(const Pose<double>& X) {
  return {{cast<Real>(X.R.x), cast<Real>(X.R.y), cast<Real>(X.R.z)}, cast<Real>(X.p)};
}
template <class Real>
Sym3<Real> cast(const Sym3<double>& A) {
  return {Real(A.xx), Real(A.xy), Real(A.xz), Real(A.yy), Real(A.yz), Real(A.zz)};
}

}  // namespace

Model<double> build_model(const Description& description) {
  Model<double> model;
  model.gravity = description.gravity;
  model.armature = description.armature;
  std::size_t next_joint = 0;

  for (std::size_t b = 0; b < description.bodies.size(); ++b) {
    const auto& body = description.bodies[b];
    const R3 R = rotation(body.quaternion[0], body.quaternion[1], body.quaternion[2], body.quaternion[3]);

    // placement of the body in the current link before its own joints move
    int link = b == 0 ? -1 : model.bodies[body.parent].link;
    Pose<double> X = b == 0 ? identity : model.bodies[body.parent].placement * Pose<double>{R, body.position};

    for (; next_joint < description.joints.size() && description.joints[next_joint].body == int(b); ++next_joint) {
      const auto& joint = description.joints[next_joint];
      const bool one_axis = joint.type == Joint::hinge || joint.type == Joint::slide;
      Pose<double> frame = identity;  // of the joint, in the body
      if (joint.type != Joint::free) frame.p = joint.anchor;
      if (one_axis) frame.R = frame_along(joint.axis);

      Link<double> next{};
      next.parent = link;
      next.type = joint.type;
      next.iq = model.nq;
      next.iv = model.nv;
      next.nv = velocity_size(joint.type);
      next.tree = link < 0 ? int(model.roots.size()) : model.links[link].tree;
      next.depth = link < 0 ? 0 : model.links[link].depth + 1;
      next.placement = X * frame;
      next.reference = one_axis ? joint.reference : 0;

      const int above = link < 0 ? -1 : model.links[link].iv + model.links[link].nv - 1;
      const int self = int(model.links.size());
      for (int k = 0; k < next.nv; ++k) {
        model.dof_parent.push_back(k == 0 ? above : model.nv + k - 1);
        model.dof_link.push_back(self);
      }
      if (link < 0) model.roots.push_back(self);
      model.nq += configuration_size(joint.type);
      model.nv += next.nv;
      model.depth = std::max(model.depth, next.depth + 1);
      model.links.push_back(next);

      link = self;
      X = inverse(frame);
    }

    model.bodies.push_back({link, X, 0, {}});
    carry(model, model.bodies.back(), body.mass, body.center, body.inertia);
  }

  // a subtree ends where the last link of its last child's subtree ends
  for (int i = int(model.links.size()) - 1; i >= 0; --i) {
    auto& link = model.links[i];
    link.end = std::max(link.end, i + 1);
    link.end_v = std::max(link.end_v, link.iv + link.nv);
    if (link.parent >= 0) {
      auto& parent = model.links[link.parent];
      parent.branches |= link.parent != i - 1;
      parent.end = std::max(parent.end, link.end);
      parent.end_v = std::max(parent.end_v, link.end_v);
    }
  }

  // carriages: the leading slides of a tree, as long as they do not branch
  model.carriages = model.roots;
  for (std::size_t tree = 0; tree < model.roots.size(); ++tree) {
    for (int i = model.roots[tree]; model.links[i].type == Joint::slide; ++i) {
      model.links[i].carriage = true;
      model.carriages[tree] = i;
      const int next = i + 1;  // depth first: the only child, if its subtree is all that is left
      if (next == int(model.links.size()) || model.links[next].parent != i ||
          model.links[next].end != model.links[i].end)
        break;
    }
  }
  return model;
}

void set_inertias(Model<double>& model, const double* mass, const double* center, const double* inertia) {
  for (auto& link : model.links) link.inertial = {};
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    const double *c = center + 3 * b, *I = inertia + 9 * b;
    carry(model, model.bodies[b], mass[b], {c[0], c[1], c[2]}, {I[0], I[1], I[2], I[4], I[5], I[8]});
  }
}

Model<double> part(const Model<double>& whole, const std::vector<int>& trees, const std::vector<int>& bodies) {
  Model<double> model;
  model.gravity = whole.gravity;
  std::size_t links = 0, velocities = 0;
  for (const int tree : trees) {
    const auto& root = whole.links[std::size_t(whole.roots[std::size_t(tree)])];
    links += std::size_t(root.end - whole.roots[std::size_t(tree)]);
    velocities += std::size_t(root.end_v - root.iv);
  }
  model.links.reserve(links);
  for (auto* per_tree : {&model.roots, &model.carriages}) per_tree->reserve(trees.size());
  for (auto* per_velocity : {&model.dof_parent, &model.dof_link}) per_velocity->reserve(velocities);
  model.armature.reserve(velocities);
  model.bodies.reserve(bodies.size());
  for (const int tree : trees) {
    const int root = whole.roots[std::size_t(tree)], end = whole.links[std::size_t(root)].end;
    const auto &first = whole.links[std::size_t(root)], &last = whole.links[std::size_t(end - 1)];
    const int move = int(model.links.size()) - root, move_q = model.nq - first.iq, move_v = model.nv - first.iv;
    for (int i = root; i < end; ++i) {
      auto& link = model.links.emplace_back(whole.links[std::size_t(i)]);
      link.parent += link.parent < 0 ? 0 : move;
      link.iq += move_q;
      link.iv += move_v;
      link.tree = int(model.roots.size());
      link.end += move;
      link.end_v += move_v;
      model.depth = std::max(model.depth, link.depth + 1);
    }
    model.roots.push_back(root + move);
    model.carriages.push_back(whole.carriages[std::size_t(tree)] + move);
    for (int k = first.iv; k < first.end_v; ++k) {
      const int above = whole.dof_parent[std::size_t(k)];
      model.dof_parent.push_back(above < 0 ? above : above + move_v);
      model.dof_link.push_back(whole.dof_link[std::size_t(k)] + move);
      model.armature.push_back(whole.armature[std::size_t(k)]);
    }
    model.nq += last.iq + configuration_size(last.type) - first.iq;
    model.nv += first.end_v - first.iv;
  }
  for (const int b : bodies) {
    auto& body = model.bodies.emplace_back(whole.bodies[std::size_t(b)]);
    if (body.link < 0) continue;
    const int tree = whole.links[std::size_t(body.link)].tree;
    const auto here = std::lower_bound(trees.begin(), trees.end(), tree) - trees.begin();
    body.link += model.roots[std::size_t(here)] - whole.roots[std::size_t(tree)];
  }
  return model;
}

template <class Real>
Model<Real> converted(const Model<double>& model) {
  Model<Real> out;
  out.nq = model.nq;
  out.nv = model.nv;
  out.depth = model.depth;
  out.roots = model.roots;
  out.carriages = model.carriages;
  out.dof_parent = model.dof_parent;
  out.dof_link = model.dof_link;
  out.armature.assign(model.armature.begin(), model.armature.end());
  out.gravity = cast<Real>(model.gravity);
  for (const auto& l : model.links)
    out.links.push_back({cast<Real>(l.placement),
                         Real(l.reference),
                         l.parent,
                         l.iq,
                         l.iv,
                         l.nv,
                         l.type,
                         l.branches,
                         l.carriage,
                         l.tree,
                         l.end,
                         l.end_v,
                         l.depth,
                         {Real(l.inertial.mass), cast<Real>(l.inertial.center), cast<Real>(l.inertial.inertia)}});
  for (const auto& b : model.bodies)
    out.bodies.push_back({b.link, cast<Real>(b.placement), Real(b.mass), cast<Real>(b.center)});
  return out;
}

template Model<float> converted<float>(const Model<double>&);
template Model<double> converted<double>(const Model<double>&);

}  // namespace delassus
