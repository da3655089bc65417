// Looks up the pairs of one list of contacts in another, and prints how many pairs were compared with each other, and
// whether every range is what a search from the beginning finds.
#include "simulator/contact_pairs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace delassus;

namespace {

std::vector<Contact> make_list(const std::vector<int>& pairs, std::mt19937& rng) {
  std::vector<Contact> list;
  for (const int pair : pairs)
    for (unsigned k = 0, points = 1 + rng() % 4; k < points; ++k) {
      Contact c{};
      c.touch.geom[0] = pair % 101, c.touch.geom[1] = pair / 101;
      list.push_back(c);
    }
  return list;
}

}  // namespace

int main(int, char** argv) {
  const int n = std::atoi(argv[1]);
  std::mt19937 rng(5);
  std::vector<int> before, now;
  for (int pair = 0; pair < n; ++pair) {
    if (rng() % 10 > 0) before.push_back(pair);
    if (rng() % 10 > 0) now.push_back(pair);
  }
  if (argv[2][1] == 'h') std::shuffle(now.begin(), now.end(), rng);
  const std::vector<Contact> list = make_list(before, rng);

  ContactPairs pairs;
  pairs.look_at(list);
  bool right = true;
  std::size_t from = 0;
  for (const Contact& c : make_list(now, rng)) {
    const PairRange range = pairs.find(c.touch, from);
    if (range.begin < range.end) from = range.end;
    const auto same = [&](const Contact& other) { return same_pair(other.touch, c.touch); };
    const auto begin = std::find_if(list.begin(), list.end(), same), end = std::find_if_not(begin, list.end(), same);
    const std::size_t count = std::size_t(end - begin);
    right =
        right && range.end - range.begin == count && (count == 0 || std::size_t(begin - list.begin()) == range.begin);
  }
  std::printf("%zu %d\n", pairs.compared(), int(right));
}
