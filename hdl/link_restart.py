"""A link whose ends can be reset one without the other: the handshake that sets credits and buffers of both right.

There are two levels, one each way, beside the flits and the credits. Their wires are as long as those, so the levels
stay in order with flits and credits.

- The transmitter's `restart` says: "I send nothing, and what I have sent before is over".
- The receiver's `credit_restart` says: "my buffer is empty, and what you have sent before is over".

The handshake:

- Both are low while the link works.
- A transmitter that was reset raises `restart`. The receiver ends the packets that are cut with a tail of zeroes, waits
  until its buffer is empty, and answers with `credit_restart`.
- A receiver that was reset raises `credit_restart`, and throws away what comes, until it has seen `restart`.
- A transmitter that sees `credit_restart` raises `restart`, and throws away the rest of the packets that it sends.
- Either way both levels are high in the end: nothing is on the wire, the buffer is empty. Then the transmitter lowers
  its level and waits a round trip; the receiver lowers its own; and all credits are home.

The transmitter keeps each level for `settle_cycles`, longer than a round trip. So every level that it sees was sent
after its own last change. However resets of both ends fall together, the two ends meet in the end.

With `LinkConfig.guard_cycles` (`link_guard.py`) either end begins the link anew by itself, too. A transmitter whose
other end does not answer for as long throws away all packets until it does.
"""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .config import LinkConfig
from .link_guard import GUARD_BITS, ReceiveGuard, outlasts

__all__ = ["CUTS_BITS", "ReceiveRestart", "TransmitRestart", "receive_register", "settle_cycles", "was_reset"]

CUTS_BITS = 8
"""Width of the counters of packets that were cut."""


def settle_cycles(config: LinkConfig) -> int:
    """The least cycles that a transmitter's level stands: both ways of the wire, the receiver's step, and two more."""
    return 2 * config.delay_cycles + 4


def was_reset(m: Module) -> Signal:
    """A signal that is high during a reset and in the first cycle after it.

    It stays low after power-on, when both ends begin together.
    """
    alive, seen = Signal(), Signal(reset_less=True)
    first = Signal(name="was_reset")
    m.d.sync += [alive.eq(1), seen.eq(1)]
    m.d.comb += first.eq(seen & ~alive)
    return first


def _lowest(value: Value) -> Value:
    return value & (~value + 1)


class TransmitRestart(wiring.Component):
    """The transmitter's end of a link whose ends are reset one without the other.

    Members (vectors have a bit a VL):

    - `restart` (out): the level towards the receiver, before the wire.
    - `peer` (in): the receiver's level, behind its wire.
    - `stop` (out): no credit may be used from the next cycle on. When it falls, all credits are home.
    - `moved` (in): the flit of `vl` is put on the link, or thrown away if `vl` is one of `cut`.
    - `vl` (in): the VL of that flit.
    - `tail` (in): that flit is the last of its packet.
    - `cut` (out): VLs whose packet is thrown away up to its tail, without credits.
    - `cuts` (out, 8): packets cut since reset, modulo 2^8.
    - `cutting` (out): VLs whose packet is cut in this cycle.
    - `waiting` (in), only with a guard: VLs that have a flit and no credit.
    - `breach` (in), only with a guard: a credit came that nobody can have given.
    - `begun_anew` (out, `GUARD_BITS`), only with a guard: times that the guard did so since reset, modulo 2^16.

    Latency: `peer` to `stop` none, to `restart` and `cut` one cycle. From a reset of either end to the link's work:
    at most twice `settle_cycles`, three round trips, and the time in which the receiver's buffer empties.
    Throughput: a flit a cycle. Reset: the link is down. After power-on: it is up.
    """

    def __init__(self, config: LinkConfig) -> None:
        self.config = config
        super().__init__(
            {
                "restart": Out(1),
                "peer": In(1),
                "stop": Out(1),
                "moved": In(1),
                "vl": In(config.vl_bits),
                "tail": In(1),
                "cut": Out(config.vls),
                "cuts": Out(CUTS_BITS),
                "cutting": Out(config.vls),
            }
            | (self._guard_members(config) if config.guard_cycles else {})
        )

    @staticmethod
    def _guard_members(config: LinkConfig) -> dict[str, wiring.Member]:
        return {"waiting": In(config.vls), "breach": In(1), "begun_anew": Out(GUARD_BITS)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls = self.config.vls
        settle = settle_cycles(self.config)
        first = was_reset(m)
        down, releases = Signal(), Signal()  # neither: up
        held = Signal(range(settle))
        settled, falls = Signal(), Signal()
        stalled, gone = Signal(), Signal()  # with a guard: something is wrong; nobody answers
        m.d.comb += [
            self.restart.eq(down | first),
            settled.eq(held == settle - 1),
            falls.eq(~down & ~releases & ~first & (self.peer | stalled)),
            self.stop.eq(down | releases | first | self.peer | stalled),
        ]
        if self.config.guard_cycles:
            up = ~down & ~releases & ~first & ~self.peer
            waits = outlasts(m, self.waiting & up.replicate(vls), self.config.guard_cycles, "waits")
            silent = outlasts(m, down, self.config.guard_cycles, "silent")
            m.d.comb += stalled.eq((waits | self.breach) & up)
            m.d.sync += gone.eq((gone | silent) & down)
            with m.If(stalled):
                m.d.sync += self.begun_anew.eq(self.begun_anew + 1)
        with m.If(~settled):
            m.d.sync += held.eq(held + 1)
        with m.If(first | falls):
            m.d.sync += [down.eq(1), held.eq(0)]
        with m.Elif(down & settled & self.peer):
            m.d.sync += [down.eq(0), releases.eq(1), held.eq(0)]
        with m.Elif(releases & settled):
            m.d.sync += [releases.eq(0), down.eq(self.peer), held.eq(0)]

        # Packets that have begun on the link and not ended. A flit of the cycle in which the link goes down is lost.
        begun, now = Signal(vls), Signal(vls)
        here, cut, lost = Signal(vls), Signal(vls), Signal(vls)
        m.d.comb += [
            self.cut.eq(cut | gone.replicate(vls)),
            here.eq(self.moved << self.vl),
            now.eq((begun & ~here) | (here & ~cut & (~self.tail).replicate(vls))),
            # While nobody answers, each packet that begins is lost, one of a single flit too.
            lost.eq(now | (here & ~cut & gone.replicate(vls))),
        ]
        over = here & self.tail.replicate(vls)
        with m.If(self.stop):
            m.d.comb += self.cutting.eq(lost)
            m.d.sync += [begun.eq(0), cut.eq((cut & ~over) | now)]
            m.d.sync += self.cuts.eq(self.cuts + sum(lost[i] for i in range(vls)))
        with m.Else():
            m.d.sync += [begun.eq(now), cut.eq(cut & ~over)]
        return m


class ReceiveRestart(wiring.Component):
    """The receiver's end of a link whose ends are reset one without the other, in front of the link's register.

    Members (vectors have a bit a VL):

    - `restart` (in): the transmitter's level.
    - `credit_restart` (out): the level back.
    - `valid`, `vl`, `tail` (in): a flit on the link.
    - `accept` (out): that flit goes into the register.
    - `close` (out): a tail of zeroes goes into the register instead; never when a flit does.
    - `close_vl` (out): the VL of that tail.
    - `non_empty`, `full` (in): VLs that have a flit, and VLs that are full, in the buffer behind the register.
    - `cuts` (out, 8): packets that were ended by such a tail since reset, modulo 2^8.
    - `lost` (out, 16): flits thrown away since reset, modulo 2^16.
    - `busy` (out): the link is down.
    - `breach` (in), only with a guard: the link must begin anew (`ReceiveGuard`).
    - `taken`, `taken_vl`, `taken_tail` (in), only with a guard: a flit leaves the register for the buffer.
    - `begun_anew` (out, `GUARD_BITS`), only with a guard: times that the guard did so since reset, modulo 2^16.

    After a breach nothing is accepted, and `credit_restart` asks the transmitter for a new beginning. Packets that were
    cut are ended at once: an end that does not answer holds nobody up.

    With `registered` the VL whose packet is ended next stands in a register. It is looked at 3 cycles after anything
    went into the register, so it is that of the cycle before. A VL that is full no more is ended a cycle later.

    Latency: none from a flit to `accept`, which follows from registers and `restart`. Throughput: a flit a cycle.
    Reset: the link is down and nothing is accepted. After power-on: it is up.
    """

    def __init__(self, config: LinkConfig, *, registered: bool = False) -> None:
        self.config, self._registered = config, registered
        vls = config.vls
        super().__init__(
            {
                "restart": In(1),
                "credit_restart": Out(1),
                "valid": In(1),
                "vl": In(config.vl_bits),
                "tail": In(1),
                "accept": Out(1),
                "close": Out(1),
                "close_vl": Out(config.vl_bits),
                "non_empty": In(vls),
                "full": In(vls),
                "cuts": Out(CUTS_BITS),
                "lost": Out(16),
                "busy": Out(1),
            }
            | (self._guard_members(config) if config.guard_cycles else {})
        )

    @staticmethod
    def _guard_members(config: LinkConfig) -> dict[str, wiring.Member]:
        taken = {"taken": In(1), "taken_vl": In(config.vl_bits), "taken_tail": In(1)}
        return {"breach": In(1), "begun_anew": Out(GUARD_BITS), **taken}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls = self.config.vls
        first = was_reset(m)
        deaf, drains, empty = Signal(), Signal(), Signal()  # none of these, and not `shut`: up
        shut = Signal()  # after a breach, until the transmitter begins anew
        guarded = self.config.guard_cycles > 0
        quiet = Signal(2)  # cycles since something may have gone into the register
        begun, closing = Signal(vls), Signal(vls)
        # A flit that was taken in the cycles before has reached its buffer: `full` speaks of it.
        m.d["sync" if self._registered else "comb"] += closing.eq(_lowest(begun & ~self.full))
        m.d.comb += [
            self.credit_restart.eq(deaf | empty | first | shut),
            self.accept.eq(~self.restart & ~deaf & ~drains & ~first & ~shut),
            self.busy.eq(deaf | drains | empty | first | shut),
            self.close.eq((drains | shut) & quiet.all() & closing.any()),
            self.close_vl.eq(_number(closing, self.config.vl_bits)),
        ]
        with m.If(first):
            m.d.sync += deaf.eq(1)
        with m.Elif(deaf):
            m.d.sync += [deaf.eq(~self.restart), empty.eq(self.restart)]
        with m.Elif(shut):
            with m.If(self.close):
                m.d.sync += [quiet.eq(0), begun.eq(begun & ~closing), self.cuts.eq(self.cuts + 1)]
            with m.Elif(~quiet.all()):
                m.d.sync += quiet.eq(quiet + 1)
            # At once: the level that the transmitter sees after a round trip must speak of an empty buffer.
            with m.If(self.restart):
                m.d.sync += [shut.eq(0), drains.eq(1)]
        with m.Elif(drains):
            with m.If(self.close):
                m.d.sync += [quiet.eq(0), begun.eq(begun & ~closing), self.cuts.eq(self.cuts + 1)]
            with m.Elif(~quiet.all()):
                m.d.sync += quiet.eq(quiet + 1)
            with m.Elif(~begun.any() & ~self.non_empty.any()):
                m.d.sync += [drains.eq(0), empty.eq(1)]
        with m.Elif(empty):
            m.d.sync += empty.eq(self.restart)
        with m.Elif(self.restart):
            m.d.sync += [drains.eq(1), quiet.eq(0)]
        if guarded:
            with m.If(self.breach & ~first & ~self.busy & ~self.restart):
                m.d.sync += [shut.eq(1), quiet.eq(0), self.begun_anew.eq(self.begun_anew + 1)]
            # A flit that is accepted may be refused in the next cycle: packets are followed where they are taken.
            with m.If(self.taken):
                m.d.sync += begun.bit_select(self.taken_vl, 1).eq(~self.taken_tail)
        else:
            with m.If(self.valid & self.accept):
                m.d.sync += begun.bit_select(self.vl, 1).eq(~self.tail)
        with m.If(self.valid & ~self.accept):
            m.d.sync += self.lost.eq(self.lost + 1)
        return m


def receive_register(
    m: Module,
    config: LinkConfig,
    rx: Any,
    arrived: Signal,
    arrival: data.View,
    buffer: Any,
    *,
    registered: bool = False,
) -> ReceiveRestart | None:
    """The register on the link `rx`, in front of a `VlBuffer`: `arrived`, and the flit `arrival`.

    With `LinkConfig.restart` the receiver's half of the handshake stands before the register, and is returned. With a
    guard (`LinkConfig.guard_cycles`) `arrived` is low for a flit that has no room: it may not be written. `registered`
    is that of `ReceiveRestart`.
    """
    if not config.restart:
        m.d.sync += arrived.eq(rx.valid)
        with m.If(rx.valid):
            m.d.sync += arrival.eq(rx.payload)
        return None
    m.submodules.restart_in = half = ReceiveRestart(config, registered=registered)
    m.d.comb += [
        half.restart.eq(rx.restart),
        rx.credit_restart.eq(half.credit_restart),
        half.valid.eq(rx.valid),
        half.vl.eq(rx.payload.vl),
        half.tail.eq(rx.payload.tail),
        half.non_empty.eq(buffer.non_empty),
        half.full.eq(buffer.full),
    ]
    stands = arrived
    if config.guard_cycles:
        m.submodules.guard_in = guard = ReceiveGuard(config)
        stands = Signal(name="stands_in_register")
        m.d.comb += [
            guard.valid.eq(stands),
            guard.vl.eq(arrival.vl),
            guard.tail.eq(arrival.tail),
            guard.full.eq(buffer.full),
            guard.non_empty.eq(buffer.non_empty),
            arrived.eq(guard.take),
            half.breach.eq(guard.breach),
            half.taken.eq(guard.take),
            half.taken_vl.eq(arrival.vl),
            half.taken_tail.eq(arrival.tail),
        ]
    m.d.sync += [stands.eq((rx.valid & half.accept) | half.close), arrival.eq(rx.payload)]
    with m.If(half.close):
        m.d.sync += [
            arrival.data.eq(0),
            arrival.vl.eq(half.close_vl),
            arrival.head.eq(0),
            arrival.tail.eq(1),
        ]
    return half


def _number(one_hot: Value, bits: int) -> Value:
    """The number of the set bit, 0 if none is."""
    terms = []
    for position in range(bits):
        members = [one_hot[i] for i in range(len(one_hot)) if i >> position & 1]
        terms.append(Cat(*members).any() if members else Value.cast(0)[0:1])
    return Cat(*terms)
