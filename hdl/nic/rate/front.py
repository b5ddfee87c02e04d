"""Registers before a rate control unit: commands are kept there until the unit takes them."""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from .ports import RateControlSignature
from .tree import RateTree

__all__ = ["RateFront"]


class RateFront(wiring.Component):
    """`unit`, a `RateTree` (submodule `unit`), behind a register for the commands of a cycle.

    Members: `RateControlSignature`. The results are the unit's, a cycle later. A command of each kind may come in a
    cycle. Until the unit has taken all of them no other one is taken (`ready` of all streams, `write_ready`), and the
    state is not `settled`. No path leads from a command to the unit's memories, nor from them to `ready`.

    Latency: a cycle more than the unit's. Throughput: a command of each kind at once, then as the unit takes them.
    Reset: that of the unit; no command is kept.
    """

    def __init__(self, unit: RateTree) -> None:
        self.unit = unit
        super().__init__(RateControlSignature(unit.config, skippable=unit.skippable))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        free = Signal()
        waits = []
        for name in ("dispatched", "clear", "enqueue"):
            outside, inside = getattr(self, name), getattr(unit, name)
            wait, payload = Signal(name=f"{name}_waits"), Signal.like(outside.payload, name=f"{name}_kept")
            with m.If(outside.valid & free):
                m.d.sync += [wait.eq(1), payload.eq(outside.payload)]
            with m.Elif(inside.ready):
                m.d.sync += wait.eq(0)
            m.d.comb += [inside.valid.eq(wait), inside.payload.eq(payload), outside.ready.eq(free)]
            waits.append(wait)

        # A write waits with its flow: `selected` stays until it is taken.
        idt_waits, ndt_waits = Signal(), Signal()
        selected, ticks = Signal.like(self.select), Signal.like(self.write_ticks)
        with m.If((self.write_idt | self.write_ndt) & free):
            m.d.sync += [
                idt_waits.eq(self.write_idt),
                ndt_waits.eq(self.write_ndt),
                ticks.eq(self.write_ticks),
            ]
        with m.Elif(unit.write_ready):
            m.d.sync += [idt_waits.eq(0), ndt_waits.eq(0)]
        with m.If(~idt_waits & ~ndt_waits):
            m.d.sync += selected.eq(self.select)
        m.d.comb += [
            unit.write_idt.eq(idt_waits),
            unit.write_ndt.eq(ndt_waits),
            unit.write_ticks.eq(ticks),
            unit.select.eq(selected),
            self.write_ready.eq(free),
            free.eq(~Cat(*waits, idt_waits, ndt_waits).any()),
            self.settled.eq(unit.settled & free & (selected == self.select)),
        ]

        connect(m, flipped(self.dispatch), unit.dispatch)
        m.d.comb += [
            unit.rtc.eq(self.rtc),
            self.idt.eq(unit.idt),
            self.ndt.eq(unit.ndt),
            self.valid.eq(unit.valid),
            self.next_valid.eq(unit.next_valid),
            self.next_ndt.eq(unit.next_ndt),
        ]
        if unit.skippable:
            m.d.comb += [unit.passed.eq(self.passed), self.rests.eq(unit.rests & free)]
        return m
