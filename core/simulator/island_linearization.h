// Derivatives of an island's step: how its q⁺ and v⁺ change with q and v at the start, with joint forces and with
// contact friction, as long as no contact, limit or dry friction changes its mode. Matrix-free, forward and reverse:
// each direction costs O(n + m) and one linear system of the rows.
//
// The step is a chain of equations, each smooth as long as the modes do not change (world.h, free_motion.h,
// loop_midpoint.h). With F(q, ν, α, λ) = M̂ α + h(q, ν) − Jᵀ λ and f the forces on joints:
//
//   start     q_m = q, or q ⊕ ½ dt v of trees in loops; all of the following is there
//   middle    F(q_m, v, α₀, λ₀ / dt) = f,   v½ = v + ½ dt α₀        λ₀ of loops by themselves; F without weight and
//             external forces and f = 0 where the mechanism may be held (free_motion.h)
//   motion    F(q_m, v½, (v' − v) / dt, λ / dt) = f
//   rows      σ = J v' + b                                          laws of contacts between λ and σ
//   bounce    λ of compression, then what is given back of it, and impulses on top      restitution.h
//   correct   M̂ u = Jᵀ µ,   J (u + w) + e / dt = 0 of rows that are corrected, w the share of v' that is still to go
//   turn      v⁺ and the way to go: v' and w + u, but for free bodies of one link
//   arrive    q⁺ = q_m ⊕ dt way, loops closed
//
// Derivatives of F and of rows of loops are those of derivatives/residual.h; of rows of contacts those of
// contact_rates.h; laws those of derivatives/contact_modes.h. Rows of limits and dry friction never turn.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "derivatives/contact_modes.h"
#include "derivatives/residual.h"
#include "derivatives/smoothed_contacts.h"
#include "simulator/contact_rates.h"
#include "simulator/free_motion.h"
#include "simulator/position_correction.h"
#include "simulator/velocity_solve.h"

namespace delassus {

// What an island found in its last step.
struct IslandStep {
  const WorldDescription& world;
  RowSystem& system;
  const ActiveRows& rows;
  const IslandState& state;
  const FreeMotion& free_motion;
  LoopMidpoint& loops;
  const FreeBodies& bodies;
  const VelocitySolve& velocities;
  const std::vector<double>& start_impulses;  // per row: what the solver started from
  const PositionCorrection& correction;
  const std::vector<double>&next_q, &way;
};

// The parts of a step that have no derivative here, or an incomplete one.
struct StepGaps {
  bool contradiction = false;  // positions were corrected as far as rows that contradict each other allow
  bool open_loops = false;     // loops were far open
  bool tendons = false;        // how rows of tendons and turned balls change their direction
  bool moved_bodies = false;   // how rows with bodies or surfaces that move by themselves change
  bool bounce = false;         // only a part was given back when contacts bounced
  bool contacts = false;       // a contact was not found again when its bodies were displaced
  bool singular = false;       // the equation of the rows could not be solved to rounding
  bool isolated = false;       // impulses are redundant in this configuration alone: it is a kink
  bool smoothing = false;      // smoothed forces could not be found, or contacts bounced: forces are not smoothed

  void add(const StepGaps& other);
};

// Adjoints by parameters, null where nobody asks: of inertial parameters of bodies (10 bodies × columns, regressor.h),
// of the armature of M̂ (nv × columns), and of restitution (contacts × columns).
struct ParameterBars {
  double *inertial = nullptr, *armature = nullptr, *restitution = nullptr;
};

class IslandLinearization {
 public:
  IslandLinearization(const WorldDescription& world, int loop_rows);

  // Numbers of the description were changed by its owner (part.h).
  void read_numbers();

  // After the island's step; motions of its contacts, in their order. smoothing κ > 0 [J]: impulses are those on the
  // central path near the solution (smoothed_contacts.h), and v' is what these make of it; corrections stay.
  void update(const IslandStep& step, const std::vector<const ContactMotion*>& motions, double smoothing);
  const StepGaps& gaps() const { return gaps_; }
  // Per contact: its mode, and whether it is about to change it; likewise of any other row; and whether positions are
  // about to be corrected.
  const std::vector<ContactModes::Mode>& modes() const { return contact_modes_; }
  const std::vector<char>& kinks() const { return contact_kinks_; }
  bool row_kinks() const { return row_kinks_; }
  bool correction_kink() const { return correction_kink_; }
  bool redundant() const { return redundant_; }  // impulses are not unique: their change is the least

  // Directions: of q and v at the start and of forces on joints (nv × columns, row-major), of friction and restitution
  // of contacts (contacts × columns; null: zero).
  struct Direction {
    const double *q, *v, *f, *friction, *restitution;
    int columns;
  };
  // dq⁺ and dv⁺ (nv × columns).
  void tangents(const Direction& d, double* next_dq, double* next_dv);
  // The adjoint: of q_bar · q⁺ + v_bar · v⁺ by q, v, forces, friction (contacts × columns) and parameters.
  void adjoints(const double* next_q_bar, const double* next_v_bar, int columns, double* q_bar, double* v_bar,
                double* f_bar, double* friction_bar, const ParameterBars& parameters);

 private:
  using Residual = ConstrainedResidual<double>;
  using Numbers = std::vector<double>;

  // A motion of the step with impulses: F(q_m, v½, (v' − v) / dt, λ / dt) = f, and rows with the law of their impulses.
  struct Motion {
    Motion(const WorldDescription& world, bool loops);
    void read_inertias();
    Residual force;
    std::unique_ptr<Residual> loop_rows;  // null: there are no loops
    ContactRates contacts;
    ContactModes modes;
    std::optional<OperatorMap> map;
    const ForceSets* sets = nullptr;
    Numbers lambda, sigma;  // per row: of the law
    bool factored = false;
  };
  // Contacts that bounced: compression, and what is given back of it (restitution.h).
  struct Bounce {
    explicit Bounce(const WorldDescription& world, bool loops);
    Motion compression;
    Residual free;                                       // F of v_f
    ContactRates approach, fall;                         // contacts with v and with v_f
    Numbers coefficient, share, g;                       // per row; g where it bounces, else 0
    Numbers given_d, coefficient_d, velocity_d, rows_d;  // rows × columns, velocities × columns: of sweeps
  };

  void update_middle(const IslandStep& step);
  void update_motion(const IslandStep& step, const std::vector<const ContactMotion*>& motions, const Numbers& impulses,
                     const Numbers& law_impulses, const ForceSets& sets, Motion& motion);
  void update_bounce(const IslandStep& step, const std::vector<const ContactMotion*>& motions);
  void update_correction(const IslandStep& step, const std::vector<const ContactMotion*>& motions);
  void find_gap_gains(const IslandStep& step);
  void find_gaps(const IslandStep& step);
  void probe_redundancy();

  void find_impulse_rows(const Direction& d);
  void middle_tangents(const Direction& d);
  void motion_tangents(const Direction& d, Motion& motion, Numbers& free, Numbers& rows);
  void bounce_tangents(const Direction& d);
  void correction_tangents(int columns);
  void arrival_tangents(int columns, double* next_dq);

  // Where adjoints of the start are gathered.
  struct Bars {
    double *q, *v, *f, *friction;
    int columns;
    const ParameterBars& parameters;
  };
  void middle_adjoints(const Bars& to);
  void motion_adjoints(const Bars& to, Motion& motion, const Numbers& free_bar, const Numbers& rows_bar);
  void bounce_adjoints(const Bars& to);
  void correction_adjoints(const Bars& to);
  void arrival_adjoints(int columns, double* next_q_bar);
  void body_parameter_adjoints(const FreeBodies::Rates& body, const double* out, int columns, std::size_t column,
                               double* inertial_bar) const;

  void close_loops(const double* rows, int columns, double* impulses);
  void loops_transposed(const double* rows, int columns, double* forces);
  void mass_inverse(const Numbers& x, int columns, Numbers& y) { s_->G->mass_inverse(x.data(), columns, y.data()); }
  void use(Motion& motion) { use(motion.modes, *motion.map, motion.factored); }
  bool smooth(const IslandStep& step, double smoothing);
  void use_smoothed();
  void use(ContactModes& modes, OperatorMap& map, bool& factored);

  const WorldDescription& world_;
  const Model<double>& model_;
  int n_, l_, m_ = 0;
  double dt_ = 0;
  RowSystem* s_ = nullptr;
  LoopMidpoint* loops_ = nullptr;
  const FreeBodies* free_bodies_ = nullptr;
  StepGaps gaps_;
  std::vector<ContactModes::Mode> contact_modes_;
  std::vector<char> contact_kinks_;
  bool row_kinks_ = false, correction_kink_ = false, redundant_ = false;

  // equations in their state
  Residual middle_, correction_;                    // F of the middle and of the correction
  std::unique_ptr<Residual> middle_rows_;           // rows of loops of the middle
  std::unique_ptr<Residual> corrected_rows_, end_;  // the same of the correction, and errors at q⁺
  Motion motion_;
  SmoothedContacts smoothed_;       // in place of its modes
  std::unique_ptr<Bounce> bounce_;  // null: nothing ever bounced
  ContactRates corrected_, going_;  // contacts with u and µ, with w
  ContactModes corrected_modes_;
  std::optional<OperatorMap> corrected_map_;
  const void* user_ = nullptr;  // whose factor the operator of the rows has
  bool correction_factored_ = false;
  bool has_middle_ = false, held_ = false, smooths_ = false, bounces_ = false, corrects_ = false, arrives_ = false;
  LoopMidpoint::Aim aim_{};
  double middle_kept_ = 0;  // of the middle: `kept`

  // of the step
  Numbers start_q_, v_, u_, way_;            // per coordinate; per velocity
  Numbers remaining_;                        // per velocity: share of the step that v' still moves
  std::vector<char> owned_;                  // per velocity: of a free body of one link
  std::vector<FreeBodies::Rates> bodies_;    // of these
  Numbers gap_gain_, correction_gain_;       // per row: how b follows φ; how `asked` follows J w + φ / dt
  Numbers acceleration_, moved_, next_v_;    // per velocity
  Numbers sigma_, inverse_masses_, scaled_;  // per row

  // of sweeps, a number per velocity and column: changes, or adjoints, of q_m, v½, v' with the same impulses, v', u, w
  // and the way; forces; what is worked with
  Numbers q_, middle_d_, free_d_, next_d_, u_d_, w_d_, way_d_, forces_, work_, part_q_, part_v_;
  // a number per row and column; gaps: per contact and column
  Numbers rows_d_, lambda_d_, work_rows_, loop_rows_, gaps_d_, bound_d_, friction_d_;
  Numbers probe_q_, probe_v_, probe_f_;              // per velocity
  Numbers column_g_, column_lambda_, column_sigma_;  // per row: of `close_loops`
};

}  // namespace delassus
