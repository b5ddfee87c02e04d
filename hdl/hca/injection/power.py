"""The energy budget of an adapter: messages that would take more than is left of it wait (yum-2006 5.1)."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import memory
from amaranth.lib.wiring import Out

from ...config.hca import HcaConfig
from .policy import InjectionPolicy, SetupKind

__all__ = ["POWER_SLOTS", "PowerBudget"]

POWER_SLOTS = 8
"""Messages that may have taken energy at a time. One of 40 flits keeps the link for 40 cycles and takes about 80."""


class PowerBudget(InjectionPolicy):
    """Holds messages of the classes of `SetupKind.POWER_CLASSES` to an energy budget.

    A message of N flits to a node takes E = N e when it begins. It is given back after L = l + N cycles. For each
    destination, `SetupKind.FLIT_ENERGY` has e and `SetupKind.PATH_CYCLES` has l. With those of
    `sim/energy/budget.py` they are the document's E_packet and L_packet:

        E_packet = (E_router (D + 1) + E_link D) N
        L_packet = ((D + 1) S - 1) + N + W

    A message is allowed if the budget still has its energy, and one of 8 slots is free. It may `never` begin if it
    takes more than the whole budget, or its destination has no row (`HcaConfig.destinations`).

    Members besides:

    - `used` (out, 32): energy that is taken. It is never above the budget, unless the budget is set lower meanwhile.
    - `quiet` (out): nothing is taken, and no register changes without an input.

    `kinds`: the words of set-up that it takes.

    Sizes, which a subclass may make smaller for a proof:

    - `slots`: messages that may have taken energy at a time.
    - `flit_energy_bits`: width of e. In picojoules, 40 hops of table 1 fit into 16 bits.
    - `energy_bits`: width of the budget and of what is taken of it.
    - `cycle_bits`: width of L. l has a bit less.

    Set-up: a word written in cycle t counts from t + 1 on.

    Latency: none for `allow`. A message that starts in cycle t is counted in `used` from t + 1 to t + L. Throughput: a
    message a cycle.

    Longest wait: let L be that of the longest message and way. A message that stays the one asked for, while no other
    begins, is allowed within L + 1 cycles, if it fits the empty budget. Others that begin meanwhile are of a higher
    class.
    """

    kinds: ClassVar[tuple[SetupKind, ...]] = (
        SetupKind.FLIT_ENERGY,
        SetupKind.PATH_CYCLES,
        SetupKind.POWER_BUDGET,
        SetupKind.POWER_CLASSES,
    )
    slots: ClassVar[int] = POWER_SLOTS
    flit_energy_bits: ClassVar[int] = 16
    energy_bits: ClassVar[int] = 32
    cycle_bits: ClassVar[int] = 14

    @classmethod
    def more_members(cls, config: HcaConfig) -> dict[str, Any]:
        """The energy that is taken, and whether there is none."""
        return {"used": Out(cls.energy_bits), "quiet": Out(1)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control, rows = self.control, self.config.destinations
        budget, classes = Signal(self.energy_bits), Signal(8)
        with m.If(self.setup_valid), m.Switch(self.setup.kind):
            with m.Case(SetupKind.POWER_BUDGET):
                m.d.sync += budget.eq(self.setup.value)
            with m.Case(SetupKind.POWER_CLASSES):
                m.d.sync += classes.eq(self.setup.value)
        flit_energy = self._table(m, "flit_energy", SetupKind.FLIT_ENERGY, self.flit_energy_bits)
        path = self._table(m, "path_cycles", SetupKind.PATH_CYCLES, self.cycle_bits - 1)

        held, fits, energy, cycles = Signal(), Signal(), Signal(self.energy_bits), Signal(self.cycle_bits)
        left = [Signal(self.cycle_bits, name=f"left_{i}") for i in range(self.slots)]
        taken = [Signal(self.energy_bits, name=f"taken_{i}") for i in range(self.slots)]
        self._budget, self._left, self._taken = budget, left, taken
        free, chosen = Signal(self.slots), Signal(self.slots)
        m.d.comb += [
            held.eq(classes.bit_select(control.ask.traffic_class, 1)),
            energy.eq(control.ask.flits * flit_energy),
            cycles.eq(path + control.ask.flits),
            free.eq(Cat(*(count == 0 for count in left))),
            chosen.eq(free & (~free + 1)),
            fits.eq((self.used + energy <= budget) & free.any()),
            control.never.eq(held & ((energy > budget) | (control.ask.destination >= rows))),
            control.allow.eq(~held | (fits & ~control.never)),
        ]
        begins = Signal()
        m.d.comb += begins.eq(control.start & held)
        given_back = []
        for i in range(self.slots):
            ends = Signal(self.energy_bits, name=f"ends_{i}")
            with m.If(begins & chosen[i]):
                m.d.sync += [left[i].eq(cycles), taken[i].eq(energy)]
            with m.Elif(left[i] != 0):
                m.d.sync += left[i].eq(left[i] - 1)
            with m.If(left[i] == 1):
                m.d.comb += ends.eq(taken[i])
            given_back.append(ends)
        m.d.sync += self.used.eq(self.used + Mux(begins, energy, 0) - sum(given_back))
        m.d.comb += self.quiet.eq(free.all())
        return m

    def _table(self, m: Module, name: str, kind: SetupKind, bits: int) -> Signal:
        """The row of the destination that is asked for, of a table that words of `kind` fill."""
        table = memory.Memory(shape=unsigned(bits), depth=self.config.destinations, init=[])
        m.submodules[name] = table
        write, read = table.write_port(), table.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.setup.index),
            write.data.eq(self.setup.value),
            write.en.eq(
                self.setup_valid & (self.setup.kind == kind) & (self.setup.index < self.config.destinations)
            ),
            read.addr.eq(self.control.ask.destination),
        ]
        return read.data
