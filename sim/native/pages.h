// The memory of models: pages that are given back, and large pages.

#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "instance.h"

namespace blocks {

// Give back the pages of a model's state that are all zero: they read as zero until they are written. So a memory costs
// what is used of it.
inline void release_zero_pages(void* state, size_t bytes) {
    constexpr size_t kPage = 4096;
    char* const end = static_cast<char*>(state) + bytes;
    char* page = static_cast<char*>(state) + (-reinterpret_cast<uintptr_t>(state) & (kPage - 1));
    for (; page + kPage <= end; page += kPage) {
        if (!*page && !std::memcmp(page, page + 1, kPage - 1)) madvise(page, kPage, MADV_DONTNEED);
    }
}

// Put the states of instances into large pages where the system has them. A cycle touches several pages of every
// instance: small ones of a thousand are more than a processor's tables of addresses hold. A state that is larger than
// `kMost` has memories that are hardly used, and keeps what `release_zero_pages` gave back.
inline void join_pages(const std::vector<Instance>& instances) {
    constexpr uintptr_t kLarge = uintptr_t{1} << 21, kMost = uintptr_t{1} << 18;
    constexpr int kCollapse = 25;  // `madvise`: join pages now; older headers have no name for it
    std::vector<uintptr_t> pages;
    for (const Instance& one : instances) {
        if (one.state_bytes > kMost) continue;
        const uintptr_t from = reinterpret_cast<uintptr_t>(one.state);
        for (uintptr_t at = from & ~(kLarge - 1); at < from + one.state_bytes; at += kLarge) pages.push_back(at);
    }
    std::sort(pages.begin(), pages.end());
    pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
    for (const uintptr_t page : pages) {
        // What is refused stays as it is: this is for speed alone.
        void* const at = reinterpret_cast<void*>(page);
        if (madvise(at, kLarge, MADV_HUGEPAGE) == 0) madvise(at, kLarge, kCollapse);
    }
}

}  // namespace blocks
