#include <nanobind/stl/optional.h>

#include "dense/cholesky.h"
#include "dense/lu.h"
#include "dense/orthogonal.h"
#include "door.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

// A matrix that is read, or worked on where it lies: rows may be any number of entries apart, entries of a row are not.
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Row = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
int square(const Matrix<T>& A, const char* name) {
  if (A.shape(0) != A.shape(1) || (A.shape(0) > 1 && A.stride(1) != 1))
    door::raise("ArgumentError", std::string(name) + ": expected a square matrix, each row in one piece.");
  return int(A.shape(0));
}
template <class T>
void check_rows(std::size_t got, int n, const char* name) {
  if (got != std::size_t(n))
    door::raise("ArgumentError",
                std::string(name) + ": expected " + std::to_string(n) + " rows, got " + std::to_string(got) + ".");
}

template <class T>
void bind_precision(nb::module_& m) {
  m.def(
      "factor_cholesky",
      [](Matrix<T> A, std::optional<Row<const T>> floors) {
        const int n = square(A, "A");
        if (floors) check_rows<T>(floors->shape(0), n, "floors");
        return dense::factor_cholesky(n, A.data(), n ? A.stride(0) : 0, floors ? floors->data() : nullptr);
      },
      "A"_a.noconvert(), "floors"_a.none());
  m.def(
      "solve_cholesky",
      [](Matrix<const T> U, Matrix<T> X) {
        const int n = square(U, "U");
        check_rows<T>(X.shape(0), n, "X");
        const int columns = int(X.shape(1));
        if (n == 0 || columns == 0) return;
        if (columns == 1 && X.stride(0) == 1)
          dense::solve_cholesky(n, U.data(), U.stride(0), X.data());
        else
          dense::solve_cholesky(n, U.data(), U.stride(0), columns, X.data(), X.stride(0));
      },
      "U"_a.noconvert(), "X"_a.noconvert());
  m.def(
      "add_inverse_cholesky",
      [](Matrix<const T> U, Matrix<T> W, Matrix<T> X) {
        const int n = square(U, "U");
        check_rows<T>(std::size_t(square(W, "W")), n, "W");
        check_rows<T>(std::size_t(square(X, "X")), n, "X");
        if (n == 0) return;
        dense::invert_transposed(n, U.data(), U.stride(0), W.data(), W.stride(0));
        dense::add_square_transposed(n, static_cast<const T*>(W.data()), W.stride(0), X.data(), X.stride(0));
      },
      "U"_a.noconvert(), "W"_a.noconvert(), "X"_a.noconvert());
  m.def(
      "factor_lu",
      [](Matrix<T> A, Row<int> pivots, T substitute) {
        const int n = square(A, "A");
        check_rows<T>(pivots.shape(0), n, "pivots");
        return dense::factor_lu(n, A.data(), n ? A.stride(0) : 0, pivots.data(), substitute);
      },
      "A"_a.noconvert(), "pivots"_a.noconvert(), "substitute"_a);
  m.def(
      "solve_lu",
      [](Matrix<const T> A, Row<const int> pivots, Matrix<T> X) {
        const int n = square(A, "A");
        check_rows<T>(pivots.shape(0), n, "pivots");
        check_rows<T>(X.shape(0), n, "X");
        const int columns = int(X.shape(1));
        if (n == 0 || columns == 0) return;
        if (columns == 1 && X.stride(0) == 1)
          dense::solve_lu(n, A.data(), A.stride(0), pivots.data(), X.data());
        else
          dense::solve_lu(n, A.data(), A.stride(0), pivots.data(), columns, X.data(), X.stride(0));
      },
      "A"_a.noconvert(), "pivots"_a.noconvert(), "X"_a.noconvert());
}

}  // namespace

void bind_dense(nb::module_& m) {
  using Input = door::Input<double>;
  using Output = door::Output<double>;
  using Factor = dense::OrthogonalFactor;
  nb::class_<Factor>(m, "OrthogonalFactor")
      .def(
          "__init__",
          [](Factor* self, Matrix<const double> A, double threshold) {
            const int n = square(A, "A");
            new (self) Factor();
            double* to = self->resize(n);
            for (int i = 0; i < n; ++i) std::copy_n(A.data() + i * A.stride(0), n, to + std::ptrdiff_t(i) * n);
            if (!self->factor(threshold)) door::raise("NotFiniteError", "A: every number must be finite.");
          },
          "A"_a.noconvert(), "threshold"_a)
      .def_prop_ro("rank", &Factor::rank)
      .def(
          "solve",
          [](Factor& s, nb::handle y, bool transposed) {
            const Input in(y, "y", {std::size_t(s.size())});
            Output x(nb::none(), {std::size_t(s.size())});
            std::copy_n(in.data, s.size(), x.data);
            transposed ? s.solve_transposed(x.data) : s.solve(x.data);
            return x.object;
          },
          "y"_a, "transposed"_a);
  bind_precision<double>(m);
  bind_precision<float>(m);
}

}  // namespace delassus
