// Calls out of instances that are evaluated on several threads: kept back until all threads are done, then made in the
// order of the instances' numbers. So what they tell comes in the same order, however many threads there are.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace blocks {

// A call that is kept back.
struct Call {
    uint32_t instance;
    void (*function)(uint64_t, uint64_t);
    uint64_t first, second;
};

// What the present thread evaluates: an instance, and where its calls are kept (null: they are made at once).
struct Turn {
    uint32_t instance = 0;
    std::vector<Call>* kept = nullptr;
};
inline thread_local Turn turn;

// Make the call, or keep it back. For functions that touch more than what belongs to one instance.
inline void in_turn(void (*function)(uint64_t, uint64_t), uint64_t first, uint64_t second) {
    if (turn.kept) {
        turn.kept->push_back({turn.instance, function, first, second});
    } else {
        function(first, second);
    }
}

// Make all calls that were kept back, and forget them.
inline void make_calls(std::vector<Call>& calls) {
    if (calls.empty()) return;
    std::stable_sort(calls.begin(), calls.end(),
                     [](const Call& a, const Call& b) { return a.instance < b.instance; });
    for (const Call& one : calls) one.function(one.first, one.second);
    calls.clear();
}

}  // namespace blocks
