// A system of small blocks written by hand, for `sim/native/blocks.h`: a mesh of routers that pass tokens on, and nodes
// that make them at times of their own. Prints a hash of everything that could be seen, which must not depend on the
// threads, nor on whether those at rest are left out.
//
// Arguments: threads (0: by a plain loop that evaluates every block in every cycle, without `System`), width, height,
// cycles, seed, the mean cycles between a node's tokens. Prints: the hash of what the top module saw, in every cycle; of all
// states at the end; of the calls in their order; and the evaluations saved, in percent.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "blocks.h"

namespace {
constexpr int kPorts = 5, kSlots = 8;

uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * 0x9e3779b97f4a7c15u;
    return a ^ a >> 29;
}

struct Token {
    uint64_t hash;
    uint32_t hops, from;  // the port it came by; 1 in a node that made it
};

// A flit's wires.
struct Port {
    Token payload;
    uint8_t valid, credit_vl, credit_valid;
};

// Inputs, outputs and registers: plain bytes, as a model's.
struct State {
    uint8_t clk, quiet, waiting, active, number_bit;
    uint32_t due, total, number, now, request;
    Port transmit[kPorts], receive[kPorts];
    Token queue[kSlots];
    uint32_t head, held, ports, credits[kPorts], sleepless;
    uint64_t random, seen;
    uint32_t mean;
};

uint64_t log_hash = 0;
void note(uint64_t a, uint64_t b) { log_hash = mix(log_hash, mix(a, b)); }

// A router (all ports) or a node (port 0).
struct Block {
    State state{};
    State* rootp = &state;
    uint8_t& clk = state.clk;
    uint8_t before = 0;

    void eval() {
        if (state.clk == before) return;
        before = state.clk;
        State next = state;
        bool moved = false;
        for (uint32_t p = 0; p < state.ports; ++p) {
            next.receive[p].credit_valid = 0;
            next.transmit[p].valid = 0;
            if (state.transmit[p].credit_valid) {
                next.seen = mix(next.seen, 7 + state.transmit[p].credit_vl);
                next.credits[p]++;
            }
            if (state.receive[p].valid) {
                next.queue[(next.head + next.held++) % kSlots] = state.receive[p].payload;
                next.queue[(next.head + next.held - 1) % kSlots].from = p;
            }
        }
        const bool node = state.ports == 1;
        if (node && state.due == state.now) {
            next.random = mix(next.random, state.now);
            next.due = state.now + 1 + next.random % (2 * state.mean);
            if (next.held < 2) {
                next.queue[(next.head + next.held++) % kSlots] = {next.random, 3 + uint32_t(next.random >> 40) % 20, 1};
            }
            moved = true;
        }
        if (state.request == state.number + 1) {
            next.seen = mix(next.seen, state.now);
            moved = true;
        }
        if (next.held) {
            Token token = next.queue[next.head % kSlots];
            const uint32_t out = node ? 0 : token.hash % state.ports;
            const bool mine = node && token.from == 0;
            if (mine) {
                next.seen = mix(next.seen, token.hash ^ state.now);
                next.total += uint32_t(token.hash);
                next.number_bit ^= 1;
                blocks::in_turn(note, state.number, token.hash);
            } else if (!next.credits[out] || !token.hops) {
                // Lost: so nothing can wait in a circle.
                next.seen = mix(next.seen, ~token.hash);
                blocks::in_turn(note, state.number, token.hash);
            } else {
                next.credits[out]--;
                next.transmit[out].valid = 1;
                next.transmit[out].payload = {mix(token.hash, 3), token.hops - 1, 0};
            }
            if (!node || mine) {
                next.receive[token.from].credit_valid = 1;
                next.receive[token.from].credit_vl = uint8_t(token.hash);
            }
            next.head++;
            next.held--;
            moved = true;
        }
        for (uint32_t p = 0; p < state.ports; ++p) {
            moved |= next.transmit[p].valid || next.receive[p].credit_valid || state.receive[p].valid
                     || state.transmit[p].credit_valid;
        }
        next.active = moved;
        next.waiting = node;
        next.quiet = !next.held && !moved;
        state = next;
    }
};

// The top module: time, one address now and then, and what comes in.
struct Top {
    uint8_t attention = 0;
    uint16_t addressed = 0;
    uint32_t now = 0, request = 0, sum = 0;
    uint8_t moving = 0;
    uint64_t bits[32] = {}, hash = 0;

    void edge() {
        ++now;
        attention = now % 97 == 0;
        request = now % 13 == 0 ? 1 + now % 50 : 0;
        addressed = static_cast<uint16_t>(request);
    }
    void look() {
        hash = mix(hash, mix(sum, moving));
        for (const uint64_t word : bits) hash = mix(hash, word);
    }
};

blocks::Instance described(Block& block, Top& top, uint32_t number, const blocks::Kind kinds[3], const uint32_t inputs[3]) {
    blocks::Instance one{};
    State& state = block.state;
    one.path = "block" + std::to_string(number);
    one.model = &block;
    one.step = blocks::step<Block, blocks::evaluate<Block>>;
    one.settle_inputs = blocks::settle_inputs<Block, blocks::evaluate<Block>>;
    one.quiet = &state.quiet;
    one.settle = 2;
    for (uint32_t p = 0; p < state.ports; ++p) {
        Port &tx = state.transmit[p], &rx = state.receive[p];
        one.transmit.push_back({&tx.payload, &tx.valid, &tx.credit_vl, &tx.credit_valid});
        one.receive.push_back({&rx.payload, &rx.valid, &rx.credit_vl, &rx.credit_valid});
    }
    one.outputs.push_back({kinds[0], &state.number_bit, 1, inputs[0], number});
    one.outputs.push_back({kinds[1], &state.active, 1, inputs[1], number});
    one.outputs.push_back({kinds[2], &state.total, 4, inputs[2], number});
    one.broadcasts.push_back({&top.now, &state.now, 4});
    one.broadcasts.push_back({&top.request, &state.request, 4});
    if (state.ports == 1) {
        one.waiting = &state.waiting;
        one.due.push_back(&state.due);
    }
    one.address = number;
    one.state = &state;
    one.state_bytes = sizeof(state);
    return one;
}
}  // namespace

int main(int argc, char** argv) {
    if (argc != 7) return 2;
    const unsigned threads = std::atoi(argv[1]), width = std::atoi(argv[2]), height = std::atoi(argv[3]);
    const uint32_t routers = width * height, cycles = std::atoi(argv[4]);
    const uint64_t seed = std::strtoull(argv[5], nullptr, 10);
    std::vector<std::unique_ptr<Block>> all;
    for (uint32_t i = 0; i < 2 * routers; ++i) {
        all.push_back(std::make_unique<Block>());
        State& state = all.back()->state;
        state.number = i;
        state.ports = i < routers ? kPorts : 1;
        state.random = mix(seed, i);
        state.mean = std::atoi(argv[6]);
        state.due = 1 + state.random % state.mean;
        state.quiet = 0;
        for (uint32_t& one : state.credits) one = 1;
    }
    struct Link {
        uint32_t from, transmit, to, receive;
    };
    std::vector<Link> links;
    const auto join = [&](uint32_t a, uint32_t p, uint32_t b, uint32_t q) {
        links.push_back({a, p, b, q});
        links.push_back({b, q, a, p});
    };
    // A torus, so that no port of a router is left open.
    for (uint32_t i = 0; i < routers; ++i) {
        const uint32_t x = i % width, y = i / width;
        join(i, 0, routers + i, 0);
        join(i, 1, (x + 1) % width + y * width, 2);
        join(i, 3, x + (y + 1) % height * width, 4);
    }
    Top top;
    blocks::System<sizeof(Token)> system;
    if (threads) {
        const blocks::Kind kinds[] = {blocks::Kind::kBit, blocks::Kind::kOr, blocks::Kind::kSum};
        const uint32_t inputs[] = {system.input(top.bits, sizeof(top.bits), kinds[0]),
                                   system.input(&top.moving, 1, kinds[1]), system.input(&top.sum, 4, kinds[2])};
        system.threads(threads, false, [] {});
        for (uint32_t i = 0; i < all.size(); ++i) system.add(described(*all[i], top, i, kinds, inputs));
        for (const Link& one : links) system.link(one.from, one.transmit, one.to, one.receive);
        system.start(&top.attention, &top.now, &top.addressed);
        if (system.threads() != threads) return 4;
    }
    for (uint32_t cycle = 0; cycle < cycles; ++cycle) {
        if (threads) {
            system.begin();
            top.edge();
            system.end();
            system.deliver();
        } else {
            for (auto& block : all) {
                block->state.now = top.now;
                block->state.request = top.request;
                block->state.clk ^= 1;
                block->eval();
            }
            top.edge();
            std::memset(top.bits, 0, sizeof(top.bits));
            top.moving = 0;
            top.sum = 0;
            for (const auto& block : all) {
                const State& state = block->state;
                top.bits[state.number / 64] |= uint64_t{state.number_bit} << state.number % 64;
                top.moving |= state.active;
                top.sum += state.total;
            }
            for (const Link& one : links) {
                const Port& sent = all[one.from]->state.transmit[one.transmit];
                Port& got = all[one.to]->state.receive[one.receive];
                got.valid = sent.valid;
                got.payload = sent.valid ? sent.payload : got.payload;
                const Port& back = all[one.to]->state.receive[one.receive];
                Port& home = all[one.from]->state.transmit[one.transmit];
                home.credit_valid = back.credit_valid;
                home.credit_vl = back.credit_valid ? back.credit_vl : home.credit_vl;
            }
        }
        top.look();
    }
    uint64_t states = 0;
    for (const auto& block : all) {
        const State& state = block->state;
        states = mix(states, mix(state.seen, mix(state.random, mix(state.total, state.held))));
    }
    const double saved = threads ? 100.0 - 100.0 * system.evaluated() / system.total() : 0.0;
    std::printf("%016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %.1f\n", top.hash, states, log_hash, saved);
    return 0;
}
