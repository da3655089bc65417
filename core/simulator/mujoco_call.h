// Calls of MuJoCo's shared library that return its errors.
//
// The library is found at run time and is not needed to build. The caller passes the addresses of its functions and the
// offsets of the fields that are read here.
//
// MuJoCo ends the process on an error. During a call the thread has its own handlers: an error leaves MuJoCo's frames,
// which are C and own nothing, by longjmp to the frame of `attempt`, which holds plain data only. Warnings are
// silenced; those about contacts are counted in mjData and read there.
#pragma once

#include <array>
#include <bit>
#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace delassus {

struct MujocoLibrary {
  using TextHandler = void (*)(const char* text);
  using LogHandler = void (*)(const void* message);

  void* (*make_data)(const void* model) = nullptr;
  void (*delete_data)(void* data) = nullptr;
  void (*kinematics)(const void* model, void* data) = nullptr;
  void (*collision)(const void* model, void* data) = nullptr;
  // functions that evaluate a state by MuJoCo's own rules, in this order (mujoco_mirror.h)
  void (*com_pos)(const void* model, void* data) = nullptr;
  void (*tendon)(const void* model, void* data) = nullptr;
  void (*transmission)(const void* model, void* data) = nullptr;
  void (*forward_position)(const void* model, void* data) = nullptr;  // all of these, contacts and constraints too
  void (*forward_velocity)(const void* model, void* data) = nullptr;
  void (*forward_actuation)(const void* model, void* data) = nullptr;
  void (*tendon_bias)(const void* model, void* data,
                      double* forces) = nullptr;  // adds a cᵀ ċ v of tendons with inertia
  void (*euler)(const void* model, void* data) = nullptr;
  // what sensors need besides (sensing.h)
  void (*camera_light)(const void* model, void* data) = nullptr;
  void (*flex)(const void* model, void* data) = nullptr;
  void (*make_M)(const void* model, void* data) = nullptr;
  void (*factor_M)(const void* model, void* data) = nullptr;
  void (*solve_M)(const void* model, void* data, double* x, const double* y, int columns) = nullptr;
  int (*add_contact)(const void* model, void* data, const void* contact) = nullptr;
  void (*make_constraint)(const void* model, void* data) = nullptr;
  void (*energy_position)(const void* model, void* data) = nullptr;
  void (*energy_velocity)(const void* model, void* data) = nullptr;
  void (*subtree_velocity)(const void* model, void* data) = nullptr;
  void (*forward_acceleration)(const void* model, void* data) = nullptr;
  void (*forces_between_bodies)(const void* model, void* data) = nullptr;
  void (*sensor_position)(const void* model, void* data) = nullptr;
  void (*sensor_velocity)(const void* model, void* data) = nullptr;
  void (*sensor_acceleration)(const void* model, void* data) = nullptr;
  void (*get_state)(const void* model, const void* data, double* state, int signature) = nullptr;
  void (*set_state)(const void* model, void* data, const double* state, int signature) = nullptr;
  // handlers of this thread: one for every message where set_log is there, else one for errors and one for warnings
  LogHandler (*set_log)(LogHandler) = nullptr;
  TextHandler (*get_error)() = nullptr;
  void (*set_error)(TextHandler) = nullptr;
  TextHandler (*get_warning)() = nullptr;
  void (*set_warning)(TextHandler) = nullptr;

  // bytes from the start of each structure
  struct {
    std::size_t qpos, xpos, xmat, contact, ncon;
    std::size_t dropped, rows_dropped;  // how often a contact, or a row, found no room: ints
    std::size_t qvel, qacc, ctrl, time, qfrc_passive, qfrc_actuator, ten_J, ten_length;
    std::size_t xipos, qfrc_applied, xfrc_applied, qfrc_smooth, qfrc_constraint, nefc, efc_type, efc_id, efc_force;
    std::size_t sensordata;
    std::size_t geom_xpos, geom_xmat;
  } data{};
  struct {
    std::size_t size, dist, pos, frame, friction, geom, dim, margin;
    std::size_t geom1, geom2, flex, elem, vert, solref, solimp, efc_address;
  } contact{};
  struct {
    std::size_t size, narena, flags, disable_flags;  // flags: of what is enabled, and of what is not: ints
    std::size_t gravity, geom_friction, body_mass, body_subtreemass, body_ipos, body_sameframe;
    std::size_t geom_solref, geom_solimp, geom_size, geom_rbound, geom_aabb;
    int midphase = 0;  // the flag that switches trees of bounding boxes off
  } model{};
  // sleeping bodies, whose pairs collisions leave out: the flag that enables it (0: this version has none), where data
  // has the states of all bodies and how many are awake, and what states are called
  struct {
    int bit = 0;
    std::size_t states = 0, count = 0;
    int asleep = 0, awake = 0;
  } sleep{};
  struct {
    std::size_t level, subject;
    int error;  // the level of an error
  } message{};
};

namespace mujoco {

// Target of an error's longjmp, and its message.
struct Landing {
  std::jmp_buf place;
  const MujocoLibrary* library;
  char text[1024];
};

// Whether call(argument) came to its end; if not, to.text says why. The handlers that were there are put back.
bool attempt(const MujocoLibrary& library, Landing& to, void (*call)(void*), void* argument);

// A value in one of MuJoCo's structures, by its offset.
template <class V>
V at(const void* structure, std::size_t offset) {
  std::array<char, sizeof(V)> bytes;
  std::memcpy(bytes.data(), static_cast<const char*>(structure) + offset, bytes.size());
  return std::bit_cast<V>(bytes);
}
template <class V>
void put(void* structure, std::size_t offset, const V& value) {
  std::memcpy(static_cast<char*>(structure) + offset, &value, sizeof value);
}

// Sizes of shapes (ngeom, 3) in place of those of a model, of which this is the head, and bounds that follow from them:
// radii of balls around them (ngeom,) and boxes (ngeom, 6). Trees of boxes, which do not follow, are not used then:
// contacts come in the same order without them. Arrays are looked at, not copied.
struct ShapeSizes {
  const double *sizes, *radii, *boxes;
};
void use_sizes(const MujocoLibrary& library, void* model, const ShapeSizes& shapes);

// The arena of data to come of a model, of which this is the head, becomes four times as large; false at 64 GiB.
bool enlarge_arena(const MujocoLibrary& library, void* model);

}  // namespace mujoco

// An mjData, and calls of MuJoCo's that work on it.
class MujocoData {
 public:
  explicit MujocoData(const MujocoLibrary& library) : library_(library) {}
  ~MujocoData() { release(); }
  MujocoData(const MujocoData&) = delete;
  MujocoData& operator=(const MujocoData&) = delete;

  // New data of a model, in place of what there was. False: error() says why there is none.
  bool renew(const void* model);
  // Whether the work, which owns nothing, came to its end; if not, error() says why, and the data is to be renewed: its
  // stack is open.
  template <class Work>
  bool call(Work&& work) {
    const auto run = [](void* w) { (*static_cast<std::remove_reference_t<Work>*>(w))(); };
    return mujoco::attempt(library_, landing_, run, &work);
  }
  const char* error() const { return landing_.text; }
  void* get() const { return data_; }

  template <class V>
  V at(std::size_t offset) const {
    return mujoco::at<V>(data_, offset);
  }

 private:
  void release();

  const MujocoLibrary& library_;  // of the owner
  void* data_ = nullptr;
  mujoco::Landing landing_{};
};

}  // namespace delassus
