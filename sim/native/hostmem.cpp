// Host memory of all nodes: arrays that Python owns, attached by address, and the words of them that are watched.
//
// `watched` has a byte for each 32-bit word of the memory. Written words that are watched go to a log of word
// ranges, which Python reads and clears when `write_event` tells it to. A full log widens its last range, so that a
// watch may be looked at in vain but none is missed.

#include <cstdint>
#include <cstring>
#include <vector>

namespace {
constexpr uint32_t kLogRanges = 256;

struct Host {
    uint8_t* memory = nullptr;
    uint64_t bytes = 0;
    const uint8_t* watched = nullptr;
    uint32_t* log = nullptr;  // [0]: ranges used, then pairs of first word and the word after the last
};
std::vector<Host> hosts;

void note(uint32_t* log, uint32_t word) {
    uint32_t& used = log[0];
    if (used) {
        uint32_t* const last = log + 2 * used - 1;
        const bool joins = word >= last[0] && word <= last[1];
        if (joins || used == kLogRanges) {
            if (word < last[0]) last[0] = word;
            if (word >= last[1]) last[1] = word + 1;
            return;
        }
    }
    log[2 * used + 1] = word;
    log[2 * used + 2] = word + 1;
    ++used;
}
}  // namespace

extern "C" {
// `log` has 1 + 2 * 256 words. The arrays stay where they are until the simulation ends.
void lanikai_memory_attach(uint32_t node, uint8_t* memory, uint64_t bytes, const uint8_t* watched, uint32_t* log) {
    if (hosts.size() <= node) hosts.resize(node + 1);
    hosts[node] = Host{memory, bytes, watched, log};
}

unsigned long long lanikai_memory_read(unsigned int node, unsigned int address, unsigned int bytes) {
    uint64_t data = 0;
    if (node < hosts.size() && uint64_t{address} + bytes <= hosts[node].bytes)
        std::memcpy(&data, hosts[node].memory + address, bytes);
    return data;
}

unsigned char lanikai_memory_write(unsigned int node, unsigned int address, unsigned int strobe,
                                   unsigned long long data) {
    if (node >= hosts.size()) return 0;
    Host& host = hosts[node];
    if (strobe == 0xFF && address % 4 == 0 && uint64_t{address} + 8 <= host.bytes) {
        // Most writes: whole, and of words that nobody watches.
        const uint8_t* const marks = host.watched + address / 4;
        if (!(marks[0] | marks[1])) {
            std::memcpy(host.memory + address, &data, 8);
            return 0;
        }
    }
    bool hit = false;
    for (unsigned int i = 0; strobe >> i; ++i) {
        if (!(strobe >> i & 1) || uint64_t{address} + i >= host.bytes) continue;
        host.memory[address + i] = static_cast<uint8_t>(data >> 8 * i);
        const uint32_t word = (address + i) / 4;
        if (host.watched[word]) {
            note(host.log, word);
            hit = true;
        }
    }
    return hit;
}
}
