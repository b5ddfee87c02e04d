// What is due in cycles to come: wake-ups of Python and accesses of lists, in the order in which they were entered.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

// `number` of an event (wakes.h), or of a processor's port whose list goes on (lists.h).
struct Due {
    uint64_t cycle, order;
    uint32_t number;
    bool list;
    bool operator>(const Due& other) const { return std::tie(cycle, order) > std::tie(other.cycle, other.order); }
};

class Agenda {
public:
    // The counter of what is entered, which Python shares: `order` of an event is when it was armed.
    void attach(uint64_t* counter) { m_counter = counter; }

    void enter(uint64_t cycle, uint64_t order, uint32_t number) { m_due.push({cycle, order, number, false}); }
    void enter_list(uint64_t cycle, uint32_t number) { m_due.push({cycle, ++*m_counter, number, true}); }

    // The next place in the order of what is armed or entered.
    uint64_t count() { return ++*m_counter; }

    // The next cycle in which anything is due; the last there is if nothing is.
    uint64_t next() const { return m_due.empty() ? ~uint64_t{0} : m_due.top().cycle; }

    Due take() {
        const Due due = m_due.top();
        m_due.pop();
        return due;
    }

private:
    uint64_t* m_counter = nullptr;
    std::priority_queue<Due, std::vector<Due>, std::greater<Due>> m_due;
};
