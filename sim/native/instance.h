// What a system of blocks is put together from: instances, as the text of a composition (sim/build/composition.py) has
// them.

#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class VerilatedTraceBaseC;

namespace blocks {

// One end of a link: the flit's wires and those of its credits, as the model has them.
struct End {
    void* payload;
    uint8_t* valid;
    uint8_t* credit_vl;
    uint8_t* credit_valid;
};

enum class Kind : uint8_t { kBit, kOr, kSum };

// An output that goes to an input of the top module: as bit `bit` of it, ORed or added to those of other instances.
struct Output {
    Kind kind;
    const void* from;
    uint32_t bytes;
    uint32_t input;
    uint32_t bit;
};

// An output of the top module that an instance has as an input.
struct Broadcast {
    const void* from;
    void* to;
    uint32_t bytes;
};

// A port that Python reads or writes.
struct Port {
    std::string name;
    void* data;
    uint32_t bits, bytes;
};

// The clock of an instance that counts cycles while nothing else happens in it.
class Timekeeper {
public:
    virtual ~Timekeeper() = default;
    // Edges that may go by unseen from the state of cycle `now` on; 0: none.
    virtual uint64_t room(uint64_t now) const = 0;
    // Bring the instance from cycle `now` to where so many edges, at most `room`, would have brought it with nothing at
    // its inputs. `alike`: the level of `clk` must be the same, too.
    virtual void pass(uint64_t now, uint64_t edges, bool alike) = 0;
};

// An instance of a block. Its pointers lie in its `state`, but for `from` of broadcasts.
struct Instance {
    std::string path;
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
    int64_t address;                       // its number for the top module's `addressed`, -1 if it has none
    std::vector<uint8_t*> clks;            // those that waves or Python look at, if any
    std::vector<uint8_t> own_clks;         // their values for the model meanwhile
    std::function<void(VerilatedTraceBaseC*)> trace;
    void* state;
    size_t state_bytes;
    std::shared_ptr<Timekeeper> keeper;    // or null
    std::vector<Port> ports;
    std::vector<std::pair<std::string, std::string>> scopes;  // paths that Python knows inner scopes by, and their names
};

// The next edge of a model, whose evaluation is `kEvaluate`: a cycle.
template <class Model, void (*kEvaluate)(Model*)>
void step(void* model) {
    Model* const m = static_cast<Model*>(model);
    m->clk = !m->clk;
    kEvaluate(m);
}

// No edge: what follows from inputs.
template <class Model, void (*kEvaluate)(Model*)>
void settle_inputs(void* model) {
    kEvaluate(static_cast<Model*>(model));
}

// An evaluation with all that Verilator has around it: messages, objects of classes, and what waves need.
template <class Model>
void evaluate(Model* model) {
    model->eval();
}

}  // namespace blocks
