// Where every signal of an instance is visible, each of its modules has a clock of its own to look at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "verilated.h"
#include "verilated_sym_props.h"
#include "verilated_syms.h"

namespace blocks {

// All variables `clk` of the instance at `path` and of the modules in it.
inline std::vector<uint8_t*> clocks(VerilatedContext* context, const std::string& path) {
    std::vector<uint8_t*> found;
    const VerilatedScopeNameMap* const scopes = context->scopeNameMap();
    for (auto at = scopes->lower_bound(path.c_str()); at != scopes->end(); ++at) {
        if (std::strncmp(at->first, path.c_str(), path.size())) break;
        const char after = at->first[path.size()];
        if (after && after != '.') continue;
        if (VerilatedVar* const clk = at->second->varFind("clk")) found.push_back(static_cast<uint8_t*>(clk->datap()));
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace blocks
