#include "simulator/contact_rates.h"

namespace delassus {

ContactRates::ContactRates(const Model<double>& model) : model_(model) {
  for (auto* x : {&own_, &carried_, &twist_, &velocity_, &force_, &virtual_, &twist_bar_, &velocity_bar_})
    x->resize(model.links.size());
}

// Σ S x of a link's axes that turn with it
Vec6<double> ContactRates::turning_motion(int i, const double* x, int columns, int column) const {
  const auto& link = model_.links[std::size_t(i)];
  Vec6<double> sum{};
  for (int k = first_turning(link); k < link.iv + link.nv; ++k)
    sum += (*S_)[std::size_t(k)] * x[std::size_t(k) * std::size_t(columns) + std::size_t(column)];
  return sum;
}

void ContactRates::update(const RowSystem& s, const ActiveRows& rows, const std::vector<const ContactMotion*>& motions,
                          const double* v, const double* lambda) {
  const Placement<double>& w = s.G->placement();
  S_ = &w.S;
  const int links = int(model_.links.size());

  // velocities of links
  for (int i = 0; i < links; ++i) {
    const auto& link = model_.links[std::size_t(i)];
    Vec6<double> V = link.parent >= 0 ? velocity_[std::size_t(link.parent)] : Vec6<double>{};
    for (int k = link.iv; k < link.iv + link.nv; ++k) V += w.S[std::size_t(k)] * v[k];
    velocity_[std::size_t(i)] = V;
    own_[std::size_t(i)] = turning_motion(i, v, 1, 0);
    carried_[std::size_t(i)] = {};
  }

  // contacts, and their forces on links
  const auto& set = s.layout->set;
  points_.resize(rows.contacts.size());
  for (std::size_t k = 0; k < points_.size(); ++k) {
    const Touch& t = rows.contacts[k]->touch;
    Point& p = points_[k];
    p.row = s.contact_rows[k], p.rows = t.rows, p.motion = motions[k];
    p.velocity = p.spin = p.force = p.torque = {};
    for (std::size_t r = 0; r < 3; ++r) p.axes[r] = rows.frames[k][r];
    for (int r = 0; r < t.rows; ++r) {
      p.scales[r] = row_scale(t, r);
      (r < 3 ? p.force : p.torque) += p.axes[r % 3] * (p.scales[r] * lambda[p.row + r]);
    }
    for (int b = 0; b < 2; ++b) {
      Side& side = p.side[b];
      side = {rows.links[k][std::size_t(b)], {}};
      if (side.link < 0) continue;
      const auto& pose = w.pose[side.link];
      if (s.contact_points[k] >= 0) {
        const auto& point = set.points[std::size_t(s.contact_points[k])];
        side.x = pose * set.locals[std::size_t(point.local) + std::size_t(b)];
      } else {
        const auto& c = set.constraints[std::size_t(s.contact_constraints[k])];
        const auto& body = model_.bodies[std::size_t(c.bodies[std::size_t(b)])];
        side.x = pose * (body.placement.R * c.points[std::size_t(b)] + body.placement.p);
      }
      const Vec6<double>& V = velocity_[std::size_t(side.link)];
      const double sign = b == 0 ? 1 : -1;
      p.velocity += (V.lin + cross(V.ang, side.x)) * sign;
      p.spin += V.ang * sign;
      carried_[std::size_t(side.link)] += Vec6<double>{p.force, cross(side.x, p.force) + p.torque} * sign;
    }
  }
  for (int i = links - 1; i >= 0; --i)
    if (const int parent = model_.links[std::size_t(i)].parent; parent >= 0)
      carried_[std::size_t(parent)] += carried_[std::size_t(i)];
}

void ContactRates::tangents(const double* dq, int columns, double* rows, double* gaps, double* forces) {
  const int links = int(model_.links.size());
  const std::size_t stride = std::size_t(columns);
  for (int c = 0; c < columns; ++c) {
    const std::size_t at = std::size_t(c);
    // t = t_p + S dq,   dV = dV_p + t × S v
    for (int i = 0; i < links; ++i) {
      const auto& link = model_.links[std::size_t(i)];
      Vec6<double> t{}, V{};
      if (link.parent >= 0) t = twist_[std::size_t(link.parent)], V = velocity_[std::size_t(link.parent)];
      for (int k = link.iv; k < link.iv + link.nv; ++k) t += (*S_)[std::size_t(k)] * dq[std::size_t(k) * stride + at];
      twist_[std::size_t(i)] = t;
      velocity_[std::size_t(i)] = V + cross_motion(t, own_[std::size_t(i)]);
      force_[std::size_t(i)] = {};
    }
    for (std::size_t k = 0; k < points_.size(); ++k) {
      const Point& p = points_[k];
      Vec6<double> moved[2]{}, V{};
      for (int b = 0; b < 2; ++b) {
        const Side& side = p.side[b];
        if (side.link < 0) continue;
        moved[b] = displaced(side, twist_[std::size_t(side.link)]);
        const Vec6<double> own = displaced(side, velocity_[std::size_t(side.link)]);
        V += own * (b == 0 ? 1.0 : -1.0);
      }
      const ContactMotion::Change d = p.motion->change(moved);
      gaps[k * stride + at] = d.gap;
      const Vec3<double> push = V.lin + cross(p.velocity, d.turn) + cross(p.spin, d.place),
                         turn = V.ang + cross(p.spin, d.turn);
      for (int r = 0; r < p.rows; ++r)
        rows[std::size_t(p.row + r) * stride + at] += p.scales[r] * dot(p.axes[r % 3], r < 3 ? push : turn);
      const Vec3<double> df = cross(d.turn, p.force), dm = cross(d.turn, p.torque) + cross(d.place, p.force);
      for (int b = 0; b < 2; ++b)
        if (const Side& side = p.side[b]; side.link >= 0)
          force_[std::size_t(side.link)] += Vec6<double>{df, cross(side.x, df) + dm} * (b == 0 ? 1.0 : -1.0);
    }
    // Sᵀ Σ dw + (t × S)ᵀ Σ w
    for (int i = links - 1; i >= 0; --i) {
      const auto& link = model_.links[std::size_t(i)];
      const Vec6<double> f = force_[std::size_t(i)];
      for (int k = link.iv; k < link.iv + link.nv; ++k) {
        const Vec6<double>& S = (*S_)[std::size_t(k)];
        double x = dot(f, S);
        if (k >= first_turning(link)) x += dot(cross_motion(twist_[std::size_t(i)], S), carried_[std::size_t(i)]);
        forces[std::size_t(k) * stride + at] = x;
      }
      if (link.parent >= 0) force_[std::size_t(link.parent)] += f;
    }
  }
}

void ContactRates::adjoints(const double* kappa, const double* gap_bar, const double* y, int columns, double* q_bar) {
  const int links = int(model_.links.size());
  const std::size_t stride = std::size_t(columns);
  for (int c = 0; c < columns; ++c) {
    const std::size_t at = std::size_t(c);
    // virtual motions W = W_p + S y
    for (int i = 0; i < links; ++i) {
      const auto& link = model_.links[std::size_t(i)];
      Vec6<double> W = link.parent >= 0 ? virtual_[std::size_t(link.parent)] : Vec6<double>{};
      for (int k = link.iv; k < link.iv + link.nv; ++k) W += (*S_)[std::size_t(k)] * y[std::size_t(k) * stride + at];
      virtual_[std::size_t(i)] = W;
      twist_bar_[std::size_t(i)] = velocity_bar_[std::size_t(i)] = {};
    }
    for (std::size_t k = 0; k < points_.size(); ++k) {
      const Point& p = points_[k];
      Vec3<double> push{}, turn{};  // E κ
      for (int r = 0; r < p.rows; ++r)
        (r < 3 ? push : turn) += p.axes[r % 3] * (p.scales[r] * kappa[std::size_t(p.row + r) * stride + at]);
      Vec6<double> W{};
      for (int b = 0; b < 2; ++b)
        if (const Side& side = p.side[b]; side.link >= 0) {
          const double sign = b == 0 ? 1 : -1;
          W += displaced(side, virtual_[std::size_t(side.link)]) * sign;
          velocity_bar_[std::size_t(side.link)] += Vec6<double>{push, cross(side.x, push) + turn} * sign;
        }
      const ContactMotion::Change d{
          cross(push, p.spin) + cross(p.force, W.ang),
          cross(push, p.velocity) + cross(turn, p.spin) + cross(p.force, W.lin) + cross(p.torque, W.ang),
          gap_bar[k * stride + at]};
      Vec6<double> moved[2];
      p.motion->adjoint(d, moved);
      for (int b = 0; b < 2; ++b)
        if (const Side& side = p.side[b]; side.link >= 0)
          twist_bar_[std::size_t(side.link)] += Vec6<double>{moved[b].lin, cross(side.x, moved[b].lin) + moved[b].ang};
    }
    for (int i = links - 1; i >= 0; --i) {
      const auto& link = model_.links[std::size_t(i)];
      const Vec6<double> t = twist_bar_[std::size_t(i)] +
                             cross_force(own_[std::size_t(i)], velocity_bar_[std::size_t(i)]) +
                             cross_force(turning_motion(i, y, columns, c), carried_[std::size_t(i)]);
      for (int k = link.iv; k < link.iv + link.nv; ++k)
        q_bar[std::size_t(k) * stride + at] += dot(t, (*S_)[std::size_t(k)]);
      if (link.parent >= 0) {
        twist_bar_[std::size_t(link.parent)] += t;
        velocity_bar_[std::size_t(link.parent)] += velocity_bar_[std::size_t(i)];
      }
    }
  }
}

}  // namespace delassus
