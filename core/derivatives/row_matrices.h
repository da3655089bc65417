// Derivatives of constraint rows as matrices: J, ∂g/∂q and ∂g/∂ν of
//
//   g(q, ν, ν̇) = J ν̇ + J̇ν + k_d J ν + k_p e
//
// and the contribution of Jᵀλ to ∂F/∂q. A row is nonzero only for velocities that carry its points: its support.
//
// Most rows act with a constant K = [k; c] on a point x of a link. With κ = [k; x × k + c], and the rates Ψ, Χ, Φ of
// subspaces (subspace_rates.h), for each velocity j that carries the link,
//
//   J_j = κ · S_j,   ∂g/∂ν_j = κ · (Φ_j + k_d S_j) + h · ω(S_j),   h = 2 ẋ × k + ω × c
//   ∂g/∂q_j = κ · (Χ_j + k_d Ψ_j) + h · ω(Ψ_j) + ((ẍ × k + α × c) + k_d (ẋ × k + ω × c)) · ω(S_j) + k_p k · ẋ(S_j)
//
// ẍ is without gravity; ẋ(S) is the velocity of the point in the motion S. Forces of these rows keep their direction,
// as external forces do. All other rows between two bodies, such as those whose axes turn with a body, are
// differentiated along unit directions with the functions of residual.h, several at a time. Their forces are treated as
// turning with the link, and the difference to how they really change is subtracted.
#pragma once

#include <vector>

#include "dense/gathered.h"
#include "derivatives/row_frames.h"
#include "derivatives/row_others.h"
#include "derivatives/workspace.h"

namespace delassus {

class RowMatrices {
 public:
  using V = dense::Vector<double>;
  static constexpr int lanes = dense::vector_lanes<double>;

  // k and c of some rows on a point, rows side by side.
  struct Lever {
    Vec3<V> k, c;
    V gain;  // k_p, of rows with an error
  };
  // A point of a link on which rows act.
  struct Side {
    int link;                   // −1: the ground
    std::vector<int> chain;     // velocities that carry the link, from the last one
    std::vector<int> position;  // of these in the support
    Vec3<double> local;         // constant: where the point is on the link
    std::vector<Lever> levers;  // constant
  };
  // Rows of one constraint. Those of velocity e of its support are at number at + e · padded of J, g_q and g_v.
  struct Block {
    enum class Kind { constant, two_bodies, joints } kind;
    int constraint;            // which
    int row, rows, padded;     // padded: rows up to whole registers
    std::vector<int> support;  // velocities, ascending
    std::size_t at;
    std::vector<Side> sides;
    std::size_t turned, K;  // two_bodies: where its forces and K are among `turned_` and `K_`
  };

  RowMatrices(const Model<double>& model, const ConstraintSet<double>& set);

  const std::vector<Block>& blocks() const { return blocks_; }
  std::size_t bytes() const;
  // Whether rows change with the place or the speed of all that hangs on velocity k, which else nothing depends on.
  bool feels(int k) const { return feels_[std::size_t(k)]; }
  // Whether forces couple velocities that carry neither one the other.
  bool couples() const { return couples_; }

  // Whether all rows act with constant K on points.
  bool all_constant() const { return all_constant_; }

  const double* J(const Block& b) const { return J_.data() + b.at; }
  const double* g_q(const Block& b) const { return g_q_.data() + b.at; }
  const double* g_v(const Block& b) const { return g_v_.data() + b.at; }

  // J, with placements in w.
  void place(const DerivativeWorkspace<double>& w, const double* q, const double* v, const double* a);
  // J̇ν + k_d J ν of rows that all act with constant K, with velocities and accelerations without ν̇ and gravity in w;
  // padded to whole registers after the last row.
  void drifts(const DerivativeWorkspace<double>& w, double* drift) const;
  // After `place`, with velocities, accelerations and rates in w: g_q and g_v; forces of λ taken off w.f, and how they
  // turn added to w.E.
  void evaluate(DerivativeWorkspace<double>& w, const double* q, const double* v, const double* a, const double* lambda,
                const Vec3<double>& ground);
  // The terms of F_q (nv × nv, row-major) that were left out there.
  void correct(const DerivativeWorkspace<double>& w, const double* q, const double* v, const double* a,
               const double* lambda, double* F_q);

 private:
  Block make_block(int constraint) const;
  void add_side(Block& b, int link) const;
  void place_constant(const Block& b, const DerivativeWorkspace<double>& w);
  void place_two_bodies(const Block& b, const DerivativeWorkspace<double>& w);
  void constant_rows(const Block& b, DerivativeWorkspace<double>& w, const double* lambda);
  void two_body_rows(const Block& b, DerivativeWorkspace<double>& w, const double* lambda, const Vec3<double>& ground);
  void joint_rows(const Block& b, bool acceleration, const double* q, const double* v, const double* a,
                  const double* lambda);
  // Rows of two bodies along the directions in `tangents_`, into `changes_`; and forces there.
  void differentiate(const Block& b, const DerivativeWorkspace<double>& w, const RowPoint<double>* points,
                     const double* lambda);

  const Model<double>& model_;
  const ConstraintSet<double> set_;
  std::vector<Block> blocks_;
  std::vector<char> feels_;
  bool couples_ = false, all_constant_ = true;
  std::vector<double> J_, g_q_, g_v_;
  std::vector<double> unit_, zero_, tau_;  // directions of joints, and forces along them
  std::vector<double> rows_;               // zeros
  std::vector<LinkTangent<V>> tangents_;   // a link; only those of the constraint at hand mean something
  std::vector<V> none_, changes_;          // rows: dλ = 0, and what changes
  std::vector<Vec6<V>> K_;                 // rows of two bodies on the one, then on the other; rows side by side
  std::vector<Vec6<V>> turned_;  // a pack of a support, a side: by how much less its force turns than the link
};

}  // namespace delassus
