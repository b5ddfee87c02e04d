// Accesses of a set-up port, one in each cycle, without Python in between: requests from an array of Python's, answers
// into another. Requests and answers have at most 64 bits; an answer's lowest bit says that there is one.
#pragma once

#include <cstdint>
#include <cstring>

class Player {
public:
    // `request`, `response`: the port's signals, so many bytes each. After the `count` requests come zeros; answers are
    // taken until `turns` are over, at most `turns` of them, and counted in `*answered`.
    void start(void* request, uint32_t request_bytes, const void* response, uint32_t response_bytes,
               const uint64_t* requests, uint64_t count, uint64_t turns, uint64_t* answers, uint64_t* answered) {
        m_request = request, m_request_bytes = request_bytes;
        m_response = response, m_response_bytes = response_bytes;
        m_requests = requests, m_count = count, m_turns = turns, m_answers = answers, m_answered = answered;
        m_turn = 0;
        turn();
    }

    bool active() const { return m_turn < m_turns; }

    // The next access: in the drive phase, as Python would make it.
    void turn() {
        const uint64_t request = m_turn < m_count ? m_requests[m_turn] : 0;
        std::memcpy(m_request, &request, m_request_bytes);
        if (m_response) {
            uint64_t response = 0;
            std::memcpy(&response, m_response, m_response_bytes);
            if (response & 1) m_answers[(*m_answered)++] = response >> 1;
        }
        ++m_turn;
    }

private:
    void* m_request = nullptr;
    const void* m_response = nullptr;
    uint32_t m_request_bytes = 0, m_response_bytes = 0;
    const uint64_t* m_requests = nullptr;
    uint64_t m_count = 0, m_turns = 0, m_turn = 0;
    uint64_t* m_answers = nullptr;
    uint64_t* m_answered = nullptr;
};
