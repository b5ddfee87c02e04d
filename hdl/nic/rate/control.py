"""The rate control unit, which decides the next flow and the time of its packet (gulati-thesis-2001 3.2.2, 4.2.2)."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import memory, wiring

from ...config import NicConfig
from ..rtc import difference
from .front import RateFront
from .ports import RateControlSignature, charge, charged_bytes, fine, flow_bits, whole
from .tree import RateTree

__all__ = ["RateControl", "make_rate_control"]


def make_rate_control(config: NicConfig, *, skippable: bool = False) -> RateControl | RateTree | RateFront:
    """The rate control unit of the structure that `config.rate_structure` asks for.

    In a card that is `pipelined` a tree stands behind registers. With `skippable` the unit has the ports for a
    simulator that passes over cycles.
    """
    if not config.rate_tree:
        return RateControl(config, skippable=skippable)
    tree = RateTree(config, skippable=skippable)
    return RateFront(tree) if config.pipelined else tree


class RateControl(wiring.Component):
    """Rate control unit of up to 16 flows, which decides in one cycle. `RateTree` is the one for more.

    A flow has an inter-packet dispatch time (IDT), a next dispatch time (NDT) and a valid bit. It is valid if it has a
    token that may be sent. The valid flow with the smallest NDT is offered once NDT <= RTC, ties to the lower flow.
    (The thesis prints ">=" in 4.2.2; its figure 3.3 and table 3.1 show "<=".)

    Members: `RateControlSignature`. The commands:

    - `enqueue`: a flow that is not valid gets NDT = max(NDT, RTC) and becomes valid.
    - `dispatched`: NDT += IDT; with `last` the flow becomes invalid. An IDT of 0 makes the NDT max(NDT, RTC) instead:
      the flow is not regulated, and those whose time has come go before its next packet.

    `idt`, `ndt`, `valid` show the selected flow in the same cycle: `settled` is constantly high. So is `ready` of every
    stream here, and `write_ready`; users wait for them, so that a unit of many flows can take its time.

    Latency: one cycle from a command, or from the tick, to the offer that accounts for it: `dispatch` is a function
    of registers and `rtc`, a tree of `flows - 1` comparisons. A user must not rely on one cycle: a unit of more
    flows holds `dispatch.valid` low while it decides. An unregulated flow (IDT = 0) is offered in the cycle after
    `enqueue`, and again in the cycle after `dispatched`, unless another one's time came before this tick.
    Throughput: one command of each kind a cycle.

    Commands of one cycle act in this order: `dispatched` (by the IDT before the cycle), `clear`, writes,
    `enqueue`. So a flow that is dispatched with `last` and gets a new token in the same cycle stays valid,
    with NDT = max(NDT + IDT, RTC). A change of IDT leaves the NDT that stands: it acts from the next
    `dispatched` on. `dispatched` for a flow that was not on offer advances its NDT all the same.

    **Bytes** (`config.rate_charge` bytes). `dispatched` says how many bytes its packet is charged for, at most the MTU:
    NDT += IDT x bytes / `config.charge_unit_bytes`; 0 is the whole unit. An NDT then has a fraction of a tick, fine
    enough for every charge: nothing is rounded, and no error adds up. The offer comes with the first tick that is not
    before the NDT, so less than a tick late. `ndt` and `next_ndt` show that tick.

    **VirtualClock** (`config.rate_discipline`; nagar-thesis-2001 5.3.3). The unit is the same: the NDT is auxVC, the
    stamp of the flow's first packet, and the IDT is Vtick. But a stamp is the end of a packet's Vtick and not its
    start. So it says in which order packets go, and nothing waits for it:

    - `enqueue` makes the stamp max(auxVC, RTC) + Vtick.
    - `dispatched` adds a Vtick for the next packet; with `last` there is none. With a Vtick of 0 it makes the stamp
      max(auxVC, RTC).
    - The smallest stamp is offered at once.

    Best effort's infinite Vtick is `config.max_idt_ticks`, the longest.

    Range: IDT is at most `config.max_idt_ticks`, a larger one is written as that. An NDT is kept between
    `config.max_lag_ticks` behind the RTC and `max_idt_ticks` ahead. A scan visits one flow a cycle, valid or not, and
    moves up an NDT that has fallen further behind. So an NDT of any age is never taken for a future one. For a flow
    that is not valid this cannot be told from exact arithmetic, as `enqueue` takes the maximum. A valid flow that has
    waited longer (on `lanai4`, 537 s) forgets the part of its arrears beyond that. A flow of VirtualClock that has been
    given more than its rate forgets the part of its lead beyond the other end. Someone who moves the clock by hand must
    not move it by more than `max_idt_ticks` at once.

    Reset: all flows invalid, NDTs zero. IDTs are zero after power-on and stay over a reset.
    """

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        self.config, self.skippable = config, skippable
        super().__init__(RateControlSignature(config, skippable=skippable))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, flows = self.config, self.config.flows
        # Times have the fraction that a charge may have: `most`, `least` and `rtc` are in its units.
        bits, fraction_bits = config.rtc_bits + config.rate_fraction_bits, config.rate_fraction_bits
        most, least = config.max_idt_ticks << fraction_bits, -config.max_lag_ticks << fraction_bits
        rtc = fine(config, self.rtc)
        virtual_clock = self.config.rate_discipline == "virtual_clock"
        m.d.comb += [self.dispatched.ready.eq(1), self.enqueue.ready.eq(1), self.clear.ready.eq(1)]
        m.d.comb += [self.write_ready.eq(1), self.settled.eq(1)]

        # NDTs are registers, since the decision reads all of them at once; IDTs are a memory.
        ndts = [Signal(bits, name=f"ndt_{i}") for i in range(flows)]
        ndt = Array(ndts)
        valid = Signal(flows)
        m.submodules.idts = idts = memory.Memory(shape=unsigned(config.rtc_bits - 2), depth=flows, init=[])
        idt_of_dispatched = idts.read_port(domain="comb")
        idt_of_selected = idts.read_port(domain="comb")
        idt_write = idts.write_port()
        m.d.comb += [
            idt_of_dispatched.addr.eq(self.dispatched.payload.flow),
            idt_of_selected.addr.eq(self.select),
            self.idt.eq(Mux(self.select < flows, idt_of_selected.data, 0)),
            idt_write.addr.eq(self.select),
            idt_write.data.eq(
                Mux(self.write_ticks > config.max_idt_ticks, config.max_idt_ticks, self.write_ticks)
            ),
            idt_write.en.eq(self.write_idt & (self.select < flows)),
        ]

        def one_hot(flow: Value, enable: Value) -> Signal:
            hot = Signal(flows)
            m.d.comb += hot.eq(Cat(enable & (flow == i) for i in range(flows)))
            return hot

        def settled(time: Value, name: str) -> Signal:
            """`time`, moved into the range around the RTC in which comparisons are right."""
            lead = Signal(signed(bits), name=f"{name}_lead")
            result = Signal(bits, name=name)
            m.d.comb += [
                lead.eq(difference(time, rtc)),
                result.eq(Mux(lead < least, rtc + least, Mux(lead > most, rtc + most, time))),
            ]
            return result

        # dispatched: NDT += IDT. The sum is taken from a settled NDT, so it cannot pass the far end of the
        # clock. An NDT to which nothing is ever added would stay the smallest for ever: not behind the clock.
        is_dispatched = one_hot(self.dispatched.payload.flow, self.dispatched.valid)
        before = settled(ndt[self.dispatched.payload.flow], "before")
        after = Signal(bits)
        advance = charge(config, idt_of_dispatched.data, charged_bytes(m, config, self.dispatched.payload))
        if virtual_clock:
            # The last packet has its stamp already.
            advance = Mux(self.dispatched.payload.last, 0, advance)
        with m.If((idt_of_dispatched.data == 0) & (difference(before, rtc) < 0)):
            m.d.comb += after.eq(rtc)
        with m.Else():
            m.d.comb += after.eq(before + advance)
        after = settled(after, "after")

        # enqueue: NDT = max(NDT, RTC), on what the cycle's other commands leave.
        is_written = one_hot(self.select, self.write_ndt)
        written = settled(fine(config, self.write_ticks), "written")
        is_cleared = one_hot(self.clear.payload, self.clear.valid)
        still_valid = Signal(flows)
        m.d.comb += still_valid.eq(valid & ~is_cleared & ~Mux(self.dispatched.payload.last, is_dispatched, 0))
        is_enqueued = Signal(flows)
        m.d.comb += is_enqueued.eq(one_hot(self.enqueue.payload, self.enqueue.valid) & ~still_valid)
        waiting = Signal(bits)
        with m.If((is_enqueued & is_written).any()):
            m.d.comb += waiting.eq(written)
        with m.Elif((is_enqueued & is_dispatched).any()):
            m.d.comb += waiting.eq(after)
        with m.Else():
            m.d.comb += waiting.eq(ndt[self.enqueue.payload])
        enqueued = Signal(bits)
        m.d.comb += enqueued.eq(Mux(difference(waiting, rtc) < 0, rtc, waiting))
        if virtual_clock:
            idt_of_enqueued = idts.read_port(domain="comb")
            vtick, stamp = Signal(bits - 2), Signal(bits)
            is_new = idt_write.en & (self.select == self.enqueue.payload)
            m.d.comb += [
                idt_of_enqueued.addr.eq(self.enqueue.payload),
                vtick.eq(Mux(is_new, idt_write.data, idt_of_enqueued.data)),
                stamp.eq(enqueued + vtick),
            ]
            enqueued = settled(stamp, "stamp")
        m.d.sync += valid.eq(still_valid | is_enqueued)

        # The scan: one flow a cycle.
        scan = Signal(range(flows))
        m.d.sync += scan.eq(Mux(scan == flows - 1, 0, scan + 1))
        if self.skippable:
            # The NDTs that the scan moves later depend on where it stands.
            with m.If(self.passed != 0):
                m.d.sync += scan.eq((scan + 1 + self.passed) % flows)
            m.d.comb += self.rests.eq(1)
        is_scanned = one_hot(scan, Value.cast(1))
        scanned = settled(ndt[scan], "scanned")

        for i, register in enumerate(ndts):
            with m.If(is_enqueued[i]):
                m.d.sync += register.eq(enqueued)
            with m.Elif(is_written[i]):
                m.d.sync += register.eq(written)
            with m.Elif(is_dispatched[i]):
                m.d.sync += register.eq(after)
            with m.Elif(is_scanned[i]):
                m.d.sync += register.eq(scanned)

        # The decision: a tournament, the lower flow winning ties.
        round_ = [(valid[i], ndts[i], Value.cast(i)) for i in range(flows)]
        while len(round_) > 1:
            winners = [
                self._winner(m, *pair, name=f"best_{len(round_)}_{i}")
                for i, pair in enumerate(zip(round_[::2], round_[1::2], strict=False))
            ]
            round_ = winners + round_[2 * len(winners) :]
        is_valid, time, flow = round_[0]
        m.d.comb += [
            self.dispatch.valid.eq(is_valid if virtual_clock else is_valid & (difference(rtc, time) >= 0)),
            self.dispatch.flow.eq(flow),
            self.next_valid.eq(is_valid),
            self.next_ndt.eq(whole(config, time)),
            self.ndt.eq(Mux(self.select < flows, whole(config, ndt[self.select]), 0)),
            self.valid.eq(one_hot(self.select, Value.cast(1)) & valid != 0),
        ]
        return m

    def _winner(
        self, m: Module, low: tuple[Value, ...], high: tuple[Value, ...], *, name: str
    ) -> tuple[Value, Value, Value]:
        """The one of two (valid, NDT, flow) that goes first."""
        upper = Signal(name=f"{name}_upper")
        time = Signal.like(low[1], name=f"{name}_ndt")
        flow = Signal(flow_bits(self.config), name=f"{name}_flow")
        m.d.comb += [
            upper.eq(high[0] & (~low[0] | (difference(high[1], low[1]) < 0))),
            time.eq(Mux(upper, high[1], low[1])),
            flow.eq(Mux(upper, high[2], low[2])),
        ]
        return low[0] | high[0], time, flow
