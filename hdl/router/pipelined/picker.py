"""The choice of the VL that a crossbar input sends, in two steps with a register behind each."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from .turns import above, lowest

__all__ = ["AHEAD_CYCLES", "BURST_FLITS", "InputPicker"]

BURST_FLITS = 8
"""Most flits of a VL in a row while other VLs of its input could go.

A matching of inputs and outputs takes some cycles to be found, and lasts for a burst. What a 4 x 4 mesh accepts differs
by less from 4 to 16 than from seed to seed (a model of the mesh, in plain C++).
"""

AHEAD_CYCLES = 3
"""Cycles before the end of a burst in which inputs may choose VLs for its output: the choice takes as many."""

KEPT_VLS = 8
"""Most VLs among which `next` is chosen in a cycle. With more, a register stands behind the choice."""


def _first(pools: list[Value]) -> Value:
    """The first of `pools` that is not empty, or the last one."""
    first = pools[-1]
    for pool in reversed(pools[:-1]):
        first = Mux(pool.any(), pool, first)
    return first


class InputPicker(wiring.Component):
    """`pick`: the VL of an input that asks for its output in this cycle; `next`: the one that comes after it.

    Members (vectors of VLs are `vls` wide; P outputs):

    - `non_empty`, `owns`, `drop`, `hopes` (in), `goal` (in, P x `vls`): state of the input's VLs
      (`PipelinedReceiveStage`).
    - `last`, `tail`, `tail_behind` (in): of the VL in `pick`, as the buffer has them.
    - `some`, `plenty` (in, P x `vls`): VLs of each output with credits (`CreditCounters`).
    - `taken_next`, `in_burst` (in, P): outputs that will probably be taken in the next cycle, and `AHEAD_CYCLES` later.
    - `granted` (in): the output is given to this input. It may come late in the cycle.
    - `port` (out, P): the output that is asked for, one-hot or 0; registers. The pick has a flit and a credit.
    - `control` (out): the pick is the control VL; a register.
    - `pick`, `next` (out, `vls`): one-hot or 0; registers.
    - `went` (out): the flit of `pick` leaves the buffer in this cycle. `threw` (out): it is thrown away.
    - `stays_went`, `stays_lost` (out): `pick` is the same in the next cycle if it went, or if it did not. Otherwise it
      is what was in `next`, or none.
    - `goes_on` (out): if `pick` is granted now, it asks in the next cycle too, in the same burst.
    - `asks_next`, `asks_later` (out): a burst that goes on lasts for a cycle more, or for `AHEAD_CYCLES` more.

    *Next.* Among VLs that could go, and whose output is in no burst, the lowest is taken that had no burst in this
    round. If all had one, the lowest. A round is over when every VL that could go had its burst. So each has a burst
    before any has a second one in a row. A second one ends at once for a VL that had none and whose output gets free.
    A packet that hopes for its output VL is taken if there is nothing else. `next` becomes the pick
    only if it may go by then.

    *Credits.* What is known of credits does not count the flits of this cycle and of the two before. So a VL goes on,
    or comes again at once, only with `PLENTY_CREDITS`.

    *The control VL* goes before all others.

    Latency: a VL whose state shows in cycle t may be in `next` in t + 1 and in `pick` in t + 2. Throughput: a flit a
    cycle.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports = config.link.vls, config.ports
        vectors = {name: In(vls) for name in ("non_empty", "owns", "drop", "hopes")}
        arrays = {name: In(vls).array(ports) for name in ("goal", "some", "plenty")}
        super().__init__(
            vectors
            | arrays
            | {
                "last": In(1),
                "tail": In(1),
                "tail_behind": In(1),
                "taken_next": In(ports),
                "in_burst": In(ports),
                "granted": In(1),
                "port": Out(ports),
                "control": Out(1),
                "pick": Out(vls),
                "next": Out(vls),
                "went": Out(1),
                "threw": Out(1),
                "stays_went": Out(1),
                "stays_lost": Out(1),
                "goes_on": Out(1),
                "asks_next": Out(1),
                "asks_later": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        vls, ports = config.link.vls, range(config.ports)
        control_mask = 0 if config.control_vl is None else 1 << config.control_vl
        burst, throw, second = Signal(range(BURST_FLITS)), Signal(), Signal()

        # What the VLs may do. `sent`, `sent_before`: VLs that went in the two cycles before.
        some, plenty, sent, sent_before = (
            Signal(vls, name=name) for name in ("some_here", "plenty_here", "sent", "sent_before")
        )
        m.d.sync += [
            some.eq(reduce(or_, (self.goal[p] & self.some[p] for p in ports)) | self.drop),
            plenty.eq(reduce(or_, (self.goal[p] & self.plenty[p] for p in ports)) | self.drop),
            sent.eq(Mux(self.went, self.pick, 0)),
            sent_before.eq(sent),
        ]
        able, avoided = Signal(vls), Signal(vls)
        m.d.comb += [
            able.eq(self.non_empty & self.owns & (plenty | (some & ~sent & ~sent_before))),
            avoided.eq(reduce(or_, (Mux(self.in_burst[p], self.goal[p], 0) for p in ports)) & ~control_mask),
        ]

        # What VLs other than `pick` may do stays as it is. So `next` goes by the cycle before, but for a VL that has
        # just been given its output VL, and for a pick that came back.
        was_able, was_free, owned, returned = Signal(vls), Signal(vls), Signal(vls), Signal()
        m.d.sync += owned.eq(self.owns)
        # The step from `next` to `pick`.
        served, later, round_over = Signal(vls), Signal(vls), Signal()
        next_able, next_ready, next_served, next_control = Signal(), Signal(), Signal(), Signal()
        to = [Signal(name=f"to_{p}") for p in ports]
        m.d.comb += [
            next_able.eq((self.next & (was_able | (self.owns & ~owned & some))).any() | returned),
            next_ready.eq(next_able & (next_control | ~(Cat(*to) & self.taken_next).any())),
            next_served.eq((self.next & served).any()),
            next_control.eq((self.next & control_mask).any()),
            *(to[p].eq((self.next & self.goal[p]).any()) for p in ports),
        ]
        more, if_rival, goes_on, stays = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            more.eq(~self.last & ~self.tail & (self.pick & plenty).any()),
            if_rival.eq(more & (burst != BURST_FLITS - 1) & ~((second & ~next_served) | next_control)),
            goes_on.eq(Mux(next_ready, if_rival, more & (burst != BURST_FLITS - 1))),
            self.goes_on.eq(goes_on),
            self.went.eq(throw | self.granted),
            self.threw.eq(throw),
            # Without a pick and without `next` there is no difference.
            self.stays_went.eq(Mux(next_ready, if_rival, more)),
            self.stays_lost.eq(~next_ready),
            stays.eq(Mux(self.went, self.stays_went, self.stays_lost)),
            self.asks_next.eq((burst < BURST_FLITS - 2) & ~self.tail_behind),
            self.asks_later.eq(burst < BURST_FLITS - 1 - AHEAD_CYCLES),
        ]
        consumed = Signal()
        m.d.comb += consumed.eq(next_ready & ~stays)
        m.d.sync += burst.eq(Mux(self.went & goes_on, burst + 1, 0))
        with m.If(~stays):
            m.d.sync += [
                self.pick.eq(Mux(next_ready, self.next, 0)),
                self.port.eq(Mux(next_ready, Cat(*to), 0)),
                throw.eq(next_ready & (self.next & self.drop).any()),
                self.control.eq(next_ready & next_control),
                second.eq(next_served),
            ]
            with m.If(next_ready):
                m.d.sync += later.eq(above(self.next))
        with m.Elif(self.went & ~goes_on):
            m.d.sync += second.eq(1)

        # The choice of `next`.
        others, free, unserved, choice = Signal(vls), Signal(vls), Signal(vls), Signal(vls)
        m.d.sync += [was_able.eq(able & ~self.pick), was_free.eq(able & ~avoided & ~self.pick)]
        m.d.comb += [
            others.eq(was_able & ~self.pick & ~self.next),
            free.eq(was_free & ~self.pick & ~self.next),
            unserved.eq(free & ~served),
        ]
        pools = [unserved & later, unserved, free & later, free, others]
        better: Value = (free.any() & ~(self.next & was_free).any()) | (next_served & unserved.any())
        if control_mask:
            pools = [others & control_mask, *pools]
            better = better | (others & control_mask).any()
        if vls > KEPT_VLS:
            # Chosen in the cycle before. It may have become `pick` or `next` since.
            kept = Signal(vls)
            m.d.sync += kept.eq(lowest(_first(pools)))
            pools = [kept & ~self.pick & ~self.next]
            better = better & pools[0].any()
        m.d.comb += choice.eq(_first([*pools, self.hopes]))
        began = Signal()
        m.d.sync += [
            began.eq(burst == 0),
            round_over.eq(~(able & ~served).any()),
            served.eq(Mux(round_over, 0, served) | Mux(began, sent, 0)),
        ]
        # A pick that is cut short comes back if there is nothing else.
        returns = Signal()
        m.d.comb += returns.eq(consumed & more & ~choice.any())
        m.d.sync += returned.eq(returns)
        with m.If(consumed | ~next_able | better):
            m.d.sync += self.next.eq(Mux(returns, self.pick, lowest(choice)))
        return m
