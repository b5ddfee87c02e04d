// The waveform of a traced build: an FST file with a window of cycles, some instances, and a largest size.

#include <sys/stat.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "verilated_fst_c.h"

constexpr uint64_t TRACE_STEPS_PER_CYCLE = 10;
// So often what is written goes to the disk and its size is looked at.
constexpr uint64_t TRACE_FLUSH_STEPS = 500 * TRACE_STEPS_PER_CYCLE;

class Trace {
    std::unique_ptr<VerilatedFstC> fst_;
    std::string path_;
    std::vector<std::string> instances_;
    uint64_t from_ = 0, until_ = UINT64_MAX, limit_bytes_ = UINT64_MAX, looked_ = 0;

public:
    // Take an option of the command line: `--trace-from CYCLE`, `--trace-cycles N` (after it), `--trace-limit BYTES`,
    // `--trace-of INSTANCE` (again for each; the top module's own variables are there in any case).
    bool option(const char* name, const char* value) {
        const uint64_t number = std::strtoull(value, nullptr, 10);
        if (!std::strcmp(name, "--trace-from")) from_ = number * TRACE_STEPS_PER_CYCLE;
        else if (!std::strcmp(name, "--trace-cycles")) until_ = from_ + number * TRACE_STEPS_PER_CYCLE;
        else if (!std::strcmp(name, "--trace-limit")) limit_bytes_ = number;
        else if (!std::strcmp(name, "--trace-of")) {
            if (!fst_) fst_ = std::make_unique<VerilatedFstC>();
            fst_->dumpvars(99, value);
            instances_.push_back(value);
        } else if (!std::strcmp(name, "--trace-top")) {
            if (!fst_) fst_ = std::make_unique<VerilatedFstC>();
            fst_->dumpvars(1, value);
        } else return false;
        return true;
    }

    // Whether an instance outside of the top module is to be written: it, or one around it.
    bool wants(const char* path) const {
        for (const std::string& one : instances_) {
            if (!std::strncmp(path, one.c_str(), one.size()) && (!path[one.size()] || path[one.size()] == '.')) return true;
        }
        return instances_.empty();
    }

    // `more` adds models besides the top module.
    template <class Top, class More> void open(Top* top, const char* path, const More& more) {
        if (!fst_) fst_ = std::make_unique<VerilatedFstC>();
        path_ = path;
        top->trace(fst_.get(), 99);
        more(fst_.get());
        fst_->open(path);
    }

    bool is_open() const { return !path_.empty(); }

    void dump(uint64_t time) {
        if (path_.empty() || time < from_) return;
        if (time >= until_) return close();
        fst_->dump(time);
        if (time - looked_ < TRACE_FLUSH_STEPS) return;
        looked_ = time;
        fst_->flush();
        struct stat found;
        if (!stat(path_.c_str(), &found) && static_cast<uint64_t>(found.st_size) >= limit_bytes_) {
            std::printf("waves: end in cycle %" PRIu64 ": %" PRIu64 " MB are written, the limit\n",
                        time / TRACE_STEPS_PER_CYCLE, limit_bytes_ / 1000000);
            std::fflush(stdout);
            close();
        }
    }

    void close() {
        if (!path_.empty()) fst_->close();
        path_.clear();
    }
};
