"""A rate control unit at work: flows that always have a packet, a link that sends them, and the counts of each flow."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import NicConfig
from ..nic.rate.control import make_rate_control
from ..nic.rate.ports import flow_bits
from ..nic.rtc import Rtc

__all__ = ["COUNTS", "SETUP", "RateServer"]

SETUP = data.StructLayout({"toggle": 1, "flow": 10, "idt": 32, "ndt": 32})
"""A change of `toggle` gives `flow` an IDT and an NDT, in ticks, and a packet for ever.

The clock stands at 0 until the server runs.
"""
COUNTS = data.StructLayout({"packets": 32, "first": 40, "last": 40})
"""Counts of a flow, while counting: packets dispatched, and the cycles of the first and of the last of them."""


class RateServer(wiring.Component):
    """The rate control unit of `config`, with flows and a link beside it.

    Members:

    - `setup` (in, `SETUP`): a flow with its values.
    - `set_up` (out): follows `setup.toggle` when that flow has its values and its packet.
    - `run` (in): the clock ticks and packets are dispatched.
    - `service` (in, 16): cycles for which a packet takes the link; at least 4.
    - `counting` (in): a packet that is dispatched now counts.
    - `busy_cycles` (out, 40): cycles of counting in which the link was taken.
    - `select` (in): a flow.
    - `counts` (out, `COUNTS`): its counts, two cycles later, while the server does not run.

    The link takes the flow on offer as soon as it is free. No flow is ever empty: `last` is never set. Latency: 2
    cycles from `select` to `counts`. Throughput: a packet in `service` cycles. Reset: as after power-on; there is
    one measurement.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "setup": In(SETUP),
                "set_up": Out(1),
                "run": In(1),
                "service": In(16),
                "counting": In(1),
                "busy_cycles": Out(40),
                "select": In(flow_bits(config)),
                "counts": Out(COUNTS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rate = rate = make_rate_control(self.config)
        m.submodules.rtc = rtc = Rtc(self.config)
        cycle, ticks = Signal(40), Signal.like(rtc.ticks)
        started = Signal.like(rtc.ticks)
        # The clock itself never stands still; the time that the unit sees begins with the run.
        with m.If(~self.run):
            m.d.sync += started.eq(rtc.ticks)
        m.d.comb += [ticks.eq(Mux(self.run, rtc.ticks - started, 0)), rate.rtc.eq(ticks)]
        m.d.sync += cycle.eq(cycle + 1)

        # Set-up: IDT, NDT, then the packet.
        step = Signal(2)
        m.d.comb += [
            rate.select.eq(self.setup.flow),
            rate.write_idt.eq(step == 1),
            rate.write_ndt.eq(step == 2),
            rate.write_ticks.eq(Mux(step == 1, self.setup.idt, self.setup.ndt)),
            rate.enqueue.valid.eq(step == 3),
            rate.enqueue.payload.eq(self.setup.flow),
        ]
        with m.Switch(step):
            with m.Case(0):
                m.d.sync += step.eq(self.setup.toggle != self.set_up)
            with m.Case(1, 2):
                m.d.sync += step.eq(step + rate.write_ready)
            with m.Case(3), m.If(rate.enqueue.ready):
                m.d.sync += [step.eq(0), self.set_up.eq(self.setup.toggle)]

        # The link.
        left, sends = Signal(16), Signal()
        m.d.comb += [
            rate.dispatched.valid.eq(self.run & (left == 0) & rate.dispatch.valid),
            rate.dispatched.payload.flow.eq(rate.dispatch.flow),
            sends.eq(rate.dispatched.valid & rate.dispatched.ready),
        ]
        with m.If(sends):
            m.d.sync += left.eq(self.service - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(self.counting & (sends | (left != 0))):
            m.d.sync += self.busy_cycles.eq(self.busy_cycles + 1)

        # Counts: read in the cycle of the dispatch, written in the next. (The unit takes no other before that.)
        m.submodules.counts_memory = kept = memory.Memory(
            shape=COUNTS, depth=1 << flow_bits(self.config), init=[]
        )
        read, write = kept.read_port(), kept.write_port()
        counted = Signal()
        m.d.sync += counted.eq(sends & self.counting)
        m.d.sync += write.addr.eq(rate.dispatch.flow)
        m.d.comb += [
            read.addr.eq(Mux(self.run, rate.dispatch.flow, self.select)),
            self.counts.eq(read.data),
            write.en.eq(counted),
            write.data.packets.eq(read.data.packets + 1),
            write.data.first.eq(Mux(read.data.packets == 0, cycle, read.data.first)),
            write.data.last.eq(cycle),
        ]
        return m
