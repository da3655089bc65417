// Sensors, by MuJoCo's own functions on MuJoCo's data at our state:
//
//   q, v, activations, controls         positions, tendons, transmissions, passive and actuator forces: MuJoCo's
//   contacts of the step                ours: points, distances, forces; no other contact is there
//   qacc = M⁻¹ (smooth + Jᵀ λ / dt)     smooth forces at the state, Jᵀ λ of all rows of the step
//   sensors                             MuJoCo's functions on these
//
// The data is scratch memory, as in mujoco_mirror.h.
#pragma once

#include <string>
#include <vector>

#include "simulator/mujoco_call.h"
#include "simulator/step_record.h"

namespace delassus {

// A sensor of the force of a limit, which is read from our rows.
struct LimitSensor {
  bool of_tendon = false;
  int object = 0;     // by MuJoCo's numbers of joints or tendons
  int address = 0;    // of its value
  double cutoff = 0;  // zero: none
};

// An array of MuJoCo's model in which worlds may differ.
struct ModelField {
  std::size_t offset = 0, bytes = 0;  // of the pointer to it in an mjModel; of all its numbers
};

// How to reach it.
struct SensingSource {
  MujocoLibrary library;
  const void* model = nullptr;  // an mjModel that outlives this
  int nq = 0, nv = 0, nu = 0, values = 0;
  int signature = 0, mocap_signature = 0;  // of MuJoCo's state besides q and v, and of mocap poses; 0: there are none
  bool pyramids = false;                   // contacts have MuJoCo's pyramids of friction
  int contact_bit = 0;                     // the flag that switches contacts off
  int joint_limit = 0, tendon_limit = 0;   // what rows of limits are called
  std::vector<int> bodies;                 // per body of MuJoCo's: its number here
  std::vector<int> joint_coordinates;      // per joint of MuJoCo's: its first coordinate
  int tendons = 0;
  std::vector<std::size_t> found;  // flags in mjData of what MuJoCo finds once for a state
  std::vector<LimitSensor> limit_sensors;
  std::vector<ModelField> fields;
};

class Sensing {
 public:
  explicit Sensing(const SensingSource& source);
  Sensing(const Sensing&) = delete;
  Sensing& operator=(const Sensing&) = delete;

  // Values of all sensors after a step, with what acted during it. Where rows find no room, the data is made larger.
  // False where MuJoCo could not go on: failure() says why.
  bool read(const StepRecord& record, const StepForces& applied, double* values);

  // The same into data of somebody else's of this model: all that follows from the step, and the sensors.
  bool fill(void* data, const StepRecord& record, const StepForces& applied);

  // Numbers of a model that differs in `fields` and in gravity, as bytes: how many, and those of a model.
  static std::size_t numbers_size(const SensingSource& source);
  static void copy_numbers(const SensingSource& source, const void* model, unsigned char* to);
  // From now on the model has these, which are looked at, not copied; null: its own.
  void use_numbers(const unsigned char* numbers);

  const std::string& failure() const { return failure_; }

 private:
  void clear(void* data, const StepRecord& record, const StepForces& applied);
  void find_positions(void* data);
  void add_contacts(void* data, const StepRecord& record);
  void write_row_forces(void* data, const StepRecord& record) const;
  void write_contact_forces(void* data, const StepRecord& record) const;
  void find_accelerations(void* data, const StepRecord& record);
  void add_loop_wrenches(void* data, const StepRecord& record) const;
  void write_limit_sensors(void* data) const;
  void find_limit_forces(const StepRecord& record);

  SensingSource source_;
  std::vector<int> parts_;           // per body by our numbers: MuJoCo's
  std::vector<char> model_, quiet_;  // heads of MuJoCo's model, whose arrays are shared; the second finds no contacts
  std::vector<char> contact_;        // an mjContact
  std::vector<double> joint_limits_, tendon_limits_;  // forces of limits, by MuJoCo's numbers
  std::vector<double> smooth_, wrenches_;
  MujocoData data_;
  std::string failure_;
};

}  // namespace delassus
