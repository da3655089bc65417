// Placements of all links and their motion subspaces S, one forward sweep, O(n).
//
//   R_i = R_p E_i R_J(q_i),   p_i = p_p + R_p r_i
//   S = [p × z; z] (hinge), [z; 0] (slide), and body axes for ball and free
//
// Positions are kept relative to the place of the tree's root link, or of the last of its leading slides, so that no
// digit is lost far from the world's origin.
#pragma once

#include "dynamics/workspace.h"

namespace delassus {

// A free link: its place is the tree's origin.
template <class T>
[[gnu::always_inline]] inline Pose<T> place_free(const T* q, Vec3<T>& origin, Vec6<T>* S) {
  const Vec3<T> zero{};
  const T one = constant<T>(1), o{};
  origin = {q[0], q[1], q[2]};
  const Pose<T> X{rotation(q[3], q[4], q[5], q[6]), zero};
  S[0] = {{one, o, o}, zero};
  S[1] = {{o, one, o}, zero};
  S[2] = {{o, o, one}, zero};
  S[3] = {zero, X.R.x};
  S[4] = {zero, X.R.y};
  S[5] = {zero, X.R.z};
  return X;
}

// Carriages stay behind those they carry; a slide's S knows no place.
template <class T>
inline void leave_carriages(const Model<real_of<T>>& model, Placement<T>& w) {
  for (std::size_t tree = 0; tree < model.roots.size(); ++tree) {
    Vec3<T> behind{};
    for (int i = model.carriages[tree]; i > model.roots[tree]; --i) {
      behind -= w.ride[i];
      Pose<T> above = w.pose[i - 1];
      above.p = behind;
      w.pose.set(i - 1, above);
    }
  }
}

// A run of ranks: the same of hinges side by side.
template <class T>
[[gnu::always_inline]] inline void place_ranks(Placement<T>& w, const T* __restrict q, int begin, int end) {
  using P = LinkPack<T>;
  Pose<P> X{};  // of the rank before
  for (int r = begin; r < end; ++r) {
    const auto& rank = w.ranks.ranks[r];
    if (!rank.joined) X = w.pose.gather(rank.parent);
    const Mat3<P> R = X.R * rank.placement.R;
    const Vec3<P> p = X.p + X.R * rank.placement.p;
    P s, c;
    pack_sincos(P(gather_lanes(q, rank.iq) - rank.reference), s, c);
    X = {{R.x * c + R.y * s, R.y * c - R.x * s, R.z}, p};
    w.pose.block(rank.block) = X;
    const Vec6<P> S{cross(p, R.z), R.z};
    const auto own = [&](const P& x) { return rank.full > 0 ? x : P{}; };
    w.rank_S[r] = {{own(S.lin.x), own(S.lin.y), own(S.lin.z)}, {own(S.ang.x), own(S.ang.y), own(S.ang.z)}};
    scatter(w.S.data(), rank.iv, w.rank_S[r]);
  }
}

// A run of single links.
template <class T>
[[gnu::always_inline]] inline void place_links(const Model<real_of<T>>& model, Placement<T>& w, const T* __restrict q,
                                               int begin, int end, bool turns) {
  using Real = real_of<T>;
  const Link<Real>* links = model.links.data();
  const int* single = w.ranks.single.data();
  const Vec3<T> zero{};

  Pose<T> X{};                          // of the link before, on which the next one usually hangs
  constexpr int many = 4 * trig_chunk;  // angles at once
  T angle[many]{}, sine[many], cosine[many];
  for (int k = begin, before = -1; k < end; before = single[k++]) {
    const int i = single[k], a = (k - begin) % many;
    if (a == 0) {
      const int n = end - k < many ? end - k : many;
      for (int j = 0; j < n; ++j) angle[j] = q[links[single[k + j]].iq] - links[single[k + j]].reference;
      if (turns) sincos(angle, sine, cosine, n);
    }
    const Link<Real>& link = links[i];
    Vec6<T>* S = &w.S[link.iv];
    const bool root = link.parent < 0;

    if (link.type == Joint::free) {
      X = place_free(q + link.iq, w.origin[link.tree], S);
      w.pose.set(i, X);
      continue;
    }

    // the joint's frame before it moves
    Mat3<T> R;
    Vec3<T> p;
    if (root) {
      const Pose<Real>& E = link.placement;
      const T o{};
      R = {{o + E.R.x.x, o + E.R.x.y, o + E.R.x.z},
           {o + E.R.y.x, o + E.R.y.y, o + E.R.y.z},
           {o + E.R.z.x, o + E.R.z.y, o + E.R.z.z}};
      p = {o + E.p.x, o + E.p.y, o + E.p.z};
    } else {
      if (link.parent != before) X = w.pose[link.parent];
      R = X.R * link.placement.R;
      p = X.p + X.R * link.placement.p;
    }

    // the joint's motion
    if (link.type == Joint::hinge) {
      const T s = sine[a], c = cosine[a];
      X.R = {R.x * c + R.y * s, R.y * c - R.x * s, R.z};
    } else if (link.type == Joint::slide) {
      X.R = R;
      p += R.z * angle[a];
    } else {
      const T* c = q + link.iq;
      X.R = R * rotation(c[0], c[1], c[2], c[3]);
    }
    if (root) {
      w.origin[link.tree] = p;
      p = zero;
    } else if (link.carriage) {
      // the origin rides on
      w.origin[link.tree] += p;
      w.ride[i] = p;
      p = zero;
    }
    X.p = p;
    w.pose.set(i, X);

    // its axes
    if (link.type == Joint::hinge) {
      S[0] = {cross(p, X.R.z), X.R.z};
    } else if (link.type == Joint::slide) {
      S[0] = {X.R.z, zero};
    } else {
      S[0] = {cross(p, X.R.x), X.R.x};
      S[1] = {cross(p, X.R.y), X.R.y};
      S[2] = {cross(p, X.R.z), X.R.z};
    }
  }
}

template <class T>
void kinematics(const Model<real_of<T>>& model, Placement<T>& w, const T* __restrict q) {
  for (const auto& part : w.ranks.parts) {
    if constexpr (link_lanes<T> > 1)
      if (part.abreast) {
        place_ranks(w, q, part.begin, part.end);
        continue;
      }
    place_links(model, w, q, part.begin, part.end, part.turns);
  }
  leave_carriages(model, w);
}

// Joint forces of a free joint as a spatial force, and its motion as velocities: linear in world axes, angular in the
// link's.
template <class T, class C>
inline Vec6<C> free_force(const Mat3<T>& R, const C* tau) {
  return {{tau[0], tau[1], tau[2]}, R * Vec3<C>{tau[3], tau[4], tau[5]}};
}
template <class T, class C>
inline void free_velocities(const Mat3<T>& R, const Vec6<C>& a, C* out) {
  const Vec3<C> turned = transpose_times(R, a.ang);
  out[0] = a.lin.x, out[1] = a.lin.y, out[2] = a.lin.z;
  out[3] = turned.x, out[4] = turned.y, out[5] = turned.z;
}

// Motion of a link's joint alone: Σ S_k ν_k.
template <class T>
inline Vec6<T> joint_motion(const Link<real_of<T>>& link, const Vec6<T>* S, const T* nu) {
  if (link.nv == 1) return S[link.iv] * nu[link.iv];
  Vec6<T> m = S[link.iv] * nu[link.iv];
  for (int k = 1; k < link.nv; ++k) m += S[link.iv + k] * nu[link.iv + k];
  return m;
}

// Ṡ ν. Axes move with the link, except the linear ones of a free joint, which are the world's.
template <class T>
inline Vec6<T> joint_bias(const Link<real_of<T>>& link, const Vec6<T>& v, Vec6<T> joint) {
  if (link.type == Joint::free) joint.lin = Vec3<T>{};
  return cross_motion(v, joint);
}

// A run of ranks. vdot may be null (zero).
template <class T>
[[gnu::always_inline]] inline void move_ranks(const Placement<T>& w, Motions<T>& m, const T* v, const T* vdot,
                                              int begin, int end) {
  using P = LinkPack<T>;
  Vec6<P> vi{}, ai{};
  for (int r = begin; r < end; ++r) {
    const auto& rank = w.ranks.ranks[r];
    if (!rank.joined) {
      vi = m.v.gather(rank.parent);
      ai = m.a.gather(rank.parent);
    }
    const Vec6<P> joint = w.rank_S[r] * gather_lanes(v, rank.armature);
    vi += joint;
    ai += cross_motion(vi, joint);
    if (vdot) ai += w.rank_S[r] * gather_lanes(vdot, rank.armature);
    m.v.block(rank.block) = vi;
    m.a.block(rank.block) = ai;
  }
}

// A run of single links.
template <class T>
[[gnu::always_inline]] inline void move_links(const Model<real_of<T>>& model, const Placement<T>& w, Motions<T>& m,
                                              const T* v, const T* vdot, const Vec3<T>& ground, int begin, int end) {
  const int* single = w.ranks.single.data();
  Vec6<T> vi{}, ai{};  // of the link before
  for (int n = begin, before = -1; n < end; before = single[n++]) {
    const int i = single[n];
    const auto& link = model.links[i];
    if (link.parent < 0) {
      vi = Vec6<T>{};
      ai = Vec6<T>{ground, Vec3<T>{}};
    } else if (link.parent != before) {
      vi = m.v[link.parent];
      ai = m.a[link.parent];
    }
    const Vec6<T> joint = joint_motion(link, w.S.data(), v);
    vi += joint;
    ai += joint_bias(link, vi, joint);
    if (vdot) ai += joint_motion(link, w.S.data(), vdot);
    m.v.set(i, vi);
    m.a.set(i, ai);
  }
}

// Velocities of all links and their accelerations for the joint accelerations vdot (none: the bias J̇v), a_0 at the
// ground.
template <class T>
inline void motions(const Model<real_of<T>>& model, const Placement<T>& w, Motions<T>& m, const T* v, const T* vdot,
                    const Vec3<T>& ground) {
  for (const auto& part : w.ranks.parts) {
    if constexpr (link_lanes<T> > 1)
      if (part.abreast) {
        move_ranks(w, m, v, vdot, part.begin, part.end);
        continue;
      }
    move_links(model, w, m, v, vdot, ground, part.begin, part.end);
  }
}

}  // namespace delassus
