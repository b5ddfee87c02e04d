// The simulator's own main loop: the clock is toggled here, so Python wakes for events and never for cycles.
//
// Time of cycle k, in steps (1 ns on the time axis of a wave file; the real clock's period is in the configuration):
//   10k      rising edge: registers take their new values
//   10k + 1  drive phase: value-change callbacks and Python's writes
//   10k + 5  falling edge
//   10k + 9  sample phase: what Python reads here is what the next edge sees
// The first edge is at 10; cycle 0 is the time before it, with all registers at their initial values.

#include <sys/prctl.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "agenda.h"
#include "lists.h"
#include "options.h"
#include "player.h"
#include "skip.h"
#include "wakes.h"
#if __has_include("composition.h")
#include "composition.h"
#define LANIKAI_PARTS 1
#else
#define LANIKAI_PARTS 0
#endif
#include "verilated.h"
#include "verilated_sym_props.h"
#include "verilated_vpi.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif
#if VM_TRACE
#include "trace.h"
#endif

namespace {
constexpr uint64_t kPeriod = 10;
constexpr uint64_t kDrive = 1;
constexpr uint64_t kFall = 5;
constexpr uint64_t kNever = ~uint64_t{0};

VerilatedContext* context = nullptr;
Vtop* top = nullptr;
Options options;
bool list_written = false;  // an access of a list was
bool poked = false;  // Python wrote a signal through its address
uint64_t cycle = 0;
Skipper skipper;
Player player;
Wakes wakes;
Agenda agenda;
std::vector<ListPort> list_ports;
Watched watched;  // signals of the whole design: looked at after every edge
#if LANIKAI_PARTS
System blocks_system;
// The instances outside of the top module: their cycle, which goes by the top's outputs before its edge, and what they
// tell it after it. Other threads may be at work between the two.
void begin_blocks() { blocks_system.begin(); }
void end_blocks() {
    blocks_system.end();
    if (blocks_system.deliver()) top->eval();
}
// What Python has written into instances is seen by them, and by the top. `by_vpi`: it has written something by VPI, which
// does not say in which instance.
void settle_blocks(bool by_vpi) {
    if (LANIKAI_VISIBLE && by_vpi) blocks_system.poke_all();
    blocks_system.settle_poked();
    blocks_system.deliver();
}
// What the main loop itself has written into instances in this cycle.
void settle_written() {
    blocks_system.settle_poked();
    blocks_system.deliver();
}
// How many of the next `edges` rising edges can be one, in the present `cycle`.
uint64_t together(uint64_t edges, uint64_t) {
    return skipper.on() ? skipper.together_composed(edges, blocks_system.room()) : 1;
}
// The next edge stands for `count`.
void begin_together(uint64_t count) {
    skipper.begin(count);
    blocks_system.jump(count - 1);
}
// The events of instances in this cycle.
void raise_events() {
    blocks_system.take_events([](uint32_t number) { wakes.raise(number); });
}
// Between these they show what they would in one model: to Python, where it sees all, or to a waveform.
void show_blocks() { blocks_system.show(top->clk); }
void hide_blocks() { blocks_system.hide(); }
#else
#define LANIKAI_VISIBLE 0
void begin_blocks() {}
void end_blocks() {}
void settle_blocks(bool) {}
void settle_written() {}
uint64_t together(uint64_t edges, uint64_t at) { return skipper.together(edges, at); }
void begin_together(uint64_t count) { skipper.begin(count); }
void raise_events() {}
void show_blocks() {}
void hide_blocks() {}
#endif
#if VM_TRACE
void trace_blocks(VerilatedFstC* file) {
#if LANIKAI_PARTS
    blocks_system.trace(file);
#endif
}
Trace tracer;
bool is_traced(const char* file, const char* path) { return file && tracer.wants(path); }
// Write the present time step. Once a step, when it has settled: what changes later in it would be lost.
void dump() {
    if (!tracer.is_open()) return;
    show_blocks();
    tracer.dump(context->time());
    hide_blocks();
}
#else
void dump() {}
bool is_traced(const char*, const char*) { return false; }
#endif

// Let time go on to `time`: what happened until now is settled.
void advance(uint64_t time) {
    if (time == context->time()) return;
    dump();
    context->time(time);
}

bool value_callbacks() {
    bool ran = false;
    while (VerilatedVpi::callValueCbs()) ran = true;
    return ran;
}

void evaluate() {
    do {
        const bool by_vpi = VerilatedVpi::evalNeeded();
        poked = false;
        VerilatedVpi::clearEvalNeeded();
        if (LANIKAI_VISIBLE) hide_blocks();
        settle_blocks(by_vpi);
        top->eval();
        if (LANIKAI_VISIBLE) show_blocks();
        VerilatedVpi::doInertialPuts();
        value_callbacks();
    } while (VerilatedVpi::evalNeeded() || poked);
}

// After Python has run: evaluate until nothing that it wrote is left to be seen.
void settle(bool force) {
    skipper.disturb();
    VerilatedVpi::doInertialPuts();
    if (force || poked || VerilatedVpi::evalNeeded()) evaluate();
    for (;;) {
        VerilatedVpi::callCbs(cbReadWriteSynch);
        VerilatedVpi::doInertialPuts();
        value_callbacks();
        if (!VerilatedVpi::evalNeeded() && !poked) break;
        evaluate();
    }
    VerilatedVpi::callCbs(cbReadOnlySynch);
}

// Wake Python for what has been raised. Returns whether it ran.
bool tell() {
    bool ran = wakes.tell();
    ran |= value_callbacks();
    if (ran) settle(false);
    return ran;
}

// Before and after an access is written into a mailbox.
void prepare_list(uint32_t owner) {
#if LANIKAI_PARTS
    if (owner) blocks_system.catch_up(owner - 1);
#else
    (void)owner;
#endif
}
void written_list(uint32_t owner) {
    skipper.disturb();
    list_written = true;
#if LANIKAI_PARTS
    if (owner) blocks_system.poke(owner - 1);
#else
    (void)owner;
#endif
}

// What is due in this cycle, in its order. Returns whether Python ran.
bool serve_agenda() {
    bool ran = false;
    while (agenda.next() <= cycle) {
        const Due due = agenda.take();
        if (!due.list) {
            wakes.raise(due.number);
            continue;
        }
        ListPort& port = list_ports[due.number];
        // Python, which is to run before, may want it to stop.
        if (port.marks() && wakes.raised()) ran |= tell();
        if (port.go_on(agenda, cycle)) wakes.raise(port.event(), due.order);
    }
    // One model sees it with the falling edge; instances have none.
    if (list_written && (LANIKAI_PARTS || VM_TRACE)) evaluate();
    list_written = false;
    if (wakes.raised()) ran |= tell();
    return ran;
}

// One edge of the clock. Returns whether Python ran.
bool toggle(uint64_t time, bool rising) {
    advance(time);
    top->clk = rising;
    bool ran = false;
    if (options.edges) {
        VerilatedVpi::callCbs(cbNextSimTime);
        ran = value_callbacks();
    }
    if (LANIKAI_VISIBLE) hide_blocks();
    if (rising) begin_blocks();
    else settle_written();
    top->eval();
    if (rising) {
        end_blocks();
        ++cycle;
    }
    if (LANIKAI_VISIBLE) show_blocks();
    if (ran) settle(false);
    if (!rising) return ran;
    advance(time + kDrive);
    if (player.active()) {
        player.turn();
        top->eval();
    }
    watched.look(wakes);
    raise_events();
    ran |= tell();
    ran |= serve_agenda();
    return ran;
}

void run() {
    uint64_t next = kPeriod;  // the next edge, rising where it is a multiple of the period
    settle(true);
    while (!context->gotFinish()) {
        // A value change and a timer of the same time: calling the one, the VPI layer has taken the other out of
        // the queue that the next deadline comes from.
        if (VerilatedVpi::hasCbs(cbAfterDelay)) {
            VerilatedVpi::callTimedCbs();
            settle(false);
            continue;
        }
        const uint64_t deadline = VerilatedVpi::cbNextDeadline();
        bool ran = false;
        while (!ran && next < deadline && !context->gotFinish()) {
            const bool rising = next % kPeriod == 0;
            if (rising && (deadline != kNever || agenda.next() != kNever)) {
                const uint64_t edges = std::min((deadline - 1 - next) / kPeriod + 1, agenda.next() - cycle);
                const uint64_t count = together(edges, cycle);
                if (count > 1) {
                    begin_together(count);
                    next += (count - 1) * kPeriod;
                    cycle += count - 1;
                    ran = toggle(next, rising);
                    skipper.end();
                    next += kFall;
                    continue;
                }
            }
            ran = toggle(next, rising);
            next += rising ? kFall : kPeriod - kFall;
        }
        if (ran || context->gotFinish() || deadline == kNever) continue;
        advance(deadline);
        VerilatedVpi::callCbs(cbNextSimTime);
        VerilatedVpi::callTimedCbs();
        settle(false);
    }
}
}  // namespace

// What Python calls through ctypes: it runs inside this process.
extern "C" {
void vlog_startup_routines_bootstrap(void);

// Rising edges so far: the number of the present cycle.
uint64_t lanikai_cycle() { return cycle; }

// Address of a public signal, its width in `bits` and its C type's size in `bytes`; null if there is none. `owner` is
// the instance outside of the top module that it is in, counted from 1, or 0. What an instance shows is that of the
// present cycle; it stays so while Python runs.
void* lanikai_signal(const char* scope, const char* name, uint32_t* bits, uint32_t* bytes, uint32_t* owner) {
    const VerilatedScope* found = context->scopeFind(scope);
    *owner = 0;
#if LANIKAI_PARTS
    if (const int64_t instance = blocks_system.find(scope); instance >= 0) {
        *owner = static_cast<uint32_t>(instance) + 1;
        blocks_system.catch_up(*owner - 1);
        if (const blocks::Port* const port = blocks_system.port(*owner - 1, scope, name)) {
            *bits = port->bits;
            *bytes = port->bytes;
            return port->data;
        }
        if (!found) found = context->scopeFind(blocks_system.scope(*owner - 1, scope).c_str());
    }
#endif
    if (!found) return nullptr;
    VerilatedVar* const var = found->varFind(name);
    if (!var) return nullptr;
    *bits = static_cast<uint32_t>(var->entBits());
    *bytes = static_cast<uint32_t>(var->entSize());
    return var->datap();
}

// Python's arrays for its one wake-up a cycle (wakes.h); `serve` is the function that is called, `order` counts what is
// armed or entered in the agenda.
void lanikai_wakes(void (*serve)(), uint32_t* entries, uint64_t* armed, uint32_t* told, uint32_t count, uint64_t* order) {
    wakes.attach(serve, entries, armed, told, count);
    agenda.attach(order);
}

// Raise event `number`, which is armed, in the drive phase `cycles` from now (at least 1).
void lanikai_later(uint64_t cycles, uint32_t number) {
    agenda.enter(cycle + cycles, wakes.order(number), number);
}

// A processor's port for lists of accesses (lists.h); `owner` is the instance of its mailbox (`lanikai_signal`), `event` is
// raised when a list has ended. Returns its number.
uint32_t lanikai_lists(void* command, const void* answer, uint32_t* words, uint32_t* control, uint32_t owner,
                       uint32_t event) {
    const uint32_t number = static_cast<uint32_t>(list_ports.size());
    const ListPort::Mailbox mailbox{static_cast<uint64_t*>(command), static_cast<const uint64_t*>(answer), owner,
                                    prepare_list, written_list};
    list_ports.emplace_back(number, event, mailbox, words, control);
    return number;
}

// Begin a list on a port, `lead` cycles from now (lists.h). Its event is armed, unless it has ended already: then 1 is
// returned.
int lanikai_lists_start(uint32_t port, uint64_t lead, const void* program, uint32_t records, int marks) {
    ListPort& one = list_ports[port];
    wakes.arm(one.event(), agenda.count());
    const bool ended = one.start(agenda, cycle, lead, static_cast<const uint32_t*>(program), records, marks);
    if (ended) wakes.disarm(one.event());
    if (!lead) poked = true;
    return ended;
}

// Raise event `number` whenever the one-bit register of `owner` at this address (`lanikai_signal`) changes.
void lanikai_watch(const void* signal, uint32_t owner, uint32_t number) {
#if LANIKAI_PARTS
    // Where it can have changed is known: only what was evaluated is looked at.
    if (owner) return blocks_system.watch(owner - 1, static_cast<const uint8_t*>(signal), number);
#endif
    watched.add(static_cast<const uint8_t*>(signal), number);
}

// Make accesses of a set-up port, from this cycle on (player.h).
void lanikai_play(void* request, uint32_t request_bytes, const void* response, uint32_t response_bytes,
                  const uint64_t* requests, uint64_t count, uint64_t turns, uint64_t* answers, uint64_t* answered) {
    player.start(request, request_bytes, response, response_bytes, requests, count, turns, answers, answered);
    poked = true;
}

// Let time pass over cycles in which nothing happens (skip.h). Returns 0 if the design has no ports for it.
int lanikai_skip(uint32_t nodes, uint64_t settle, uint64_t num, uint64_t den, uint32_t bits, uint64_t reach,
                 uint64_t round, uint64_t horizon) {
    const VerilatedScope* const scope = context->scopeFind("TOP");
#if LANIKAI_PARTS
    blocks_system.rest_clocked();
    return scope && skipper.start_composed(scope);
#endif
    return scope && skipper.start(scope, nodes, settle, num, den, bits, reach, round, horizon);
}

// Cycles that time has passed over so far.
uint64_t lanikai_skipped() { return skipper.total(); }

// Python's bytes, a multiple of 8, one for each addressed instance that it has evaluated in the next cycle (bells.h).
void lanikai_bells(uint8_t* bytes, uint32_t count) {
#if LANIKAI_PARTS
    blocks_system.bells.attach(bytes, count);
#else
    (void)bytes, (void)count;
#endif
}

// Evaluate what would be left out all the same, and end with an error if a register changes there. Returns 0 if the
// design has no instances outside of its top module.
int lanikai_check_quiet() {
#if LANIKAI_PARTS
    blocks_system.check_all();
#endif
    return LANIKAI_PARTS;
}

// Evaluations of instances outside of the top module so far; in `total` those that there would have been without rest.
uint64_t lanikai_evaluated(uint64_t* total) {
#if LANIKAI_PARTS
    *total = blocks_system.total();
    return blocks_system.evaluated();
#else
    return *total = 0;
#endif
}

// Threads that evaluate instances outside of the top module. From now on all are at work, or the main one alone.
unsigned lanikai_use_threads(int all) {
#if LANIKAI_PARTS
    blocks_system.use_threads(all);
    return blocks_system.threads();
#else
    (void)all;
    return 1;
#endif
}

// Run so many cycles with no thought of Python, and return the nanoseconds of processor time that took: what the model
// alone costs. Time stands still meanwhile for whoever waits for it.
uint64_t lanikai_bare(uint64_t cycles) {
    timespec begin, end;
    if (LANIKAI_VISIBLE) hide_blocks();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (uint64_t i = 0; i < cycles; ++i) {
        begin_blocks();
        top->clk = 1;
        top->eval();
        end_blocks();
        top->clk = 0;
        top->eval();
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    if (LANIKAI_VISIBLE) show_blocks();
    return (end.tv_sec - begin.tv_sec) * uint64_t{1000000000} + end.tv_nsec - begin.tv_nsec;
}

// Say that a signal of `owner` (`lanikai_signal`) is to be written through its address: its instance is brought to the
// present cycle.
void lanikai_prepare(uint32_t owner) {
#if LANIKAI_PARTS
    if (owner) blocks_system.catch_up(owner - 1);
#endif
}

// Say that it was written: the design is evaluated before time goes on.
void lanikai_poke(uint32_t owner) {
    poked = true;
#if LANIKAI_PARTS
    if (owner) blocks_system.poke(owner - 1);
#endif
}
}

#if VM_COVERAGE
// Write what was counted to a file of its own in the folder LANIKAI_COVERAGE. Its name begins with that of the model's
// folder, which has the sources.
static void write_coverage(const std::string& program) {
    const char* const folder = std::getenv("LANIKAI_COVERAGE");
    if (!folder) return;
    const std::string model = program.substr(0, program.rfind('/'));
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const std::string name = model.substr(model.rfind('/') + 1) + "-" + std::to_string(now.tv_sec) + "-" +
                             std::to_string(now.tv_nsec) + ".dat";
    context->coveragep()->write(std::string(folder) + "/" + name);
}
#endif

double sc_time_stamp() { return 0; }  // not used: the context holds the time

int main(int argc, char** argv) {
    // No simulator outlives the program that started it, however that ends.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto owned_context = std::make_unique<VerilatedContext>();
    context = owned_context.get();
    Verilated::threadContextp(context);
    context->commandArgs(argc, argv);
#if VM_TRACE
    options.take(argc, argv, [](const char* name, const char* value) { return tracer.option(name, value); });
#else
    options.take(argc, argv, [](const char*, const char*) { return false; });
#endif
#if VM_TRACE
    context->traceEverOn(true);
#endif
    const auto owned_top = std::make_unique<Vtop>(context, "");
    top = owned_top.get();
#if LANIKAI_PARTS
    blocks_system.threads(options.threads, options.if_worth, [] { Verilated::threadContextp(context); });
    compose(top, context, blocks_system, [&](const char* path) { return is_traced(options.trace_file, path); });
    if (blocks_system.threads() > 1) {
        std::printf("%u threads evaluate the instances\n", blocks_system.threads());
        std::fflush(stdout);
    }
    top->eval();
    if (LANIKAI_VISIBLE) show_blocks();
#endif
    context->fatalOnVpiError(false);  // the VPI layer probes for functions that Verilator has not
#if VM_TRACE
    if (options.trace_file) tracer.open(top, options.trace_file, trace_blocks);
#else
    if (options.trace_file) {
        std::fprintf(stderr, "this build has no tracing\n");
        return 2;
    }
#endif
    vlog_startup_routines_bootstrap();
    VerilatedVpi::callCbs(cbStartOfSimulation);
    value_callbacks();
    run();
    top->final();
    VerilatedVpi::callCbs(cbEndOfSimulation);
    dump();
#if VM_TRACE
    tracer.close();
#endif
#if VM_COVERAGE
    write_coverage(argv[0]);
#endif
    return context->errorCount() > 0 ? 1 : 0;
}
