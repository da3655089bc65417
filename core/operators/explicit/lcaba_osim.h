// The damped inverse through loops from blocks of the inverse of M + Jᵀ R J (LCABA-OSIM): O(n w² + t w m + m²) for
// t links that matter and fronts of w links, no m × m matrix factored. Any rows.
//
//   (G + ε)⁻¹ = R − R K Ω Kᵀ R,   R = (C + ε)⁻¹,   Ω_ij the acceleration of link i by a force on link j
//
// What elimination.h leaves of link i is its acceleration by those of its boundary, neighbours j and parent p, and by
// the force u on its own joint,
//
//   a_i = a_p + S ν,   ν = D⁻¹ (u − Uᵀ a_p − Σ_j W_jᵀ a_j)      so      a_i = Σ_k A_ik a_k + S D⁻¹ u,
//   A_ip = 1 − S D⁻¹ Uᵀ,   A_ij = −S D⁻¹ W_jᵀ
//
// The numbers u of different joints are the coordinates in which the inverse is diagonal, D⁻¹, and links that went
// after i do not know of u_i. So, root first,
//
//   Ω_ij = Σ_k A_ik Ω_kj  for j that went after i,      Ω_ii = S D⁻¹ Sᵀ + Σ_k A_ik Ω_ki
//
// Links are taken up depth first along the tree of the elimination. Later ones lead only to a front of those before, so
// of Ω nothing is kept but the blocks of the front, and V = Ω Kᵀ of the front and all rows so far, V_i = Σ_k A_ik V_k.
// A row e whose last link is i gets its V at the front, and its row of K Ω Kᵀ, K_e V, with all rows before.
//
// Links that no row touches and only one other leads to are passed (reach.h), their joints as in PV-OSIMr:
// A ← A (1 − S D⁻¹ Uᵀ), Q ← Q + A S D⁻¹ Sᵀ Aᵀ, and −A S D⁻¹ W_jᵀ for their neighbours. Without loops every boundary is
// the parent, and this is cABA-OSIM (caba_osim.h). Where ε is small against G the lemma cancels: probe_inverse tells,
// refine_inverse helps.
#pragma once

#include "operators/delassus.h"
#include "operators/explicit/reach.h"
#include "operators/explicit/rows.h"

namespace delassus {

template <class T>
struct LcabaOsimWork {
  explicit LcabaOsimWork(const ReachPlan& plan, int rows) : reach(plan) {
    const std::size_t six = 6 * std::size_t(reach.max_span);
    omega_room = row_room<T>(int(six) + row_lanes<T>);  // two packs may start at the last number
    rows_room = row_room<T>(reach.max_rows + row_lanes<T>);
    A.resize(std::size_t(reach.max_slots));
    Omega.assign(six * omega_room, T{});
    V.assign(six * rows_room, T{});
    strip.assign(std::size_t(tall) * rows_room, T{});
    columns.resize(2 * std::size_t(probes) * std::size_t(rows));
    probe.resize(std::size_t(probes) * row_room<T>(rows));
    products.resize(probe.size());
    for (const auto& component : reach.components) {
      runs_of.push_back(int(runs.size()));
      for (int r = 0; r < component.rows(); ++r) {
        const int row = reach.row[std::size_t(component.row + r)];
        if (r > 0 && runs.back().row + runs.back().count == row)
          ++runs.back().count;
        else
          runs.push_back({r, row, 1});
      }
    }
    runs_of.push_back(int(runs.size()));
  }

  // Columns that are probed, and refined, at a time.
  static constexpr int probes = 4, refined = 64;
  // Rows of a component one after the other that are so in the user's order too.
  struct Run {
    int at, row, count;
    int past() const { return at + count; }
  };
  static constexpr int tall = 24;  // rows of the result that are found at a time

  const ReachPlan& reach;
  std::size_t omega_room = 0, rows_room = 0;
  std::vector<Mat6<T>> A;  // a slot: coefficient of a link
  std::vector<T> Omega;    // 6 a place: Ω of the front, both triangles, `omega_room` apart
  std::vector<T> V;        // 6 a place: Ω Kᵀ of the front and all rows so far, `rows_room` apart
  std::vector<T> strip;    // rows of X, with all of their component so far, `rows_room` apart
  std::vector<Run> runs;
  std::vector<int> runs_of;        // a component: where its runs start; where the last ones end
  std::vector<T> columns;          // some columns of X and of its residual; grown by the first refinement
  std::vector<T> probe, products;  // a random vector: a row of it; X times that

  std::size_t bytes() const {
    return A.size() * sizeof(Mat6<T>) + runs.size() * sizeof(Run) + runs_of.size() * sizeof(int) +
           (Omega.size() + V.size() + strip.size() + columns.size() + probe.size() + products.size()) * sizeof(T);
  }
};

// What a node is by the nodes it leads to: its coefficients in e.A, and Q, its own part of Ω_ii.
template <class T>
inline void find_coefficients(LcabaOsimWork<T>& e, const ReachPlan::Node& node, const EliminationPlan& plan,
                              const Placement<T>& w, const Factor<T>& F, Mat6<T>& Q) {
  for (int s = 0; s < node.slots; ++s) e.A[std::size_t(s)] = Mat6<T>{};
  for (int k = 0; k < 6; ++k) e.A[0].column[k][k] = constant<T>(1);
  Q = Mat6<T>{};
  for (int p = node.pass; p < node.past_pass; ++p) {
    const auto& pass = e.reach.passes[std::size_t(p)];
    const auto& step = plan.steps[std::size_t(pass.step)];
    const auto& at = plan.storage[std::size_t(pass.step)];
    const int* slot = e.reach.slots.data() + pass.slots;
    Mat6<T>& A = e.A[std::size_t(pass.from)];
    if (step.free) {
      // Y = A L⁻ᵀ,   Q += Y D⁻¹ Yᵀ,   A_j −= Y D⁻¹ W_jᵀ
      const Ldl6<T>& LD = F.free[std::size_t(at.factor)];
      Column<T> Y[6], Z[6];
      solve_columns(LD, A, Y);
      for (int k = 0; k < 6; ++k) Z[k] = scaled(Y[k], LD.Dinv[k]);
      add_product(Q, Z, Y);
      for (int k = 0; k < 6; ++k) Z[k] = scaled(Z[k], T(-1));
      for (int j = 0; j < at.neighbours; ++j)
        add_product(e.A[std::size_t(slot[j])], Z, &F.W[std::size_t(at.W + 6 * j)]);
      continue;
    }
    for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
      // y = A S,   Q += y D⁻¹ yᵀ,   A −= y D⁻¹ Uᵀ,   A_j −= y D⁻¹ W_jᵀ
      const Column<T> y = A * w.S[std::size_t(k)], minus = scaled(y, T(-1));
      add_outer(Q, scaled(y, F.Dinv[std::size_t(k)]), y);
      add_outer(A, minus, F.V[std::size_t(k)]);
      const Column<T>* W = F.W.data() + at.W + (k - step.iv) * at.neighbours;
      for (int j = 0; j < at.neighbours; ++j) add_outer(e.A[std::size_t(slot[j])], minus, W[j]);
    }
    if (pass.to >= 0) add(e.A[std::size_t(pass.to)], A);
  }
}

// to ← Σ_k A_ik from_k over what a node leads to: six rows, columns 0 … n − 1 and what is left of two packs; rows of
// `all` are six a place, `room` apart.
template <class T>
inline void lead(const LcabaOsimWork<T>& e, const ReachPlan::Node& node, std::vector<T>& all, std::size_t room, int n) {
  constexpr int lanes = row_lanes<T>;
  const auto *part = e.reach.parts.data() + node.part, *past = e.reach.parts.data() + node.past_part;
  T* own = all.data() + 6 * std::size_t(node.place) * room;
  for (int c = 0; c < n; c += 2 * lanes) {
    RowPack<T> sum[6][2]{};
    for (const auto* k = part; k < past; ++k) {
      const Mat6<T>& A = e.A[std::size_t(k->slot)];
      const T* other = all.data() + 6 * std::size_t(k->place) * room + c;
#pragma GCC unroll 6
      for (int l = 0; l < 6; ++l) {
        const RowPack<T> a = load_rows(other + l * room), b = load_rows(other + l * room + lanes);
        const Column<T>& column = A.column[l];
#pragma GCC unroll 6
        for (int r = 0; r < 6; ++r) {
          sum[r][0] += a * column[r];
          sum[r][1] += b * column[r];
        }
      }
    }
    for (int r = 0; r < 6; ++r) {
      store_rows(own + r * room + c, sum[r][0]);
      store_rows(own + r * room + c + lanes, sum[r][1]);
    }
  }
}

// Ω of a node with the front and with itself.
template <class T>
inline void find_blocks(LcabaOsimWork<T>& e, const ReachPlan::Node& node, Mat6<T>& Q) {
  const std::size_t room = e.omega_room;
  lead(e, node, e.Omega, room, 6 * node.span);
  T* own = e.Omega.data() + 6 * std::size_t(node.place) * room;
  // Ω_ii = Q + Σ_k A_ik Ω_ki,   Ω_ki = Ω_ikᵀ
  for (int p = node.part; p < node.past_part; ++p) {
    const auto& part = e.reach.parts[std::size_t(p)];
    for (int l = 0; l < 6; ++l)
      for (int r = 0; r < 6; ++r)
        add(Q.column[r], e.A[std::size_t(part.slot)].column[l],
            own[std::size_t(r) * room + 6 * std::size_t(part.place) + std::size_t(l)]);
  }
  T* diagonal = own + 6 * std::size_t(node.place);
  for (int r = 0; r < 6; ++r)
    for (int c = r; c < 6; ++c)
      diagonal[r * room + std::size_t(c)] = diagonal[c * room + std::size_t(r)] =
          (Q.column[c][r] + Q.column[r][c]) * real_of<T>(0.5);
  // its column
  for (int k = node.front; k < node.past_front; ++k) {
    const std::size_t other = 6 * std::size_t(e.reach.fronts[std::size_t(k)]);
    if (other == 6 * std::size_t(node.place)) continue;
    T* to = e.Omega.data() + other * room + 6 * std::size_t(node.place);
    for (std::size_t l = 0; l < 6; ++l)
      for (std::size_t r = 0; r < 6; ++r) to[l * room + r] = own[r * room + other + l];
  }
}

// sum_r ← Σ over terms and their six components of a[r] b, a tile of R rows and two packs of columns. What belongs to
// the place of a term starts `step` after that of the one before; what belongs to its rows, where its K does.
enum class ByTerm { place, K };
template <int R, ByTerm a_by, ByTerm b_by, class T>
[[gnu::always_inline]] inline void sum_tile(const ReachPlan::Term* term, const ReachPlan::Term* past, const T* A,
                                            std::size_t a_room, const T* B, std::size_t b_room,
                                            RowPack<T> (&sum)[R][2]) {
  for (; term < past; ++term) {
    const T* a = A + (a_by == ByTerm::place ? 6 * std::size_t(term->place) * a_room : std::size_t(term->K));
    const T* b = B + (b_by == ByTerm::place ? 6 * std::size_t(term->place) * b_room : std::size_t(term->K));
#pragma GCC unroll 6
    for (int c = 0; c < 6; ++c) {
      const RowPack<T> x = load_rows(b + c * b_room), y = load_rows(b + c * b_room + row_lanes<T>);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        sum[r][0] += x * a[c * a_room + r];
        sum[r][1] += y * a[c * a_room + r];
      }
    }
  }
}

// V = Ω Kᵀ of the rows of a block at all of the front. Packs run on into the rows after it, which are not there yet.
template <class T>
inline void find_responses(LcabaOsimWork<T>& e, const ReachPlan::Node& node, const ReachPlan::Block& block,
                           const RowWork<T>& w) {
  constexpr int lanes = row_lanes<T>;
  const auto* terms = e.reach.terms.data();
  for (int k = node.front; k < node.past_front; ++k) {
    const int place = e.reach.fronts[std::size_t(k)];
    for (int c = 0; c < block.rows; c += 2 * lanes) {
      RowPack<T> sum[6][2]{};
      sum_tile<6, ByTerm::place, ByTerm::K>(terms + block.term, terms + block.past_term, e.Omega.data() + 6 * place,
                                            e.omega_room, w.K.data() + c, w.room, sum);
      for (int r = 0; r < 6; ++r) {
        T* v = e.V.data() + (6 * std::size_t(place) + std::size_t(r)) * e.rows_room + block.row + c;
        store_rows(v, sum[r][0]);
        store_rows(v + lanes, sum[r][1]);
      }
    }
  }
}

// A strip of X = −K V: `count` rows of a block from row i of it on, with all rows so far.
template <class T>
inline void multiply_responses(LcabaOsimWork<T>& e, const ReachPlan::Block& block, int i, int count,
                               const RowWork<T>& w) {
  constexpr int lanes = row_lanes<T>;
  const auto* terms = e.reach.terms.data();
  const int columns = block.row + i + count;
  const auto tiles = [&]<int R>(int r) {
    T* X = e.strip.data() + std::size_t(r) * e.rows_room;
    for (int c = 0; c < columns; c += 2 * lanes) {
      RowPack<T> sum[R][2]{};
      sum_tile<R, ByTerm::K, ByTerm::place>(terms + block.term, terms + block.past_term, w.K.data() + i + r, w.room,
                                            e.V.data() + c, e.rows_room, sum);
      for (int k = 0; k < R; ++k) {
        store_rows(X + std::size_t(k) * e.rows_room + c, RowPack<T>(-sum[k][0]));
        store_rows(X + std::size_t(k) * e.rows_room + c + lanes, RowPack<T>(-sum[k][1]));
      }
    }
  };
  int r = 0;
  for (; count - r >= 6; r += 6) tiles.template operator()<6>(r);
  for (; count - r >= 3; r += 3) tiles.template operator()<3>(r);
  for (; r < count; ++r) tiles.template operator()<1>(r);
}

// A strip to both triangles of the user's matrix, m × m: its rows are `count` of a component's from `first` on. It is
// still in the caches, and so is what lies beside the columns that it becomes.
template <class T>
inline void write_strip(const LcabaOsimWork<T>& e, int component, int first, int count, std::size_t m,
                        T* __restrict X) {
  using Run = typename LcabaOsimWork<T>::Run;
  const std::size_t room = e.rows_room;
  const Run *all = e.runs.data() + e.runs_of[std::size_t(component)],
            *past = e.runs.data() + e.runs_of[std::size_t(component) + 1],
            *a = std::upper_bound(all, past, first, [](int row, const Run& run) { return row < run.past(); });
  for (int begin = first; begin < first + count; ++a) {
    const int end = std::min(first + count, a->past()), row = a->row + begin - a->at;
    const T* rows = e.strip.data() + std::size_t(begin - first) * room;
    for (const Run* b = all; b < past && b->at < begin; ++b) {
      const int n = std::min(b->past(), begin) - b->at;
      for (int i = 0; i < end - begin; ++i)
        copy_run(rows + std::size_t(i) * room + b->at, n, X + std::size_t(row + i) * m + std::size_t(b->row));
      transpose(end - begin, n, rows + b->at, room, X + std::size_t(b->row) * m + std::size_t(row), m);
    }
    T* own = X + std::size_t(row) * (m + 1);
    for (int i = 0; i < end - begin; ++i)
      for (int j = 0; j <= i; ++j)
        own[std::size_t(i) * m + std::size_t(j)] = own[std::size_t(j) * m + std::size_t(i)] =
            rows[std::size_t(i) * room + std::size_t(begin + j)];
    begin = end;
  }
}

// X ← R − R K Ω Kᵀ R, n × n: K of all rows has been placed, F is the factor of M + Kᵀ R K.
template <class T>
void lcaba_osim(LcabaOsimWork<T>& e, RowWork<T>& w, const EliminationPlan& plan, const Placement<T>& placement,
                const Factor<T>& F, const T* R, int n, T* X) {
  const auto& reach = e.reach;
  const std::size_t m = std::size_t(n);
  w.scale(R);
  if (reach.components.size() != 1 || reach.row.size() != m) std::fill_n(X, m * m, T{});
  for (std::size_t c = 0; c < reach.components.size(); ++c) {
    const auto& component = reach.components[c];
    int rows = 0;  // so far
    for (int t = component.node; t < component.past_node; ++t) {
      const auto& node = reach.nodes[std::size_t(t)];
      Mat6<T> Q;
      find_coefficients(e, node, plan, placement, F, Q);
      find_blocks(e, node, Q);
      lead(e, node, e.V, e.rows_room, rows);
      for (int b = node.block; b < node.past_block; ++b) {
        const auto& block = reach.blocks[std::size_t(b)];
        find_responses(e, node, block, w);
        for (int i = 0; i < block.rows; i += LcabaOsimWork<T>::tall) {
          const int count = std::min(block.rows - i, LcabaOsimWork<T>::tall);
          multiply_responses(e, block, i, count, w);
          write_strip(e, int(c), block.row + i, count, m, X);
        }
        rows = block.row + block.rows;
      }
    }
  }
  for (std::size_t r = 0; r < m; ++r) X[r * m + r] += R[r];
}

// The backward error of X, ‖(G + ε) x − e‖ / (‖G + ε‖ ‖X‖ + 1) of a column, in the mean over columns: seen through a
// few random vectors z, over which the mean of ‖E z‖² is that of all entries squared. Signs alone would not do: of rows
// that are repeated E may be a difference, and with one chance in two z would be the same for both. O(n + m²). G is up
// to date, damping is ε without the compliance, which G has.
template <class T>
T probe_inverse(Delassus<T>& G, const T* damping, const T* X, LcabaOsimWork<T>& e) {
  using Real = real_of<T>;
  constexpr std::size_t columns = LcabaOsimWork<T>::probes;
  const std::size_t m = std::size_t(G.rows());
  const std::size_t room = row_room<T>(G.rows());
  T *z = e.probe.data(), *x = e.columns.data(), *y = x + columns * m;
  std::uint64_t state = 0x9e3779b97f4a7c15u;
  for (std::size_t j = 0; j < m; ++j)
    for (std::size_t k = 0; k < columns; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      // of unit variance
      z[k * room + j] = T((double(state >> 11) * 0x1p-53 - 0.5) * 3.4641016151377544);
    }
  // x = X z from the upper triangle of X alone, four rows and all vectors at once: an entry to the right of the rows
  // counts in its row and, mirrored, in its column
  constexpr std::size_t group = 4;
  constexpr int lanes = row_lanes<T>;
  T* product = e.products.data();
  std::fill_n(product, columns * room, T{});
  T largest{}, shift{};
  for (std::size_t i = 0; i < m; i += group) {
    const std::size_t rows = std::min(group, m - i);
    const T* row[group];
    for (std::size_t g = 0; g < group; ++g) row[g] = X + std::min(i + g, m - 1) * m;
    RowPack<T> sum[group][columns]{};
    std::size_t j = i + group;
    for (; j + lanes <= m; j += lanes) {
      RowPack<T> a[group];
#pragma GCC unroll 4
      for (std::size_t g = 0; g < group; ++g) a[g] = load_rows(row[g] + j);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < columns; ++k) {
        const RowPack<T> beside = load_rows(z + k * room + j);
        RowPack<T> below = load_rows(product + k * room + j);
#pragma GCC unroll 4
        for (std::size_t g = 0; g < group; ++g) {
          sum[g][k] += a[g] * beside;
          below += a[g] * z[k * room + i + g];
        }
        store_rows(product + k * room + j, below);
      }
    }
    for (std::size_t g = 0; g < rows; ++g) {
      for (std::size_t k = 0; k < columns; ++k) {
        const T* along = z + k * room;
        T* own = product + k * room;
        T s = sum_rows<T>(sum[g][k]);
        for (std::size_t c = i; c < i + rows; ++c) s += row[g][c] * along[c];
        for (std::size_t c = j; c < m; ++c) {
          s += row[g][c] * along[c];
          own[c] += row[g][c] * along[i + g];
        }
        own[i + g] += s;
      }
      largest = larger_of(largest, row[g][i + g]);
      shift = larger_of(shift, damping[i + g]);
    }
  }
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t k = 0; k < columns; ++k) x[i * columns + k] = product[k * room + i];
  G.apply(x, int(columns), y);
  T worst{};
  for (std::size_t k = 0; k < columns; ++k) {
    T square{};
    for (std::size_t i = 0; i < m; ++i) {
      const std::size_t at = i * columns + k;
      const T r = z[k * room + i] - y[at] - damping[i] * x[at];
      square += r * r;
    }
    // what is no number is not small
    worst = square <= worst ? worst : square;
  }
  return square_root(T(worst / Real(m))) / (larger_of(shift, G.norm()) * largest + Real(1));
}

// X ← X + (G + ε)⁻¹ (1 − (G + ε) X) by the operator's sweeps, some columns at a time, and its symmetric part: O(m (n +
// m)).
template <class T>
void refine_inverse(Delassus<T>& G, const T* damping, T* X, LcabaOsimWork<T>& e) {
  const std::size_t m = std::size_t(G.rows());
  if (const std::size_t needed = 3 * LcabaOsimWork<T>::refined * m; e.columns.size() < needed) e.columns.resize(needed);
  for (std::size_t first = 0; first < m; first += LcabaOsimWork<T>::refined) {
    const std::size_t n = std::min(m - first, std::size_t(LcabaOsimWork<T>::refined));
    T *x = e.columns.data(), *r = x + n * m, *d = r + n * m;
    for (std::size_t i = 0; i < m; ++i) std::copy_n(X + i * m + first, n, x + i * n);
    G.apply(x, int(n), r);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) r[i * n + j] = T(i == first + j) - r[i * n + j] - damping[i] * x[i * n + j];
    G.solve(r, int(n), d);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) X[i * m + first + j] += d[i * n + j];
  }
  for (std::size_t i = 1; i < m; ++i)
    for (std::size_t j = 0; j < i; ++j) X[i * m + j] = X[j * m + i] = (X[i * m + j] + X[j * m + i]) * real_of<T>(0.5);
}

}  // namespace delassus
