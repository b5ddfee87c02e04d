// Where a system is cut for several threads: parts of about the same work, with few links between them.
//
// What hangs on one instance alone, as a node on its router, goes where that is, unless together they are more than a
// part. All is put in a row in several ways, and the row is cut into stretches of the same weight; the way whose cuts cross the fewest links is taken. A mesh
// is so cut between two of its rows.

#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace blocks {

class Cut {
public:
    // `weights` of the instances; `links`: pairs of instances.
    Cut(std::vector<uint64_t> weights, const std::vector<std::pair<uint32_t, uint32_t>>& links)
        : weights_(std::move(weights)), links_(links), near_(weights_.size()), home_(weights_.size()) {
        for (const auto& [a, b] : links) {
            if (a == b) continue;
            near_[a].push_back(b);
            near_[b].push_back(a);
        }
        std::iota(home_.begin(), home_.end(), 0);
        for (uint32_t i = 0; i < near_.size(); ++i) {
            const uint32_t other = near_[i].empty() ? i : near_[i].front();
            bool alone = other != i && home_[other] == other;
            for (const uint32_t one : near_[i]) alone = alone && one == other;
            if (!alone) continue;
            home_[i] = other;
        }
    }

    // The part of each instance, of at most `parts`.
    std::vector<uint16_t> parts(uint16_t parts) const {
        std::vector<uint16_t> best;
        size_t fewest = ~size_t{0};
        for (const std::vector<uint32_t>& row : {as_numbered(), walk(true), walk(false)}) {
            std::vector<uint16_t> found = stretches(row, parts);
            size_t crossing = 0;
            for (const auto& [a, b] : links_) crossing += found[a] != found[b];
            if (crossing >= fewest) continue;
            fewest = crossing;
            best = std::move(found);
        }
        return best;
    }

private:
    std::vector<uint32_t> as_numbered() const {
        std::vector<uint32_t> row(near_.size());
        std::iota(row.begin(), row.end(), 0);
        return row;
    }

    // All instances in the order of a walk from one end of the system: breadth first, or depth first.
    std::vector<uint32_t> walk(bool breadth) const {
        std::vector<uint32_t> row;
        std::vector<char> met(near_.size());
        for (uint32_t begin = 0; begin < near_.size(); ++begin) {
            if (met[begin]) continue;
            // From the last that is reached from here: an end.
            const uint32_t end = spread(begin, true, std::vector<char>(near_.size())).back();
            for (const uint32_t one : spread(end, breadth, met)) {
                met[one] = 1;
                row.push_back(one);
            }
        }
        return row;
    }

    std::vector<uint32_t> spread(uint32_t begin, bool breadth, std::vector<char> met) const {
        std::vector<uint32_t> row, open{begin};
        for (size_t next = 0; breadth ? next < open.size() : !open.empty();) {
            const uint32_t one = breadth ? open[next++] : open.back();
            if (!breadth) open.pop_back();
            if (met[one]) continue;
            met[one] = 1;
            row.push_back(one);
            for (const uint32_t other : near_[one]) {
                if (!met[other]) open.push_back(other);
            }
        }
        return row;
    }

    std::vector<uint16_t> stretches(const std::vector<uint32_t>& row, uint16_t parts) const {
        uint64_t whole = 0, passed = 0;
        std::vector<uint64_t> weights(weights_.size());
        for (size_t i = 0; i < weights.size(); ++i) {
            whole += weights_[i];
            weights[home_[i]] += weights_[i];
        }
        std::vector<uint32_t> home = home_;
        for (uint32_t i = 0; i < home.size(); ++i) {
            if (home_[i] == i || weights[home_[i]] * parts <= whole) continue;
            home[i] = i;
            weights[i] = weights_[i];
        }
        for (uint32_t i = 0; i < home.size(); ++i) {
            if (home_[i] != i && home[i] == i) weights[home_[i]] = weights_[home_[i]];
        }
        std::vector<uint16_t> found(home.size());
        for (const uint32_t one : row) {
            if (home[one] != one) continue;
            // By its middle.
            const uint64_t part = (2 * passed + weights[one]) * parts / (2 * whole + 1);
            found[one] = static_cast<uint16_t>(part < parts ? part : parts - 1);
            passed += weights[one];
        }
        for (uint32_t i = 0; i < found.size(); ++i) found[i] = found[home[i]];
        return found;
    }

    std::vector<uint64_t> weights_;
    const std::vector<std::pair<uint32_t, uint32_t>>& links_;
    std::vector<std::vector<uint32_t>> near_;
    std::vector<uint32_t> home_;  // itself, or what it hangs on
};

}  // namespace blocks
