"""A link that fails: it stands between two ends, and does to flits and credits what real wires and ends do.

For tests and for `lanikai run faults` (docs/faults.md). Its kind of fault can be set while it runs, so that one build
serves all kinds.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, Self

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from pydantic import Field, model_validator

from .config import Config, LinkConfig
from .link import FlitLayout, LinkSignature
from .packet import HEADER_LAYOUT

__all__ = ["FAULT_CONTROL", "FAULT_COUNTS", "FaultKind", "FaultLink", "FaultPlace", "FaultSetup"]

FaultPlace = tuple[int, int, Literal["out", "in"]]
"""The place of a `FaultLink` in a network: router, port, and the link on which that port sends (`out`) or receives."""


class FaultKind(IntEnum):
    """A fault of a link (4 bits).

    - `NONE`: a wire without any delay.
    - `ERRORS`: a bit of a flit is wrong: of its data, VL, head or tail.
    - `DROPS`: a flit is lost, and its credit with it.
    - `LOST_CREDITS`: a credit is lost on its way back.
    - `EXTRA_CREDITS`: a credit comes that nobody gave.
    - `STUCK`: the last flit comes again every cycle. No credit comes back, and the levels of the handshake stay.
    - `DEAD`: nothing comes through, either way.
    - `BABBLE`: the receiver sees random flits that no credit was taken for, and nothing of the transmitter.
    """

    NONE = 0
    ERRORS = 1
    DROPS = 2
    LOST_CREDITS = 3
    EXTRA_CREDITS = 4
    STUCK = 5
    DEAD = 6
    BABBLE = 7


FAULT_CONTROL = data.StructLayout(
    {
        "kind": unsigned(4),
        "vls": unsigned(16),
        "rate": unsigned(32),
        "start": unsigned(32),
        "length": unsigned(32),
        "seed": unsigned(32),
    }
)
"""The input `control` of a `FaultLink`: the fields of `FaultSetup`."""

FAULT_COUNTS = data.StructLayout(
    {
        name: unsigned(32)
        for name in (
            "flits", "altered", "dropped", "invented", "packets_hit", "credits_lost", "credits_invented", "cycles",
        )
    }
)  # fmt: skip
"""Counts of a `FaultLink`, each since reset, modulo 2^32.

- `flits`: flits that the transmitter sent.
- `altered`, `dropped`: those of them that came out changed, or not at all.
- `invented`: flits that came out and that nobody sent.
- `packets_hit`: packets of the transmitter of which a flit was altered or dropped. A bit of a header's route does not
  count: routers take the route off, and nothing checks it.
- `credits_lost`, `credits_invented`: credits that did not come out, or that nobody gave.
- `cycles`: cycles of `STUCK`, `DEAD` or `BABBLE`.
"""


class FaultSetup(Config):
    """A fault: its kind, how often, when, and on which VLs. Raises ConfigError."""

    kind: FaultKind = Field(FaultKind.NONE, description="the fault")
    rate: int = Field(
        1 << 12,
        ge=0,
        lt=1 << 32,
        description="chance in 2^32: of each flit (ERRORS, DROPS), of each credit (LOST_CREDITS), in each cycle "
        "(EXTRA_CREDITS, BABBLE)",
    )
    start: int = Field(0, ge=0, lt=1 << 32, description="first cycle since reset in which it is there")
    length: int = Field(0, ge=0, lt=1 << 32, description="cycles for which it is there; 0: for ever")
    seed: int = Field(1, ge=1, lt=1 << 32, description="of its random numbers")
    vls: int = Field(
        0xFFFF, ge=1, le=0xFFFF, description="VLs that it hits, a bit each; STUCK and DEAD hit all"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.start + self.length >= 1 << 32:
            raise ValueError(f"start + length = {self.start} + {self.length}: at most {(1 << 32) - 1}")
        return self

    def word(self) -> int:
        """The value of `FAULT_CONTROL`."""
        values = {name: int(getattr(self, name)) for name in type(self).model_fields}
        return sum(value << FAULT_CONTROL[name].offset for name, value in values.items())


class FaultLink(wiring.Component):
    """Stands between the two ends of a link.

    Members:

    - `rx` (in, `LinkSignature`): from the transmitter.
    - `tx` (out, `LinkSignature`): to the receiver.
    - `control` (in, `FAULT_CONTROL`): the fault. While its kind is `NONE` the random numbers are the seed's.
    - `counts` (out, `FAULT_COUNTS`): what it has done.

    An extra credit takes the wire of a cycle in which none comes. With `LinkConfig.restart` the levels of the handshake
    are wires as well: `DEAD` and `BABBLE` hold them low (towards the transmitter `BABBLE` lets them through), `STUCK`
    keeps them.

    Latency: none; so it adds nothing to the round trip. Throughput: a flit a cycle. Reset: no counts.
    """

    def __init__(self, config: LinkConfig) -> None:
        self.config = config
        link = LinkSignature(config)
        super().__init__(
            {"rx": In(link), "tx": Out(link), "control": In(FAULT_CONTROL), "counts": Out(FAULT_COUNTS)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control, counts, rx, tx = self.control, self.counts, self.rx, self.tx
        now, active = Signal(32, name="now"), Signal()
        # It stands still at its end: a fault that is over does not come back.
        with m.If(~now.all()):
            m.d.sync += now.eq(now + 1)
        m.d.comb += active.eq(
            (now >= control.start) & ((control.length == 0) | (now - control.start < control.length))
        )
        kinds = {kind: Signal(name=kind.name.lower()) for kind in FaultKind if kind}
        m.d.comb += [signal.eq(active & (control.kind == kind.value)) for kind, signal in kinds.items()]
        chance = self._random(m, "chance", (13, 17, 5))
        choice = self._random(m, "choice", (5, 9, 7))
        hits = Signal()
        m.d.comb += hits.eq(chance < control.rate)

        # Flits.
        flit = rx.payload.as_value()
        on_vl, flips, drops, blocked = Signal(), Signal(), Signal(), Signal()
        babbles, babble, repeats = Signal(), Signal(len(flit)), Signal()
        last_flit, came = Signal(len(flit)), Signal()
        with m.If(rx.valid & ~kinds[FaultKind.STUCK]):
            m.d.sync += [last_flit.eq(flit), came.eq(1)]
        cut_off = kinds[FaultKind.STUCK] | kinds[FaultKind.DEAD] | kinds[FaultKind.BABBLE]
        vl = data.View(rx.payload.shape(), babble).vl
        m.d.comb += [
            on_vl.eq((control.vls >> rx.payload.vl)[0]),
            flips.eq(kinds[FaultKind.ERRORS] & rx.valid & hits & on_vl),
            drops.eq(kinds[FaultKind.DROPS] & rx.valid & hits & on_vl),
            blocked.eq(rx.valid & cut_off),
            babble.eq(Cat(*(choice ^ chance.rotate_left(i) for i in range(-(-len(flit) // 32))))),
            babbles.eq(kinds[FaultKind.BABBLE] & hits & (control.vls >> vl)[0]),
            repeats.eq(kinds[FaultKind.STUCK] & came),
            tx.valid.eq((rx.valid & ~drops & ~cut_off) | babbles | repeats),
        ]
        wrong = Signal(range(len(flit)))
        m.d.comb += wrong.eq(self._place(choice, len(flit)))
        with m.If(kinds[FaultKind.BABBLE]):
            m.d.comb += tx.payload.eq(babble)
        with m.Elif(kinds[FaultKind.STUCK]):
            m.d.comb += tx.payload.eq(last_flit)
        with m.Else():
            m.d.comb += tx.payload.eq(flit ^ Mux(flips, 1 << wrong, 0))

        # Credits, and the levels of the handshake.
        loses, invents, silent = Signal(), Signal(), Signal()
        lane = Signal(range(self.config.vls))
        m.d.comb += [
            lane.eq(self._place(choice, self.config.vls)),
            loses.eq(
                kinds[FaultKind.LOST_CREDITS] & tx.credit_valid & hits & (control.vls >> tx.credit_vl)[0]
            ),
            invents.eq(kinds[FaultKind.EXTRA_CREDITS] & ~tx.credit_valid & hits & (control.vls >> lane)[0]),
            silent.eq(tx.credit_valid & (kinds[FaultKind.STUCK] | kinds[FaultKind.DEAD])),
            rx.credit_valid.eq((tx.credit_valid & ~loses & ~silent) | invents),
            rx.credit_vl.eq(Mux(invents, lane, tx.credit_vl)),
        ]
        if self.config.restart:
            levels = Cat(rx.restart, tx.credit_restart)
            stuck_levels = Signal(2)
            with m.If(~kinds[FaultKind.STUCK]):
                m.d.sync += stuck_levels.eq(levels)
            with m.If(kinds[FaultKind.STUCK]):
                m.d.comb += Cat(tx.restart, rx.credit_restart).eq(stuck_levels)
            with m.Elif(~kinds[FaultKind.DEAD]):
                m.d.comb += [
                    tx.restart.eq(rx.restart & ~kinds[FaultKind.BABBLE]),
                    rx.credit_restart.eq(tx.credit_restart),
                ]

        # Packets that were hit: a bit a VL, while the packet lasts.
        hit = Signal(self.config.vls)
        harms, mine = Signal(), Signal()
        m.d.comb += [
            harms.eq((flips & ~self._in_route(m, wrong)) | drops | blocked),
            mine.eq(hit.bit_select(rx.payload.vl, 1) & ~rx.payload.head),
        ]
        with m.If(rx.valid):
            m.d.sync += hit.bit_select(rx.payload.vl, 1).eq(harms | mine)
        for name, event in {
            "flits": rx.valid,
            "altered": flips,
            "dropped": drops | blocked,
            "invented": babbles | repeats,
            "packets_hit": harms & ~mine,
            "credits_lost": loses | silent,
            "credits_invented": invents,
            "cycles": cut_off,
        }.items():
            with m.If(event):
                m.d.sync += counts[name].eq(counts[name] + 1)
        return m

    def _in_route(self, m: Module, place: Value) -> Signal:
        """Whether bit `place` of the flit is of its header's route. Routers take that off, so no check covers it."""
        payload, route = self.rx.payload, HEADER_LAYOUT["route"]
        found, second = Signal(name="in_route"), Signal(self.config.vls, name="second")
        with m.If(self.rx.valid):
            m.d.sync += second.bit_select(payload.vl, 1).eq(payload.head)
        bits, base = self.config.flit_bits, FlitLayout(self.config)["data"].offset
        flits = [payload.head, second.bit_select(payload.vl, 1) & ~payload.head]
        for i, here in enumerate(flits):
            first, last = max(route.offset - i * bits, 0), min(route.offset + route.width - i * bits, bits)
            if first < last:
                with m.If(here & (place >= base + first) & (place < base + last)):
                    m.d.comb += found.eq(1)
        return found

    def _random(self, m: Module, name: str, shifts: tuple[int, int, int]) -> Signal:
        """A random number a cycle, begun with the seed: a xorshift of 32 bits with the full period (Marsaglia, J. Stat.
        Soft. 8(14), 2003)."""
        left, right, again = shifts
        state = Signal(32, init=1, name=name)
        one, two = Signal(32, name=f"{name}_1"), Signal(32, name=f"{name}_2")
        m.d.comb += [one.eq(state ^ (state << left)[:32]), two.eq(one ^ one >> right)]
        seed = Mux(self.control.seed == 0, 1, self.control.seed)
        m.d.sync += state.eq(Mux(self.control.kind == 0, seed, two ^ (two << again)[:32]))
        return state

    def _place(self, number: Value, count: int) -> Value:
        """A place below `count` from the high bits of a random number: those beyond are the first ones again."""
        if count == 1:
            return Value.cast(0)[:1]
        place = number[-(count - 1).bit_length() :]
        return Mux(place >= count, place - count, place)
