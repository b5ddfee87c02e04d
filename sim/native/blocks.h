// A system of blocks that are compiled once each: every instance is an object of its block's model, and the wires
// between them are copies in memory. So the code of all instances is the same and stays in the processor's caches,
// and an instance in which nothing happens is not evaluated (`System::step`).
//
// What it rests on (sim/build/composition.py): outputs of an instance depend on its registers, not on its inputs of the same
// cycle, but for those that go to the top module; and an instance that has been quiet for its settling time changes
// none of its registers until a flit, a credit, the top module's `attention` or its due time comes. `check` compares
// all its registers over cycles that would have been left out.
//
// Blocks have `edge clk` where their Verilog said `posedge clk`, so that a cycle is one evaluation.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

class VerilatedContext;

namespace blocks {

// One end of a link: the flit's wires and those of its credits, as the model has them.
struct End {
    void* payload;
    uint8_t* valid;
    uint8_t* credit_vl;
    uint8_t* credit_valid;
};

enum class Kind { kBit, kOr, kSum };

// An output that goes to an input of the top module: as bit `bit` of it, ORed or added to those of other instances.
struct Output {
    Kind kind;
    const void* from;
    uint32_t bytes;
    uint32_t input;
    uint32_t bit;
    uint64_t last;
};

// An output of the top module that an instance has as an input.
struct Broadcast {
    const void* from;
    void* to;
    uint32_t bytes;
};

struct Instance {
    std::string path, module;
    void* model;
    void (*step)(void*);
    void (*settle_inputs)(void*);
    const uint8_t* quiet;
    uint32_t settle;
    std::vector<End> transmit, receive;
    std::vector<Output> outputs;
    std::vector<Broadcast> broadcasts;
    const uint8_t* waiting;                // a bit for each of `due`, or null
    std::vector<const uint32_t*> due;
    void* state;
    size_t state_bytes;
};

// A wire with its valid bit.
struct Wire {
    const uint8_t* valid;
    uint8_t* to_valid;
    const void* data;
    void* to_data;
    uint32_t to;
};

inline uint64_t read(const void* from, uint32_t bytes) {
    switch (bytes) {
        case 1: return *static_cast<const uint8_t*>(from);
        case 2: return *static_cast<const uint16_t*>(from);
        case 4: return *static_cast<const uint32_t*>(from);
        default: return *static_cast<const uint64_t*>(from);
    }
}

// The next edge: a cycle.
template <class Model>
void step(void* model) {
    Model* const m = static_cast<Model*>(model);
    m->clk = !m->clk;
    m->eval();
}

// No edge: what follows from inputs.
template <class Model>
void settle_inputs(void* model) {
    static_cast<Model*>(model)->eval();
}

// `kFlitBytes`: of a payload.
template <size_t kFlitBytes>
class System {
public:
    // Set up: instances, then links, inputs of the top module, and `start`.
    uint32_t add(Instance instance) {
        instances_.push_back(std::move(instance));
        return static_cast<uint32_t>(instances_.size() - 1);
    }
    uint32_t input(void* to, uint32_t bytes) {
        inputs_.push_back({to, bytes, std::vector<uint8_t>(bytes < 8 ? 8 : bytes)});
        return static_cast<uint32_t>(inputs_.size() - 1);
    }
    void link(uint32_t from, uint32_t transmit, uint32_t to, uint32_t receive) {
        const End &a = instances_[from].transmit[transmit], &b = instances_[to].receive[receive];
        all_flits_.push_back({from, {a.valid, b.valid, a.payload, b.payload, to}});
        all_credits_.push_back({to, {b.credit_valid, a.credit_valid, b.credit_vl, a.credit_vl, from}});
    }
    void start(const uint8_t* attention, const uint32_t* now) {
        attention_ = attention;
        now_ = now;
        const size_t count = instances_.size();
        gather(all_flits_, flits_, flits_from_);
        gather(all_credits_, credits_, credits_from_);
        awake_.assign(count, 1);
        quiet_cycles_.assign(count, 0);
        due_.assign(count, 0);
        timed_.assign(count, 0);
    }

    // A cycle of all instances that are awake, with the top module's outputs as they are before its edge.
    void step() {
        const uint32_t now = *now_;
        const uint32_t count = static_cast<uint32_t>(instances_.size());
        const bool all = *attention_;
        running_.clear();
        for (uint32_t i = 0; i < count; ++i) {
            const bool is_due = !awake_[i] && timed_[i] && static_cast<int32_t>(now - due_[i]) >= 0;
            if (all || is_due) {
                awake_[i] = 1;
                quiet_cycles_[i] = 0;
            }
            if (awake_[i]) {
                running_.push_back(i);
            } else if (checked_) {
                check(i);
            }
        }
        for (const uint32_t i : running_) {
            Instance& instance = instances_[i];
            for (const Broadcast& one : instance.broadcasts) std::memcpy(one.to, one.from, one.bytes);
            instance.step(instance.model);
        }
        for (Input& input : inputs_) {
            if (input.merged) std::memset(input.value.data(), 0, input.value.size());
        }
        for (const uint32_t i : running_) {
            pass<kFlitBytes>(flits_, flits_from_, i);
            pass<1>(credits_, credits_from_, i);
        }
        for (const uint32_t i : running_) finish(i, now);
        evaluated_ += running_.size();
        cycles_ += 1;
    }

    // What the instances' outputs are now, to the top module. Returns whether it has to be evaluated.
    bool deliver() {
        bool changed = false;
        for (Input& input : inputs_) {
            if (std::memcmp(input.to, input.value.data(), input.bytes) == 0) continue;
            std::memcpy(input.to, input.value.data(), input.bytes);
            changed = true;
        }
        return changed;
    }

    // Mark an input of the top module whose value is made anew every cycle.
    void merge(uint32_t input) { inputs_[input].merged = true; }

    // Have every instance that is left out evaluated all the same, and end the program if a register changes.
    void check_all() { checked_ = true; }

    const Instance* find(const std::string& path) const {
        for (const Instance& instance : instances_) {
            if (instance.path == path) return &instance;
        }
        return nullptr;
    }
    uint64_t evaluated() const { return evaluated_; }
    uint64_t total() const { return cycles_ * instances_.size(); }

private:
    struct Input {
        void* to;
        uint32_t bytes;
        std::vector<uint8_t> value;
        bool merged = false;
    };
    struct Owned {
        uint32_t from;
        Wire wire;
    };

    void gather(const std::vector<Owned>& all, std::vector<Wire>& wires, std::vector<uint32_t>& begins) {
        for (uint32_t i = 0; i < instances_.size(); ++i) {
            begins.push_back(static_cast<uint32_t>(wires.size()));
            for (const Owned& one : all) {
                if (one.from == i) wires.push_back(one.wire);
            }
        }
        begins.push_back(static_cast<uint32_t>(wires.size()));
    }

    template <size_t kBytes>
    void pass(const std::vector<Wire>& wires, const std::vector<uint32_t>& begins, uint32_t instance) {
        const Wire* const end = wires.data() + begins[instance + 1];
        for (const Wire* wire = wires.data() + begins[instance]; wire != end; ++wire) {
            const uint8_t valid = *wire->valid;
            *wire->to_valid = valid;
            if (!valid) continue;
            std::memcpy(wire->to_data, wire->data, kBytes);
            awake_[wire->to] = 1;
            quiet_cycles_[wire->to] = 0;
        }
    }

    void finish(uint32_t i, uint32_t now) {
        Instance& instance = instances_[i];
        for (Output& output : instance.outputs) {
            const uint64_t value = read(output.from, output.bytes);
            Input& input = inputs_[output.input];
            if (output.kind == Kind::kOr) {
                if (value) {
                    uint64_t sum;
                    std::memcpy(&sum, input.value.data(), 8);
                    sum |= value;
                    std::memcpy(input.value.data(), &sum, 8);
                }
            } else if (value != output.last) {
                if (output.kind == Kind::kBit) {
                    input.value[output.bit / 8] ^= 1 << output.bit % 8;
                } else {
                    uint32_t sum;
                    std::memcpy(&sum, input.value.data(), 4);
                    sum += static_cast<uint32_t>(value - output.last);
                    std::memcpy(input.value.data(), &sum, 4);
                }
                output.last = value;
            }
        }
        if (!*instance.quiet) {
            quiet_cycles_[i] = 0;
            return;
        }
        if (++quiet_cycles_[i] <= instance.settle) return;
        awake_[i] = 0;
        timed_[i] = 0;
        int32_t least = INT32_MAX;
        for (size_t c = 0; c < instance.due.size(); ++c) {
            if (!(*instance.waiting >> c & 1)) continue;
            const int32_t left = static_cast<int32_t>(*instance.due[c] - now);
            if (!timed_[i] || left < least) least = left;
            timed_[i] = 1;
        }
        due_[i] = now + static_cast<uint32_t>(least);
    }

    void check(uint32_t i) {
        Instance& instance = instances_[i];
        for (const Broadcast& one : instance.broadcasts) std::memcpy(one.to, one.from, one.bytes);
        instance.settle_inputs(instance.model);
        const uint8_t* const state = static_cast<const uint8_t*>(instance.state);
        before_.assign(state, state + instance.state_bytes);
        instance.step(instance.model);
        instance.step(instance.model);  // twice, for the clock to be as it was
        if (std::memcmp(before_.data(), state, instance.state_bytes) == 0) return;
        size_t at = 0;
        while (before_[at] == state[at]) ++at;
        std::fprintf(stderr, "%s changed at byte %zu of %zu though it was quiet\n", instance.path.c_str(), at,
                     instance.state_bytes);
        std::exit(3);
    }

    std::vector<Instance> instances_;
    std::vector<Input> inputs_;
    std::vector<Owned> all_flits_, all_credits_;
    std::vector<Wire> flits_, credits_;
    std::vector<uint32_t> flits_from_, credits_from_;
    std::vector<uint8_t> awake_, timed_;
    std::vector<uint32_t> quiet_cycles_, due_, running_;
    std::vector<uint8_t> before_;
    const uint8_t* attention_ = nullptr;
    const uint32_t* now_ = nullptr;
    bool checked_ = false;
    uint64_t evaluated_ = 0, cycles_ = 0;
};

}  // namespace blocks
