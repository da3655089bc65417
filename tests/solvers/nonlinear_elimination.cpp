// Numbers from standard input: rows, contacts, f of all rows, then for every contact friction, β, δ and d, r and σ
// after the linear step and Δr of it, B, and A of all rows. Prints which contacts are chosen, then z of their rows.
#include "solvers/contacts/nonlinear_elimination.h"

#include <cstdio>

using namespace delassus;

static std::vector<double> read(std::size_t n) {
  std::vector<double> x(n);
  for (double& e : x)
    if (std::scanf("%lf", &e) != 1) std::abort();
  return x;
}

int main() {
  const auto sizes = read(2);
  const std::size_t m = std::size_t(sizes[0]), contacts = std::size_t(sizes[1]);
  const auto rows = read(contacts), f = read(m);
  ForceSets K{int(m), {}, {}};
  std::vector<double> d(m), of_contact[4], all[3], B;
  for (auto& x : of_contact) x = read(contacts);
  for (auto& x : all) x = read(m);
  double length = 0;
  int row = 0;
  std::vector<std::size_t> block;
  std::size_t numbers = 0;
  for (std::size_t k = 0; k < contacts; ++k) {
    K.cones.push_back({row, of_contact[0][k], int(rows[k])});
    for (int a = 0; a < int(rows[k]); ++a, ++row) {
      d[std::size_t(row)] = of_contact[3][k];
      length += d[std::size_t(row)] * f[std::size_t(row)] * (d[std::size_t(row)] * f[std::size_t(row)]);
    }
    block.push_back(numbers);
    numbers += std::size_t(rows[k] * rows[k]);
  }
  B = read(numbers);
  const auto A = read(m * m);

  NonlinearElimination few;
  few.choose(K, d.data(), f.data(), std::sqrt(length));
  std::printf("%d\n", few.contacts());
  for (int k = 0; k < few.contacts(); ++k) {
    auto& c = few.contact(k);
    const std::size_t cone = std::size_t(c.cone);
    const int first = K.cones[cone].row;
    c.beta = of_contact[1][cone], c.delta = of_contact[2][cone];
    std::copy_n(all[0].data() + first, c.rows, c.r);
    std::copy_n(all[1].data() + first, c.rows, c.sigma);
    std::copy_n(all[2].data() + first, c.rows, c.dr);
    std::copy_n(B.data() + block[cone], c.rows * c.rows, c.B);
    std::printf("%d\n", c.cone);
  }
  for (int i = 0; i < few.rows(); ++i)
    for (int j = 0; j < few.rows(); ++j)
      few.A()[i * few.rows() + j] = A[std::size_t(few.row()[i]) * m + std::size_t(few.row()[j])];
  std::printf("%d\n", int(few.solve()));
  for (int i = 0; i < few.rows(); ++i) std::printf("%d %.17g\n", few.row()[i], few.z()[i]);
}
