"""A plain model of a router, cycle by cycle, after the five stages of docs/router.md: lists, queues and numbers.

It shares no code with the RTL. It has round robin everywhere, the separable allocator, packets that keep their VL, and
routing by source or by dimension order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from fractions import Fraction

__all__ = ["PlainFlit", "PlainPacer", "PlainRouter", "PlainTurns", "RouterShape"]

NOWHERE = -1
"""Output port of a packet that is thrown away."""
ROUTE_LOW = 8
"""First bit of the route in a header flit."""
ROUTE_BITS = 48
COORDINATE_BITS = 5


@dataclass(frozen=True)
class PlainFlit:
    """A flit: `data`, its `vl`, and whether it is its packet's first (`head`) and last (`tail`)."""

    data: int
    vl: int
    head: bool
    tail: bool


@dataclass(frozen=True, kw_only=True)
class RouterShape:
    """Numbers of a router: ports, VLs, depths in flits, bits of a flit and of a hop, the link's rate and delay.

    `place` is (x, y, last x, last y) with routing by dimension order, and None with source routes. `connected`: ports
    that lead somewhere. `credits`: depth of the buffer behind each output.
    """

    ports: int
    vls: int
    input_flits: int
    output_flits: int
    credits: tuple[int, ...]
    flit_bits: int
    hop_bits: int
    rate: Fraction
    delay: int
    connected: frozenset[int]
    place: tuple[int, int, int, int] | None


class PlainTurns:
    """Round robin: the next one behind the last one that went, the lowest first of all."""

    def __init__(self) -> None:
        self.last = -1

    def choose(self, asking: set[int]) -> int | None:
        """The one whose turn it is, or None."""
        return min((one for one in asking if one > self.last), default=min(asking, default=None))

    def take(self, one: int) -> None:
        """It went."""
        self.last = one


class PlainPacer:
    """A wire that takes 1 / rate cycles for a flit. The next one may begin within the cycle in which the last ends."""

    def __init__(self, rate: Fraction) -> None:
        self._rate, self._free_at = rate, Fraction(0)

    def open(self, cycle: int) -> bool:
        """A flit may be sent in this cycle."""
        return self._free_at < cycle + 1

    def send(self, cycle: int) -> None:
        """One is."""
        self._free_at = max(self._free_at, Fraction(cycle)) + 1 / self._rate


class _Input:
    """An input: link register, a queue a VL, the port that each VL's packet wants, owns or is thrown away by."""

    def __init__(self, shape: RouterShape) -> None:
        vls = range(shape.vls)
        self.register: PlainFlit | None = None
        self.queues: list[deque[PlainFlit]] = [deque() for _ in vls]
        self.want: dict[int, int] = {}
        self.own: dict[int, int] = {}
        self.headers, self.vl_turns, self.left_turns = PlainTurns(), PlainTurns(), PlainTurns()
        self.credit: int | None = None

    def waiting(self) -> set[int]:
        """VLs with a flit."""
        return {vl for vl, queue in enumerate(self.queues) if queue}


class _Output:
    """An output: a queue and the credits of each VL, the wire's pace, and what is on the wire both ways."""

    def __init__(self, shape: RouterShape, credits: int) -> None:
        vls = range(shape.vls)
        self.queues: list[deque[PlainFlit]] = [deque() for _ in vls]
        self.credits = [credits for _ in vls]
        self.owners = [PlainTurns() for _ in vls]
        self.input_turns, self.vl_turns = PlainTurns(), PlainTurns()
        self.pacer = PlainPacer(shape.rate)
        self.flits_on_wire: deque[PlainFlit | None] = deque([None] * shape.delay)
        self.credits_on_wire: deque[int | None] = deque([None] * shape.delay)


class PlainRouter:
    """A router. `outputs` is what it shows in this cycle, `step` ends the cycle with what it was given in it."""

    def __init__(self, shape: RouterShape) -> None:
        self.shape = shape
        self.inputs = [_Input(shape) for _ in range(shape.ports)]
        self.all_outputs = [_Output(shape, credits) for credits in shape.credits]
        self.first_diagonal = 0
        self.cycle = 0
        self.dropped = 0

    def outputs(self) -> tuple[list[PlainFlit | None], list[int | None]]:
        """The flit on each port's link, and the VL of the credit that each input gives back."""
        flits = []
        for output in self.all_outputs:
            sent = self._sends(output)
            flit = None if sent is None else output.queues[sent][0]
            flits.append(output.flits_on_wire[0] if output.flits_on_wire else flit)
        return flits, [one.credit for one in self.inputs]

    def _sends(self, output: _Output) -> int | None:
        """Stage 5: the VL whose flit leaves the output's queue in this cycle."""
        ready = {vl for vl, queue in enumerate(output.queues) if queue and output.credits[vl]}
        return output.vl_turns.choose(ready) if output.pacer.open(self.cycle) else None

    def step(self, flits: list[PlainFlit | None], credits: list[int | None]) -> None:
        """End the cycle. The flit that came in at each port, and the VL of the credit that came back there."""
        # What each stage does follows from what stands at the beginning of the cycle.
        routed = [self._route(one) for one in self.inputs]
        granted = self._give_output_vls()
        crossing = self._allocate()
        leaving = [self._sends(output) for output in self.all_outputs]
        for output, vl, back in zip(self.all_outputs, leaving, credits, strict=True):
            self._transmit(output, vl, back)
        for one in self.inputs:
            one.credit = None
        for port, (vl, to) in crossing.items():
            self._cross(port, vl, to)
        for port, vl, to in granted:
            self.inputs[port].own[vl] = self.inputs[port].want.pop(vl)
            self.all_outputs[to].owners[vl].take(port)
        for one, route in zip(self.inputs, routed, strict=True):
            if route is not None:
                vl, to = route
                one.headers.take(vl)
                (one.own if to == NOWHERE else one.want)[vl] = to
        for one, flit in zip(self.inputs, flits, strict=True):
            if one.register is not None:
                queue = one.queues[one.register.vl]
                assert len(queue) < self.shape.input_flits, "a flit came without a credit"
                queue.append(one.register)
            one.register = flit
        self.cycle += 1

    def _route(self, one: _Input) -> tuple[int, int] | None:
        """Stage 2: a VL of this input whose packet has no port yet, and its port."""
        vl = one.headers.choose(one.waiting() - one.want.keys() - one.own.keys())
        if vl is None:
            return None
        header = one.queues[vl][0]
        port = self._port(header.data >> ROUTE_LOW)
        return vl, port if header.head and port in self.shape.connected else NOWHERE

    def _port(self, route: int) -> int:
        if self.shape.place is None:
            return route % (1 << self.shape.hop_bits)
        here_x, here_y, last_x, last_y = self.shape.place
        x, y = ((route >> shift) % (1 << COORDINATE_BITS) for shift in (0, COORDINATE_BITS))
        if x > last_x or y > last_y:
            return NOWHERE
        if x != here_x:
            return 1 if x > here_x else 2
        if y != here_y:
            return 3 if y > here_y else 4
        return 0

    def _give_output_vls(self) -> list[tuple[int, int, int]]:
        """Stage 3: every output VL that nobody owns goes to one who wants it: input, VL, output."""
        found = []
        for to, output in enumerate(self.all_outputs):
            for vl, turns in enumerate(output.owners):
                if any(one.own.get(vl) == to for one in self.inputs):
                    continue
                winner = turns.choose({i for i, one in enumerate(self.inputs) if one.want.get(vl) == to})
                if winner is not None:
                    found.append((winner, vl, to))
        return found

    def _allocate(self) -> dict[int, tuple[int, int]]:
        """Stage 4: the flits that cross: VL and output by input. Turns that are taken are noted."""
        outputs, inputs = self.all_outputs, self.inputs
        asks: list[dict[int, int]] = []
        for one in inputs:
            asks.append(
                {
                    vl: to
                    for vl, to in one.own.items()
                    if one.queues[vl]
                    and (to == NOWHERE or len(outputs[to].queues[vl]) < self.shape.output_flits)
                }
            )
        offers = [one.vl_turns.choose(set(ask)) for one, ask in zip(inputs, asks, strict=True)]
        comes = {i: asks[i][vl] for i, vl in enumerate(offers) if vl is not None}
        goes = {i for i, to in comes.items() if to == NOWHERE}
        taken = set()
        for to, output in enumerate(outputs):
            winner = output.input_turns.choose({i for i, at in comes.items() if at == to})
            if winner is not None:
                output.input_turns.take(winner)
                goes.add(winner)
                taken.add(to)
        crossing: dict[int, tuple[int, int]] = {}
        for i in goes:
            vl = offers[i]
            assert vl is not None
            inputs[i].vl_turns.take(vl)
            crossing[i] = vl, asks[i][vl]
        if self.shape.vls > 1:
            self._sweep(asks, crossing, taken)
        return crossing

    def _sweep(
        self, asks: list[dict[int, int]], crossing: dict[int, tuple[int, int]], taken: set[int]
    ) -> None:
        """Match what the choices have left, along diagonals: the cells (i, p) with the same i + p modulo the ports."""
        ports = self.shape.ports
        given = False
        for step in range(ports):
            diagonal = (self.first_diagonal + step) % ports
            for i in range(ports):
                to = (diagonal - i) % ports
                vls = {vl for vl, at in asks[i].items() if at == to}
                if i in crossing or to in taken or not vls:
                    continue
                vl = self.inputs[i].left_turns.choose(vls)
                assert vl is not None
                self.inputs[i].left_turns.take(vl)
                crossing[i], given = (vl, to), True
                taken.add(to)
        if given:
            self.first_diagonal = (self.first_diagonal + 1) % ports

    def _cross(self, port: int, vl: int, to: int) -> None:
        one = self.inputs[port]
        flit = one.queues[vl].popleft()
        one.credit = vl
        if flit.tail:
            del one.own[vl]
        if to == NOWHERE:
            self.dropped += flit.tail
            return
        if flit.head and self.shape.place is None:
            flit = replace(flit, data=self._without_hop(flit.data))
        self.all_outputs[to].queues[vl].append(flit)

    def _without_hop(self, data: int) -> int:
        """The header with its route moved down by a hop."""
        bits = min(ROUTE_BITS, self.shape.flit_bits - ROUTE_LOW)
        route = data >> ROUTE_LOW & (1 << bits) - 1
        return data ^ (route ^ route >> self.shape.hop_bits) << ROUTE_LOW

    def _transmit(self, output: _Output, vl: int | None, back: int | None) -> None:
        """Stage 5 at the end of the cycle: `vl` is sent, and a credit of VL `back` comes in at the wire's end."""
        flit = None
        if vl is not None:
            flit = output.queues[vl].popleft()
            output.credits[vl] -= 1
            output.vl_turns.take(vl)
            output.pacer.send(self.cycle)
        if self.shape.delay:
            output.flits_on_wire.append(flit)
            output.flits_on_wire.popleft()
            output.credits_on_wire.append(back)
            back = output.credits_on_wire.popleft()
        if back is not None:
            output.credits[back] += 1
