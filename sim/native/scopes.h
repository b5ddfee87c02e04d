// Names of the instances of blocks, below those that the top module has: `network_bench.network.router3` is a router in
// a scope `network` of the top module's, in waves and for VPI (sim/build/scopes.py).
#pragma once

#include <cstring>
#include <string>

#include "verilated.h"

namespace blocks {

// The name after the last dot.
inline const char* last_name(const char* path) {
    const char* const dot = std::strrchr(path, '.');
    return dot ? dot + 1 : path;
}

// The scope around the one at `path`, made if there is none; null for that of the top module.
inline const VerilatedScope* enclosing(VerilatedContext* context, const std::string& path) {
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) return nullptr;
    const std::string around = path.substr(0, dot);
    if (const VerilatedScope* const found = context->scopeFind(around.c_str())) return found;
    const VerilatedScope* const outer = enclosing(context, around);
    if (!outer) return nullptr;
    const char* const name = ::strdup(around.c_str());  // a scope keeps the place of its names
    const char* const last = last_name(name);
    const auto* const made = new VerilatedScope{outer->symsp(), name, last, last, outer->timeunit(),
                                                VerilatedScope::SCOPE_MODULE};
    VerilatedHierarchy::add(outer, made);
    return made;
}

// Have VPI find the instance at `path` among those of the scope around it, if anything of it is public.
inline void show_scope(VerilatedContext* context, const std::string& path) {
    const VerilatedScope* const scope = context->scopeFind(path.c_str());
    const VerilatedScope* const around = scope ? enclosing(context, path) : nullptr;
    if (around) VerilatedHierarchy::add(around, scope);
}

// Open a scope of a waveform for each name in `path`.
template <class Trace, class Type>
void push_scopes(Trace* trace, const char* path, Type type) {
    std::string name;
    for (;; ++path) {
        if (*path && *path != '.') {
            name += *path;
            continue;
        }
        trace->pushPrefix(name.c_str(), type);
        name.clear();
        if (!*path) return;
    }
}

// Close them.
template <class Trace>
void pop_scopes(Trace* trace, const char* path) {
    trace->popPrefix();
    for (; *path; ++path) {
        if (*path == '.') trace->popPrefix();
    }
}

}  // namespace blocks
