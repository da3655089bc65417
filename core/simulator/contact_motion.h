// How contacts move with their bodies: position, axes and gap, to first order.
//
// One of the two bodies is chosen as the base. A common motion of both carries the contact along. The other body's
// motion relative to the base, (d, ω) at the contact point, moves it by
//
//   a corner, or the centre of a ball of radius r, on a face of the base      with c its place, n the normal
//       dc = d + ω × (c − p),   dφ = n · dc,   dp = dc − ½ n dφ,   dθ = 0
//   two balls, centres L apart, the base's radius r
//       dn = (1 − n nᵀ) dc / L,   dφ = n · dc,   dp = (r + ½ φ) dn + ½ n dφ,   dθ = n × dn
//   anything else
//       central differences of the collision of displaced bodies
//
// Points kept from the previous step (contact_persistence.h) move with the mean of both bodies. Points of one face
// (contact_patches.h) stay in a plane at their mean height, and so do their first-order motions.
#pragma once

#include <array>
#include <vector>

#include "simulator/contact_patches.h"
#include "simulator/contact_persistence.h"

namespace delassus {

struct ContactMotion {
  // What a contact changes by: displacement of its place [m], rotation of its axes [rad], gap [m]. World axes.
  struct Change {
    Vec3<double> place, turn;
    double gap;
  };

  int base = 1;       // which of the two bodies
  bool known = true;  // differences found the contact again; if not, it is taken for a corner on a face
  Change by[6]{};     // per displacement along the axes of the world, then per rotation, relative to the base
  // Axes of friction that differs between directions do not turn with the bodies: MuJoCo's first tangent is the one
  // nearest to an axis of the world. Their turn about the normal is `lean` times that about the tangent.
  bool fixed_axes = false;
  Vec3<double> normal{}, tangent{};
  double lean = 0;

  // moved: displacement and rotation of both bodies at the contact.
  Change change(const Vec6<double>* moved) const;
  // The adjoint: from the adjoint of the contact to those of both bodies.
  void adjoint(const Change& given, Vec6<double>* moved) const;
};

class ContactMotions {
 public:
  // Whether the collider has to be where the contacts were found, for the call below.
  static bool looks(const Collider& collider, const std::vector<Touch>& touches);
  // Motions of the contacts of a step: `touches` as the step had them, found with the collider, which is at the same
  // configuration, and with the contacts `before`. False: MuJoCo could not look; its failure is the collider's.
  bool find(const Model<double>& model, Collider& collider, const std::vector<Contact>& before,
            const std::vector<Touch>& touches);
  const ContactMotion& operator[](std::size_t contact) const { return motions_[contact]; }
  bool all_known() const;

 private:
  // Contacts of two bodies are found in closed form together or not at all.
  struct Pair {
    std::size_t first, past;  // of order_
    bool closed, found;
  };
  void group(const std::vector<Touch>& touches);
  static bool find_closed(const Collider& collider, const Touch& t, ContactMotion& motion);
  static void follow(const Collider& collider, const Touch& t, ContactMotion& motion);
  void level(const std::vector<Touch>& touches, const Pair& pair);
  void fix_axes(const Touch& t, ContactMotion& motion) const;
  bool find_by_differences(const Model<double>& model, Collider& collider, const std::vector<Contact>& before,
                           const std::vector<Touch>& touches);
  void take_difference(const Model<double>& model, const Collider& collider, const std::vector<Touch>& touches,
                       std::size_t k, int a);
  int link_of(const Model<double>& model, const Touch& t, int side) const;
  bool is_chosen(const Model<double>& model, const Touch& t) const;
  bool choose_links(const Model<double>& model, const std::vector<Touch>& touches);
  const Touch* same(const std::vector<Touch>& touches, const std::vector<Touch>& found, std::size_t k) const;

  std::vector<ContactMotion> motions_;
  std::vector<int> order_;  // contacts by pairs of bodies
  std::vector<Pair> pairs_;
  std::vector<char> role_, moved_;              // per link: of `choose_links`; is displaced
  std::vector<std::array<double, 6>> heights_;  // per contact: of `level`
  ContactPersistence persistence_;
  ContactPatches patches_;
  std::vector<Touch> ahead_, behind_;
};

}  // namespace delassus
