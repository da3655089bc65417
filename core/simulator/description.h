// What a world is made of, and what a step tells of itself.
#pragma once

#include "constraints/compiled.h"
#include "simulator/collider.h"
#include "solvers/contacts/problem.h"

namespace delassus {

// What of a mechanism never changes during a simulation.
struct WorldDescription {
  struct Limit {
    int coordinate, velocity;
    double lower, upper;
  };
  struct Motor {
    int coordinate, velocity;  // −1: no coordinate
    double gear, gain, bias[3], control[2], force[2];
  };
  // A shape that may touch others.
  struct Shape {
    int body;
    double half_width;     // half of its least extent [m]
    double radius, lever;  // of a ball around it; farthest of its points that turning moves
    Vec3<double> center;   // in its body
  };
  Model<double> model;        // its armature holds that of M̂
  std::vector<Shape> shapes;  // but planes, through which nothing passes unseen
  double reach = 0;           // gap below which a contact is seen [m]
  std::vector<ConstraintDescription> loops, friction;
  std::vector<double> friction_loss;             // a row of `friction` [N or N m]
  std::vector<double> stiffness, damping, rest;  // a velocity; rest: a coordinate
  std::vector<int> sprung;                       // coordinates of velocities that have a spring, else −1
  std::vector<Limit> limits;
  std::vector<Motor> motors;
  double timestep = 1e-3;
  double restitution = 0, bounce = 0.05;  // e, and the speed below which nothing bounces [m/s]
  double tolerance = 1e-6;
  int most = 1000;
  bool newton = false;
  bool midpoint = true;  // h at half of the step's velocity, else at its start
  double slop = 1e-5;    // gap, and penetration, that is taken for touching [m]: gaps of a patch that differ by less
                         // would leave three of its points alone with the load
};

// Seconds of the parts of a step.
struct StepTimes {
  double collide = 0, constrain = 0, operate = 0, solve = 0, correct = 0, all = 0;
};

// What is wrong after a step, although its velocities were solved for; the later ones are worse.
enum class StepFlaw : int { none, penetrating, limit_violated, open_loops, tunnelling };

struct StepReport {
  ContactReport contacts;  // of the velocities
  StepFlaw flaw = StepFlaw::none;
  int corrections = 0;  // iterations for positions
  int islands = 0;
  int tunnelled = 0;     // pairs of shapes that passed through each other
  bool collided = true;  // MuJoCo found the contacts; if not, the collider says why
  bool regular = true;
  double penetration = 0, loop_error = 0;              // before the step, the former where contacts were found [m]
  double penetration_after = 0;                        // by the velocities of the contacts [m]
  double loop_error_after = 0, limit_error_after = 0;  // [m or rad]
  StepTimes times;

  void blame(StepFlaw what) { flaw = std::max(flaw, what); }
  bool solved() const { return contacts.outcome == ContactOutcome::solved && flaw == StepFlaw::none; }
};

// A point that touches, and what it bore; in world axes.
struct Contact {
  Touch touch;
  Vec3<double> impulse, correction;  // of velocities [N s]; of positions
  bool known;                        // it touched in the step before
};

// Some trees of a description: what is theirs, by numbers of its own.
struct PartDescription {
  WorldDescription world;           // without springs and motors, which act on each velocity alone
  std::vector<int> bodies;          // a body of the whole: its number here
  std::vector<int> limits, others;  // a limit; a row of loops, then of friction: which it is in the whole
  struct Range {
    int whole_q, q, nq, whole_v, v, nv;
  };
  std::vector<Range> ranges;  // a tree: where its coordinates and velocities are

  PartDescription(const WorldDescription& whole, const std::vector<int>& trees) {
    const auto& m = whole.model;
    world.model = part(m, trees, bodies);
    world.timestep = whole.timestep, world.restitution = whole.restitution, world.bounce = whole.bounce,
    world.tolerance = whole.tolerance;
    world.most = whole.most, world.newton = whole.newton, world.midpoint = whole.midpoint, world.slop = whole.slop;
    // velocities, coordinates and links of a tree are ranges, so one shift each
    struct Shift {
      int link, q, v;
    };
    std::vector<Shift> shift(m.roots.size());
    std::vector<char> mine(m.roots.size(), 0);
    for (std::size_t k = 0; k < trees.size(); ++k) {
      const auto& here = world.model.links[std::size_t(world.model.roots[k])];
      const std::size_t root = std::size_t(m.roots[std::size_t(trees[k])]);
      const auto &there = m.links[root], &last = m.links[std::size_t(there.end - 1)];
      mine[std::size_t(trees[k])] = 1;
      shift[std::size_t(trees[k])] = {world.model.roots[k] - int(root), here.iq - there.iq, here.iv - there.iv};
      ranges.push_back({there.iq, here.iq, last.iq + configuration_size(last.type) - there.iq, there.iv, here.iv,
                        there.end_v - there.iv});
    }
    const auto tree_of = [&](int velocity) {
      return std::size_t(m.links[std::size_t(m.dof_link[std::size_t(velocity)])].tree);
    };
    for (std::size_t k = 0; k < whole.limits.size(); ++k) {
      auto limit = whole.limits[k];
      const std::size_t tree = tree_of(limit.velocity);
      if (!mine[tree]) continue;
      limit.coordinate += shift[tree].q;
      limit.velocity += shift[tree].v;
      world.limits.push_back(limit);
      limits.push_back(int(k));
    }
    int row = 0;
    const auto take = [&](const std::vector<ConstraintDescription>& from, std::vector<ConstraintDescription>& to) {
      for (auto d : from) {
        const int first = row;
        row += d.rows;
        const int tree = some_tree(m, d);
        if (tree >= 0 ? !mine[std::size_t(tree)] : !mine[0]) continue;
        for (auto& b : d.bodies) b = bodies[std::size_t(b)];
        for (auto& j : d.joints)
          j += d.kind == Kind::coupling ? shift[std::size_t(m.links[std::size_t(j)].tree)].link : shift[tree_of(j)].v;
        for (int r = 0; r < d.rows; ++r) others.push_back(first + r);
        to.push_back(std::move(d));
      }
    };
    take(whole.loops, world.loops);
    const std::size_t loop_rows = others.size();
    const int whole_loop_rows = row;
    take(whole.friction, world.friction);
    for (std::size_t r = loop_rows; r < others.size(); ++r)
      world.friction_loss.push_back(whole.friction_loss[std::size_t(others[r] - whole_loop_rows)]);
  }

  // The trees that a constraint is about, each given to `visit`.
  template <class Visit>
  static void trees_of(const Model<double>& m, const ConstraintDescription& d, Visit&& visit) {
    for (const int b : d.bodies)
      if (const int link = m.bodies[std::size_t(b)].link; link >= 0) visit(m.links[std::size_t(link)].tree);
    for (const int j : d.joints)
      visit(m.links[std::size_t(d.kind == Kind::coupling ? j : m.dof_link[std::size_t(j)])].tree);
  }

 private:
  static int some_tree(const Model<double>& m, const ConstraintDescription& d) {
    int tree = -1;
    trees_of(m, d, [&](int t) { tree = t; });
    return tree;
  }
};

}  // namespace delassus
