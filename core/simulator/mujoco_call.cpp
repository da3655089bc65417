#include "simulator/mujoco_call.h"

#include <cstdint>
#include <cstring>

namespace delassus {

namespace mujoco {

namespace {

thread_local Landing* landing = nullptr;

void on_error(const char* text) {
  std::strncpy(landing->text, text, sizeof(Landing::text) - 1);
  landing->text[sizeof(Landing::text) - 1] = 0;
  std::longjmp(landing->place, 1);
}
void on_warning(const char*) {}
void on_message(const void* message) {
  const auto& at = landing->library->message;
  const char* start = static_cast<const char*>(message);
  int level;
  std::memcpy(&level, start + at.level, sizeof level);
  if (level >= at.error) on_error(start + at.subject);
}

}  // namespace

bool attempt(const MujocoLibrary& library, Landing& to, void (*call)(void*), void* argument) {
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

void use_sizes(const MujocoLibrary& library, void* model, const ShapeSizes& shapes) {
  const auto& offsets = library.model;
  put(model, offsets.geom_size, shapes.sizes);
  put(model, offsets.geom_rbound, shapes.radii);
  put(model, offsets.geom_aabb, shapes.boxes);
  put(model, offsets.disable_flags, at<int>(model, offsets.disable_flags) | offsets.midphase);
}

bool enlarge_arena(const MujocoLibrary& library, void* model) {
  const std::int64_t bytes = at<std::int64_t>(model, library.model.narena);
  if (bytes >= std::int64_t(1) << 36) return false;
  put(model, library.model.narena, bytes > 0 ? 4 * bytes : std::int64_t(1) << 20);
  return true;
}

}  // namespace mujoco

bool MujocoData::renew(const void* model) {
  release();
  const bool fine = call([&] { data_ = library_.make_data(model); });
  if (fine && data_ == nullptr) std::strcpy(landing_.text, "its data could not be made");
  return data_ != nullptr;
}

void MujocoData::release() {
  void* const old = data_;
  data_ = nullptr;
  if (old != nullptr) library_.delete_data(old);
}

}  // namespace delassus
