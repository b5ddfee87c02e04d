// What an instance has for itself alone if it has a clock of its own, or outputs of whose changes Python is told.
//
// An instance with a clock rests though it counts cycles: before it is next evaluated or looked at, it is brought to
// where it would stand (`catch_up`). With the check on it is evaluated all the same meanwhile, and then both must have
// come to the same state.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "instance.h"
#include "layout.h"

namespace blocks {

// A one-bit output whose changes Python is told of, under a number that it chose.
struct Event {
    const uint8_t* from;
    uint32_t number;
    uint8_t last;
};

// End the program, as an instance that was left out would have done something.
[[noreturn]] inline void not_quiet(const std::string& path, const char* what, size_t at, size_t bytes) {
    std::fprintf(stderr, "%s %s at byte %zu of %zu though it was quiet\n", path.c_str(), what, at, bytes);
    std::exit(3);
}

class Own {
public:
    Own(const Instance& instance, const Layout* layout)
        : path_(instance.path), model_(instance.model), state_(static_cast<uint8_t*>(instance.state)), layout_(layout),
          keeper_(instance.keeper) {}

    // Told of when they change.
    std::vector<Event> events;

    bool clocked() const { return keeper_ != nullptr; }

    // The instance has had the edge at the end of cycle `now`.
    void stepped(uint64_t now) { at_ = now + 1; }

    // Whether it may rest after that edge, and until which cycle; 0 if it may not.
    uint64_t rests_until(bool checked) {
        const uint64_t room = keeper_->room(at_);
        if (room < kWorth) return 0;
        if (checked) save();
        return at_ + room;
    }

    // It is to be evaluated, looked at or written to in cycle `now`, and its inputs say that nothing comes.
    void catch_up(uint64_t now) {
        if (!keeper_ || at_ == now) return;
        if (saved_.empty()) {
            keeper_->pass(at_, now - at_, false);
        } else {
            compare(now - at_);
        }
        at_ = now;
    }

    // It is looked at in cycle `now`, and rests on. `keep` follows once its inputs are as whoever looks sees them: with
    // the check on the rest begins anew from there.
    void look(uint64_t now) {
        const bool checked = !saved_.empty();
        catch_up(now);
        if (checked) save();
    }
    void keep() {
        if (!saved_.empty()) save();
    }

    // An edge of a rest, with the check on: nothing may happen but what the clock does.
    void shadow() {
        if (saved_.empty()) return;
        layout_->step(model_);
        bool still = state_[layout_->quiet];
        for (const Layout::Ends& end : layout_->transmit) still = still && !state_[end.valid];
        for (const Layout::Ends& end : layout_->receive) still = still && !state_[end.credit_valid];
        for (const Event& event : events) still = still && *event.from == event.last;
        if (!still) not_quiet(path_, "moved", 0, layout_->state_bytes);
    }

private:
    // Fewer edges than this are not worth the trouble of resting.
    static constexpr uint64_t kWorth = 8;

    void save() { saved_.assign(state_, state_ + layout_->state_bytes); }

    // The instance has been evaluated over all `edges` of its rest. Bring it there from its state before as it is done
    // without the check: the same must come out.
    void compare(uint64_t edges) {
        const size_t bytes = layout_->state_bytes;
        layout_->settle_inputs(model_);
        const std::vector<uint8_t> stepped(state_, state_ + bytes);
        std::memcpy(state_, saved_.data(), bytes);
        keeper_->pass(at_, edges, true);
        layout_->settle_inputs(model_);
        saved_.clear();
        if (!std::memcmp(stepped.data(), state_, bytes)) return;
        size_t at = 0;
        while (stepped[at] == state_[at]) ++at;
        not_quiet(path_, "changed", at, bytes);
    }

    const std::string path_;
    void* const model_;
    uint8_t* const state_;
    const Layout* const layout_;
    const std::shared_ptr<Timekeeper> keeper_;
    uint64_t at_ = 0;  // the cycle of its state
    std::vector<uint8_t> saved_;
};

}  // namespace blocks
