"""Random histories of virtual networks: processes make endpoints, send, are paged and die, in any order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lanikai.sim.host.am import amii
from lanikai.sim.host.am.errors import AmCode, AmError
from lanikai.sim.host.am.ledger import EndpointName
from lanikai.sim.host.am.process import AmProcess, Bundle, EventMask

__all__ = ["History"]

HEAR, HEARD, SILENT = 1, 2, 3


@dataclass
class Outcome:
    """The fate of each request, by its number: how often it was handled, answered, and came back."""

    sent: dict[int, Any] = field(default_factory=dict)
    handled: Counter[int] = field(default_factory=Counter)
    back: Counter[int] = field(default_factory=Counter)
    answered: Counter[int] = field(default_factory=Counter)
    lost_replies: int = 0


class History:
    """A random history on a net: `messages` requests between processes that come and go.

    - `outcome`: the fates of the requests.
    - `killed`, `freed`: processes and endpoints that ended with messages under way.
    """

    def __init__(self, net: Any, seed: int, messages: int, *, processes: int = 4, deaths: int = 3) -> None:
        self.net, self.rng = net, random.Random(seed)
        self.messages, self.processes, self.deaths = messages, processes, deaths
        self.outcome = Outcome()
        self.names: list[tuple[EndpointName, int]] = []
        self.live: list[AmProcess] = []
        self.killed = self.freed = self.number = 0
        self.stop = False
        self.endpoints: list[Any] = []

    async def run(self) -> None:
        """Let it happen. At the end all processes that live have their credits home."""
        net = self.net
        for place in range(self.processes):
            await self._open(net.drivers[place % len(net.drivers)])
        senders = [self._sender(place) for place in range(self.processes)]
        await net.world.gather(*senders, self._deaths())
        while not all(self._home(endpoint) for endpoint in self.endpoints if endpoint.alive):
            await net.world.sleep(5_000)
        self.stop = True
        await net.world.sleep(30_000)

    @staticmethod
    def _home(endpoint: Any) -> bool:
        return not any(to.waiting for to in endpoint.ledger.destinations.values())

    async def _open(self, driver: Any) -> AmProcess:
        """A process with a few endpoints, which a thread serves: by polling, or by events."""
        process = await amii.AM_Init(driver)
        for _ in range(self.rng.randrange(1, 4)):
            bundle = await amii.AM_AllocateBundle(process)
            await self._endpoint(process, bundle)
            serve = self._polls if self.rng.random() < 0.5 else self._sleeps
            self.net.world.spawn(serve(bundle), "serve")
        self.live.append(process)
        return process

    async def _endpoint(self, process: AmProcess, bundle: Bundle) -> None:
        tag = self.rng.randrange(1, 1 << 32)
        endpoint, name = await amii.AM_AllocateEndpoint(bundle, tag)
        outcome, rng = self.outcome, self.rng

        async def hear(token: Any, *arguments: Any) -> None:
            number, content = self._check(arguments)
            outcome.handled[number] += 1
            if rng.random() < 0.3:
                await amii.AM_ReplyI(token, HEARD, content[::-1] or b"nothing", number)
            else:
                await amii.AM_Reply(token, HEARD, number)

        def heard(token: Any, *arguments: Any) -> None:
            outcome.answered[arguments[-1]] += 1

        def silent(token: Any, *arguments: Any) -> None:
            outcome.handled[self._check(arguments)[0]] += 1

        def back(status: Any, opcode: Any, token: Any) -> None:
            if token.is_request:
                outcome.back[token.words[0]] += 1
                assert token.words == self._words(token.words[0])
            else:
                outcome.lost_replies += 1

        for index, handler in ((0, back), (HEAR, hear), (HEARD, heard), (SILENT, silent)):
            await amii.AM_SetHandler(endpoint, index, handler)
        await amii.AM_SetSeg(endpoint, process.allocate(512))
        self.names.append((name, tag))
        self.endpoints.append(endpoint)

    def _words(self, number: int) -> tuple[int, ...]:
        return (number, *((number * 7 + place) & 0xFFFFFFFF for place in range(number % 8)))

    def _content(self, number: int) -> bytes:
        return random.Random(number).randbytes(1 + number % 99)

    def _check(self, arguments: tuple[Any, ...]) -> tuple[int, bytes]:
        """The request's number; its words and data must be those that were sent."""
        content = b""
        if not isinstance(arguments[0], int):
            pointer, length, *arguments = arguments  # type: ignore[assignment]
            content = pointer.read(length)
            assert content == self._content(arguments[0])
        assert tuple(arguments) == self._words(arguments[0])
        return arguments[0], content

    async def _polls(self, bundle: Bundle) -> None:
        try:
            while not self.stop:
                if not await amii.AM_Poll(bundle):
                    await self.net.world.sleep(400)
        except AmError as error:
            assert error.code is AmCode.AM_ERR_NOT_INIT, error

    async def _sleeps(self, bundle: Bundle) -> None:
        """Sleep until a message comes; now and then look all the same, as a thread must that has asked for replies."""
        try:
            while not self.stop:
                await amii.AM_SetEventMask(bundle, EventMask.AM_NOTEMPTY)
                await amii.AM_WaitSema(bundle, timeout_us=2000)
                await amii.AM_SetEventMask(bundle, EventMask.AM_NOEVENTS)
                while await amii.AM_Poll(bundle):
                    pass
        except AmError as error:
            assert error.code is AmCode.AM_ERR_NOT_INIT, error

    async def _sender(self, place: int) -> None:
        """A thread that sends by any endpoint of any process of its place, until its share of the messages is sent."""
        rng = self.rng
        for _ in range(self.messages // self.processes):
            process = self.live[place]
            bundle = rng.choice(process.bundles) if process.bundles else None
            if bundle is None or not bundle.endpoints:
                await self.net.world.sleep(500)
                continue
            endpoint = rng.choice(bundle.endpoints)
            name, tag = rng.choice(self.names[-12:])
            if rng.random() < 0.03:
                tag ^= 1
            self.number += 1
            number = self.number
            try:
                index = await amii.AM_MapAny(endpoint, name, tag)
                self.outcome.sent[number] = (endpoint, name)
                await self._send(endpoint, index, number)
                await amii.AM_UnMap(endpoint, index)
            except AmError as error:
                assert error.code is AmCode.AM_ERR_NOT_INIT, error
            if rng.random() < 0.2:
                await self.net.world.sleep(rng.randrange(1, 3000))

    async def _send(self, endpoint: Any, index: int, number: int) -> None:
        handler = self.rng.choice((HEAR, HEAR, SILENT))
        words, content = self._words(number), self._content(number)
        match self.rng.randrange(4):
            case 0:
                await amii.AM_RequestI(endpoint, index, handler, content, *words)
            case 1:
                offset = self.rng.randrange(400)
                await amii.AM_RequestXfer(endpoint, index, offset, handler, content, *words)
            case _:
                await amii.AM_Request(endpoint, index, handler, *words)

    async def _deaths(self) -> None:
        """Kill processes, free endpoints, and put new ones in their places."""
        for turn in range(self.deaths):
            while self.number < self.messages * (turn + 1) // (self.deaths + 1):
                await self.net.world.sleep(self.rng.randrange(1, 4000))
            place = self.rng.randrange(self.processes)
            process = self.live[place]
            driver = process.driver
            if self.rng.random() < 0.6:
                self.killed += 1
                await driver.kill(process)
                fresh = await self._open(driver)
                self.live.remove(fresh)
                self.live[place] = fresh
            else:
                bundle = self.rng.choice(process.bundles)
                if bundle.endpoints:
                    self.freed += 1
                    await amii.AM_FreeEndpoint(bundle.endpoints[0])
                    await self._endpoint(process, bundle)

    def check(self) -> None:
        """Each request was handled once or came back once, never both; only the dead have requests without a fate."""
        outcome = self.outcome
        assert max(outcome.handled.values()) == 1 and max(outcome.back.values(), default=1) == 1
        assert not set(outcome.handled) & set(outcome.back)
        assert all(count == 1 for count in outcome.answered.values())
        assert set(outcome.answered) <= set(outcome.handled)
        gone = {endpoint.name for endpoint in self.endpoints if not endpoint.alive}
        for number, (endpoint, name) in outcome.sent.items():
            fate = outcome.handled[number] + outcome.back[number]
            if endpoint.alive and name not in gone:
                assert fate == 1, f"request {number} from {endpoint} to {name}: no fate"
        assert all(endpoint.strays == 0 for endpoint in self.endpoints)
