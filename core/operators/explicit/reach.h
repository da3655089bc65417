// The links that matter for all blocks of the inverse of M + Jᵀ R J: those that rows touch, and those that these lead
// to in the elimination.
//
// A link i that goes leads to its boundary, its neighbours then and its parent: a_i = Σ_k A_ik a_k over these. Reach is
// closed under that. A link that no row touches and to which one other leads alone is passed: what leads to it is led
// on to its boundary, so that long unbranched runs of links cost O(1) a link and are gone. The others are the nodes.
#pragma once

#include <vector>

#include "operators/explicit/limbs.h"
#include "operators/plan.h"

namespace delassus {

struct ReachPlan {
  // A link that is passed: what holds of it goes over to its neighbours and its parent.
  struct Pass {
    int step;
    int from, to;  // slots: its own, its parent's; −1: the ground
    int slots;     // where the slots of its neighbours start in `slots`
  };
  struct Part {
    int slot, place;  // which coefficient A belongs to the node in which place of the front
  };
  // In the order in which they are taken up: depth first along the tree of the elimination, from its root. The front
  // are the nodes before to which this one or a later one leads; each has a place as long as it is there.
  struct Node {
    int pass, past_pass;    // itself first
    int part, past_part;    // what it leads to
    int slots;              // of coefficients on the way
    int place;              // its own
    int front, past_front;  // places of the front, itself included
    int span;               // one past the last of them
    int block, past_block;  // rows of which it is the last link
  };
  // Rows one after the other that touch the same links.
  struct Block {
    int row, rows;        // of the component's, in the order in which nodes complete them
    int term, past_term;  // one a link
  };
  struct Term {
    int place, K;  // of its node; where its rows start in the order of the limbs
  };
  // What is coupled in some way. Nothing goes from one to another.
  struct Component {
    int node, past_node;
    int row, past_row;
    int rows() const { return past_row - row; }
  };

  std::vector<Pass> passes;
  std::vector<int> slots;
  std::vector<Part> parts;
  std::vector<Node> nodes;
  std::vector<int> fronts;
  std::vector<Block> blocks;
  std::vector<Term> terms;
  std::vector<Component> components;
  std::vector<int> row;  // of components, one after the other: the user's
  int max_slots = 0, max_span = 0, max_rows = 0, max_front = 0;

  std::size_t bytes() const {
    return passes.size() * sizeof(Pass) + (slots.size() + row.size() + fronts.size()) * sizeof(int) +
           parts.size() * sizeof(Part) + nodes.size() * sizeof(Node) + blocks.size() * sizeof(Block) +
           terms.size() * sizeof(Term) + components.size() * sizeof(Component);
  }
};

// Of the coupled plan; rows: how many there are.
ReachPlan find_reach(const EliminationPlan& plan, std::size_t links, const Limbs& tree, int rows);

}  // namespace delassus
