// Passes over cycles in which nothing happens: the clocks of all cards are set to where they would stand, and time
// goes on from there. What a user can see is the same, to the cycle; only the work is saved.
//
// A cycle in which nothing moves (`quiet`) may still be one of a pause inside a block: an arbiter's, a bus's, a
// link's that keeps to its rate. Every block ends such a pause, or moves, within `settle` cycles; after so many quiet
// ones nothing changes any more but the clocks, until a card's timer or the dispatch of one of its flows is due, the
// watchdog fires, or Python wakes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "verilated.h"
#include "verilated_sym_props.h"

class Skipper {
public:
    // A prescaler of `num` / `den` cycles a tick and clocks of `bits`; at most `reach` ticks are passed over at once,
    // by multiples of `round` cycles, and none beyond cycle `horizon`. Returns whether the design has the ports.
    bool start(const VerilatedScope* scope, unsigned nodes, uint64_t settle, uint64_t num, uint64_t den,
               unsigned bits, uint64_t reach, uint64_t round, uint64_t horizon) {
        m_settle = settle, m_num = num, m_den = den, m_bits = bits, m_reach = reach, m_round = round;
        m_horizon = horizon;
        bool found = m_quiet.find(scope, "quiet") && m_left.find(scope, "watchdog_left")
                     && m_skip.find(scope, "skip") && m_skipped.find(scope, "skipped");
        m_nodes.resize(nodes);
        for (unsigned i = 0; i < nodes; ++i) {
            const std::string nic = "nic" + std::to_string(i);
            found = found && m_nodes[i].clock.find(scope, nic + "_clock")
                    && m_nodes[i].set.find(scope, nic + "_clock_set")
                    && m_nodes[i].timer.find(scope, nic + "_timer_due")
                    && m_nodes[i].flow.find(scope, nic + "_flow_due");
        }
        m_on = found;
        return found;
    }

    // The same where every instance rests by itself (blocks.h): only the top module's watchdog is left to be told.
    bool start_composed(const VerilatedScope* scope) {
        return m_on = m_left.find(scope, "watchdog_left") && m_skipped.find(scope, "skipped");
    }
    bool on() const { return m_on; }

    // As `together`, where the instances can pass over `room` edges.
    uint64_t together_composed(uint64_t edges, uint64_t room) const {
        const uint64_t count = std::min({edges, room, m_left.get(), kReach});
        return count < kWorth ? 1 : count;
    }

    // How many of the next `edges` rising edges can be one: 1 if there is nothing to pass over. Called before every
    // edge, `cycle` being the number of the present cycle. `begin` must follow if it is more.
    uint64_t together(uint64_t edges, uint64_t cycle) {
        if (!m_on) return 1;
        if (!m_quiet.get()) {
            m_since = 0;
            return 1;
        }
        if (++m_since < m_settle || edges < kWorth || cycle > m_horizon) return 1;
        uint64_t count = std::min({edges, m_left.get(), m_horizon - cycle});
        for (const Node& node : m_nodes) count = std::min(count, room(node));
        if (count < kWorth) return 1;
        // One edge is evaluated; what is passed over comes on top.
        count -= (count - 1) % m_round;
        return count < kWorth ? 1 : count;
    }

    // Python has run: what it wrote is yet to be seen.
    void disturb() { m_since = 0; }

    // The next edge stands for `count`.
    void begin(uint64_t count) {
        const uint64_t mask = (uint64_t{1} << m_bits) - 1;
        for (Node& node : m_nodes) {
            const uint64_t clock = node.clock.get();
            const uint64_t phase = (clock >> m_bits) + count * m_den;
            node.set.set(((clock + phase / m_num) & mask) | (phase % m_num) << m_bits);
        }
        if (m_skip.data) m_skip.set(1);
        m_skipped.set(count - 1);
        m_total += count - 1;
    }

    // That edge is over.
    void end() {
        if (m_skip.data) m_skip.set(0);
        m_skipped.set(0);
    }

    uint64_t total() const { return m_total; }

private:
    // Fewer edges than this are not worth the trouble; more are not passed over at once, as the top of a composed design
    // counts 32 bits of them.
    static constexpr uint64_t kWorth = 8, kReach = uint64_t{1} << 31;

    // A port of the top module, of at most 64 bits.
    struct Port {
        bool find(const VerilatedScope* scope, const std::string& name) {
            VerilatedVar* const var = scope->varFind(name.c_str());
            if (!var || var->entSize() > sizeof(uint64_t)) return false;
            data = var->datap(), size = var->entSize();
            return true;
        }
        uint64_t get() const {
            uint64_t value = 0;
            std::memcpy(&value, data, size);
            return value;
        }
        void set(uint64_t value) { std::memcpy(data, &value, size); }
        void* data = nullptr;
        size_t size = 0;
    };
    struct Node {
        Port clock, set, timer, flow;
    };

    // Edges until a clock must not go on unseen: it may come up to the tick before the next one due.
    uint64_t room(const Node& node) const {
        const uint64_t mask = (uint64_t{1} << m_bits) - 1;
        const uint64_t clock = node.clock.get();
        uint64_t ticks = m_reach;
        for (const Port* due : {&node.timer, &node.flow}) {
            const uint64_t value = due->get();
            if (!(value & 1)) continue;
            const uint64_t ahead = ((value >> 1) - clock) & mask;
            // In the tick itself it happens; a flow that was due before has been offered, which changes nothing.
            if (ahead == 0) return 1;
            if (ahead > mask / 2) continue;
            ticks = std::min(ticks, ahead - 1);
        }
        // The most edges that make no more than `ticks`: (phase + edges * den) / num < ticks + 1.
        return ((ticks + 1) * m_num - 1 - (clock >> m_bits)) / m_den;
    }

    bool m_on = false;
    uint64_t m_settle = 0, m_num = 1, m_den = 1, m_reach = 0, m_round = 1, m_horizon = 0;
    unsigned m_bits = 0;
    uint64_t m_since = 0, m_total = 0;
    Port m_quiet, m_left, m_skip, m_skipped;
    std::vector<Node> m_nodes;
};
