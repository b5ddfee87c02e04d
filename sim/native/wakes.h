// One wake-up of Python for all native events of a cycle. Whoever has an event calls `raise`, with the number under
// which Python waits for it. After the edge the main loop calls `tell`: it puts the numbers into a ring that Python
// owns and calls the function that serves them (sim/inside/wakes.py). VPI has no part in it.
//
// An event is told only if Python has armed it, and is unarmed then. So a number stands in the ring at most once, and
// a ring with a place for every number loses none. Those of a cycle are in the order in which they were armed, whatever
// the order in which they were raised.
//
// One thread at a time: a function that an instance of a composition calls raises by `blocks::in_turn` (turns.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

class Wakes {
public:
    // The ring `entries`, with places for `count` numbers; `armed` has an entry for each number: 0, or when it was
    // armed; `told` is how many stand in the ring. `serve` is Python's function.
    void attach(void (*serve)(), uint32_t* entries, uint64_t* armed, uint32_t* told, uint32_t count) {
        m_serve = serve, m_entries = entries, m_armed = armed, m_told = told, m_count = count;
    }

    // Whether Python waits for an event.
    bool armed(uint32_t number) const { return number < m_count && m_armed[number]; }

    // When it was armed.
    uint64_t order(uint32_t number) const { return m_armed[number]; }

    // Let Python be told of an event when it happens next, in the place of `order`; or not.
    void arm(uint32_t number, uint64_t order) { m_armed[number] = order; }
    void disarm(uint32_t number) { m_armed[number] = 0; }

    // An event has happened in this cycle, in the place of `order`, which is that of its arming if nothing else is said.
    void raise(uint32_t number) {
        if (armed(number)) raise(number, m_armed[number]);
    }
    void raise(uint32_t number, uint64_t order) {
        if (!armed(number)) return;
        m_raised.emplace_back(order, number);
        m_armed[number] = 0;
    }

    // Whether there is anything to tell.
    bool raised() const { return !m_raised.empty(); }

    // Tell Python what was raised. Returns whether there is anything.
    bool tell() {
        if (m_raised.empty()) return false;
        std::sort(m_raised.begin(), m_raised.end());
        for (const auto& one : m_raised) m_entries[(*m_told)++] = one.second;
        m_raised.clear();
        m_serve();
        return true;
    }

private:
    void (*m_serve)() = nullptr;
    uint32_t* m_entries = nullptr;
    uint64_t* m_armed = nullptr;
    uint32_t* m_told = nullptr;
    uint32_t m_count = 0;
    std::vector<std::pair<uint64_t, uint32_t>> m_raised;
};

// One-bit registers whose changes are events: `look` after they may have changed.
class Watched {
public:
    void add(const uint8_t* from, uint32_t number) { m_ones.push_back({from, *from, number}); }

    void look(Wakes& wakes) {
        for (One& one : m_ones) {
            if (*one.from == one.last) continue;
            one.last = *one.from;
            wakes.raise(one.number);
        }
    }

private:
    struct One {
        const uint8_t* from;
        uint8_t last;
        uint32_t number;
    };
    std::vector<One> m_ones;
};
