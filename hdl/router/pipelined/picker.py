"""The choice of the VL that a crossbar input sends next, a cycle ahead and in a register."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from .turns import above, in_turn

__all__ = ["BURST_FLITS", "PATIENCE_CYCLES", "InputPicker"]

BURST_FLITS = 8
"""Most flits of a VL in a row while other VLs of its input could go.

A matching of inputs and outputs takes some cycles to be found, and lasts for a burst. What a 4 x 4 mesh accepts differs
by less from 4 to 16 than from seed to seed (a model of the mesh, in plain C++).
"""
PATIENCE_CYCLES = 8
"""Cycles in which a VL could go and does not, after which it is urgent.

An input avoids outputs that are in a burst. If it has other VLs to send it may never come when a burst ends. After as
many cycles as a burst has flits it stands at the output, and has its turn.
"""


class InputPicker(wiring.Component):
    """`pick`: the VL of an input that asks for its output in this cycle. It was chosen in the cycle before.

    Members (vectors of VLs are `vls` wide; P outputs):

    - `non_empty`, `drop`, `arrived` (in), `holds` (in, P x `vls`), `last`, `tail` (in): state of the input's VLs, and
      of the flit of the VL in `pick`.
    - `near_full`, `nearer_full` (in, P x `vls`): VLs of each output that have one place left at most, and two at most.
      All follow from registers.
    - `taken_ahead` (in, P): outputs whose input will probably go on in the cycle after the next.
    - `granted` (in): the output is given to this input.
    - `pick` (out, `vls`): one-hot or 0; registers. Nobody else takes flits, so there is one in the buffer.
    - `port` (out, P): its output, one-hot; 0 if its flit is to be thrown away. Registers.
    - `control` (out): it is the control VL; a register.
    - `valid` (out): there is a pick, and room for its flit at its output. It does not depend on `granted`.
    - `throws` (out): the flit of `pick` is thrown away in this cycle.
    - `goes` (out): the flit of `pick` leaves the buffer in this cycle.
    - `stays` (out): `pick` is the same in the next cycle. `other` (out, `vls`): what it is otherwise, one-hot or 0.
    - `goes_on` (out): if it goes, the same VL asks in the next cycle, in the same burst. It does not depend on
      `granted`.
    - `likely` (out, P): the output, if the VL in `pick` will probably ask it in the cycle after the next.

    A VL goes on for up to `BURST_FLITS` flits while it has flits and its output two places. Then another VL comes, in
    turn. Of the VLs other than `pick` nothing is under way. So their state in registers is exact, but for two things:
    whether there is room, and whether their output is taken by another input, are a cycle old. A pick that finds no
    room leaves its turn unused. A pick that loses its output stays only if there is no other VL.

    One VL at a time, in turn, is watched. If it could go in `PATIENCE_CYCLES` cycles and did not, it is urgent until it
    goes. Then no burst goes on, and no other VL is picked. So it stays the pick while it loses.

    Latency: a VL whose state shows in cycle t may be in `pick` in t + 1. Throughput: a flit a cycle.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports = config.link.vls, config.ports
        vectors = {name: In(vls) for name in ("non_empty", "drop", "arrived")}
        arrays = {name: In(vls).array(ports) for name in ("holds", "near_full", "nearer_full")}
        super().__init__(
            vectors
            | arrays
            | {
                "last": In(1),
                "tail": In(1),
                "taken_ahead": In(ports),
                "granted": In(1),
                "pick": Out(vls),
                "port": Out(ports),
                "control": Out(1),
                "valid": Out(1),
                "throws": Out(1),
                "goes": Out(1),
                "stays": Out(1),
                "other": Out(vls),
                "goes_on": Out(1),
                "likely": Out(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        vls, ports = config.link.vls, range(config.ports)
        control_vl = config.control_vl
        burst = Signal(range(BURST_FLITS))
        throw = Signal()

        # The VL that is picked now.
        held = Signal(vls)
        m.d.comb += held.eq(reduce(or_, list(self.holds)))
        full = [(self.near_full[p] & self.pick).any() & self.port[p] for p in ports]
        fuller = [(self.nearer_full[p] & self.pick).any() & self.port[p] for p in ports]
        more, may_stay = Signal(), Signal()
        m.d.comb += [
            self.valid.eq(self.pick.any() & ~Cat(*full).any()),
            self.throws.eq(throw),
            self.goes.eq(throw | (self.valid & self.granted)),
            more.eq((~self.last | (self.arrived & self.pick).any()) & ~self.tail),
        ]

        # What the VLs could do in the next cycle, as far as it is known.
        ready, no_room, taken = Signal(vls), Signal(vls), Signal(vls)
        m.d.comb += ready.eq(self.non_empty & (held | self.drop) & ~no_room)
        m.d.sync += [
            no_room.eq(reduce(or_, (self.holds[p] & self.nearer_full[p] for p in ports))),
            taken.eq(reduce(or_, (Mux(self.taken_ahead[p], self.holds[p], 0) for p in ports))),
        ]
        watched, waited, overdue = (
            Signal(vls, init=1),
            Signal(range(PATIENCE_CYCLES)),
            Signal(),
        )
        if vls > 1:
            with m.If(~(watched & ready).any()):
                with m.If(ready.any()):
                    m.d.sync += watched.eq(watched.rotate_left(1))
                m.d.sync += [waited.eq(0), overdue.eq(0)]
            with m.Elif((watched & self.pick).any() & self.goes):
                m.d.sync += [watched.eq(watched.rotate_left(1)), waited.eq(0), overdue.eq(0)]
            with m.Elif(waited == PATIENCE_CYCLES - 1):
                m.d.sync += overdue.eq(1)
            with m.Else():
                m.d.sync += waited.eq(waited + 1)

        candidates, chosen, later = Signal(vls), Signal(vls), Signal(vls)
        m.d.comb += candidates.eq(
            ready
            & ~self.pick
            & (Mux(overdue, watched, ~taken) | (0 if control_vl is None else 1 << control_vl))
        )
        m.d.comb += chosen.eq(in_turn(candidates, later))
        first = chosen
        ahead = Signal()
        if control_vl is not None:
            first = Signal(vls, name="first")
            m.d.comb += [
                ahead.eq(candidates[control_vl]),
                first.eq(Mux(ahead, 1 << control_vl, chosen)),
            ]
        m.d.comb += [
            self.goes_on.eq(
                more
                & (burst != BURST_FLITS - 1)
                & ~Cat(*fuller).any()
                & (~overdue | (self.pick & watched).any())
                & ~ahead
            ),
            # A pick that went in the last flit of its burst, or lost, stays if there is no other VL.
            may_stay.eq(Mux(self.goes, more, self.valid)),
        ]
        ends = Signal(len(self.port))
        to = Cat(*((first & self.holds[p]).any() for p in ports))
        m.d.comb += self.stays.eq((self.goes & self.goes_on) | (may_stay & ~candidates.any()))
        with m.If(self.stays):
            m.d.sync += burst.eq(Mux(self.goes & self.goes_on, burst + 1, 0))
            m.d.comb += ends.eq(self.port)
        with m.Else():
            m.d.sync += [
                self.pick.eq(first),
                burst.eq(0),
                throw.eq((first & self.drop).any()),
                self.control.eq(ahead),
            ]
            m.d.comb += ends.eq(to)
            with m.If(candidates.any() & ~ahead):
                m.d.sync += later.eq(above(chosen))
        m.d.comb += self.other.eq(first)
        m.d.sync += self.port.eq(ends)
        likely = Signal()
        m.d.comb += likely.eq(burst < BURST_FLITS - 2)
        m.d.comb += self.likely.eq(Mux(likely, self.port, 0))
        return m
