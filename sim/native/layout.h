// What all instances of a block share: where in an instance's state its ports are.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include "instance.h"

namespace blocks {

inline uint64_t read(const uint8_t* from, uint32_t bytes) {
    uint64_t value = 0;
    switch (bytes) {
        case 1: return *from;
        case 2: std::memcpy(&value, from, 2); return value;
        case 4: std::memcpy(&value, from, 4); return value;
        default: std::memcpy(&value, from, 8); return value;
    }
}

// What the instances of a block share: places are offsets into an instance's state. An instance itself keeps so little
// that a thousand of them leave the processor's caches to the models.
struct Layout {
    struct Ends {
        uint32_t payload, valid, credit_vl, credit_valid;
        bool operator==(const Ends& other) const { return !std::memcmp(this, &other, sizeof(Ends)); }
    };
    struct Place {
        uint32_t kind, at, bytes, input;
        bool operator==(const Place& other) const { return !std::memcmp(this, &other, sizeof(Place)); }
    };
    struct Copy {
        uint32_t from, to, bytes;
        bool operator==(const Copy& other) const { return !std::memcmp(this, &other, sizeof(Copy)); }
    };

    void (*step)(void*);
    void (*settle_inputs)(void*);
    uint32_t quiet, settle, waiting;
    std::vector<Ends> transmit, receive;
    std::vector<Place> outputs;
    std::vector<Copy> broadcasts;  // from an offset into the copies of the top module's outputs
    std::vector<uint32_t> due;
    size_t state_bytes;

    bool operator==(const Layout& other) const {
        return step == other.step && settle_inputs == other.settle_inputs && quiet == other.quiet
               && settle == other.settle && waiting == other.waiting && transmit == other.transmit
               && receive == other.receive && outputs == other.outputs && broadcasts == other.broadcasts
               && due == other.due && state_bytes == other.state_bytes;
    }
};

// The layouts of a system's blocks, and copies of what the top module gives to all.
class Layouts {
public:
    // What all instances of its block share.
    const Layout* of(const Instance& instance) {
        const uint8_t* const state = static_cast<const uint8_t*>(instance.state);
        const auto at = [&](const void* place) {
            const uint8_t* const byte = static_cast<const uint8_t*>(place);
            if (byte < state || byte >= state + instance.state_bytes) {
                std::fprintf(stderr, "%s: a port is outside of its model's state\n", instance.path.c_str());
                std::exit(3);
            }
            return static_cast<uint32_t>(byte - state);
        };
        const auto ends = [&](const std::vector<End>& from) {
            std::vector<Layout::Ends> found;
            for (const End& one : from) {
                found.push_back({at(one.payload), at(one.valid), at(one.credit_vl), at(one.credit_valid)});
            }
            return found;
        };
        Layout made{};
        made.step = instance.step;
        made.settle_inputs = instance.settle_inputs;
        made.quiet = at(instance.quiet);
        made.settle = instance.settle;
        made.waiting = instance.due.empty() ? 0 : at(instance.waiting);
        made.transmit = ends(instance.transmit);
        made.receive = ends(instance.receive);
        for (const Output& one : instance.outputs) {
            made.outputs.push_back({static_cast<uint32_t>(one.kind), at(one.from), one.bytes, one.input});
        }
        for (const Broadcast& one : instance.broadcasts) {
            made.broadcasts.push_back({copied(one), at(one.to), one.bytes});
        }
        for (const uint32_t* one : instance.due) made.due.push_back(at(one));
        made.state_bytes = instance.state_bytes;
        for (const Layout& one : layouts_) {
            if (one == made) return &one;
        }
        layouts_.push_back(std::move(made));
        return &layouts_.back();
    }

    // Copies of the top module's outputs as they are now.
    const uint8_t* copy() {
        for (const Copied& one : copied_) std::memcpy(copies_.data() + one.at, one.from, one.bytes);
        return copies_.data();
    }

private:
    struct Copied {
        const void* from;
        uint32_t at, bytes;
    };

    // Where the copy of an output of the top module is.
    uint32_t copied(const Broadcast& broadcast) {
        for (const Copied& one : copied_) {
            if (one.from == broadcast.from && one.bytes == broadcast.bytes) return one.at;
        }
        const uint32_t at = static_cast<uint32_t>(copies_.size());
        copied_.push_back({broadcast.from, at, broadcast.bytes});
        copies_.resize(at + (broadcast.bytes + 7) / 8 * 8);
        return at;
    }

    std::list<Layout> layouts_;
    std::vector<Copied> copied_;
    std::vector<uint8_t> copies_;
};

}  // namespace blocks
