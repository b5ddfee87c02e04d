// Threads that do a piece of work each, again and again, and the main thread with them.
//
// Between two turns a thread spins for as long as a turn of the main thread's own work takes, then gives its core away,
// then sleeps: so a simulation that stands still, as while Python works, and one with fewer free cores than threads,
// burn nothing. The main thread never sleeps: it waits only for work that is under way.

#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace blocks {

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

class Crew {
public:
    Crew() = default;
    Crew(const Crew&) = delete;
    ~Crew() { stop(); }

    // `count` threads besides the main one. Thread i (from 1 on) does `work(i)` in every turn, after `prepare()` once.
    void start(unsigned count, std::function<void(unsigned)> work, std::function<void()> prepare) {
        work_ = std::move(work);
        for (unsigned i = 1; i <= count; ++i) seats_.push_back(std::make_unique<Seat>());
        // Signals are the main thread's.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (unsigned i = 1; i <= count; ++i) {
            threads_.emplace_back([this, i, prepare] {
                prepare();
                serve(i);
            });
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    // Begin a turn: what the main thread has written before, all threads see.
    void release() {
        turn_.fetch_add(1);
        if (asleep_.load()) {
            const std::lock_guard<std::mutex> lock(mutex_);
            wake_.notify_all();
        }
    }

    // Return when all threads have done their turn: what they have written, the main thread sees.
    void wait() {
        const uint64_t turn = turn_.load();
        for (const auto& seat : seats_) {
            unsigned spins = 0;
            while (seat->done.load(std::memory_order_acquire) != turn) {
                if (++spins < kSpins) {
                    pause_briefly();
                } else {
                    sched_yield();
                }
            }
        }
    }

    void stop() {
        if (threads_.empty()) return;
        stopped_ = true;
        release();
        for (std::thread& one : threads_) one.join();
        threads_.clear();
        seats_.clear();
    }

private:
    // Turns of looking, about 15 ns each, before a core is given away; and of giving it away before sleep.
    static constexpr unsigned kSpins = 2000, kYields = 100;

    struct alignas(64) Seat {
        std::atomic<uint64_t> done{0};
    };

    void serve(unsigned i) {
        for (uint64_t seen = 0;;) {
            for (unsigned spins = 0; turn_.load(std::memory_order_acquire) == seen; ++spins) {
                if (spins < kSpins) {
                    pause_briefly();
                } else if (spins < kSpins + kYields) {
                    sched_yield();
                } else {
                    std::unique_lock<std::mutex> lock(mutex_);
                    asleep_.fetch_add(1);
                    wake_.wait(lock, [&] { return turn_.load() != seen; });
                    asleep_.fetch_sub(1);
                }
            }
            ++seen;
            if (stopped_) return;
            work_(i);
            seats_[i - 1]->done.store(seen, std::memory_order_release);
        }
    }

    alignas(64) std::atomic<uint64_t> turn_{0};
    alignas(64) std::atomic<unsigned> asleep_{0};
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopped_ = false;
    std::function<void(unsigned)> work_;
    std::vector<std::unique_ptr<Seat>> seats_;
    std::vector<std::thread> threads_;
};

}  // namespace blocks
