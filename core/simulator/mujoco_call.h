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
#include <cstring>

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
    std::size_t size, narena;
  } model{};
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
inline thread_local Landing* landing = nullptr;

inline void on_error(const char* text) {
  std::strncpy(landing->text, text, sizeof(Landing::text) - 1);
  landing->text[sizeof(Landing::text) - 1] = 0;
  std::longjmp(landing->place, 1);
}
inline void on_warning(const char*) {}
inline void on_message(const void* message) {
  const auto& at = landing->library->message;
  const char* start = static_cast<const char*>(message);
  int level;
  std::memcpy(&level, start + at.level, sizeof level);
  if (level >= at.error) on_error(start + at.subject);
}

// Whether call(argument) came to its end; if not, to.text says why. The handlers that were there are put back.
inline bool attempt(const MujocoLibrary& library, Landing& to, void (*call)(void*), void* argument) {
  Landing* const outer = landing;
  const bool logs = library.set_log != nullptr;
  const MujocoLibrary::LogHandler log = logs ? library.set_log(on_message) : nullptr;
  const MujocoLibrary::TextHandler error = logs ? nullptr : library.get_error();
  const MujocoLibrary::TextHandler warning = logs ? nullptr : library.get_warning();
  if (!logs) library.set_error(on_error), library.set_warning(on_warning);
  landing = &to;
  to.library = &library;
  volatile bool fine = false;
  if (setjmp(to.place) == 0) {
    call(argument);
    fine = true;
  }
  landing = outer;
  if (logs)
    library.set_log(log);
  else
    library.set_error(error), library.set_warning(warning);
  return fine;
}

}  // namespace mujoco

}  // namespace delassus
