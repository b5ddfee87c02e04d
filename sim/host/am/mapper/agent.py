"""The part of the mapper on every node: it answers probes and takes routes; and it asks for a mapper on its node."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from lanikai.firmware.ports import Flag, Scheduler

from .config import MapperConfig
from .prober import Probe
from .wire import NO_ROUTE, NO_TAG, SOME_TAG, Kind, MapPacket
from .words import Word, WordFormat

__all__ = ["Agent", "RawPort", "Superseded"]

MOST_WAITING = 16
"""Packets that wait to be served; more are lost, as on the wire."""


class Superseded(Exception):
    """Another mapper, with a lower number, is at work."""


class RawPort(Protocol):
    """The privileged endpoint of a node's driver.

    - `node`: the node.
    - `hear(route, data)`: called for each raw packet that has come, with what is left of its route.
    """

    node: int
    hear: Callable[[int, bytes], None]

    async def send(self, route: int, data: bytes) -> None:
        """Send a raw packet; returns when it has left the card."""
        ...

    async def set_route(self, node: int, route: int | None) -> None:
        """Have messages for a node go by a route; None: by none."""
        ...


class Agent:
    """The agent of one node. It is a `Prober` for the mapper there.

    Arguments: `clock_hz` of `clock`.

    - `tag`: of the map whose routes the node has, `NO_TAG` or `SOME_TAG`.
    - `routes`: those routes.
    - `tags`: the last tag that each node has told.
    - `sent`: packets.
    """

    def __init__(
        self, port: RawPort, clock: Scheduler, config: MapperConfig, form: WordFormat, *, clock_hz: int
    ) -> None:
        self.config, self.format = config, form
        self.tag = self.sent = 0
        self.routes: dict[int, int] = {}
        self.tags: dict[int, int] = {}
        self.stopped = False
        self._port, self._clock, self._hz = port, clock, clock_hz
        self._number = 0
        self._asked: dict[int, tuple[Flag, list[MapPacket]]] = {}
        self._heard: dict[int, int] = {}
        self._waiting: deque[MapPacket] = deque()
        self._out: deque[tuple[int, MapPacket]] = deque()
        self._come = clock.flag()
        port.hear = self._hear
        clock.spawn(self._serve(), f"mapper.agent{port.node}")

    @property
    def node(self) -> int:
        """The agent's node."""
        return self._port.node

    def cycles(self, microseconds: int) -> int:
        """Cycles of a time, at least 1."""
        return max(1, microseconds * self._hz // 1_000_000)

    @property
    def master(self) -> int | None:
        """The lowest node of the other mappers that were heard within the lease."""
        since = self._clock.cycle - self.cycles(self.config.lease_us)
        return min((node for node, cycle in self._heard.items() if cycle >= since), default=None)

    @property
    def superseded(self) -> bool:
        """Whether a mapper with a lower number is at work."""
        master = self.master
        return master is not None and master < self.node

    # For the mapper.

    async def ask(self, probes: Sequence[Probe]) -> list[int | None]:
        """As `Prober.ask`. Raises Superseded if a mapper with a lower number is at work."""
        found: list[int | None] = [None] * len(probes)
        left = deque(enumerate(probes))

        async def some() -> None:
            while left and not self.superseded:
                place, probe = left.popleft()
                found[place] = await self._probe(probe)

        await self.beside([some] * min(self.config.in_flight, len(probes)))
        if self.superseded:
            raise Superseded(f"node {self.node}: node {self.master} maps")
        return found

    async def beside(self, coroutines: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Run coroutines side by side until all have ended."""
        left, ended = len(coroutines), self._clock.flag()

        async def one(coroutine: Callable[[], Awaitable[None]]) -> None:
            nonlocal left
            await coroutine()
            left -= 1
            if not left:
                ended.set()

        for coroutine in coroutines:
            self._clock.spawn(one(coroutine), f"mapper{self.node}")
        if coroutines:
            await ended.wait()

    async def _probe(self, probe: Probe) -> int | None:
        route, back = self.format.route(probe.word), self.format.route(probe.back)
        for _ in range(self.config.attempts):
            packet = MapPacket(kind=Kind.ASK, node=self.node, number=self._next(), route=back)
            answer = await self._exchange(route, packet)
            if answer is not None and self.format.at_end(answer.route):
                self.tags[answer.node] = answer.tag
                return answer.node
        return None

    async def command(self, word: Word, back: Word, packet: MapPacket) -> MapPacket | None:
        """Send a host ROUTES or RESET until it has replied. None if it never does, or another mapper is at work."""
        for _ in range(self.config.command_attempts):
            if self.superseded:
                return None
            numbered = MapPacket(
                kind=packet.kind,
                node=self.node,
                number=self._next(),
                route=self.format.route(back),
                tag=packet.tag,
                routes=packet.routes,
            )
            reply = await self._exchange(self.format.route(word), numbered)
            if reply is not None:
                return reply
        return None

    def _next(self) -> int:
        """A number that no other mapper has, in case that an answer to it goes astray."""
        self._number = (self._number + 1) % (1 << 20)
        return self.node << 20 | self._number

    async def _exchange(self, route: int, packet: MapPacket) -> MapPacket | None:
        """Send a packet and wait for its answer or the time-out."""
        flag, answers = self._asked[packet.number] = self._clock.flag(), []
        await self._send(route, packet)
        if not answers:
            self._clock.spawn(self._set_later(flag), f"mapper.timeout{self.node}")
            await flag.wait()
        del self._asked[packet.number]
        return answers[0] if answers else None

    async def _set_later(self, flag: Flag) -> None:
        await self._clock.sleep(self.cycles(self.config.timeout_us))
        flag.set()

    async def _send(self, route: int, packet: MapPacket) -> None:
        self.sent += 1
        await self._port.send(route, packet.pack())

    # For mappers on other nodes.

    def _hear(self, left: int, data: bytes) -> None:
        """Take a packet. What makes no sense is lost."""
        if self.stopped:
            return
        try:
            packet = MapPacket.unpack(data)
        except ValueError:
            return
        if packet.kind is Kind.ASK and packet.node == self.node:
            # The way led home: the question is its own answer.
            packet = MapPacket(
                kind=Kind.ANSWER, node=self.node, number=packet.number, route=left, tag=self.tag
            )
        if packet.kind in (Kind.ANSWER, Kind.REPLY):
            asked = self._asked.get(packet.number)
            if asked is not None:
                asked[1].append(packet)
                asked[0].set()
            return
        if packet.node in self.config.candidates:
            self._heard[packet.node] = self._clock.cycle
        if packet.kind is Kind.ASK:
            if len(self._out) < MOST_WAITING:
                answer = MapPacket(
                    kind=Kind.ANSWER, node=self.node, number=packet.number, route=left, tag=self.tag
                )
                self._out.append((packet.route, answer))
        elif len(self._waiting) < MOST_WAITING:
            self._waiting.append(packet)
        self._come.set()

    async def _serve(self) -> None:
        """Serve what has come, one after the other."""
        while True:
            await self._come.wait()
            self._come.clear()
            while self._out or self._waiting:
                while self._out:
                    await self._send(*self._out.popleft())
                if self._waiting:
                    await self._take(self._waiting.popleft())

    async def _take(self, packet: MapPacket) -> None:
        """Take over routes, or give all up, unless they are of a mapper that is not the master."""
        master = self.master
        mine = self.node in self.config.candidates and self.node < packet.node and bool(self._asked)
        refused = mine or (master is not None and master < packet.node)
        if not refused:
            if packet.kind is Kind.RESET:
                for node in list(self.routes):
                    await self._set(node, NO_ROUTE)
                self.tag = NO_TAG
            for node, route in packet.routes:
                await self._set(node, route)
            if packet.routes:
                self.tag = SOME_TAG
            elif packet.kind is Kind.ROUTES:
                self.tag = packet.tag
        reply = MapPacket(
            kind=Kind.REPLY, node=self.node, number=packet.number, tag=self.tag, refused=refused
        )
        await self._send(packet.route, reply)

    async def _set(self, node: int, route: int) -> None:
        if route == NO_ROUTE:
            if self.routes.pop(node, None) is not None:
                await self._port.set_route(node, None)
        elif self.routes.get(node) != route:
            self.routes[node] = route
            await self._port.set_route(node, route)
