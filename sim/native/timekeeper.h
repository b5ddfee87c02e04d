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

// A prescaler of `num` / `den` cycles a tick and a clock of `bits`; at most `reach` ticks are passed over at once, and
// none beyond cycle `horizon`. A scan that begins every `round` cycles, a power of 2, is over, with all that
// follows from it, within kScan of them; 1: there is none.
struct ClockRates {
    uint64_t num, den;
    unsigned bits;
    uint64_t reach, round, horizon;
};

template <class Model>
class Clocked : public Timekeeper {
public:
    Clocked(Model* model, const ClockRates& rates) : m(model), r(rates) {}

    uint64_t room(uint64_t now) const override {
        if (now > r.horizon) return 0;
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
        uint64_t edges = ((ticks + 1) * r.num - 1 - (clock >> r.bits)) / r.den;
        edges = std::min(edges, r.horizon - now);
        return r.round > 1 && edges < 4 * kScan ? 0 : edges;
    }

    void pass(uint64_t now, uint64_t edges, bool alike) override {
        // What is passed over begins when a scan is over, and so does what is evaluated after it, until all registers
        // that follow from the clock do.
        const auto scans = [&](uint64_t at) { return r.round > 1 && at % r.round <= kScan; };
        uint64_t first = 0;
        while (first < edges && scans(now + first)) ++first;
        uint64_t last = std::min(edges - first, r.round > 1 ? kScan : kFollow);
        const auto count = [&] { return edges - first - last; };
        while (count() && (scans(now + edges - last) || (alike && count() % 2 == 0))) ++last;
        for (uint64_t i = 0; i < first; ++i) step<Model, evaluate<Model>>(m);
        if (count()) pass_at_once(count());
        for (uint64_t i = 0; i < last; ++i) step<Model, evaluate<Model>>(m);
    }

private:
    // Edges until what follows from a scan is over; until registers hold what a memory has at the place that a scan has
    // come to, where nothing else follows.
    static constexpr uint64_t kScan = 32, kFollow = 2;

    // One edge is evaluated for all.
    void pass_at_once(uint64_t count) {
        const uint64_t mask = (uint64_t{1} << r.bits) - 1;
        const uint64_t clock = m->clock;
        const uint64_t phase = (clock >> r.bits) + count * r.den;
        m->clock_set = ((clock + phase / r.num) & mask) | (phase % r.num) << r.bits;
        m->set_clock = 1;
        m->passed = count - 1;
        step<Model, evaluate<Model>>(m);
        m->clock_set = 0;
        m->set_clock = 0;
        m->passed = 0;
    }

    Model* const m;
    const ClockRates r;
};

}  // namespace blocks
