// A byte for each addressed instance, which Python sets to have it evaluated in the next cycle: what the instance looks at
// is not one of its inputs, but memory that it shares with Python (messages.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace blocks {

class Bells {
public:
    // `bytes`: Python's, a multiple of 8 of them.
    void attach(uint8_t* bytes, size_t count) { bytes_ = bytes, count_ = count; }

    // Call `wake` with the number of each instance whose bell has rung since.
    template <class Wake>
    void answer(Wake wake) {
        for (size_t at = 0; at < count_; at += 8) {
            uint64_t word;
            std::memcpy(&word, bytes_ + at, 8);
            if (!word) continue;
            for (size_t i = at; i < at + 8; ++i) {
                if (bytes_[i]) wake(i);
            }
            std::memset(bytes_ + at, 0, 8);
        }
    }

private:
    uint8_t* bytes_ = nullptr;
    size_t count_ = 0;
};

}  // namespace blocks
