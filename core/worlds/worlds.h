// Many worlds of one mechanism, each with its own state, stepped by a few engines.
//
// A step depends on q, v, the rest of MuJoCo's state, mocap poses, time, StepMemory and the applied forces, and on
// nothing else (snapshot.h). So a world is stored as these numbers only. An engine, one per thread, is a World
// (simulator/world.h) with symbolic work and memory; it loads the numbers of a world, steps, and stores them back. An
// engine caches row systems of all worlds that it steps, so worlds with the same contact graph share symbolic work. The
// results depend neither on which engine steps which world nor on the order.
#pragma once

#include <string>
#include <vector>

#include "operators/team.h"
#include "simulator/judge.h"
#include "worlds/parameters.h"

namespace delassus {

// How the last step of a world ended: the statuses of a step (judge.h), then these.
enum WorldStatus : std::int32_t {
  unstable = step_status_count,  // velocities were no longer finite: the world is as it was before
  singular,                      // the mass matrix could not be factored: likewise
  failed,                        // MuJoCo could not go on, or there were too many contacts: likewise
  not_stepped,                   // since it was made or reset
};

// State arrays of all worlds, one row per world.
template <class Number>
struct Rows {
  std::size_t width = 0;
  std::vector<Number> numbers;

  Rows() = default;
  Rows(std::size_t count, std::size_t width_, Number value = 0) : width(width_), numbers(count * width_, value) {}
  Number* operator[](std::size_t k) { return numbers.data() + k * width; }
  const Number* operator[](std::size_t k) const { return numbers.data() + k * width; }
};

// What a world has at first besides q and v: the rest of MuJoCo's state, and poses of bodies that a user moves.
struct WorldStart {
  std::vector<double> hidden, mocap;
};

class Worlds {
 public:
  // controls, sensor_values: numbers of actuators and of sensors.
  Worlds(std::shared_ptr<const WorldDescription> description, const CollisionSource& collisions,
         const MirrorSource& mirror, WorldStart start, ParameterSource parameters, int controls, int sensor_values,
         int count, int threads);
  Worlds(const Worlds&) = delete;
  Worlds& operator=(const Worlds&) = delete;

  int count() const { return count_; }
  // What MuJoCo said where it could not go on; empty where it could.
  const std::string& failure() const { return failure_; }

  // State.
  Rows<double> q, v, time;
  Rows<double> hidden;             // the rest of MuJoCo's state
  Rows<double> mocap, mocap_goal;  // poses of bodies that a user moves: positions of all, then quaternions; goals
  // What acts during steps to come.
  Rows<double> control, tau, external;  // (nu,), (nv,), (nbody, 6)
  // What the last step of each world left.
  Rows<std::int32_t> status;    // a step's status or a WorldStatus
  Rows<std::int32_t> contacts;  // how many
  Rows<double> residual;        // natural residual of the contact solver [m/s]
  Rows<double> penetration;     // before the step, where contacts were looked for [m]
  Rows<double> contact_forces;  // (nbody, 3) all contacts of each body, over the step, in world axes [N]
  Rows<double> row_forces;      // per velocity: of contacts, loops, limits and dry friction [N or N m]
  Rows<std::int32_t> unsolved;  // steps since the last reset that ended otherwise than solved
  Rows<double> sensors;         // as of the last call of sense

  // Parameters in which worlds differ, initially those of the model. Written values take effect once they are accepted;
  // until then steps use the values accepted last.
  Rows<double>& parameter(Parameter which);
  bool has(Parameter which) const { return !parameters_[which].numbers.empty(); }  // somebody asked for it
  bool changed(Parameter which) const;
  void accept_parameters();
  Rows<double>& accepted_parameter(Parameter which) { return accepted_[which]; }

  // Steps of some worlds, each of which is named once. A world that becomes unstable or singular stays as it was before
  // that step, and goes no further. Where MuJoCo could not go on with a world, or one had too many contacts, likewise;
  // when all others are done, failure() says why, and of which world.
  void step(const std::vector<int>& which, int steps);

  // Derivatives of the steps of some worlds (step_linearization.h) from their current states, with the given inputs,
  // one row per world; null uses the current inputs. With `advance`, the worlds have made the step afterwards, as by
  // step(which, 1); otherwise they are unchanged. Row i of the results belongs to world which[i]. Derivatives are NaN
  // if the world could not step or they are not finite.
  struct StepInputs {
    const double *control = nullptr, *tau = nullptr;  // (n, nu), (n, nv)
    bool advance = false;
  };
  struct StepFound {
    std::int32_t status = not_stepped;
    StepGaps gaps;
    bool derived = false;  // there are derivatives
    bool kinks = false;  // a contact or another row is about to change its mode, or positions are about to be corrected
    bool redundant = false;
  };
  struct StepsAfter {
    double *q, *v;  // (n, nq), (n, nv) after the step
    std::vector<StepFound>& found;
  };
  // A (n, 2 nv, 2 nv) and B (n, 2 nv, nu) of (q⁺, v⁺) by (q, v) and by controls.
  void linearize(const std::vector<int>& which, const StepInputs& inputs, const StepsAfter& after, double* A,
                 double* B);
  // Derivatives of q_bar · q⁺ + v_bar · v⁺, (n, nv) each, null: zero, by q, v and forces on joints (n, nv) and by
  // controls (n, nu).
  struct StepAdjoints {
    double *q, *v, *tau, *control;
  };
  void adjoints(const std::vector<int>& which, const StepInputs& inputs, const double* q_bar, const double* v_bar,
                const StepsAfter& after, const StepAdjoints& to);

  // Sensors (sensing.h). Engines are prepared once; after that sense() evaluates the sensors of some worlds after their
  // last step, with the current inputs, and failure() says where MuJoCo failed. MuJoCo's model needs the parameters of
  // each world: the owner writes them for worlds whose parameters changed.
  void start_sensing(const SensingSource& source);
  std::vector<int> unsensed_parameters() const;
  void set_sensor_model(int k, const void* model);
  void sense(const std::vector<int>& which);

  // A world at rest in its memory: q, v and time are the caller's to set.
  void reset(int k);

  // What `see` finds of a world as one of its own; it may set its state and memory.
  template <class See>
  auto as_world(int k, See&& see) {
    const Loan loan(*this, *engines_[0], std::size_t(k));
    return see(engines_[0]->world);
  }

  // Motions of n worlds from given states, without memory of contacts; the worlds here stay as they are. The k-th has
  // the parameters of world k; where there are more than these, those of the model. States after every step, (n, steps,
  // nq) and (n, steps, nv); how many steps ended otherwise than solved, and the step at which a world became unstable
  // or singular, −1 where it did not. Null: nothing acts.
  struct Motions {
    const double *q = nullptr, *v = nullptr;                               // (n, nq), (n, nv) to start from
    const double *tau = nullptr, *control = nullptr, *external = nullptr;  // (n, steps, …)
    int worlds = 0, steps = 0;
    double *q_after = nullptr, *v_after = nullptr;
    std::int64_t *unsolved = nullptr, *unstable = nullptr;
  };
  void roll(const Motions& motions);

 private:
  // A world's numbers in an engine, for as long as this lives.
  class Loan {
   public:
    Loan(Worlds& all, Engine& engine, std::size_t k);
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan();

   private:
    Worlds& all_;
    World& engine_;
    std::size_t k_;
  };

  template <class Work>
  void each(int n, Work&& work);
  void sort_by_graph(const std::vector<int>& which);
  void step(World& w, std::size_t k, int steps);
  template <class Step>
  std::int32_t try_step(World& w, std::size_t k, StepReport& report, Step&& step);
  void note_step(std::size_t k, std::int32_t ended, const StepReport& report);
  template <class Derive>
  void differentiate(const std::vector<int>& which, const StepInputs& inputs, const StepsAfter& after, Derive&& derive);
  void note(const World& w, std::size_t k);
  void note_failure(int k, const std::string& what);
  void begin(World& w) const;
  void tune(Engine& engine, std::size_t k) const;

  int count_;
  std::shared_ptr<const WorldDescription> description_;
  WorldStart start_;
  Team team_;
  ParameterSource source_;
  std::array<Rows<double>, parameter_count> parameters_, accepted_;  // empty: nobody asked for it
  std::vector<std::size_t>
      numbers_;  // per world: which parameters it has, the same number for the same; 0: the model's
  std::size_t changes_ = 0;
  std::vector<std::unique_ptr<Engine>> engines_;  // per thread
  std::vector<StepMemory> memories_;              // per world
  SensingSource sensing_;                         // without a model: nobody asked for sensors
  Rows<unsigned char> sensor_models_;             // per world: numbers of MuJoCo's model; empty: nobody wrote some
  std::vector<std::size_t> sensor_numbers_;       // per world: of which parameters these are
  std::vector<std::uint64_t> graphs_;             // per world: which links touched in its last step (World::graph)
  std::vector<int> order_;                        // in which worlds are stepped: places in the list of these
  std::vector<double> unit_q_, unit_v_, unit_u_;  // directions of A (nv, 2 nv), and of B (nu, nu); empty: nobody asked
  std::mutex failing_;
  std::string failure_;
  int failed_ = -1;  // the first world that MuJoCo could not go on with
};

}  // namespace delassus
