"""Counts what passes a component's link ends and bus, from their wires alone: a second way to its activity."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeVar

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4Signature
from ..config import LinkConfig
from ..link import FlitLayout, LinkSignature

__all__ = ["LINK_TALLIES", "BeatTally", "FlitTally", "tallied", "tally_signals"]

LINK_TALLIES = ("flits", "tails", "lasts", "credits")
C = TypeVar("C", bound=wiring.Component)


class FlitTally(wiring.Component):
    """Counts the flits and credits of a link, at either end of its wire.

    `last_bit`: the bit of a tail's data that says that its message ends; None if tails say no such thing.

    Members: `payload`, `valid`, `credit_valid` (in), as in `LinkSignature`; counts since reset (out, 32, modulo 2^32):

    - `flits`, `tails`: flits sent, and those that end a packet.
    - `lasts`: those that end a message; 0 without a `last_bit`.
    - `credits`: flits that have left the receiver's buffer.

    Latency: a count shows an event from the next cycle on. Throughput: every event of a cycle.
    """

    def __init__(self, config: LinkConfig, *, last_bit: int | None = None) -> None:
        self._last_bit = last_bit
        super().__init__(
            {"payload": In(FlitLayout(config)), "valid": In(1), "credit_valid": In(1)}
            | dict.fromkeys(LINK_TALLIES, Out(32))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tail = self.valid & self.payload.tail
        m.d.sync += [
            self.flits.eq(self.flits + self.valid),
            self.tails.eq(self.tails + tail),
            self.credits.eq(self.credits + self.credit_valid),
        ]
        if self._last_bit is not None:
            m.d.sync += self.lasts.eq(self.lasts + (tail & self.payload.data[self._last_bit]))
        return m


class BeatTally(wiring.Component):
    """Counts the beats of a bus.

    Members: `read`, `written` (in): a beat, in this cycle. `beats` (out, 32): both since reset, modulo 2^32.

    Latency: the count shows a beat from the next cycle on. Throughput: a beat each way in every cycle.
    """

    def __init__(self) -> None:
        super().__init__({"read": In(1), "written": In(1), "beats": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.beats.eq(self.beats + self.read + self.written)
        return m


def tallied(component: C, *, last_bit: int | None = None) -> C:
    """The component, with a `FlitTally` at each of its link ends, and a count of beats at each AXI port.

    The component itself is changed, before it is elaborated. `tally_signals` names the counts.
    """
    elaborate = component.elaborate

    def with_tallies(platform: object) -> Module:
        m = elaborate(platform)
        for name, interface, signature in _interfaces(component):
            shown: dict[str, Value] = {}
            if isinstance(signature, LinkSignature):
                m.submodules[f"tally_{name}"] = tally = FlitTally(signature.config, last_bit=last_bit)
                m.d.comb += [
                    Value.cast(getattr(tally, pin)).eq(Value.cast(getattr(interface, pin)))
                    for pin in ("payload", "valid", "credit_valid")
                ]
                shown = {one: getattr(tally, one) for one in LINK_TALLIES}
            else:
                m.submodules[f"tally_{name}"] = beats = BeatTally()
                m.d.comb += [
                    beats.read.eq(interface.rvalid & interface.rready),
                    beats.written.eq(interface.wvalid & interface.wready),
                ]
                shown = {"beats": beats.beats}
            for what, count in shown.items():
                out = Signal(32, name=f"tally_{name}_{what}")
                m.d.comb += out.eq(count)
        return m

    vars(component)["elaborate"] = with_tallies
    return component


def tally_signals(component: wiring.Component, *, name: str) -> list[tuple[str, str]]:
    """(Verilog module, variable) of the counts of a `tallied` component converted as `name`.

    The variables are `tally_`, the interface's name (`rx_0`), and the count's name after an underline. That is one of
    `LINK_TALLIES`, or `beats` of an AXI port.
    """
    return [
        (name, f"tally_{end}_{what}")
        for end, _, signature in _interfaces(component)
        for what in (LINK_TALLIES if isinstance(signature, LinkSignature) else ("beats",))
    ]


def _interfaces(component: wiring.Component) -> Iterator[tuple[str, Any, Any]]:
    """Name, interface and signature of every link end and AXI port, of either direction."""
    for name, member in component.signature.members.items():
        if member.is_port:
            continue
        signature = member.signature if member.flow == wiring.Out else member.signature.flip()
        if not isinstance(signature, LinkSignature | Axi4Signature):
            continue
        for place in product(*(range(size) for size in member.dimensions)):
            interface = getattr(component, name)
            for index in place:
                interface = interface[index]
            yield "_".join([name, *map(str, place)]), interface, signature
