// Inverse inertia of every tip, all joints below it free to move: a base-to-tips sweep, O(n).
//
//   Ωᵢ = (1 − S D⁻¹ Uᵀ) Ω_p (1 − U D⁻¹ Sᵀ) + S D⁻¹ Sᵀ = Ω_p − S zᵀ − z Sᵀ,   V = U D⁻¹,   z = Ω_p V − ½ (Vᵀ Ω_p V + D⁻¹) S
#pragma once

#include "operators/explicit/rows.h"

namespace delassus {

// A −= a bᵀ + b aᵀ
template <class T>
inline void subtract_pair(Sym6<T>& H, const Vec6<T>& a, const Vec6<T>& b) {
  H.A = H.A - Sym3<T>{real_of<T>(2) * a.lin.x * b.lin.x, a.lin.x * b.lin.y + a.lin.y * b.lin.x, a.lin.x * b.lin.z + a.lin.z * b.lin.x, real_of<T>(2) * a.lin.y * b.lin.y,
                      a.lin.y * b.lin.z + a.lin.z * b.lin.y, real_of<T>(2) * a.lin.z * b.lin.z};
  H.B.x -= a.lin * b.ang.x + b.lin * a.ang.x;
  H.B.y -= a.lin * b.ang.y + b.lin * a.ang.y;
  H.B.z -= a.lin * b.ang.z + b.lin * a.ang.z;
  H.C = H.C - Sym3<T>{real_of<T>(2) * a.ang.x * b.ang.x, a.ang.x * b.ang.y + a.ang.y * b.ang.x, a.ang.x * b.ang.z + a.ang.z * b.ang.x, real_of<T>(2) * a.ang.y * b.ang.y,
                      a.ang.y * b.ang.z + a.ang.z * b.ang.y, real_of<T>(2) * a.ang.z * b.ang.z};
}

// H⁻¹ of H = L D Lᵀ
template <class T>
inline Sym6<T> inverse(const Ldl6<T>& LD) {
  T x[6][6];  // columns of L⁻ᵀ D⁻¹ L⁻¹
  for (int c = 0; c < 6; ++c) {
    for (int r = 0; r < 6; ++r) x[c][r] = constant<T>(r == c);
    solve_lower(LD, x[c]);
    for (int r = 0; r < 6; ++r) x[c][r] *= LD.Dinv[r];
    solve_upper(LD, x[c]);
  }
  return {{x[0][0], x[0][1], x[0][2], x[1][1], x[1][2], x[2][2]},
          {{x[3][0], x[3][1], x[3][2]}, {x[4][0], x[4][1], x[4][2]}, {x[5][0], x[5][1], x[5][2]}},
          {x[3][3], x[3][4], x[3][5], x[4][4], x[4][5], x[5][5]}};
}

template <class T>
void find_kernel(const Limbs& tree, const Articulated<T>& A, Sym6<T>* Omega) {
  for (std::size_t l = tree.limbs.size(); l-- > 0;) {
    const auto& limb = tree.limbs[l];
    Sym6<T> O{};
    if (limb.parent >= 0)
      O = Omega[limb.parent];
    else if (limb.free >= 0)
      O = inverse(A.free[limb.free]);
    for (int t = limb.base() - 1; t >= limb.dof; --t) {
      const int v = tree.velocity[t];
      const Vec6<T> S = A.S[v], u = O * A.V[v];
      const Vec6<T> z = u - S * ((dot(A.V[v], u) + A.Dinv[v]) * real_of<T>(0.5));
      subtract_pair(O, S, z);
    }
    Omega[l] = O;
  }
}

}  // namespace delassus
