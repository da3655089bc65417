// A robot or a scene as plain numbers: what export.py wrote, and what both sides build their models from.
#pragma once

#include <array>
#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct Robot {
  struct Body {
    int parent;
    std::array<double, 3> position;    // in the parent body
    std::array<double, 4> quaternion;  // w, x, y, z
    double mass;
    std::array<double, 3> center;   // of mass, in the body
    std::array<double, 6> inertia;  // about the centre, body axes: xx xy xz yy yz zz
  };
  struct Joint {
    std::string type;  // hinge, slide, ball, free
    int body;
    std::array<double, 3> anchor, axis;
    double reference;
  };
  struct Constraint {
    std::string kind;  // points: three rows; weld: six; friction: one row a velocity of a joint
    int rows;
    int body = 0, other = 0;  // points: velocity of the point on body minus that on other, along the axes; weld: the
                              // rotation about them too
    std::array<double, 3> point{}, other_point{};
    std::array<double, 9> axes{};  // as rows, world axes
    int velocity = 0;              // friction: the first
  };
  std::string name;
  std::array<double, 3> gravity;
  std::vector<Body> bodies;  // 0 is the world
  std::vector<Joint> joints;
  std::vector<double> armature;  // one a degree of freedom
  std::vector<double> q;         // a scene: where it stands, and what holds it there
  std::vector<Constraint> constraints;
};

template <std::size_t N>
std::istream& operator>>(std::istream& in, std::array<double, N>& x) {
  for (double& e : x) in >> e;
  return in;
}

// One line a record, `robot` starts the next one.
inline std::vector<Robot> read_robots(std::istream& in) {
  std::vector<Robot> robots;
  for (std::string word; in >> word;) {
    if (word == "robot") {
      robots.emplace_back();
      in >> robots.back().name >> robots.back().gravity;
    } else if (robots.empty()) {
      throw std::runtime_error("a robot file starts with `robot`, got `" + word + "`");
    } else if (word == "body") {
      Robot::Body b;
      in >> b.parent >> b.position >> b.quaternion >> b.mass >> b.center >> b.inertia;
      robots.back().bodies.push_back(b);
    } else if (word == "joint") {
      Robot::Joint j;
      in >> j.type >> j.body >> j.anchor >> j.axis >> j.reference;
      robots.back().joints.push_back(j);
    } else if (word == "armature") {
      std::size_t n;
      in >> n;
      robots.back().armature.resize(n);
      for (double& e : robots.back().armature) in >> e;
    } else if (word == "state") {
      std::size_t n;
      in >> n;
      robots.back().q.resize(n);
      for (double& e : robots.back().q) in >> e;
    } else if (word == "points" || word == "weld") {
      Robot::Constraint c{word, word == "weld" ? 6 : 3};
      in >> c.body >> c.other >> c.point >> c.other_point >> c.axes;
      robots.back().constraints.push_back(c);
    } else if (word == "friction") {
      Robot::Constraint c{word, 0};
      in >> c.velocity >> c.rows;
      robots.back().constraints.push_back(c);
    } else {
      throw std::runtime_error("unknown record `" + word + "` in the robot file");
    }
    if (!in) throw std::runtime_error("the robot file ends inside a `" + word + "` record");
  }
  return robots;
}

// States and results in MuJoCo's coordinates; matrices nv × nv, row-major.
struct State {
  std::vector<double> q, v, acceleration, torque;
};

}  // namespace bench
