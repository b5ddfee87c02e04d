"""Rate control for many flows: a tournament tree in memory (gulati-thesis-2001 3.2.2, nagar-thesis-2001 5.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, memory, wiring

from ...config import NicConfig
from ..rtc import difference, reached
from .ports import RateControlSignature, charge, charged_bytes, fine, flow_bits, whole

__all__ = ["RADIX_BITS", "RateTree", "TreeShape"]

RADIX_BITS = 2
"""Children of a node, as a power of two (docs/rate-control.md has the cost of each number)."""


@dataclass(frozen=True)
class TreeShape:
    """The places of a tree's nodes in memory; a node, of `1 << radix_bits` children, is a row.

    `flow_width`: bits of a flow's number. Level 0 has the flows themselves as children, the last level is the root.
    """

    flow_width: int
    radix_bits: int

    @cached_property
    def levels(self) -> list[int]:
        """Bits of a node's number, by level."""
        bits = self.flow_width
        found: list[int] = []
        while not found or found[-1]:
            bits = max(0, bits - self.radix_bits)
            found.append(bits)
        return found

    @cached_property
    def base(self) -> list[int]:
        """First row of each level: node `n` is row `base | n`, as they are sums of ever smaller powers of two."""
        return [sum(1 << bits for bits in self.levels[:k]) for k in range(len(self.levels))]

    @cached_property
    def rows(self) -> int:
        """Rows in all."""
        return sum(1 << bits for bits in self.levels)

    def row(self, flow: Value, level: int) -> Value:
        """The row above `flow` in a level."""
        above = self.radix_bits * (level + 1)
        return Value.cast(self.base[level] | flow[above:] if above < self.flow_width else self.base[level])

    def column(self, flow: Value, level: int) -> Value:
        """The child of that row below which `flow` is."""
        below = self.radix_bits * level
        return flow[below : below + self.radix_bits]


class RateTree(wiring.Component):
    """Rate control unit of up to 1024 flows: the decisions of `RateControl`, some cycles later, from a memory.

    Members: `RateControlSignature`. The rule is that of `RateControl`, ties and ranges included. So is the result of
    every command, by the IDT and the clock of the cycle in which it is taken. The unit differs in these:

    - One command is taken at a time. Several that wait are taken in the order `dispatched`, `clear`, writes, `enqueue`.
    - `settled`, and with it `idt`, `ndt` and `valid`, come 2 cycles after `select` changes, or after a command.
    - The scan that moves up an NDT that has fallen too far behind visits a flow every `rate_scan_cycles`. It takes the
      place of a command for 4 cycles, or for all if it has something to move. It leaves the offer unless it moves a
      flow that waits.
    - An NDT is kept at most an eighth of the clock's range behind it (`NicConfig.max_lag_ticks`).

    Latency: `decision_cycles` from the cycle in which a command is taken to that of the offer that accounts for it, and
    to that of the next command. They are 5, and one for each level of the tree (1024 flows: 10; 16 flows: 7). Meanwhile
    `dispatch.valid` is low. A tick shows at once. A write of an IDT alone takes 4 cycles and leaves the offer.

    **Structure.** A node's row holds, for each of its children, the flow that goes first below it (valid bit, NDT,
    flow). A command reads its flow's NDT and reckons the new one (4 cycles). Then it goes up the tree, a level a cycle.
    There the entry that came up from below is compared with the best of the node's other children. That one has been
    found meanwhile, since the rows are known from the start. So one set of comparators, one for each child of a node,
    serves all levels, and a row is a word of block RAM.

    Throughput: a command in `decision_cycles`. Reset: all flows invalid, IDT and NDT zero. It takes a cycle a flow,
    of a power of two, to write that into the memories; until then no command is taken.
    """

    def __init__(self, config: NicConfig, *, radix_bits: int = RADIX_BITS, skippable: bool = False) -> None:
        assert 1 <= radix_bits <= 3, radix_bits  # A level's rivals take `radix_bits` of the first cycles.
        self.config = config
        self.shape = TreeShape(flow_bits(config), radix_bits)
        self._virtual_clock = config.rate_discipline == "virtual_clock"
        # Times have the fraction that a charge may have.
        self._time_bits = config.rtc_bits + config.rate_fraction_bits
        self._entry = data.StructLayout({"time": self._time_bits, "flow": flow_bits(config), "valid": 1})
        self.skippable = skippable
        super().__init__(RateControlSignature(config, skippable=skippable))

    @property
    def decision_cycles(self) -> int:
        """Cycles from the one in which a command is taken to the one in which the offer accounts for it."""
        return 5 + len(self.shape.levels)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shape, top = self.shape, len(self.shape.levels) - 1
        # 0: idle, a command is taken. 1: its flow's NDT and IDT are there. 2: lead. 3: sum. 4: the new NDT. Then a
        # level a cycle.
        self._stage = stage = Signal(range(self.decision_cycles))
        self._idle = Signal()  # stage 0, and memories cleared
        self._taken = Signal()
        self._clear_memories(m)
        target = self._take(m)
        flow = Signal.like(target)
        with m.If(stage == 0):
            m.d.sync += flow.eq(target)

        # Rows. Level k is read so early that its rival is there when level k - 1 has been decided.
        address, write_address = Signal(range(shape.rows)), Signal(range(shape.rows))
        masked, column = Signal(shape.radix_bits), Signal(shape.radix_bits)
        self._climbing = climbing = Signal()
        m.d.comb += address.eq(shape.row(target, 0))
        with m.Switch(stage):
            for k in range(top + 1):
                if first := 3 - shape.radix_bits + k:
                    with m.Case(first):
                        m.d.comb += address.eq(shape.row(flow, k))
        with m.Switch(stage):
            for k in range(top + 1):
                with m.Case(4 - shape.radix_bits + k):
                    m.d.comb += masked.eq(shape.column(flow, k))
        m.d.sync += climbing.eq(0)
        with m.Switch(stage):
            for k in range(top + 1):
                with m.Case(4 + k):
                    m.d.sync += [
                        climbing.eq(1),
                        write_address.eq(shape.row(flow, k)),
                        column.eq(shape.column(flow, k)),
                    ]
        carried = Signal(self._entry)
        children = []
        for child in range(1 << shape.radix_bits):
            rows = memory.Memory(shape=self._entry, depth=shape.rows, init=[])
            m.submodules[f"child_{child}"] = rows
            read, write = rows.read_port(), rows.write_port()
            m.d.comb += [
                read.addr.eq(address),
                write.addr.eq(Mux(self._clearing, self._clear_row, write_address)),
                write.data.eq(carried),
                write.en.eq(self._clearing | (climbing & (column == child))),
            ]
            children.append(read.data)

        old = self._flow_memories(m, target, carried)
        lead_too_low, new = self._reckon(m, old)
        rival, rival_column = self._rival(m, children, masked)

        # Up the tree. If NDTs are equal the lower child goes first, as its flows are the lower ones.
        first = Signal(self._entry)
        goes_up = rival.valid & (
            ~carried.valid | (difference(Cat(rival_column, rival.time), Cat(column, carried.time)) < 0)
        )
        m.d.comb += first.eq(Mux(goes_up, rival, carried))
        with m.If(self._clearing):
            m.d.sync += carried.eq(0)
        with m.Elif(stage == 4):
            m.d.sync += [carried.eq(new), carried.flow.eq(flow)]
        with m.Else():
            m.d.sync += carried.eq(first)
        self._root = root = Signal(self._entry)
        with m.If(stage == 5 + top):
            m.d.sync += root.eq(first)

        # A look ends where there is nothing to move; the offer stays unless it moves a flow that waits.
        deciding, acts = Signal(), self._dispatched | self._cleared | self._written | self._enqueued
        with m.If(stage == 0):
            m.d.sync += stage.eq(self._taken)
            with m.If(self._taken):
                m.d.sync += self._idle.eq(0)
        with m.Elif((stage == 5 + top) | ((stage == 3) & ~acts & ~lead_too_low)):
            m.d.sync += [stage.eq(0), self._idle.eq(1)]
        with m.Else():
            m.d.sync += stage.eq(stage + 1)
        m.d.comb += deciding.eq((stage != 0) & (acts | ((stage > 3) & old.valid)))
        due = Const(1) if self._virtual_clock else reached(fine(self.config, self.rtc), root.time)
        m.d.comb += [
            self.dispatch.valid.eq(root.valid & due & ~deciding),
            self.dispatch.flow.eq(root.flow),
            self.next_valid.eq(root.valid),
            self.next_ndt.eq(whole(self.config, root.time)),
        ]
        return m

    def _clear_memories(self, m: Module) -> None:
        """Clears the memories after reset: a row of each a cycle. Zero is written, as `carried` is zero."""
        self._clearing, self._clear_row = Signal(init=1), Signal(self.shape.flow_width)
        with m.If(self._clearing):
            m.d.sync += self._clear_row.eq(self._clear_row + 1)
        with m.If(self._clearing & self._clear_row.all()):
            m.d.sync += [self._clearing.eq(0), self._idle.eq(1)]

    def _exists(self, flow: Value) -> Value:
        return flow < self.config.flows

    def _take(self, m: Module) -> Signal:
        """Keeps the command from stage 0 on. Returns its flow, in that stage; in idle cycles it is `select`."""
        # A look at the next flow, now and then: it settles its NDT.
        pace = Signal(range(self.config.rate_scan_cycles))
        self._look, self._scan = look, scan = Signal(), Signal(range(self.config.flows))
        idle = self._idle
        m.d.sync += pace.eq(pace + 1)
        with m.If(pace == 0):
            m.d.sync += look.eq(1)
        with m.Elif(idle & look):
            m.d.sync += [look.eq(0), scan.eq(Mux(scan == self.config.flows - 1, 0, scan + 1))]
        if self.skippable:
            # There would have been a look in each round of `pace` that has begun. The last is over.
            looks = (pace + self.passed) // self.config.rate_scan_cycles
            with m.If(self.passed != 0):
                m.d.sync += [
                    pace.eq(pace + 1 + self.passed),
                    scan.eq((scan + (idle & look & (pace != 0)) + looks) % self.config.flows),
                ]
            m.d.comb += self.rests.eq(~self._clearing)

        target, exists = Signal(range(1 << self.shape.flow_width)), Signal()
        writes = self.write_idt | self.write_ndt
        requests = [
            (look, Const(1), scan),
            (self.dispatched.valid, self.dispatched.ready, self.dispatched.payload.flow),
            (self.clear.valid, self.clear.ready, self.clear.payload),
            (writes, self.write_ready, self.select),
            (self.enqueue.valid, self.enqueue.ready, self.enqueue.payload),
        ]
        m.d.comb += [
            target.eq(self.select),
            exists.eq(self._exists(target)),
            self._taken.eq(idle & Cat(valid for valid, _, _ in requests).any()),
        ]
        for valid, _, flow in reversed(requests):
            with m.If(valid):
                m.d.comb += target.eq(flow)
        before: Value = look
        for valid, ready, _ in requests[1:]:
            m.d.comb += ready.eq(idle & ~before)
            before = before | valid
        self._dispatched, self._cleared, self._written, self._enqueued = (
            Signal(name=name) for name in ("is_dispatched", "is_cleared", "is_written", "is_enqueued")
        )
        self._last, self._ticks, self._now = Signal(), Signal(self._time_bits), Signal(self._time_bits)
        amount = charged_bytes(m, self.config, self.dispatched.payload)
        self._amount = None if amount is None else Signal.like(amount)
        with m.If(idle):
            m.d.sync += [
                self._dispatched.eq(self.dispatched.valid & self.dispatched.ready & exists),
                self._cleared.eq(self.clear.valid & self.clear.ready & exists),
                self._written.eq(self.write_ndt & self.write_ready & exists),
                self._enqueued.eq(self.enqueue.valid & self.enqueue.ready & exists),
                self._last.eq(self.dispatched.payload.last),
                self._ticks.eq(fine(self.config, self.write_ticks)),
                self._now.eq(fine(self.config, self.rtc)),
            ]
            if self._amount is not None:
                m.d.sync += self._amount.eq(amount)
        return target

    def _flow_memories(self, m: Module, target: Signal, carried: Any) -> Any:
        """Memories of each flow's IDT, NDT and valid bit; those of `target` are there from stage 2 on.

        Sets the outputs. Returns NDT and valid bit. The tree's lowest rows hold the NDTs too, but one of them would
        have to be chosen.
        """
        bits, most = self.config.rtc_bits - 2, self.config.max_idt_ticks
        numbers, leaf = 1 << self.shape.flow_width, data.StructLayout({"time": self._time_bits, "valid": 1})
        m.submodules.idts = idts = memory.Memory(shape=unsigned(bits), depth=numbers, init=[])
        m.submodules.leaves = leaves = memory.Memory(shape=leaf, depth=numbers, init=[])
        idt, idt_write = idts.read_port(), idts.write_port()
        read, write = leaves.read_port(), leaves.write_port()
        m.d.comb += [
            idt.addr.eq(target),
            idt_write.addr.eq(Mux(self._clearing, self._clear_row, self.select)),
            idt_write.data.eq(Mux(self.write_ticks > most, most, self.write_ticks)),
            idt_write.en.eq(self.write_idt & self.write_ready & self._exists(self.select)),
            read.addr.eq(target),
            write.addr.eq(Mux(self._clearing, self._clear_row, carried.flow)),
            write.data.time.eq(carried.time),
            write.data.valid.eq(carried.valid),
            write.en.eq((self._stage == 5) | self._clearing),
        ]
        with m.If(self._clearing):
            m.d.comb += [idt_write.data.eq(0), idt_write.en.eq(1)]
        old, self._idt = Signal(leaf), Signal(bits)
        reading, shown = Signal.like(target), Signal.like(target)
        fresh = Signal(2)
        m.d.sync += [
            reading.eq(target),
            shown.eq(reading),
            fresh.eq(Mux((self._stage == 0) & ~self._taken & ~self._clearing, Cat(Const(1), fresh[0]), 0)),
        ]
        with m.If(self._stage <= 1):
            m.d.sync += [old.eq(read.data), self._idt.eq(idt.data)]
        exists = self._exists(self.select)
        m.d.comb += [
            self.settled.eq(fresh.all() & (shown == self.select)),
            self.idt.eq(Mux(exists, self._idt, 0)),
            self.ndt.eq(Mux(exists, whole(self.config, old.time), 0)),
            self.valid.eq(old.valid & exists),
        ]
        return old

    def _reckon(self, m: Module, old: Any) -> tuple[Value, Any]:
        """Stages 2 to 4: the command's effect on the leaf.

        Returns, in stage 3, whether its NDT was too far behind, and in stage 4 the new leaf.
        """
        fraction_bits = self.config.rate_fraction_bits
        most, least = self.config.max_idt_ticks << fraction_bits, -self.config.max_lag_ticks << fraction_bits
        # The lead over the clock, moved into the range in which comparisons are right.
        lead, total = Signal(signed(self._time_bits)), Signal(signed(self._time_bits))
        base = Signal(signed(self._time_bits - 1))
        enters = self._enqueued & ~old.valid
        # The charge of the packet: nothing, ever, if the flow is not regulated.
        unregulated = Signal()
        m.d.sync += unregulated.eq(self._dispatched & (self._idt == 0))
        charged = self._idt
        if self._amount is not None:
            charged = Signal(self._time_bits - 2)
            m.d.sync += charged.eq(charge(self.config, self._idt, self._amount))
        with m.If((enters | unregulated) & (lead < 0)):
            m.d.comb += base.eq(0)
        with m.Elif(lead < least):
            m.d.comb += base.eq(least)
        with m.Elif(lead > most):
            m.d.comb += base.eq(most)
        with m.Else():
            m.d.comb += base.eq(lead)
        adds = enters | (self._dispatched & ~self._last) if self._virtual_clock else self._dispatched
        new = Signal(self._entry)
        m.d.sync += [
            lead.eq(difference(Mux(self._written, self._ticks, old.time), self._now)),
            total.eq(base + Mux(adds, charged, 0)),
        ]
        m.d.comb += [
            new.time.eq(self._now + Mux(total > most, most, total)),
            new.valid.eq(self._enqueued | (old.valid & ~self._cleared & ~(self._dispatched & self._last))),
        ]
        return lead < least, new

    def _rival(self, m: Module, children: list[Any], masked: Signal) -> tuple[Any, Value]:
        """The best of a row's children but `masked`, and its number: `radix_bits + 1` cycles after the row."""
        row = [Signal(self._entry, name=f"other_{i}") for i in range(len(children))]
        for i, (kept, child) in enumerate(zip(row, children, strict=True)):
            m.d.sync += [kept.eq(child), kept.valid.eq(child.valid & (masked != i))]
        places: list[Value] = [Const(i, self.shape.radix_bits) for i in range(len(row))]
        while len(row) > 1:
            winners, winner_places = [], []
            for i in range(0, len(row), 2):
                low, high = row[i], row[i + 1]
                upper = high.valid & (~low.valid | (difference(high.time, low.time) < 0))
                winner = Signal(self._entry, name=f"best_{len(row)}_{i}")
                place = Signal(self.shape.radix_bits, name=f"best_{len(row)}_{i}_place")
                m.d.sync += [winner.eq(Mux(upper, high, low)), place.eq(Mux(upper, places[i + 1], places[i]))]
                winners.append(winner)
                winner_places.append(place)
            row, places = winners, winner_places
        return row[0], places[0]
