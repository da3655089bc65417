// Calls of MuJoCo's shared library whose errors come back.
//
// The library is found at run time: building needs nothing of it. Whoever knows it says where its functions are and
// where its structures keep what is read here.
//
// MuJoCo ends the process where it cannot go on. For the time of a call the thread gets handlers of its own: an error
// leaves MuJoCo's frames, which are C and own nothing, by longjmp to the frame of `attempt`, which holds plain data
// only. Warnings stay silent: those that bear on contacts are counted in mjData and read there.
#pragma once

#include <csetjmp>
#include <cstddef>

namespace delassus {

struct MujocoLibrary {
  using TextHandler = void (*)(const char* text);
  using LogHandler = void (*)(const void* message);

  void* (*make_data)(const void* model) = nullptr;
  void (*delete_data)(void* data) = nullptr;
  void (*kinematics)(const void* model, void* data) = nullptr;
  void (*collision)(const void* model, void* data) = nullptr;
  // handlers of this thread: one for every message where set_log is there, else one for errors and one for warnings
  LogHandler (*set_log)(LogHandler) = nullptr;
  TextHandler (*get_error)() = nullptr;
  void (*set_error)(TextHandler) = nullptr;
  TextHandler (*get_warning)() = nullptr;
  void (*set_warning)(TextHandler) = nullptr;

  // bytes from the start of each structure
  struct {
    std::size_t qpos, xpos, xmat, contact, ncon, dropped;  // dropped: how often a contact found no room, an int
  } data{};
  struct {
    std::size_t size, dist, pos, frame, friction, geom, dim;
  } contact{};
  struct {
    std::size_t size, narena, flags;  // flags: of what is enabled, an int
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

// Where an error lands, and what it said.
struct Landing {
  std::jmp_buf place;
  const MujocoLibrary* library;
  char text[1024];
};

// Whether call(argument) came to its end; if not, to.text says why. The handlers that were there are put back.
bool attempt(const MujocoLibrary& library, Landing& to, void (*call)(void*), void* argument);

}  // namespace mujoco

}  // namespace delassus
