"""The births of packets: the random processes of a source's classes.

One event of one class is served in a cycle: a birth, or a step of a class's process ahead of time. A class keeps
`due`, the time of its next birth. A birth carries `due` and not the time at which it was served. So the processes are
exact though events wait for each other, and though a full queue puts births off. A short queue behaves as an infinite
one, except that a class then waits with packets for other VLs too.
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import RoundRobinArbiter
from ..packet import HEADER_LAYOUT
from ..router.vl_buffer import encode
from .config import TrafficConfig
from .pattern import UNIFORM_BITS, uniform
from .ports import (
    ACCESS,
    CLASS_BYTES,
    CONTROL,
    ROUTE_BASE,
    SPACING_FRACTION,
    STATISTICS,
    STATISTICS_BASE,
    TRACE_BASE,
    Birth,
    Choice,
    VlChoice,
)
from .random import EXPONENTIAL_BITS, EXPONENTIAL_FRACTION, Xoroshiro, exponential
from .settings import ClassSettings

__all__ = ["Generator"]


class Generator(wiring.Component):
    """The births of a source's packets.

    Members:

    - `node` (in, `node_bits`): this node's number.
    - `control` (in, `CONTROL`): from the measurement.
    - `access` (in, `ACCESS`), `answer` (out, 32): class pages, route rows (their VL), trace rows, DEFERRED.
    - `load` (in, 4), `word` (in, 32), `load_class` (in, class number): words of the state of a class's random numbers.
    - `birth` (out, `Birth`), `birth_vl` (out), `birth_valid` (out): a packet for the queue of its VL.
    - `full` (in, `vls`): queues that take none.
    - `behind` (out): a class has tagged packets yet to be born.
    - `idle` (out): nothing is to be done in this cycle. Nothing is to be done later either, before the `due` of a class
      that is `waiting`, while `control`'s other fields, `full` and `access` stay as they are.
    - `waiting` (out, a bit a class): the class waits for the birth of its next packet.
    - `due` (out, 32 a class): the cycle in which the class's next packet is born.

    The processes, with time in cycles and a class's own settings (`class.rdl`), from the start on:

    - random: gaps are 1 + floor(E * SPACING), E exponential of mean 1. This is the discrete-time Poisson process, in
      which a packet is born in each cycle with probability 1 - exp(-1 / SPACING). The gap is geometric, drawn at once.
    - periodic: births at PHASE, PHASE + SPACING, ...; fractions of a cycle are kept, not lost.
    - on/off: OFF and ON periods are floor(E * mean). The births are SPACING apart in time spent ON. So the mean rate is
      ON / (ON + OFF) / SPACING also when periods are short. The process begins with an OFF period.
    - trace: every INTERVAL a frame of so many flits is cut in packets of LENGTH. The last one is shorter, but no
      shorter than a header. Packets are born the row's spacing apart: 0 makes a burst, INTERVAL / packets is the input
      regulator of yum-2006 7.1.

    Every event takes a new pair of random numbers:

    - `total[32:]` for E
    - `total[8:32]` for a uniform destination
    - `raw[0:12]` for the hot spot
    - `raw[16:32]` for the VL

    A birth chooses destination and VL of the birth after. A class starts (is primed) within `classes` cycles of the
    start.

    Latency: a packet is born in the cycle in which it is due, or later: while its queue is full, or other classes
    have their events. Throughput: one event a cycle. Reset: all classes off.
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
                "load_class": In(config.class_bits),
                "birth": Out(Birth(config)),
                "birth_vl": Out(link.vl_bits),
                "birth_valid": Out(1),
                "full": In(link.vls),
                "behind": Out(1),
                "idle": Out(1),
                "waiting": Out(config.classes),
                "due": Out(32).array(config.classes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, control = self._config, self.control
        count = config.classes
        m.submodules.settings = settings = ClassSettings(config)
        # A generator a class, so that a class's packets follow from its own seed, whatever holds up the others.
        generators = [Xoroshiro() for _ in range(count if config.random else 0)]
        for c, one in enumerate(generators):
            m.submodules[f"random_{c}"] = one
        m.submodules.arbiter = arbiter = RoundRobinArbiter(size=count)

        # Registers hold the values that are looked at in every cycle: the next event of a class, and its time.
        primed, need_on, need_off, need_frame, fetching = (
            Signal(count, name=n) for n in ("primed", "need_on", "need_off", "need_frame", "fetching")
        )
        dues = [Signal(32 + SPACING_FRACTION, name=f"due_{c}") for c in range(count)]
        vls = [Signal(config.link.vl_bits, name=f"vl_{c}") for c in range(count)]
        reached, blocked, early = Signal(count), Signal(count), Signal(count)
        ends = control.window_start + control.window_cycles
        for c in range(count):
            due = dues[c][SPACING_FRACTION:]
            m.d.comb += [
                reached[c].eq(~(control.now - due)[31]),
                blocked[c].eq(self.full.bit_select(vls[c], 1)),
                early[c].eq((due - ends)[31]),
            ]
        enabled = ~settings.is_off & control.run.replicate(count)
        ahead = ~primed | need_on | need_off | need_frame
        ready = reached & ~ahead
        grant, event, birth = Signal(count), Signal(), Signal()
        m.d.comb += [
            # While a trace row is on its way nothing else is served: it takes the class's state.
            arbiter.requests.eq(Mux(fetching.any(), 0, enabled & (ahead | ready & ~blocked))),
            arbiter.advance.eq(1),
            grant.eq(arbiter.grant),
            event.eq(arbiter.requests.any()),
            birth.eq((grant & ready).any()),
            self.behind.eq((enabled & (~primed | early)).any()),
            self.idle.eq(~((enabled & (ahead | ready)) | fetching).any()),
            self.waiting.eq(enabled & ~ahead),
            *(due.eq(mine[SPACING_FRACTION:]) for due, mine in zip(self.due, dues, strict=True)),
        ]
        total, raw = Signal(64), Signal(64)
        for c, one in enumerate(generators):
            m.d.comb += [
                one.step.eq(grant[c] & event),
                one.load.eq(Mux(self.load_class == c, self.load, 0)),
                one.word.eq(self.word),
            ]
            with m.If(grant[c]):
                m.d.comb += [total.eq(one.total), raw.eq(one.raw)]
        self._deferred(m, enabled & ready & blocked, settings)

        # The granted class: its settings and the rest of its state are rows of memories, as one is needed at
        # a time.
        number = Signal(config.class_bits)
        m.d.comb += [
            number.eq(encode(grant | fetching, config.class_bits)),
            settings.number.eq(number),
            settings.access.eq(self.access),
        ]
        modes = settings.is_random, settings.is_on_off, settings.is_trace
        is_random, is_on_off, is_trace = ((grant & mode).any() for mode in modes)
        first_event, needs_on, needs_off, needs_frame = (
            (grant & flags).any() for flags in (~primed, need_on, need_off, need_frame)
        )
        old, new = self._state(m, number, event | fetching.any())
        due = Signal(32 + SPACING_FRACTION)
        for c in range(count):
            with m.If(grant[c] | fetching[c]):
                m.d.comb += due.eq(dues[c])

        # An exponential draw, in cycles.
        draw = exponential(m, total[32:])
        # 36 bits hold a period of 24 and a spacing of 32 bits. The product has 57 bits, which a simulator handles as
        # one number.
        mean, drawn = Signal(24 + SPACING_FRACTION), Signal(32)
        period = Mux(needs_on, settings.on.cycles, settings.off.cycles)
        m.d.comb += [
            mean.eq(Mux(needs_on | needs_off, period << SPACING_FRACTION, settings.spacing.cycles)),
            drawn.eq((draw * mean)[EXPONENTIAL_FRACTION + SPACING_FRACTION :]),
        ]
        assert EXPONENTIAL_BITS + 24 - EXPONENTIAL_FRACTION <= 32

        destination, vl, turn = self._choose(m, settings, old, total, raw)
        flits_read, spacing_read = self._trace(m, old.row, event)
        longest = settings.length.flits
        last = Signal()
        m.d.comb += last.eq(old.left <= longest)

        # Its next state.
        due_next, later = Signal.like(due), Signal(32)
        start = control.now + 1 + settings.phase.cycles
        m.d.sync += [primed.eq(primed & enabled | grant), fetching.eq(grant & need_frame & primed)]
        m.d.comb += [due_next.eq(due), new.eq(old), later.eq(due[SPACING_FRACTION:] + drawn)]
        with m.If(fetching.any()):
            m.d.comb += [
                due_next.eq(old.horizon << SPACING_FRACTION),
                new.horizon.eq(old.horizon + settings.interval.cycles),
                new.left.eq(flits_read),
                new.spacing.eq(spacing_read),
                new.row.eq(Mux(old.row == settings.trace.last, settings.trace.first, old.row + 1)),
            ]
            with m.If(flits_read != 0):
                m.d.sync += need_frame.eq(need_frame & ~fetching)
        with m.Elif(first_event):
            m.d.comb += [
                due_next.eq(Mux(is_random, control.now + 1 + drawn, start) << SPACING_FRACTION),
                new.horizon.eq(start),
                new.row.eq(settings.trace.first),
            ]
            # An on/off class begins at the end of an ON period of no length.
            m.d.sync += [
                need_on.eq(need_on & ~grant),
                need_off.eq(need_off & ~grant | grant & settings.is_on_off),
                need_frame.eq(need_frame & ~grant | grant & settings.is_trace),
            ]
        with m.Elif(needs_on):
            m.d.comb += new.horizon.eq(old.horizon + drawn)
            m.d.sync += need_on.eq(need_on & ~grant)
            with m.If(~(due[SPACING_FRACTION:] - new.horizon)[31]):
                m.d.sync += need_off.eq(need_off | grant)
        with m.Elif(needs_off):
            m.d.comb += [
                due_next.eq(Cat(due[:SPACING_FRACTION], later)),
                new.horizon.eq(old.horizon + drawn),
            ]
            m.d.sync += [need_on.eq(need_on | grant), need_off.eq(need_off & ~grant)]
        with m.Elif(~needs_frame):
            with m.If(is_random):
                m.d.comb += due_next.eq(Cat(due[:SPACING_FRACTION], (later + 1)[:32]))
            with m.Else():
                m.d.comb += due_next.eq(due + Mux(is_trace, old.spacing, settings.spacing.cycles))
            m.d.comb += new.left.eq(old.left - longest)
            with m.If(is_trace & last):
                m.d.sync += need_frame.eq(need_frame | grant)
            with m.If(is_on_off & ~(due_next[SPACING_FRACTION:] - old.horizon)[31]):
                m.d.sync += need_off.eq(need_off | grant)
        chooses = Signal()
        m.d.comb += chooses.eq(event & (first_event | birth))
        with m.If(chooses):
            m.d.comb += [new.destination.eq(destination), new.turn.eq(turn)]
        for c in range(count):
            with m.If((grant | fetching)[c]):
                m.d.sync += dues[c].eq(due_next)
            with m.If(grant[c] & chooses):
                m.d.sync += vls[c].eq(vl)
        size, floor = Signal(24), config.link.header_flits
        born = due[SPACING_FRACTION:]
        m.d.comb += [
            size.eq(Mux(is_trace & last, old.left, longest)),
            self.birth_valid.eq(birth),
            self.birth.born.eq(born),
            self.birth.destination.eq(old.destination),
            self.birth.traffic_class.eq(number),
            self.birth.tagged.eq((born - control.window_start)[:32] < control.window_cycles),
            self.birth.frame_end.eq(is_trace & last),
            self.birth.flits.eq(Mux(size < floor, floor, size)),
            self.birth.service_level.eq(settings.control.service_level),
        ]
        for c in range(count):
            with m.If(grant[c]):
                m.d.comb += self.birth_vl.eq(vls[c])
        # What there is no mode for is never needed, which leaves its logic out.
        if not config.random:
            m.d.sync += [need_on.eq(0), need_off.eq(0)]
        if not config.trace_frames:
            m.d.sync += [need_frame.eq(0), fetching.eq(0)]
        return m

    def _state(self, m: Module, number: Value, write: Value) -> tuple[data.View, data.View]:
        """State of class `number`, and its next state. All but `turn` is set up when the class is primed.

        - `horizon`: the end of the ON period, or the time of the next frame.
        - `spacing` and `left` (flits): those of the frame.
        - `row`: the next row.
        - `turn` and `destination`: the next ones.
        """
        parts: list[dict[str, int]] = [
            {"horizon": 32, "spacing": 32},
            {"left": 24, "row": 16, "turn": 4, "destination": self._config.node_bits},
        ]
        layout = data.StructLayout({name: bits for part in parts for name, bits in part.items()})
        old: data.View = Signal(layout, name="state")
        new: data.View = Signal(layout, name="state_next")
        for i, part in enumerate(parts):
            # Two memories, as a simulator moves 64 bits at once.
            shape = data.StructLayout(part)
            m.submodules[f"state_{i}"] = rows = memory.Memory(
                shape=shape, depth=self._config.classes, init=[]
            )
            read, write_port = rows.read_port(domain="comb"), rows.write_port()
            m.d.comb += [read.addr.eq(number), write_port.addr.eq(number), write_port.en.eq(write)]
            for name in part:
                m.d.comb += [old[name].eq(read.data[name]), write_port.data[name].eq(new[name])]
        return old, new

    def _trace(self, m: Module, row: Value, enable: Value) -> tuple[Value, Value]:
        """Flits and spacing of the frame in `row`, in the cycle after; software writes the rows."""
        access, depth = self.access, self._config.trace_frames
        if not depth:
            return Const(0, 24), Const(0, 32)
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
        self, m: Module, settings: ClassSettings, old: data.View, total: Value, raw: Value
    ) -> tuple[Signal, Signal, Signal]:
        """Destination and VL of the class's next packet, and its next turn."""
        config, access = self._config, self.access
        destination, vl, turn = Signal(config.node_bits), Signal(config.link.vl_bits), Signal(4)
        named = settings.destination.node[: config.node_bits]
        anywhere = uniform(m, total[32 - UNIFORM_BITS : 32], self.node, config)
        hot = (raw[:12] < settings.destination.fraction) & (named != self.node)
        with m.Switch(settings.control.pattern):
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
        first, count = settings.control.vl_first, settings.control.vl_count
        m.d.comb += turn.eq(Mux(old.turn + 1 >= count, 0, old.turn + 1))
        with m.Switch(settings.control.vl_choice):
            with m.Case(VlChoice.RANDOM):
                m.d.comb += vl.eq(first + (raw[16:32] * count)[16:])
            with m.Case(VlChoice.IN_TURN):
                m.d.comb += vl.eq(first + old.turn)
            with m.Default():
                m.d.comb += vl.eq(port.data)
        return destination, vl, turn

    def _deferred(self, m: Module, late: Value, settings: ClassSettings) -> None:
        """Counts the cycles of DEFERRED, and answers reads."""
        access = self.access
        counts = [Signal(32, name=f"deferred_{c}") for c in range(self._config.classes)]
        with m.If(self.control.clear):
            m.d.sync += [count.eq(0) for count in counts]
        with m.Elif(late.any()):
            m.d.sync += [count.eq(count + late[c]) for c, count in enumerate(counts)]
        word = Signal(32)
        with m.If(access.read):
            m.d.sync += word.eq(0)
            for c, count in enumerate(counts):
                with m.If(
                    access.address == STATISTICS_BASE + c * CLASS_BYTES + STATISTICS["DEFERRED"].offset
                ):
                    m.d.sync += word.eq(count)
        m.d.comb += self.answer.eq(settings.answer | word)


assert HEADER_LAYOUT["service_level"].width == 4
