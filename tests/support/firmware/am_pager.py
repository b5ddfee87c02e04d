"""A bare segment driver: endpoints that a process or a packet wants are loaded, one at a time, in order of asking."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lanikai.firmware.am.words import RECORD_WORDS, CommandKind, EndpointRecord, NoticeKind

from support.firmware.am_cluster import AmNode
from support.firmware.am_host import Endpoint

LOOK_CYCLES = 150


class Pager:
    """The driver of a node with these endpoints. `leave_cycles`: an endpoint stays resident for so long at least."""

    def __init__(
        self, node: AmNode, endpoints: list[Endpoint], draw: random.Random, leave_cycles: int
    ) -> None:
        self.node, self.draw, self.leave_cycles = node, draw, leave_cycles
        self.endpoints = {end.number: end for end in endpoints}
        self.wanted: deque[int] = deque()
        self.used: set[int] = set()
        self.since: dict[int, int] = {}
        self.moves = 0

    async def start(self) -> None:
        """Tell the firmware of ring and endpoints, and serve for ever beside the caller."""
        await self.node.set_ring()
        for number in self.endpoints:
            await self.node.ask(CommandKind.CREATE, endpoint=number)
        self.node.world.spawn(self._serve(), f"pager[{self.node.number}]")

    @asynccontextmanager
    async def resident(self, end: Endpoint) -> AsyncIterator[None]:
        """The endpoint is resident as long as this holds."""
        while end.frame is None:
            self._want(end.number)
            await self.node.world.sleep(LOOK_CYCLES)
        self.used.add(end.number)
        try:
            yield
        finally:
            self.used.remove(end.number)

    def _want(self, number: int) -> None:
        if number not in self.wanted:
            self.wanted.append(number)

    async def _serve(self) -> None:
        while True:
            # Before each load, too: endpoints with messages to send may keep the queue from being ever empty.
            for notice in await self.node.poll_notices():
                assert notice.kind is NoticeKind.ENDPOINT_FAULT, notice
                self._want(notice.endpoint)
            if not self.wanted:
                await self.node.world.sleep(LOOK_CYCLES)
                continue
            end = self.endpoints[self.wanted[0]]
            if end.frame is None:
                frame = await self._empty()
                await self.node.load(end, frame)
                self.since[end.number] = self.node.world.cycle
                self.moves += 1
            self.wanted.popleft()

    async def _empty(self) -> int:
        """A frame without an endpoint, if need be after an unload."""
        while True:
            taken = {end.frame: end for end in self.endpoints.values() if end.frame is not None}
            free = set(range(1, self.node.layout.config.frames + 1)) - set(taken)
            if free:
                return min(free)
            now = self.node.world.cycle
            able = [
                end
                for end in taken.values()
                if end.number not in self.used and now - self.since[end.number] >= self.leave_cycles
            ]
            if able:
                victim = self.draw.choice(able)
                frame = victim.frame
                assert frame is not None
                await self.node.unload(victim)
                record = EndpointRecord.unpack(self.node.get(victim.record, RECORD_WORDS))
                if record.posted != record.taken:
                    self._want(victim.number)  # it has messages that wait
                return frame
            await self.node.world.sleep(LOOK_CYCLES)
