"""When packets are born, and what they are: the random processes of a source's classes.

One event of one class is served in a cycle: a birth, or a step of a class's process ahead of time. A class
keeps `due`, the time of its next birth, and a birth carries `due` and not the time at which it was served. So
the processes are exact though events wait for each other, and though a full queue puts births off: a short
queue behaves as an infinite one, except that a class then waits with packets for other VLs too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import RoundRobinArbiter
from ..packet import HEADER_LAYOUT
from .config import TrafficConfig
from .pattern import UNIFORM_BITS, uniform
from .ports import (
    ACCESS,
    CLASS,
    CLASS_BASE,
    CLASS_BYTES,
    CONTROL,
    ROUTE_BASE,
    SPACING_FRACTION,
    STATISTICS,
    STATISTICS_BASE,
    TRACE_BASE,
    Birth,
    Choice,
    Mode,
    VlChoice,
)
from .random import EXPONENTIAL_BITS, EXPONENTIAL_FRACTION, Xoroshiro, exponential

__all__ = ["Generator"]

PAGE_BITS = (CLASS_BYTES - 1).bit_length()


@dataclass
class _Class:
    """A class's registers: `set` by software (name of register and field), and the state of its process."""

    set: dict[str, Signal]
    primed: Signal
    due: Signal
    on_end: Signal
    need_on: Signal
    need_frame: Signal
    frame_time: Signal
    row: Signal
    left: Signal
    spacing: Signal
    destination: Signal
    vl: Signal
    turn: Signal
    deferred: Signal

    def mode(self, mode: Any) -> Value:
        return self.set["CONTROL_mode"] == mode


class Generator(wiring.Component):
    """The births of a source's packets.

    Members:

    - `node` (in, `node_bits`): this node's number. `control` (in, `CONTROL`).
    - `access` (in, `ACCESS`), `answer` (out, 32): class pages, route rows (their VL), trace rows, DEFERRED.
    - `load` (in, 4), `word` (in, 32): words of the random numbers' state.
    - `birth` (out, `Birth`), `birth_vl` (out), `birth_valid` (out): a packet for the queue of its VL.
    - `full` (in, `vls`): queues that take none.
    - `behind` (out): a class has tagged packets yet to be born.

    The processes, with time in cycles and a class's own settings (`class.rdl`), from the start on:

    - random: gaps are 1 + floor(E * SPACING), E exponential of mean 1: the discrete-time Poisson process, in
      which a packet is born in each cycle with probability 1 - exp(-1 / SPACING). A geometric gap, drawn at
      once.
    - periodic: births at PHASE, PHASE + SPACING, ...; fractions of a cycle are kept, not lost.
    - on/off: OFF and ON periods are floor(E * mean). The births are SPACING apart in time spent ON, so that
      the mean rate is ON / (ON + OFF) / SPACING also when periods are short. It begins with an OFF period.
    - trace: every INTERVAL a frame of so many flits is cut in packets of LENGTH, the last one shorter (no
      shorter than a header), born the row's spacing apart: 0 makes a burst, INTERVAL / packets is the input
      regulator of yum-2006 7.1.

    Every event takes a new pair of random numbers: `total[32:]` for E, `total[8:32]` for a uniform
    destination, `raw[0:12]` for the hot spot, `raw[16:32]` for the VL. A birth chooses destination and VL of
    the birth after. A class starts (is primed) within `classes` cycles of the start.

    Throughput: one event a cycle. Reset: all classes off.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        link = config.link
        super().__init__(
            {
                "node": In(config.node_bits),
                "control": In(CONTROL),
                "access": In(ACCESS),
                "answer": Out(32),
                "load": In(4),
                "word": In(32),
                "birth": Out(Birth(config)),
                "birth_vl": Out(link.vl_bits),
                "birth_valid": Out(1),
                "full": In(link.vls),
                "behind": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, control = self._config, self.control
        classes = [self._class(c) for c in range(config.classes)]
        m.submodules.random = random = Xoroshiro()
        m.submodules.arbiter = arbiter = RoundRobinArbiter(size=config.classes)
        grant = Signal(config.classes)

        def of_granted(values: list[Value]) -> Value:
            return reduce(or_, (value & grant[c].replicate(len(value)) for c, value in enumerate(values)))

        # What each class wants to do. Steps ahead of time come before births.
        wants, births, behind = [], [], []
        fetching = Signal(config.classes)
        on_off, on_draws, off_draws = [], [], []
        for c, k in enumerate(classes):
            due = k.due[SPACING_FRACTION:]
            enabled, reached, ready, expired = (
                Signal(name=f"{n}_{c}") for n in ("enabled", "reached", "ready", "expired")
            )
            m.d.comb += [
                enabled.eq(control.run & ~k.mode(Mode.OFF)),
                reached.eq(~(control.now - due)[31]),
                expired.eq(k.mode(Mode.ON_OFF) & ~k.need_on & ~(due - k.on_end)[31]),
                ready.eq(k.primed & reached & ~expired & ~k.need_on & ~k.need_frame),
            ]
            blocked = self.full.bit_select(k.vl, 1)
            birth = ready & ~blocked
            # A trace row that is on its way sets `due`.
            step = (~k.primed | expired | k.need_on | k.need_frame) & ~fetching[c]
            wants.append(enabled & (step | birth & ~fetching[c]))
            births.append(birth)
            on_off.append(k.mode(Mode.ON_OFF))
            on_draws.append(k.need_on)
            off_draws.append(expired)
            behind.append(enabled & (~k.primed | (due - control.window_start - control.window_cycles)[31]))
            with m.If(control.clear):
                m.d.sync += k.deferred.eq(0)
            with m.Elif(enabled & ready & blocked):
                m.d.sync += k.deferred.eq(k.deferred + 1)
        event = Signal()
        m.d.comb += [
            arbiter.requests.eq(Cat(*wants)),
            arbiter.advance.eq(1),
            grant.eq(arbiter.grant),
            event.eq(arbiter.requests.any()),
            random.step.eq(event),
            random.load.eq(self.load),
            random.word.eq(self.word),
            self.behind.eq(Cat(*behind).any()),
        ]

        # Draws for the granted class.
        draw = exponential(m, random.total[32:])
        periods = of_granted([k.need_on for k in classes]), of_granted([k.primed for k in classes])
        needs_on, primed = periods
        mean = Signal(32 + SPACING_FRACTION)
        period = Mux(
            needs_on,
            of_granted([k.set["ON_cycles"] for k in classes]),
            of_granted([k.set["OFF_cycles"] for k in classes]),
        )
        rate = of_granted([k.set["SPACING_cycles"] for k in classes])
        is_on_off = of_granted(on_off) & primed
        m.d.comb += mean.eq(Mux(is_on_off, period << SPACING_FRACTION, rate))
        drawn = Signal(32)
        m.d.comb += drawn.eq((draw * mean)[EXPONENTIAL_FRACTION + SPACING_FRACTION :])
        assert EXPONENTIAL_BITS + 24 - EXPONENTIAL_FRACTION <= 32

        flits_read, spacing_read = self._trace(m, of_granted([k.row for k in classes]), event)
        destination, vl, turn = self._choose(m, classes, of_granted, random)
        longest = of_granted([k.set["LENGTH_flits"] for k in classes])
        for c, k in enumerate(classes):
            due = k.due[SPACING_FRACTION:]
            start = control.now + k.set["PHASE_cycles"]
            chosen = [k.destination.eq(destination), k.vl.eq(vl), k.turn.eq(turn)]
            m.d.sync += fetching[c].eq(0)
            with m.If(grant[c]):
                with m.If(~k.primed):
                    m.d.sync += [
                        k.primed.eq(1),
                        due.eq(Mux(k.mode(Mode.RANDOM), control.now + drawn + 1, start)),
                        k.due[:SPACING_FRACTION].eq(0),
                        k.on_end.eq(start),
                        k.need_on.eq(0),
                        k.need_frame.eq(k.mode(Mode.TRACE)),
                        k.frame_time.eq(start),
                        k.row.eq(k.set["TRACE_first"]),
                        *chosen,
                    ]
                with m.Elif(k.need_on):
                    m.d.sync += [k.on_end.eq(k.on_end + drawn), k.need_on.eq(0)]
                with m.Elif(off_draws[c]):
                    m.d.sync += [due.eq(due + drawn), k.on_end.eq(k.on_end + drawn), k.need_on.eq(1)]
                with m.Elif(k.need_frame):
                    m.d.sync += fetching[c].eq(1)
                with m.Else():
                    m.d.sync += chosen
                    with m.Switch(k.set["CONTROL_mode"]):
                        with m.Case(Mode.RANDOM):
                            m.d.sync += due.eq(due + drawn + 1)
                        with m.Case(Mode.TRACE):
                            m.d.sync += [
                                k.due.eq(k.due + k.spacing),
                                k.left.eq(k.left - longest),
                                k.need_frame.eq(k.left <= longest),
                            ]
                        with m.Default():
                            m.d.sync += k.due.eq(k.due + k.set["SPACING_cycles"])
            with m.If(fetching[c]):
                m.d.sync += [
                    k.due.eq(Cat(k.due[:SPACING_FRACTION] & 0, k.frame_time)),
                    k.frame_time.eq(k.frame_time + k.set["INTERVAL_cycles"]),
                    k.left.eq(flits_read),
                    k.spacing.eq(spacing_read),
                    k.need_frame.eq(flits_read == 0),
                    k.row.eq(Mux(k.row == k.set["TRACE_last"], k.set["TRACE_first"], k.row + 1)),
                ]
            with m.If(~control.run):
                m.d.sync += [k.primed.eq(0), fetching[c].eq(0)]

        born = of_granted([k.due[SPACING_FRACTION:] for k in classes])
        trace = of_granted([k.mode(Mode.TRACE) for k in classes])
        left = of_granted([k.left for k in classes])
        ends = trace & (left <= longest)
        floor, size = config.link.header_flits, Signal(24)
        m.d.comb += [
            self.birth_valid.eq((grant & Cat(*births)).any()),
            self.birth_vl.eq(of_granted([k.vl for k in classes])),
            self.birth.born.eq(born),
            self.birth.destination.eq(of_granted([k.destination for k in classes])),
            self.birth.traffic_class.eq(of_granted([Value.cast(c) for c in range(config.classes)])),
            self.birth.tagged.eq((born - control.window_start)[:32] < control.window_cycles),
            self.birth.frame_end.eq(ends),
            size.eq(Mux(ends, left, longest)),
            self.birth.flits.eq(Mux(size < floor, floor, size)),
            self.birth.service_level.eq(of_granted([k.set["CONTROL_service_level"] for k in classes])),
        ]
        self._registers(m, classes)
        return m

    def _class(self, c: int) -> _Class:
        config = self._config
        fields = {f"{r.name}_{f.name}": f.width for r in CLASS.values() for f in r.fields.values()}

        def state(name: str, width: int) -> Signal:
            return Signal(width, name=f"{name}_{c}")

        return _Class(
            set={name: Signal(width, name=f"{name}_{c}") for name, width in fields.items()},
            primed=state("primed", 1),
            due=state("due", 32 + SPACING_FRACTION),
            on_end=state("on_end", 32),
            need_on=state("need_on", 1),
            need_frame=state("need_frame", 1),
            frame_time=state("frame_time", 32),
            row=state("row", 16),
            left=state("left", 24),
            spacing=state("frame_spacing", 32),
            destination=state("destination", config.node_bits),
            vl=state("vl", config.link.vl_bits),
            turn=state("turn", 4),
            deferred=state("deferred", 32),
        )

    def _trace(self, m: Module, row: Value, enable: Value) -> tuple[Value, Value]:
        """Flits and spacing of the frame in `row`, in the cycle after; software writes the rows."""
        access, depth = self.access, self._config.trace_frames
        row_bits = max(1, (depth - 1).bit_length())
        written = Signal(name="trace_written")
        # The trace takes all the addresses above its base.
        m.d.comb += written.eq(access.write & (access.address >= TRACE_BASE))
        read = []
        for word, (name, bits) in enumerate([("trace_flits", 24), ("trace_spacing", 32)]):
            m.submodules[name] = rows = memory.Memory(shape=bits, depth=depth, init=[])
            write, port = rows.write_port(), rows.read_port(domain="sync")
            m.d.comb += [
                write.en.eq(written & (access.address[2] == word)),
                write.addr.eq(access.address[3 : 3 + row_bits]),
                write.data.eq(access.data),
                port.en.eq(enable),
                port.addr.eq(row),
            ]
            read.append(port.data)
        return read[0], read[1]

    def _choose(
        self, m: Module, classes: list[_Class], of_granted: Callable[[list[Value]], Value], random: Xoroshiro
    ) -> tuple[Signal, Signal, Signal]:
        """Destination and VL of the granted class's next packet, and its next turn."""
        config, access = self._config, self.access

        def setting(name: str) -> Value:
            return of_granted([k.set[name] for k in classes])

        destination, vl, turn = Signal(config.node_bits), Signal(config.link.vl_bits), Signal(4)
        named = setting("DESTINATION_node")[: config.node_bits]
        anywhere = uniform(m, random.total[32 - UNIFORM_BITS : 32], self.node, config)
        hot = (random.raw[:12] < setting("DESTINATION_fraction")) & (named != self.node)
        with m.Switch(setting("CONTROL_pattern")):
            with m.Case(Choice.FIXED):
                m.d.comb += destination.eq(named)
            with m.Case(Choice.UNIFORM):
                m.d.comb += destination.eq(anywhere)
            with m.Default():
                m.d.comb += destination.eq(Mux(hot, named, anywhere))

        m.submodules.vl_of = rows = memory.Memory(shape=config.link.vl_bits, depth=config.nodes, init=[])
        write, port = rows.write_port(), rows.read_port(domain="comb")
        in_routes = access.address[17:] == ROUTE_BASE >> 17
        m.d.comb += [
            write.en.eq(access.write & in_routes & access.address[2]),
            write.addr.eq(access.address[3:]),
            write.data.eq(access.data[16:]),
            port.addr.eq(destination),
        ]
        first, count = setting("CONTROL_vl_first"), setting("CONTROL_vl_count")
        mine = of_granted([k.turn for k in classes])
        m.d.comb += turn.eq(Mux(mine + 1 >= count, 0, mine + 1))
        with m.Switch(setting("CONTROL_vl_choice")):
            with m.Case(VlChoice.RANDOM):
                m.d.comb += vl.eq(first + (random.raw[16:32] * count)[16:])
            with m.Case(VlChoice.IN_TURN):
                m.d.comb += vl.eq(first + mine)
            with m.Default():
                m.d.comb += vl.eq(port.data)
        return destination, vl, turn

    def _registers(self, m: Module, classes: list[_Class]) -> None:
        """Software's side of the class pages and DEFERRED."""
        access = self.access
        with m.If(access.read):
            m.d.sync += self.answer.eq(0)
        for c, k in enumerate(classes):
            page = access.address[PAGE_BITS:]
            with m.If(page == (CLASS_BASE >> PAGE_BITS) + c), m.Switch(access.address[:PAGE_BITS]):
                for register in CLASS.values():
                    with m.Case(register.offset):
                        for field in register.fields.values():
                            place = slice(field.low, field.low + field.width)
                            stored = k.set[f"{register.name}_{field.name}"]
                            with m.If(access.write):
                                m.d.sync += stored.eq(access.data[place])
                            with m.If(access.read):
                                m.d.sync += self.answer[place].eq(stored)
            deferred = STATISTICS_BASE + c * CLASS_BYTES + STATISTICS["DEFERRED"].offset
            with m.If(access.read & (access.address == deferred)):
                m.d.sync += self.answer.eq(k.deferred)


assert HEADER_LAYOUT["service_level"].width == 4
