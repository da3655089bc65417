// Models in files, as delassus.save_model of the Python package writes them: words and numbers between blanks, names in
// quotes, numbers with all their digits.
//
//   delassus-model 1
//   name gravity(3)
//   bodies n:       name parent position(3) quaternion(4) mass com(3) inertia(6)
//   joints n:       name type body axis(3) position(3) reference range(2) armature friction_loss damping stiffness
//                   spring_reference
//   keyframes n:    name q v
//   constraints n:  kind rows set friction open axes_on measured kp kd point_rows, then the lists bodies, points,
//                   matrix, joints, numbers, target, damping, each after its length
//   end
#include <fstream>
#include <iomanip>
#include <locale>
#include <sstream>

#include "data.h"

namespace delassus::inline v0 {

namespace {

constexpr int format_version = 1;
constexpr std::size_t most_items = 100'000'000;  // of a list: more is no list

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), in_(path) {
    if (!in_) throw LoadError(path + ": it cannot be opened.");
    in_.imbue(std::locale::classic());
    digits_.imbue(std::locale::classic());
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw LoadError(path_ + ": " + why + ". Write it with delassus.save_model of the Python package, of this version.");
  }
  std::string word(const char* what) {
    std::string text;
    if (!(in_ >> text)) refuse(std::string("it ends where ") + what + " is expected");
    return text;
  }
  void keyword(const char* name) {
    const std::string text = word(name);
    if (text != name) refuse("expected '" + std::string(name) + "', got '" + text + "'");
  }
  std::string name(const char* what) {
    std::string text;
    if (!(in_ >> std::quoted(text))) refuse(std::string("it ends where ") + what + " is expected");
    return text;
  }
  // A number, or inf or -inf, which streams do not read.
  double number(const char* what) {
    const std::string text = word(what);
    if (text == "inf" || text == "-inf") return text[0] == '-' ? -infinity : infinity;
    double x = 0;
    digits_.clear();
    digits_.str(text);
    if (!(digits_ >> x) || !digits_.eof()) refuse(std::string(what) + ": expected a number, got '" + text + "'");
    return x;
  }
  int integer(const char* what, int least, int most) {
    long long x = 0;
    if (!(in_ >> x) || x < least || x > most)
      refuse(std::string(what) + ": expected an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return int(x);
  }
  std::size_t count(const char* what) { return std::size_t(integer(what, 0, most_items)); }
  template <std::size_t n>
  void numbers(std::array<double, n>& x, const char* what) {
    for (double& value : x) value = number(what);
  }
  std::vector<double> numbers(std::size_t n, const char* what) {
    std::vector<double> x;
    for (std::size_t k = 0; k < n; ++k) x.push_back(number(what));
    return x;
  }
  std::vector<double> list(const char* what) { return numbers(count(what), what); }
  std::vector<int> integers(const char* what, int past) {
    std::vector<int> x;
    const std::size_t n = count(what);
    for (std::size_t k = 0; k < n; ++k) x.push_back(integer(what, 0, past - 1));
    return x;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  std::string path_;
  std::ifstream in_;
  std::istringstream digits_;
};

Body read_body(Reader& in) {
  Body b;
  b.name = in.name("the name of a body");
  b.parent = in.name("the parent of a body");
  in.numbers(b.position, "position");
  in.numbers(b.quaternion, "quaternion");
  b.mass = in.number("mass");
  in.numbers(b.com, "com");
  in.numbers(b.inertia, "inertia");
  return b;
}

JointDescription read_joint(Reader& in) {
  JointDescription j;
  j.name = in.name("the name of a joint");
  const std::string type = in.word("the type of a joint");
  constexpr const char* types[] = {"hinge", "slide", "ball", "free"};
  const auto known = std::find(std::begin(types), std::end(types), type);
  if (known == std::end(types)) in.refuse("joint '" + j.name + "': its type '" + type + "' is not known");
  j.type = JointType(int(known - std::begin(types)));
  j.body = in.name("the body of a joint");
  in.numbers(j.axis, "axis");
  in.numbers(j.position, "position");
  j.reference = in.number("reference");
  in.numbers(j.range, "range");
  j.armature = in.number("armature");
  j.friction_loss = in.number("friction_loss");
  j.damping = in.number("damping");
  j.stiffness = in.number("stiffness");
  j.spring_reference = in.number("spring_reference");
  return j;
}

// What the core takes on trust.
void check_constraint(Reader& in, const ConstraintData& c) {
  const auto& d = c.core;
  using core::Kind;
  const std::size_t bodies = d.bodies.size(), rows = std::size_t(d.rows);
  bool fits = d.points.size() == 3 * bodies && (c.damping.empty() || c.damping.size() == rows);
  switch (d.kind) {
    case Kind::frame:
    case Kind::contact:
      fits = fits && bodies == 2 && d.matrix.size() == 9 && d.rows <= 6 && d.axes_on < 2 && d.measured <= 3;
      fits = fits && (d.kind != Kind::contact || d.numbers.size() >= rows - std::min<std::size_t>(rows, 2));
      fits = fits && (d.target.empty() || d.target.size() == 9 || d.target.size() == 3 || d.target.size() == 6);
      fits = fits && (d.rows != 4 || d.point_rows != 3 || d.kind == Kind::contact || d.target.size() == 6);
      break;
    case Kind::distance:
      fits = fits && bodies == 2 && rows == 1 && d.target.size() <= 1;
      break;
    case Kind::joint:
      fits =
          fits && d.joints.size() == rows && d.numbers.size() == rows && (d.target.empty() || d.target.size() == rows);
      break;
    case Kind::coupling:
      fits = fits && d.joints.size() == 2 && rows == 1 && d.numbers.size() == 5;
      break;
    case Kind::center:
      fits = fits && rows == 3 && d.numbers.size() == 1 && (d.target.empty() || d.target.size() == 3);
      break;
    case Kind::links:
      fits = fits && d.matrix.size() == 6 * rows * bodies;
      break;
    case Kind::combination:
      fits = fits && rows == 1 && d.numbers.size() == d.joints.size();
      break;
  }
  if (!fits) in.refuse("a constraint has lists that do not fit together");
}

ConstraintData read_constraint(Reader& in, const core::Model<double>& model) {
  ConstraintData c;
  auto& d = c.core;
  const int bodies = int(model.bodies.size());
  d.kind = core::Kind(in.integer("kind", 0, int(core::Kind::contact)));
  d.rows = in.integer("rows", 1, 1'000'000);
  c.set = ForceSet(in.integer("set", 0, int(ForceSet::box)));
  c.friction = in.number("friction");
  c.open = in.integer("open", 0, 1) != 0;
  d.axes_on = in.integer("axes_on", -1, bodies);
  d.measured = in.integer("measured", 0, 3);
  d.kp = in.number("kp"), d.kd = in.number("kd");
  d.point_rows = in.integer("point_rows", 0, 3);
  d.bodies = in.integers("bodies", bodies);
  d.points = in.list("points");
  d.matrix = in.list("matrix");
  d.joints = in.integers("joints", d.kind == core::Kind::coupling ? int(model.links.size()) : model.nv);
  d.numbers = in.list("numbers");
  d.target = in.list("target");
  c.damping = in.list("damping");
  check_constraint(in, c);
  return c;
}

}  // namespace

std::shared_ptr<ModelData> read_model(const std::string& path) {
  Reader in(path);
  in.keyword("delassus-model");
  if (in.integer("version", 0, 1'000'000) != format_version) in.refuse("it is of another version of the format");
  ModelDescription d;
  d.name = in.name("the name of the model");
  in.numbers(d.gravity, "gravity");
  in.keyword("bodies");
  for (std::size_t n = in.count("bodies"); n > 0; --n) d.bodies.push_back(read_body(in));
  in.keyword("joints");
  for (std::size_t n = in.count("joints"); n > 0; --n) d.joints.push_back(read_joint(in));
  auto data = make_model(d, true);

  const std::size_t nq = std::size_t(data->core.nq), nv = std::size_t(data->core.nv);
  in.keyword("keyframes");
  for (std::size_t n = in.count("keyframes"); n > 0; --n) {
    Keyframe k{in.name("the name of a keyframe"), {}, {}};
    k.q = in.numbers(nq, "q"), k.v = in.numbers(nv, "v");
    data->keyframes.push_back(std::move(k));
  }
  in.keyword("constraints");
  for (std::size_t n = in.count("constraints"); n > 0; --n) data->saved.push_back(read_constraint(in, data->core));
  in.keyword("end");
  return data;
}

}  // namespace delassus::inline v0
