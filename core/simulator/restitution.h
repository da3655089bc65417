// Restitution in two phases (Poisson's law): the normal impulses of compression are applied again times e, then
// contacts must not penetrate.
//
//   compression    λ in its sets with σ = G λ + J v_f, without waiting for gaps to close
//   decompression  (1 + e) λ of the normals that bounce, then λ₂ in what remains of the sets with
//                  σ = G λ₂ + J v_f + G (1 + e) λ
//   energy         friction while it springs back may feed on the normal impulse: so from compression to the end only
//                  as far as takes no energy from nowhere, ½ λᵀ G λ + λᵀ J v_f ≤ 0
#pragma once

#include <vector>

#include "simulator/contact_solvers.h"
#include "simulator/row_system.h"

namespace delassus {

class Restitution {
 public:
  // Which normals approach fast enough to bounce, from v at the start of the step: their gaps leave g, and their e is
  // noted. Whether there is any.
  bool find_bouncing(const StepOptions& options, const RowSystem& s, const std::vector<Contact*>& contacts,
                     const double* v, const std::vector<double>& error, std::vector<double>& g);

  // Decompression, from impulses of compression to those of the whole impact; map: as compression left it.
  void decompress(const StepOptions& options, RowSystem& s, ContactMap& map, ContactSolvers& solvers,
                  const double* free, const std::vector<double>& g, std::vector<double>& impulses,
                  ContactReport& report);

  // What the last bounce was made of, per row: impulses of compression, how much of each is given back, the share of
  // its coefficient that is, approach over g, and impulses that came on top, with their velocities and their sets.
  const std::vector<double>& compression() const { return compression_; }
  const std::vector<double>& coefficients() const { return coefficient_; }
  const std::vector<double>& shares() const { return shares_; }
  const std::vector<double>& second_impulses() const { return second_; }
  const std::vector<double>& second_velocities() const { return sigma_; }
  const ForceSets& second_sets() const { return sets_; }
  bool whole() const { return whole_; }  // all of it was given back

 private:
  void narrow_sets(const RowSystem& s);
  double energy_share(RowSystem& s, const double* free, const std::vector<double>& impulses);

  std::vector<double> approach_;                           // per row: J v at the start of the step
  std::vector<double> coefficient_;                        // per row: e where it bounces, else 0
  std::vector<double> given_back_;                         // per row: (1 + e) λ
  std::vector<double> g_;                                  // per row: J v_f + G (1 + e) λ
  std::vector<double> second_, sigma_;                     // per row: λ₂, σ
  std::vector<double> compression_, shares_;               // per row: λ; approach over g, at most 1, where it bounces
  std::vector<double> change_;                             // per row: from compression to the end
  std::vector<double> free_rows_, G_impulses_, G_change_;  // per row: J v_f, G λ, G change
  ForceSets sets_;                                         // what remains of them
  bool whole_ = true;
};

}  // namespace delassus
