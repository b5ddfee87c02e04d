// A system of blocks that are compiled once each: every instance is an object of its block's model, and the wires
// between them are copies in memory. So the code of all instances is the same and stays in the processor's caches,
// and an instance in which nothing happens is not evaluated (`part.h`).
//
// What it rests on (sim/build/composition.py): outputs of an instance depend on its registers, not on its inputs of the same
// cycle, but for those that go to the top module; and an instance that has been quiet for its settling time changes
// none of its registers until a flit, a credit, the top module's `attention`, its due time or Python comes. `check`
// compares all its registers over cycles that would have been left out. An instance with a clock of its own rests too
// (`own.h`). When all instances rest, time can pass over the cycles (`room`, `jump`).
//
// Blocks have `edge clk` where their Verilog said `posedge clk`, so that a cycle is one evaluation.
//
// A system may be cut at its links into parts, one a thread. What happens does not depend on the cut: see `part.h`.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bells.h"
#include "crew.h"
#include "cut.h"
#include "instance.h"
#include "layout.h"
#include "pages.h"
#include "part.h"
#include "turns.h"

namespace blocks {

// `kFlitBytes`: of a payload.
template <size_t kFlitBytes>
class System {
public:
    // Set up: threads, instances, then links, inputs of the top module, and `start`.

    // At most `count` threads: as many where the system is `worth` it, or so many if `worth` is false.
    void threads(unsigned count, bool worth, std::function<void()> prepare) {
        most_threads_ = count;
        if_worth_ = worth;
        prepare_ = std::move(prepare);
    }
    uint32_t add(Instance instance) {
        numbers_.emplace(instance.path, static_cast<uint32_t>(instances_.size()));
        if (!instance.clks.empty()) seen_.push_back(static_cast<uint32_t>(instances_.size()));
        instances_.push_back(std::move(instance));
        return static_cast<uint32_t>(instances_.size() - 1);
    }
    uint32_t input(void* to, uint32_t bytes, Kind kind) {
        inputs_.push_back({to, bytes, kind, std::vector<uint64_t>((bytes + 7) / 8)});
        return static_cast<uint32_t>(inputs_.size() - 1);
    }
    // Another path by which Python knows the scope `inner` of an instance.
    void name_scope(uint32_t i, const std::string& path, const std::string& inner) {
        numbers_.emplace(path, i);
        scopes_.emplace(path, inner);
    }
    void link(uint32_t from, uint32_t transmit, uint32_t to, uint32_t receive) {
        links_.push_back({from, transmit, to, receive});
        Instance &a = instances_[from], &b = instances_[to];
        const End &out = a.transmit[transmit], &in = b.receive[receive];
        if (!b.clks.empty()) {
            seen_wires_.push_back({out.payload, in.payload, kFlitBytes});
            seen_wires_.push_back({out.valid, in.valid, 1});
        }
        if (!a.clks.empty()) {
            seen_wires_.push_back({in.credit_vl, out.credit_vl, 1});
            seen_wires_.push_back({in.credit_valid, out.credit_valid, 1});
        }
    }
    // `addressed`: the number, plus 1, of the one instance that must not be left out; null if there is no such output.
    void start(const uint8_t* attention, const uint32_t* now, const uint16_t* addressed) {
        attention_ = attention;
        now_ = now;
        addressed_ = addressed;
        join_pages(instances_);
        split();
        if (parts_.size() > 1) {
            crew_.start(static_cast<unsigned>(parts_.size() - 1), [this](unsigned i) { parts_[i].step(cycle_); },
                        prepare_);
        }
    }

    // A cycle of all instances that are awake, with the top module's outputs as they are now. The top module may have
    // its edge between `begin` and `end`.
    void begin() {
        cycle_.outputs = layouts_.copy();
        cycle_.now = present();
        cycle_.parity ^= 1;
        cycle_.all = *attention_;
        cycle_.checked = checked_;
        cycle_.clocked_rest = clocked_rest_;
        if (addressed_ && *addressed_) wake_addressed(*addressed_ - 1);
        bells.answer([this](size_t address) { wake_addressed(address); });
        // Little to do is done sooner by one thread alone.
        together_ = parts_.size() > 1 && allowed_ && !checked_ && (cycle_.all || ran_ >= (if_worth_ ? kFew : parts_.size()));
        if (together_ && alone_) {
            --alone_;
            together_ = false;
        }
        if (together_) crew_.release();
    }
    void end() {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point began = together_ ? Clock::now() : Clock::time_point();
        parts_[0].step(cycle_);
        if (together_) {
            const Clock::time_point worked = Clock::now();
            crew_.wait();
            // Where other programs have the cores, one thread alone gets on faster than all that wait for each other.
            const bool late = Clock::now() - worked > 2 * (worked - began) + std::chrono::microseconds(100);
            alone_ = late ? penalty_ : 0;
            penalty_ = late ? std::min(2 * penalty_, kMostAlone) : kLeastAlone;
        } else {
            for (size_t i = 1; i < parts_.size(); ++i) parts_[i].step(cycle_);
        }
        ran_ = 0;
        for (const Part<kFlitBytes>& part : parts_) ran_ += part.ran;
        cycles_ += 1;
        for (size_t i = 0; i < inputs_.size(); ++i) join(i);
        if (parts_.size() == 1) return;
        for (Part<kFlitBytes>& part : parts_) {
            calls_.insert(calls_.end(), part.calls.begin(), part.calls.end());
            part.calls.clear();
        }
        make_calls(calls_);
    }

    // Python is about to write an input of this instance, or to look into it: it is brought to the present cycle.
    void catch_up(uint32_t i) { part(i).catch_up(places_[i].instance, present()); }

    // Python has written an input of this instance: what follows from it is seen in this cycle, by `settle_poked`.
    void poke(uint32_t i) {
        part(i).wake(places_[i].instance);
        poked_.push_back(i);
    }
    void settle_poked() {
        if (poked_.empty()) return;
        for (const uint32_t i : poked_) part(i).settle(places_[i].instance);
        poked_.clear();
        for (size_t i = 0; i < inputs_.size(); ++i) join(i);
    }

    // Raise event `number` when the one-bit output `from` of this instance changes.
    void watch(uint32_t i, const uint8_t* from, uint32_t number) { part(i).watch(places_[i].instance, from, number); }

    // Numbers of the events raised since this was called last.
    template <class Take>
    void take_events(Take take) {
        for (Part<kFlitBytes>& one : parts_) {
            for (const uint32_t number : one.events) take(number);
            one.events.clear();
        }
    }

    // Let instances with clocks of their own rest.
    void rest_clocked() { clocked_rest_ = true; }

    // Edges that time can pass over, as all instances rest; 0: none.
    uint64_t room() const {
        if (!clocked_rest_ || *attention_ || !idle()) return 0;
        const uint64_t due = next_due(), now = present();
        return due > now ? due - now : 0;
    }

    // Pass over so many edges, less than `room`: the top module's next one makes them good. What is shown is hidden.
    void jump(uint64_t edges) {
        hide();
        for (uint64_t edge = 0; checked_ && edge < edges; ++edge) {
            for (Part<kFlitBytes>& one : parts_) one.check_rest();
        }
        cycles_ += edges;
    }

    // What the instances' outputs are now, to the top module. Returns whether it has to be evaluated.
    bool deliver() {
        bool changed = false;
        for (const Input& input : inputs_) {
            if (std::memcmp(input.to, input.value.data(), input.bytes) == 0) continue;
            std::memcpy(input.to, input.value.data(), input.bytes);
            changed = true;
        }
        return changed;
    }

    // Python may have written any signal of any instance.
    void poke_all() {
        for (uint32_t i = 0; i < instances_.size(); ++i) {
            catch_up(i);
            poke(i);
        }
    }

    // Have the instances that are looked into (`Instance::clks`) show what they would in one model, whose clock is at
    // `level`: all that follows from the outputs of others as they are now, valid or not, and that clock. Their own one
    // takes turns, an edge a cycle: it is put back by `hide`, before they are evaluated again.
    void show(uint8_t level) {
        shown_ = true;
        for (const uint32_t i : seen_) part(i).look(places_[i].instance, present());
        for (const Broadcast& one : seen_wires_) std::memcpy(one.to, one.from, one.bytes);
        for (const uint32_t i : seen_) {
            Instance& instance = instances_[i];
            for (const Broadcast& one : instance.broadcasts) std::memcpy(one.to, one.from, one.bytes);
            instance.settle_inputs(instance.model);
            part(i).keep(places_[i].instance);
            instance.own_clks.clear();
            for (uint8_t* const clk : instance.clks) {
                instance.own_clks.push_back(*clk);
                *clk = level;
            }
        }
    }
    void hide() {
        if (!shown_) return;
        shown_ = false;
        for (const uint32_t i : seen_) {
            Instance& instance = instances_[i];
            for (size_t k = 0; k < instance.own_clks.size(); ++k) *instance.clks[k] = instance.own_clks[k];
        }
    }
    // Add them to a waveform.
    void trace(VerilatedTraceBaseC* file) {
        for (const uint32_t i : seen_) instances_[i].trace(file);
    }

    // Have every instance that is left out evaluated all the same, and end the program if a register changes.
    void check_all() { checked_ = true; }

    // Whether no instance is awake, nor anything on its way to one: none is evaluated in the next cycle unless `now`
    // has come to `next_due`, or the top module says so.
    bool idle() const {
        return std::all_of(parts_.begin(), parts_.end(),
                           [this](const Part<kFlitBytes>& part) { return part.idle(cycle_.parity ^ 1); });
    }
    // The least time of `now`, counted on beyond its 32 bits, at which an instance is due; kNever if none is.
    uint64_t next_due() const {
        uint64_t least = kNever;
        for (const Part<kFlitBytes>& part : parts_) least = std::min(least, part.next_due());
        return least;
    }

    // The number of the instance that the scope at `path` is, or is in; -1 if there is none.
    int64_t find(std::string path) const {
        for (;;) {
            if (const auto found = numbers_.find(path); found != numbers_.end()) return found->second;
            const size_t dot = path.rfind('.');
            if (dot == std::string::npos) return -1;
            path.resize(dot);
        }
    }
    // The name of a scope of instance `i` for which Python has another path.
    std::string scope(uint32_t i, const std::string& path) const {
        const auto found = scopes_.find(path);
        return found == scopes_.end() ? path : instances_[i].path + "." + found->second;
    }
    const Port* port(uint32_t i, const std::string& scope, const std::string& name) const {
        if (instances_[i].path != scope) return nullptr;
        for (const Port& one : instances_[i].ports) {
            if (one.name == name) return &one;
        }
        return nullptr;
    }
    uint64_t evaluated() const {
        uint64_t sum = 0;
        for (const Part<kFlitBytes>& part : parts_) sum += part.evaluated;
        return sum;
    }
    uint64_t total() const { return cycles_ * instances_.size(); }
    // Have all threads at work from the next cycle on, or the main one alone.
    void use_threads(bool all) { allowed_ = all; }
    unsigned threads() const { return static_cast<unsigned>(parts_.size()); }

    Bells bells;  // by the addresses of instances

private:
    // Instances a thread from which on it pays by itself, and instances awake from which on all threads are called then.
    static constexpr size_t kWorth = 64, kFew = 32;
    // Cycles that one thread does alone when another had no core: twice as many each time that happens again.
    static constexpr uint64_t kLeastAlone = 8, kMostAlone = 4096;

    struct Input {
        void* to;
        uint32_t bytes;
        Kind kind;
        std::vector<uint64_t> value;
    };
    struct Link {
        uint32_t from, transmit, to, receive;
    };
    struct Place {
        uint16_t part;
        uint32_t instance;
    };

    void split() {
        const size_t count = instances_.size();
        size_t threads = std::min<size_t>(if_worth_ ? count / kWorth : count, most_threads_);
        threads = std::max<size_t>(1, std::min<size_t>(threads, 1024));
        std::vector<uint16_t> part_of(count);
        if (threads > 1) {
            std::vector<uint64_t> weights;
            std::vector<std::pair<uint32_t, uint32_t>> pairs;
            for (const Instance& one : instances_) weights.push_back(1 + one.transmit.size());
            for (const Link& one : links_) pairs.emplace_back(one.from, one.to);
            part_of = Cut(std::move(weights), pairs).parts(static_cast<uint16_t>(threads));
        }
        for (size_t i = 0; i < threads; ++i) parts_.emplace_back();
        places_.resize(count);
        for (uint32_t i = 0; i < count; ++i) {
            const uint16_t part = part_of[i];
            const Instance& instance = instances_[i];
            places_[i] = {part, parts_[part].add(instance, layouts_.of(instance), i)};
            if (instance.address < 0) continue;
            const size_t address = static_cast<size_t>(instance.address);
            if (addresses_.size() <= address) addresses_.resize(address + 1);
            addresses_[address] = places_[i];
        }
        for (const Link& one : links_) {
            const Place &a = places_[one.from], &b = places_[one.to];
            parts_[a.part].link(a.instance, one.transmit, parts_[b.part], b.part, b.instance, one.receive, a.part);
        }
        std::vector<Joined> joined;
        for (const Input& input : inputs_) joined.push_back({input.kind, std::vector<uint64_t>(input.value.size())});
        for (size_t i = 0; i < threads; ++i) parts_[i].start(parts_, static_cast<uint16_t>(i), joined);
    }

    void wake_addressed(size_t address) {
        if (address < addresses_.size()) parts_[addresses_[address].part].wake(addresses_[address].instance);
    }

    Part<kFlitBytes>& part(uint32_t i) { return parts_[places_[i].part]; }

    // The top module's `now`, counted on beyond its 32 bits.
    uint64_t present() const { return cycle_.now + static_cast<uint32_t>(*now_ - static_cast<uint32_t>(cycle_.now)); }

    // The value of an input: what all parts have for it.
    void join(size_t i) {
        Input& input = inputs_[i];
        std::fill(input.value.begin(), input.value.end(), 0);
        for (const Part<kFlitBytes>& part : parts_) {
            const std::vector<uint64_t>& words = part.joined()[i].words;
            if (input.kind == Kind::kSum) {
                input.value[0] = static_cast<uint32_t>(input.value[0] + words[0]);
            } else {
                for (size_t word = 0; word < words.size(); ++word) input.value[word] |= words[word];
            }
        }
    }

    std::vector<Instance> instances_;
    std::unordered_map<std::string, uint32_t> numbers_;
    std::unordered_map<std::string, std::string> scopes_;
    std::vector<Input> inputs_;
    std::vector<Link> links_;
    std::vector<uint32_t> seen_;
    std::vector<Broadcast> seen_wires_;
    std::vector<Place> places_, addresses_;
    Layouts layouts_;
    std::deque<Part<kFlitBytes>> parts_;
    std::vector<Call> calls_;
    std::vector<uint32_t> poked_;
    const uint8_t* attention_ = nullptr;
    const uint32_t* now_ = nullptr;
    const uint16_t* addressed_ = nullptr;
    Cycle cycle_{};
    bool checked_ = false, clocked_rest_ = false, together_ = false, allowed_ = true, if_worth_ = true;
    bool shown_ = false;
    unsigned most_threads_ = 1;
    std::function<void()> prepare_ = [] {};
    uint64_t ran_ = 0, cycles_ = 0, alone_ = 0, penalty_ = kLeastAlone;
    Crew crew_;  // last: its threads end before what they work on
};

}  // namespace blocks
