#include "simulator/compliant_map.h"

namespace delassus {

void CompliantMap::set_blocks(const double* B) {
  B_.assign(B, B + index_->size);
  N_.assign(C_->size(), 1.0);
  for (const int row : *soft_) {
    double& b = B_[std::size_t(index_->at(row, row))];
    double& n = N_[std::size_t(row)];
    n = 1 + (*C_)[std::size_t(row)] * b;
    b /= n;
  }
  map_->set_blocks(B_.data());
}

// N is diagonal, so that of transposed blocks differs in R' alone.
template <class Respond>
void CompliantMap::respond_by(const double* x, double* y, Respond&& respond) {
  x_.assign(x, x + rows());
  for (const int row : *soft_) x_[std::size_t(row)] /= N_[std::size_t(row)];
  respond(x_.data(), y);
  for (const int row : *soft_) y[row] = (y[row] + (*C_)[std::size_t(row)] * x[row]) / N_[std::size_t(row)];
}

void CompliantMap::respond(const double* x, double* y) {
  respond_by(x, y, [&](const double* in, double* out) { map_->respond(in, out); });
}
void CompliantMap::respond_transposed(const double* x, double* y) {
  respond_by(x, y, [&](const double* in, double* out) { map_->respond_transposed(in, out); });
}

void CompliantMap::respond_among(const int* rows, int count, double* A) {
  map_->respond_among(rows, count, A);
  const std::size_t n = std::size_t(count);
  for (std::size_t i = 0; i < n; ++i) {
    const double shrink = 1 / N_[std::size_t(rows[i])], c = (*C_)[std::size_t(rows[i])];
    if (c == 0) continue;
    for (std::size_t k = 0; k < n; ++k) A[i * n + k] *= shrink, A[k * n + i] *= shrink;
    A[i * (n + 1)] += c * shrink;
  }
}

}  // namespace delassus
