// The instances that one thread evaluates. Those in which nothing happens are left out.
//
// What an instance sends in a cycle waits in the mail of the receiver's part, and reaches the receiver's inputs when it
// is evaluated next. There are two sets of mail, for even and for odd cycles, so nobody reads what others write in the
// same cycle: parts may be evaluated in any order, or at the same time.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "instance.h"
#include "own.h"
#include "turns.h"

namespace blocks {

constexpr uint64_t kNever = ~uint64_t{0};

// Set bits of a map, in order. `f` may clear the bit that it is called for.
template <class Function>
void each_bit(uint64_t bits, Function f) {
    for (; bits; bits &= bits - 1) f(static_cast<uint32_t>(__builtin_ctzll(bits)));
}

// What an input of the top module gets from one part.
struct Joined {
    Kind kind;
    std::vector<uint64_t> words;
};

// What all parts see of a cycle.
struct Cycle {
    const uint8_t* outputs;  // copies of the top module's
    uint64_t now;
    uint32_t parity;
    bool all;                // nobody may be left out
    bool checked;            // evaluate also what is left out, to see that nothing changes there
    bool clocked_rest;       // instances with clocks of their own may rest, too
};

// `kFlitBytes`: of a payload.
template <size_t kFlitBytes>
class Part {
public:
    // The far end of a link: a place in the mail of a part. `part` is kNowhere if the port leads nowhere.
    struct Target {
        uint32_t slot, instance;
        uint16_t part;
        uint16_t end;
    };
    static constexpr uint16_t kNowhere = 0xffff;

    uint32_t add(const Instance& instance, const Layout* layout, uint32_t number) {
        Member one{};
        one.layout = layout;
        one.state = static_cast<uint8_t*>(instance.state);
        one.model = instance.model;
        one.number = number;
        one.targets = static_cast<uint32_t>(targets_.size());
        one.flit_slots = static_cast<uint32_t>(flits_[0].size());
        one.credit_slots = static_cast<uint32_t>(credits_[0].size());
        one.bit = instance.outputs.empty() ? 0 : instance.outputs.front().bit;
        const size_t transmit = layout->transmit.size(), receive = layout->receive.size();
        targets_.resize(targets_.size() + transmit + receive, Target{0, 0, kNowhere, 0});
        sums_at_.push_back(static_cast<uint32_t>(sums_.size()));
        sums_.resize(sums_.size() + layout->outputs.size());
        for (int parity = 0; parity < 2; ++parity) {
            flits_[parity].resize(flits_[parity].size() + receive);
            credits_[parity].resize(credits_[parity].size() + transmit);
        }
        if (instance.keeper || !instance.ports.empty()) {
            owns_.emplace_back(instance, layout);
            one.own = &owns_.back();
        }
        members_.push_back(one);
        paths_.push_back(instance.path);
        return static_cast<uint32_t>(members_.size() - 1);
    }

    // `parts`: all, this one at `self`. `joined`: the top module's inputs, empty. Called when all instances are added.
    void start(std::deque<Part>& parts, uint16_t self, std::vector<Joined> joined) {
        parts_ = &parts;
        self_ = self;
        joined_ = std::move(joined);
        const size_t words = (members_.size() + 63) / 64;
        awake_.assign(words, 0);
        arrived_.assign(words, 0);
        due_.assign(members_.size(), kNever);
        mail_.resize(parts.size());
        for (Mail& mail : mail_) {
            for (int parity = 0; parity < 2; ++parity) {
                mail.woken[parity].assign(words, 0);
                mail.arrivals[parity].assign(members_.size(), Arrivals{0, 0});
            }
        }
        wake_all();
    }

    // Links from end `transmit` of an instance here to end `receive` of instance `to` in part `there`.
    void link(uint32_t from, uint32_t transmit, Part& there, uint16_t part, uint32_t to, uint32_t receive, uint16_t self) {
        Member &a = members_[from], &b = there.members_[to];
        targets_[a.targets + transmit] = {b.flit_slots + receive, to, part, static_cast<uint16_t>(receive)};
        there.targets_[b.targets + b.layout->transmit.size() + receive] = {
            a.credit_slots + transmit, from, self, static_cast<uint16_t>(transmit)};
    }

    void wake(uint32_t i) {
        awake_[i / 64] |= uint64_t{1} << i % 64;
        members_[i].quiet_cycles = 0;
    }

    // Python is about to write an input of the instance in cycle `now`, or to look into it.
    void catch_up(uint32_t i, uint64_t now) {
        if (members_[i].own) members_[i].own->catch_up(now);
    }

    // The instance is shown as it is in cycle `now`; its inputs are now those that are shown.
    void look(uint32_t i, uint64_t now) {
        if (members_[i].own) members_[i].own->look(now);
    }
    void keep(uint32_t i) {
        if (members_[i].own) members_[i].own->keep();
    }

    // Python has written an input of the instance: what follows from it is seen in this cycle.
    void settle(uint32_t i) {
        const Member& one = members_[i];
        one.layout->settle_inputs(one.model);
        tell(i, one);
    }

    // Raise event `number` when the one-bit output `from` of the instance changes.
    void watch(uint32_t i, const uint8_t* from, uint32_t number) {
        members_[i].own->events.push_back({from, number, *from});
    }

    // As `step` has it for cycles that are passed over, with the check on.
    void check_rest() {
        for (Own& own : owns_) own.shadow();
    }

    // A cycle of all instances here that are awake.
    void step(const Cycle& cycle) {
        Turn& mine = turn;
        mine.kept = parts_->size() > 1 ? &calls : nullptr;
        for (Joined& one : joined_) {
            if (one.kind == Kind::kOr) one.words.assign(one.words.size(), 0);
        }
        if (cycle.all) wake_all();
        if (cycle.now >= next_due_) wake_due(cycle.now);
        collect(cycle.parity);
        uint64_t running = 0;
        for (size_t word = 0; word < awake_.size(); ++word) {
            const uint64_t bits = awake_[word], arrived = arrived_[word];
            running += __builtin_popcountll(bits);
            if (cycle.checked) {
                const uint64_t last = members_.size() - 64 * word;
                each_bit(~bits & (last < 64 ? (uint64_t{1} << last) - 1 : kNever), [&](uint32_t bit) {
                    check(static_cast<uint32_t>(64 * word + bit), cycle);
                });
            }
            each_bit(bits, [&](uint32_t bit) {
                const uint32_t i = static_cast<uint32_t>(64 * word + bit);
                const uint64_t later = bits & ~((uint64_t{2} << bit) - 1);
                if (later) fetch(members_[64 * word + static_cast<uint32_t>(__builtin_ctzll(later))]);
                mine.instance = members_[i].number;
                run(i, cycle, arrived >> bit & 1);
            });
        }
        mine.kept = nullptr;
        ran = running;
        evaluated += running;
    }

    // Whether no instance is awake, or is going to be before its time comes.
    bool idle(uint32_t parity) const {
        for (const uint64_t word : awake_) {
            if (word) return false;
        }
        for (const Mail& mail : mail_) {
            for (const uint64_t word : mail.woken[parity]) {
                if (word) return false;
            }
        }
        return true;
    }
    uint64_t next_due() const { return next_due_; }

    const std::vector<Joined>& joined() const { return joined_; }

    std::vector<Call> calls;  // kept back in this cycle
    std::vector<uint32_t> events;  // raised since they were last taken
    uint64_t ran = 0;         // instances evaluated in the last cycle
    uint64_t evaluated = 0;   // and in all

private:
    // What has come for an instance: a bit for each of its ends.
    struct Arrivals {
        uint64_t flits, credits;
    };
    // What one part has sent here.
    struct Mail {
        std::vector<uint64_t> woken[2];
        std::vector<Arrivals> arrivals[2];
    };
    struct Member {
        const Layout* layout;
        uint8_t* state;
        void* model;
        Own* own;                 // or null
        uint64_t flits, credits;  // the ends whose inputs say `valid`
        uint32_t number, bit, targets, flit_slots, credit_slots, quiet_cycles;
    };
    using Flit = std::array<uint8_t, kFlitBytes>;

    void wake_all() {
        for (uint32_t i = 0; i < members_.size(); ++i) wake(i);
    }

    // Wake those whose time has come, and find the next one's. Times are few against evaluations.
    void wake_due(uint64_t now) {
        next_due_ = kNever;
        for (uint32_t i = 0; i < members_.size(); ++i) {
            if (due_[i] <= now) {
                due_[i] = kNever;
                if (!(awake_[i / 64] >> i % 64 & 1)) wake(i);
            }
            if (due_[i] < next_due_) next_due_ = due_[i];
        }
    }

    // Wake those that something has come for.
    void collect(uint32_t parity) {
        std::fill(arrived_.begin(), arrived_.end(), 0);
        for (Mail& mail : mail_) {
            std::vector<uint64_t>& woken = mail.woken[parity];
            for (size_t word = 0; word < woken.size(); ++word) {
                if (!woken[word]) continue;
                arrived_[word] |= woken[word];
                each_bit(woken[word], [&](uint32_t bit) {
                    members_[64 * word + bit].quiet_cycles = 0;
                });
                woken[word] = 0;
            }
        }
        for (size_t word = 0; word < awake_.size(); ++word) awake_[word] |= arrived_[word];
    }

    // What has come, and what the top module says, to an instance's inputs.
    void receive(Member& one, uint32_t i, const Cycle& cycle, bool arrived) {
        const Layout& layout = *one.layout;
        Arrivals got{0, 0};
        if (arrived) {
            for (Mail& mail : mail_) {
                Arrivals& from = mail.arrivals[cycle.parity][i];
                got.flits |= from.flits;
                got.credits |= from.credits;
                from = {0, 0};
            }
        }
        uint8_t* const state = one.state;
        each_bit(one.flits & ~got.flits, [&](uint32_t end) { state[layout.receive[end].valid] = 0; });
        each_bit(got.flits, [&](uint32_t end) {
            state[layout.receive[end].valid] = 1;
            std::memcpy(state + layout.receive[end].payload, &flits_[cycle.parity][one.flit_slots + end], kFlitBytes);
        });
        each_bit(one.credits & ~got.credits, [&](uint32_t end) { state[layout.transmit[end].credit_valid] = 0; });
        each_bit(got.credits, [&](uint32_t end) {
            state[layout.transmit[end].credit_valid] = 1;
            state[layout.transmit[end].credit_vl] = credits_[cycle.parity][one.credit_slots + end];
        });
        one.flits = got.flits;
        one.credits = got.credits;
        for (const Layout::Copy& copy : layout.broadcasts) {
            std::memcpy(state + copy.to, cycle.outputs + copy.from, copy.bytes);
        }
    }

    // Bring the beginning of an instance's state, its ports and registers, towards the processor: it is next. The states
    // of a large system together are more than the near caches hold.
    static void fetch(const Member& one) {
        constexpr size_t kLine = 64, kLines = 32;
        const size_t lines = std::min(kLines, one.layout->state_bytes / kLine);
        __builtin_prefetch(one.model);
        for (size_t line = 0; line < lines; ++line) __builtin_prefetch(one.state + line * kLine, 1);
    }

    void run(uint32_t i, const Cycle& cycle, bool arrived) {
        Member& one = members_[i];
        const Layout& layout = *one.layout;
        if (one.own) one.own->catch_up(cycle.now);
        receive(one, i, cycle, arrived);
        layout.step(one.model);
        if (one.own) one.own->stepped(cycle.now);
        const uint8_t* const state = one.state;
        const Target* target = &targets_[one.targets];
        const uint32_t parity = cycle.parity ^ 1;
        for (const Layout::Ends& end : layout.transmit) {
            if (state[end.valid] && target->part != kNowhere) {
                Part& there = (*parts_)[target->part];
                std::memcpy(&there.flits_[parity][target->slot], state + end.payload, kFlitBytes);
                there.post(parity, self_, *target).flits |= uint64_t{1} << target->end;
            }
            ++target;
        }
        for (const Layout::Ends& end : layout.receive) {
            if (state[end.credit_valid] && target->part != kNowhere) {
                Part& there = (*parts_)[target->part];
                there.credits_[parity][target->slot] = state[end.credit_vl];
                there.post(parity, self_, *target).credits |= uint64_t{1} << target->end;
            }
            ++target;
        }
        tell(i, one);
        rest(i, one, cycle);
    }

    Arrivals& post(uint32_t parity, uint16_t from, const Target& target) {
        Mail& mail = mail_[from];
        mail.woken[parity][target.instance / 64] |= uint64_t{1} << target.instance % 64;
        return mail.arrivals[parity][target.instance];
    }

    // An instance's outputs to the top module and to Python.
    void tell(uint32_t i, const Member& one) {
        uint32_t* sum = sums_.data() + sums_at_[i];
        for (const Layout::Place& output : one.layout->outputs) {
            const uint64_t value = read(one.state + output.at, output.bytes);
            std::vector<uint64_t>& words = joined_[output.input].words;
            switch (static_cast<Kind>(output.kind)) {
                case Kind::kOr: words[0] |= value; break;
                case Kind::kBit: {
                    const uint64_t bit = uint64_t{1} << one.bit % 64;
                    uint64_t& word = words[one.bit / 64];
                    word = value ? word | bit : word & ~bit;
                    break;
                }
                case Kind::kSum:
                    words[0] = static_cast<uint32_t>(words[0] + value - *sum);
                    *sum = static_cast<uint32_t>(value);
            }
            ++sum;
        }
        if (!one.own) return;
        for (Event& event : one.own->events) {
            if (*event.from == event.last) continue;
            event.last = *event.from;
            events.push_back(event.number);
        }
    }

    // Whether an instance is left out from now on, and until when.
    void rest(uint32_t i, Member& one, const Cycle& cycle) {
        const Layout& layout = *one.layout;
        if (!one.state[layout.quiet]) {
            one.quiet_cycles = 0;
            return;
        }
        if (++one.quiet_cycles <= layout.settle) return;
        const uint64_t now = cycle.now;
        uint64_t until = kNever;
        if (one.own && one.own->clocked()) {
            until = cycle.clocked_rest ? one.own->rests_until(cycle.checked) : 0;
            if (!until) return;
        }
        awake_[i / 64] &= ~(uint64_t{1} << i % 64);
        due_[i] = until;
        for (size_t c = 0; c < layout.due.size(); ++c) {
            if (!(one.state[layout.waiting] >> c & 1)) continue;
            const uint32_t due = static_cast<uint32_t>(read(one.state + layout.due[c], 4));
            const int32_t left = static_cast<int32_t>(due - static_cast<uint32_t>(now));
            const uint64_t when = left > 0 ? now + static_cast<uint64_t>(left) : now;
            if (when < due_[i]) due_[i] = when;
        }
        if (due_[i] < next_due_) next_due_ = due_[i];
    }

    // Evaluate an instance that is left out, and end the program if a register changes.
    void check(uint32_t i, const Cycle& cycle) {
        Member& one = members_[i];
        const Layout& layout = *one.layout;
        if (one.own && one.own->clocked()) return one.own->shadow();
        receive(one, i, cycle, false);
        layout.settle_inputs(one.model);
        before_.assign(one.state, one.state + layout.state_bytes);
        layout.step(one.model);
        layout.step(one.model);  // twice, for the clock to be as it was
        if (std::memcmp(before_.data(), one.state, layout.state_bytes) == 0) return;
        size_t at = 0;
        while (before_[at] == one.state[at]) ++at;
        not_quiet(paths_[i], "changed", at, layout.state_bytes);
    }

    std::deque<Part>* parts_ = nullptr;
    uint16_t self_ = 0;
    std::vector<Member> members_;
    std::deque<Own> owns_;
    std::vector<std::string> paths_;
    std::vector<Target> targets_;
    std::vector<Flit> flits_[2];
    std::vector<uint8_t> credits_[2];
    std::vector<Mail> mail_;
    std::vector<uint64_t> awake_, arrived_, due_;
    std::vector<uint32_t> sums_, sums_at_;
    std::vector<Joined> joined_;
    uint64_t next_due_ = kNever;
    std::vector<uint8_t> before_;
};

}  // namespace blocks
