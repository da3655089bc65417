// C ← C − A B in blocks: A's fits into the second cache while it meets one narrow strip of B after another, and that
// strip into the first. Rows and columns past the end of a block are packed as zeros; what is nothing but zeros is
// passed over.
#include "dense/product.h"

#include <algorithm>

#include "dense/zeros.h"
#include "errors/interrupt.h"

namespace delassus::dense {

template <class Real>
void subtract_product(int m, int n, int k, const Entries<Real>& A, const Real* B, std::ptrdiff_t b_stride, Real* C,
                      std::ptrdiff_t c_stride, Part part) {
  using T = Tile<Real>;
  constexpr int depth = 128 * 8 / int(sizeof(Real)), height = 128;
  alignas(64) Real a[depth * height];
  alignas(64) Real b[depth * T::columns];
  for (int p = 0; p < k; p += depth)
    for (int i = 0; i < m; i += height) {
      const int length = std::min(depth, k - p), past = std::min(i + height, m);
      poll(2.0 * length * (past - i) * n);
      bool zero[height / T::rows];
      for (int r = i; r < past; r += T::rows) {
        Real* rows = a + std::ptrdiff_t(r - i) * length;
        pack_rows(A.from(r, p), std::min(T::rows, past - r), length, rows);
        zero[(r - i) / T::rows] = is_zero(rows, length * T::rows);
      }
      // strips of B, from the diagonal on if nothing else is asked for
      const int first = part == Part::upper ? i / T::columns * T::columns : 0;
      for (int j = first; j < n; j += T::columns) {
        const int width = std::min(T::columns, n - j);
        pack_columns(B + p * b_stride + j, b_stride, width, length, b);
        if (is_zero(b, length * T::columns)) continue;
        for (int r = i; r < past; r += T::rows) {
          if (part == Part::upper && j + T::columns <= r) break;
          if (zero[(r - i) / T::rows]) continue;
          T tile;
          tile.add_products(length, a + std::ptrdiff_t(r - i) * length, T::rows, b, T::columns);
          tile.subtract_from(C + r * c_stride + j, c_stride, std::min(T::rows, past - r), width);
        }
      }
    }
}

template void subtract_product(int, int, int, const Entries<double>&, const double*, std::ptrdiff_t, double*,
                               std::ptrdiff_t, Part);
template void subtract_product(int, int, int, const Entries<float>&, const float*, std::ptrdiff_t, float*,
                               std::ptrdiff_t, Part);

}  // namespace delassus::dense
