// The clock of one instance that rests (blocks.h): where it stands after so many cycles in which nothing else happens.
//
// The model is a node of a cluster (sim/systems/node_block.py). What it can rest over is what skip.h says of a whole
// cluster: its timer, the dispatch of a flow, and the reach of its clock end it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "instance.h"

namespace blocks {

// A prescaler of `num` / `den` cycles a tick and a clock of `bits`; at most `reach` ticks are passed over at once, by
// multiples of `round` cycles at an edge, and none once `horizon` cycles have gone by.
struct ClockRates {
    uint64_t num, den;
    unsigned bits;
    uint64_t reach, round, horizon;
};

template <class Model>
class Clocked : public Timekeeper {
public:
    Clocked(Model* model, const ClockRates& rates) : m(model), r(rates) {}

    uint64_t room(uint64_t cycle) const override {
        if (cycle > r.horizon) return 0;
        const uint64_t mask = (uint64_t{1} << r.bits) - 1;
        const uint64_t clock = m->clock;
        uint64_t ticks = r.reach;
        for (const uint64_t due : {uint64_t{m->timer_due}, uint64_t{m->flow_due}}) {
            if (!(due & 1)) continue;
            const uint64_t ahead = ((due >> 1) - clock) & mask;
            // In the tick itself it happens; a flow that was due before has been offered, which changes nothing.
            if (ahead == 0) return 0;
            if (ahead > mask / 2) continue;
            ticks = std::min(ticks, ahead - 1);
        }
        // The most edges that make no more than `ticks`: (phase + edges * den) / num < ticks + 1.
        return ((ticks + 1) * r.num - 1 - (clock >> r.bits)) / r.den;
    }

    void pass(uint64_t edges) override {
        // One edge is evaluated for as many as can be at once; the rest are evaluated.
        const uint64_t rest = (edges - 1) % r.round;
        const uint64_t count = edges - rest;
        const uint64_t mask = (uint64_t{1} << r.bits) - 1;
        const uint64_t clock = m->clock;
        const uint64_t phase = (clock >> r.bits) + count * r.den;
        m->clock_set = ((clock + phase / r.num) & mask) | (phase % r.num) << r.bits;
        m->set_clock = 1;
        m->passed = count - 1;
        step<Model>(m);
        m->clock_set = 0;
        m->set_clock = 0;
        m->passed = 0;
        for (uint64_t i = 0; i < rest; ++i) step<Model>(m);
    }

private:
    Model* const m;
    const ClockRates r;
};

}  // namespace blocks
