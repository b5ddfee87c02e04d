// Rings of commands and events between message nodes and Python: arrays that Python owns, attached by address. An
// entry is two words of 64 bits. A node has a ring of commands of its own; events of all nodes go to one.
//
// A ring's `control` has the entries put in so far, the entries taken out so far and, of commands, whether Python waits
// for room; of events, how many were lost for want of it.

#include <cstdint>
#include <vector>

#include "turns.h"

namespace {
struct Ring {
    uint64_t* entries = nullptr;
    uint64_t slots = 0;
    uint64_t* control = nullptr;
};
enum { kPut, kTaken, kWaits, kLost = kWaits };
constexpr unsigned char kCommand = 1, kRoom = 2;

std::vector<Ring> commands;
std::vector<Ring> departures;
Ring events;
const uint8_t* wanted = nullptr;
uint64_t wanted_mask = 0;

void tell(uint64_t low, uint64_t high) {
    if (!events.slots) return;
    if (events.control[kPut] - events.control[kTaken] == events.slots) {
        ++events.control[kLost];
        return;
    }
    uint64_t* const entry = events.entries + 2 * (events.control[kPut]++ % events.slots);
    entry[0] = low, entry[1] = high;
}
}  // namespace

extern "C" {
void lanikai_messages_commands(uint32_t node, uint64_t* entries, uint64_t slots, uint64_t* control) {
    if (commands.size() <= node) commands.resize(node + 1);
    commands[node] = Ring{entries, slots, control};
}

void lanikai_messages_events(uint64_t* entries, uint64_t slots, uint64_t* control) {
    events = Ring{entries, slots, control};
}

// The departures of a node's messages: an entry is one word, the VL above 32 bits of the cycle.
void lanikai_messages_departures(uint32_t node, uint64_t* entries, uint64_t slots, uint64_t* control) {
    if (departures.size() <= node) departures.resize(node + 1);
    departures[node] = Ring{entries, slots, control};
}

void lanikai_messages_left(unsigned int node, unsigned int vl, unsigned int now) {
    if (node >= departures.size()) return;
    Ring& ring = departures[node];
    if (!ring.slots) return;
    if (ring.control[kPut] == ring.slots) {
        ++ring.control[kLost];
        return;
    }
    ring.entries[ring.control[kPut]++] = uint64_t{vl} << 32 | now;
}

// A byte for each event, by its low bits: those with 0 are not told. `count`, a power of two, is how many. Python writes
// them between cycles only.
void lanikai_messages_wanted(const uint8_t* bytes, uint64_t count) {
    wanted = bytes;
    wanted_mask = count - 1;
}

unsigned char lanikai_messages_take(unsigned int node, unsigned long long* low, unsigned long long* high) {
    *low = *high = 0;
    if (node >= commands.size()) return 0;
    Ring& ring = commands[node];
    if (!ring.slots || ring.control[kPut] == ring.control[kTaken]) return 0;
    const uint64_t* const entry = ring.entries + 2 * (ring.control[kTaken]++ % ring.slots);
    *low = entry[0], *high = entry[1];
    if (!ring.control[kWaits]) return kCommand;
    ring.control[kWaits] = 0;
    return kCommand | kRoom;
}

// Returns whether Python is told.
unsigned char lanikai_messages_tell(unsigned long long low, unsigned long long high) {
    if (wanted && !wanted[low & wanted_mask]) return 0;
    blocks::in_turn(tell, low, high);
    return 1;
}
}
