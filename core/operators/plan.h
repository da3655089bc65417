// Plan of an elimination: the order of the links, their neighbours at elimination, and the memory layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace delassus {

// The symbolic part: which links are neighbours when their turn comes, and where the couplings are kept.
struct EliminationPlan {
  struct Neighbour {
    int link;
    int block;     // coupling H_ji of this one (rows) with the eliminated link (columns)
    int merged;    // coupling of this one with the parent; −1 if there is nothing to add: no parent, this one is the
                   // parent, or it is the same memory
    bool flipped;  // that coupling has the parent's rows
  };
  struct Pair {
    int first, second;  // neighbours of one link, by their place in its list
    int block;          // their coupling, rows of `first` unless flipped
    bool flipped;
  };
  // What every sweep reads: small, since a long mechanism's do not fit in the fast caches.
  struct Step {
    int link, parent;  // parent −1: the ground
    int iv;
    int strip;  // which of the strips, or of the free strips; −1: in none
    std::int8_t nv;
    bool coupled;                 // it has neighbours
    bool plain;                   // one velocity, no neighbours: most steps, and they go their own short way
    bool free;                    // its joint is
    bool pushed;                  // joint rows act on it
    bool hands_over;              // the next step is its parent's: what passes between them stays in registers
    bool joined;                  // its strip's next strip is made of its parents, lane for lane: so it does there
    bool holds_inertia;           // inertia waits for it in memory
    bool holds_force;             // so do forces
    bool shows;                   // somebody reads its acceleration from memory
    bool lane_holds, lane_shows;  // the same two where strips are taken whole
  };
  // Where the rest of a step is.
  struct StepStorage {
    int neighbour, neighbours;
    int pair, pairs;
    int W;       // where its columns W_j start: velocity by velocity, or of a free link neighbour by neighbour
    int factor;  // free: which of the free links it is
  };
  struct Holder {
    int link;
    int kept;  // where the inertia that idle links hand down to it is kept, −1: there is none
  };
  // Plain steps that know nothing of each other, side by side in a register.
  struct Strip {
    int step, count;
    bool joined, holds_inertia, holds_force, shows;  // all of its steps are; some do
    bool meets;                                      // full, and all its parents are one
    int link[4], parent[4],
        iv[4];  // empty lanes repeat the first; the ground is one past the last link, where nothing ever is
    int inertia[4], force[4];  // whose inertia and forces wait in memory, one past the last link if none
  };
  std::vector<Strip> strips;
  // Free links without neighbours, armature or joint rows, side by side.
  struct FreeStrip {
    int step, count;
    bool holds_inertia;
    int link[4], inertia[4], force[4];  // empty lanes repeat the first; whose inertia and forces wait in memory, one
                                        // past the last link if none
  };
  std::vector<FreeStrip> free_strips;
  // A step before, of which this one's link is a neighbour, by its place in the list, or the parent alone: −1. Of its
  // other neighbours, those that go after this one: where targets of theirs begin.
  struct Source {
    int step, place, target;
  };
  struct Target {
    int place, block;  // a neighbour by its place, its coupling with the link of this step
  };
  std::vector<Source>
      sources;  // of large eliminations (column_elimination.h): step by step, in order; one past the last
  std::vector<Target> targets;   // of sources
  std::vector<int> sources_end;  // a step; empty if the elimination is not large
  int shared = 0;                // the first step that threads share; the number of steps if none is worth it
  std::vector<Step>
      steps;  // in order of elimination: links that carry no constraint first, they never change with damping
  std::vector<StepStorage> storage;     // a step
  int idle = 0;                         // how many of these
  std::vector<int> idle_holders;        // links of these that hold inertia
  std::vector<Holder> inertia_holders;  // links of the others that do
  std::vector<int> holders,
      lane_holders;  // those that hold forces and no group of points acts on; the same where strips are taken whole
  std::vector<Neighbour> neighbours;
  std::vector<Pair> pairs;
  std::vector<std::pair<int, int>> blocks;  // links of every coupling: columns (eliminated first), rows
  std::vector<int> slots;  // where each coupling is kept: what moves on to the parent unchanged stays where it is
  int slot_count = 0, W_size = 0, frees = 0, kept = 0, widest = 0;

  bool large() const { return !sources_end.empty(); }
  void clear();  // keeps its memory
  std::size_t bytes() const {
    return steps.size() * (sizeof(Step) + sizeof(StepStorage)) + inertia_holders.size() * sizeof(Holder) +
           idle_holders.size() * sizeof(int) + neighbours.size() * sizeof(Neighbour) + pairs.size() * sizeof(Pair) +
           blocks.size() * (sizeof(blocks[0]) + sizeof(int)) + strips.size() * sizeof(Strip) +
           free_strips.size() * sizeof(FreeStrip) + sources.size() * sizeof(Source) + targets.size() * sizeof(Target) +
           sources_end.size() * sizeof(int) + (holders.size() + lane_holders.size()) * sizeof(int);
  }
};

// A link of the tree as the plan sees it.
struct PlannedLink {
  int parent, iv, nv;
  bool free;
  bool bare;     // no armature sits on the axes of its joint
  bool pushed;   // joint rows act on its joint
  bool held;     // a constraint acts on it or on its joint
  bool pointed;  // a group of points does
  bool stiff;    // and adds to its inertia

  bool operator==(const PlannedLink&) const = default;
};

}  // namespace delassus
