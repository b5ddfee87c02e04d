"""A link that fails, in plain Python: `FaultLink`, cycle by cycle."""

from __future__ import annotations

from lanikai.hdl.config import LinkConfig
from lanikai.hdl.fault_link import FaultKind, FaultSetup
from lanikai.hdl.link import FlitLayout
from lanikai.hdl.packet import HEADER_LAYOUT

__all__ = ["PlainFaultLink"]

WORD = (1 << 32) - 1


def _step(state: int, left: int, right: int, again: int) -> int:
    state ^= state << left & WORD
    state ^= state >> right
    return state ^ (state << again & WORD)


def _place(number: int, count: int) -> int:
    bits = (count - 1).bit_length()
    place = number >> 32 - bits if bits else 0
    return place - count if place >= count else place


class PlainFaultLink:
    """`cycle` takes what is on the link's wires and returns what comes out; `counts` are those of the block."""

    def __init__(self, config: LinkConfig, setup: FaultSetup) -> None:
        self.config, self.setup, self.now = config, setup, 0
        self.layout = FlitLayout(config)
        self.random = [setup.seed, setup.seed]
        names = "flits altered dropped invented packets_hit credits_lost credits_invented cycles"
        self.counts = dict.fromkeys(names.split(), 0)
        self.last: int | None = None
        self.levels = (0, 0)
        self.hit = [False] * config.vls
        self.second = [False] * config.vls

    def _field(self, flit: int, name: str) -> int:
        field = self.layout[name]
        return flit >> field.offset & (1 << field.width) - 1

    def cycle(self, flit: int | None, credit: int | None, levels: tuple[int, int]) -> tuple:
        """A cycle with a flit or None, the VL of a credit or None, and the levels (restart, credit_restart).

        Returns the same of the other side.
        """
        setup, size = self.setup, self.layout.size
        here = setup.start <= self.now and (not setup.length or self.now < setup.start + setup.length)
        kind = setup.kind if here else FaultKind.NONE
        chance, choice = self.random
        hits, count = chance < setup.rate, self.counts
        out, back, out_levels = flit, credit, levels
        harmed = spared = False
        if kind in (FaultKind.STUCK, FaultKind.DEAD, FaultKind.BABBLE):
            count["cycles"] += 1
            harmed, out = flit is not None, None
            count["dropped"] += harmed
            if kind is FaultKind.BABBLE:
                words = [choice ^ ((chance << i | chance >> 32 - i) & WORD) for i in range(-(-size // 32))]
                noise = sum(word << 32 * i for i, word in enumerate(words)) & (1 << size) - 1
                if hits and setup.vls >> self._field(noise, "vl") & 1:
                    out = noise
                out_levels = (0, levels[1])
            else:
                count["credits_lost"] += credit is not None
                back, out_levels = None, (0, 0)
            if kind is FaultKind.STUCK:
                out, out_levels = self.last, self.levels
            count["invented"] += out is not None
        else:
            if flit is not None and hits and setup.vls >> self._field(flit, "vl") & 1:
                if kind is FaultKind.ERRORS:
                    place = _place(choice, size)
                    out, harmed = flit ^ 1 << place, True
                    spared = self._in_route(flit, place)
                    count["altered"] += 1
                elif kind is FaultKind.DROPS:
                    out, harmed = None, True
                    count["dropped"] += 1
            if kind is FaultKind.LOST_CREDITS and credit is not None and hits and setup.vls >> credit & 1:
                back = None
                count["credits_lost"] += 1
            lane = _place(choice, self.config.vls)
            if kind is FaultKind.EXTRA_CREDITS and credit is None and hits and setup.vls >> lane & 1:
                back = lane
                count["credits_invented"] += 1
        if kind is not FaultKind.STUCK:
            self.last = self.last if flit is None else flit
            self.levels = levels
        if flit is not None:
            count["flits"] += 1
            vl, head = self._field(flit, "vl"), self._field(flit, "head")
            mine = self.hit[vl] and not head
            hurts = harmed and not spared
            count["packets_hit"] += hurts and not mine
            self.hit[vl] = hurts or mine
            self.second[vl] = bool(head)
        if setup.kind:
            self.random = [_step(self.random[0], 13, 17, 5), _step(self.random[1], 5, 9, 7)]
        self.now += 1
        return out, back, out_levels

    def _in_route(self, flit: int, place: int) -> bool:
        """Whether a bit of a flit is of its header's route, which is no part of what the packet's check covers."""
        bits, route = self.config.flit_bits, HEADER_LAYOUT["route"]
        data = self.layout["data"]
        if not data.offset <= place < data.offset + data.width:
            return False
        vl = self._field(flit, "vl")
        if self._field(flit, "head"):
            index = 0
        elif self.second[vl]:
            index = 1
        else:
            return False
        bit = index * bits + place - data.offset
        return route.offset <= bit < route.offset + route.width
