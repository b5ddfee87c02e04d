// The options of a simulator's command line.
//
// --edges calls value-change callbacks at the clock's own edges, before registers move (what RisingEdge(clk) of
// third-party bus models needs; costs speed). --trace FILE writes an FST in a traced build. --threads N evaluates
// instances outside of the top module on N threads, --threads-if-worth N on as many of N as pay.

#pragma once

#include <cstdlib>
#include <cstring>

struct Options {
    bool edges = false;
    const char* trace_file = nullptr;
    unsigned threads = 1;
    bool if_worth = true;

    // Take those that are known. `other` is asked for each that is not, with its value, and says whether it took it.
    template <class Other>
    void take(int argc, char** argv, Other other) {
        for (int i = 1; i < argc; ++i) {
            if (!std::strcmp(argv[i], "--edges")) {
                edges = true;
                continue;
            }
            if (i + 1 == argc) return;
            const bool given = !std::strcmp(argv[i], "--threads");
            if (given || !std::strcmp(argv[i], "--threads-if-worth")) {
                threads = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
                if_worth = !given;
            } else if (!std::strcmp(argv[i], "--trace")) {
                trace_file = argv[++i];
            } else if (other(argv[i], argv[i + 1])) {
                ++i;
            }
        }
    }
};
