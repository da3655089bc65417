// The diagonal of J M⁻¹ Jᵀ, O(n + m): inverse inertias Ω of links from base to tips (inverse_inertia.h), then K Ω Kᵀ of
// every row. For a row on two links of one tree, the coupling between these is left out.
#pragma once

#include "operators/factor.h"
#include "operators/inverse_inertia.h"
#include "operators/points.h"
#include "operators/terms.h"

namespace delassus {

template <class T>
struct DiagonalInputs {
  const Layout<real_of<T>>& layout;
  const Placement<T>& placement;
  const Factor<T>& factor;  // of M
  const Points<T>& points;
  const Terms<T>& terms;
  Sym6<T>* Omega;  // a link: memory
  T* felt;         // a velocity: memory
};

template <class T>
void find_diagonal(const DiagonalInputs<T>& in, T* d) {
  const auto& plan = in.layout.loose;
  const auto& set = in.layout.set;
  const auto& F = in.factor;

  // Ω of every link that constraints reach, and what its joints feel
  for (std::size_t s = plan.steps.size(); s-- > std::size_t(plan.idle);) {
    const auto& step = plan.steps[s];
    Sym6<T> Omega{};
    if (step.free) {
      Omega = inverse(F.free[plan.storage[s].factor]);
      for (int k = 0; k < 6; ++k) in.felt[step.iv + k] = F.Dinv[step.iv + k];
    } else {
      if (step.parent >= 0) Omega = in.Omega[step.parent];
      for (int k = step.iv; k < step.iv + step.nv; ++k)
        in.felt[k] = pass_joint(Omega, in.placement.S[k], F.V[k], F.Dinv[k]);
    }
    in.Omega[step.link] = Omega;
  }

  // K Ω Kᵀ of points, of terms and of joints
  auto felt = [&](int link, const auto& K) { return dot(K, in.Omega[link] * K); };
  for (std::size_t g = 0; g < set.groups.size(); ++g) {
    const auto& group = set.groups[g];
    if constexpr (strip_lanes<T> > 1)
      if (in.points.in_packs(g)) {
        using P = StripPack<T>;
        for (const auto& pack : in.points.packs(g))
          for (int r = 0; r < 3; ++r) {
            const Vec3<P>& n = pack.axes[r];
            P sum = felt(group.link, Vec6<P>{n, cross(pack.position[0], n)});
            if (group.other >= 0) sum += felt(group.other, Vec6<P>{n, cross(pack.position[1], n)});
            scatter_rows<T>(pack, sum, d, r);
          }
        continue;
      }
    in.points.each(g, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
      for (int r = 0; r < 3; ++r) {
        const Vec3<T> n = Vec3<T>{} + axes[r];
        d[row + r] = felt(group.link, Vec6<T>{n, cross(p, n)});
        if (group.other >= 0) d[row + r] += felt(group.other, Vec6<T>{n, cross(o, n)});
      }
    });
  }
  for (const int r : in.layout.summed) d[r] = T{};
  in.terms.each([&](int row, int link, const Vec6<T>& K) { d[row] += felt(link, K); });
  for (const auto& j : set.joint_rows) d[j.row] = in.felt[j.velocity] * (j.coefficient * j.coefficient);
}

}  // namespace delassus
