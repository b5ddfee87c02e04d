// Lists of accesses of the cards' processors (firmware/accesses.py), carried out at the cycles at which Python would
// make them one by one (firmware/carry_out.py). Python is woken at the end alone.
//
// A port costs nothing in a cycle in which no access of it ends. It works on the ports of its mailbox by address
// (sim/models/processor_mailbox.py): a command is taken when the answer's `taken` follows its toggle, and has been
// carried out when `complete` does.
#pragma once

#include <cstdint>

#include "agenda.h"
#include "wakes.h"

class ListPort {
public:
    // What Python and a port share: `words` is what was read, `control` below.
    enum Control { kRead, kReached, kWhy, kInterrupt, kControls };
    static constexpr uint32_t kWords = 8;

    // The mailbox's ports; `owner` is what `prepare` is called with before a command is written, and `written` after it.
    struct Mailbox {
        uint64_t* command;
        const uint64_t* answer;
        uint32_t owner;
        void (*prepare)(uint32_t);
        void (*written)(uint32_t);
    };

    ListPort(uint32_t number, uint32_t event, const Mailbox& mailbox, uint32_t* words, uint32_t* control)
        : m_number(number), m_event(event), m_mailbox(mailbox), m_words(words), m_control(control) {}

    // Begin a list of `records`, which stand in `program` with `kWords` words each, `lead` cycles from now. `marks`:
    // there are marks among them. Returns whether it has come to its end at once.
    bool start(Agenda& agenda, uint64_t cycle, uint64_t lead, const uint32_t* program, uint32_t records, bool marks) {
        m_program = program, m_records = records, m_marks = marks;
        m_control[kInterrupt] = 0;
        m_at = 0, m_tries = 0, m_flight = kNone;
        if (lead) {
            agenda.enter_list(cycle + lead, m_number);
            return false;
        }
        return advance(agenda, cycle);
    }

    // What was due for it in this cycle. Returns whether the list has ended.
    bool go_on(Agenda& agenda, uint64_t cycle) {
        if (m_flight != kNone) {
            const uint64_t answer = *m_mailbox.answer;
            const uint64_t ended = answer >> (m_flight == kStore ? 0 : 1) & 1;
            if (ended != (*m_mailbox.command & 1)) {  // the NIC is busy
                agenda.enter_list(cycle + 1, m_number);
                return false;
            }
            if (m_flight == kLoad && !loaded(agenda, cycle, static_cast<uint32_t>(answer >> 2))) return false;
            m_flight = kNone;
        }
        return advance(agenda, cycle);
    }

    // Whether it looks at `kInterrupt`, which Python sets: what is due before must have woken Python.
    bool marks() const { return m_marks; }
    uint32_t event() const { return m_event; }

private:
    // As in firmware/accesses.py.
    enum Op { kReadOp, kWriteOp, kCopyOp, kPauseOp, kWaitOp, kSkipOp, kStopOp, kMarkOp };
    enum Why { kEnd, kStopped, kMarked, kLate };
    enum Flight { kNone, kStore, kLoad };

    const uint32_t* record() const { return m_program + kWords * m_at; }

    void issue(Agenda& agenda, uint64_t cycle, bool write, uint32_t address, uint32_t data) {
        m_mailbox.prepare(m_mailbox.owner);
        const uint64_t toggle = ~*m_mailbox.command & 1;
        *m_mailbox.command = toggle | uint64_t{write} << 1 | uint64_t{address & 0xFFFFFF} << 2 | uint64_t{data} << 26;
        m_mailbox.written(m_mailbox.owner);
        m_flight = write ? kStore : kLoad;
        agenda.enter_list(cycle + (write ? 1 : 2), m_number);
    }

    bool end(Why why) {
        m_control[kReached] = m_at;
        m_control[kWhy] = why;
        return true;
    }

    // A word has been read. Returns whether the list goes on now.
    bool loaded(Agenda& agenda, uint64_t cycle, uint32_t word) {
        const uint32_t* const one = record();
        if (one[0] == kWaitOp && (word & one[2]) != one[3] && ++m_tries < one[5]) {
            m_flight = kNone;
            if (one[4]) {
                agenda.enter_list(cycle + one[4], m_number);
            } else {
                issue(agenda, cycle, false, one[1], 0);
            }
            return false;
        }
        m_words[m_control[kRead]++] = word;
        m_late = one[0] == kWaitOp && (word & one[2]) != one[3];
        m_tries = 0;
        ++m_at;
        return true;
    }

    // Go on to the next record that takes time, or to the end.
    bool advance(Agenda& agenda, uint64_t cycle) {
        if (m_late) {
            m_late = false;
            return end(kLate);
        }
        for (; m_at < m_records; ++m_at) {
            const uint32_t* const one = record();
            switch (one[0]) {
                case kReadOp: issue(agenda, cycle, false, one[1], 0); return false;
                case kWaitOp:
                    // Between two tries the record is the same.
                    issue(agenda, cycle, false, one[1], 0);
                    return false;
                case kWriteOp:
                    issue(agenda, cycle, true, one[1], one[2]);
                    ++m_at;
                    return false;
                case kCopyOp:
                    issue(agenda, cycle, true, one[1], copied(one));
                    ++m_at;
                    return false;
                case kPauseOp:
                case kMarkOp:
                    if (one[0] == kMarkOp && m_control[kInterrupt]) return end(kMarked);
                    if (!one[1]) break;
                    agenda.enter_list(cycle + one[1], m_number);
                    ++m_at;
                    return false;
                case kSkipOp:
                    if (matches(one)) m_at += one[5];
                    break;
                case kStopOp:
                    if (matches(one)) {
                        ++m_at;
                        return end(kStopped);
                    }
                    break;
            }
        }
        return end(kEnd);
    }

    // (word & mask) == value, or not, of a word that was read before.
    bool matches(const uint32_t* one) const {
        return ((m_words[one[1]] & one[2]) == one[3]) != static_cast<bool>(one[4]);
    }

    // A word that was read before: masked, shifted, flipped, added to, masked again.
    uint32_t copied(const uint32_t* one) const {
        const uint32_t word = m_words[one[2]] & one[3];
        const int32_t left = static_cast<int32_t>(one[4]);
        const uint32_t shifted = left < 0 ? word >> -left : word << left;
        return ((shifted ^ one[5]) + one[6]) & one[7];
    }

    uint32_t m_number, m_event;
    Mailbox m_mailbox;
    uint32_t* m_words;
    uint32_t* m_control;
    const uint32_t* m_program = nullptr;
    uint32_t m_records = 0;
    bool m_marks = false;
    uint32_t m_at = 0, m_tries = 0;
    Flight m_flight = kNone;
    bool m_late = false;
};
