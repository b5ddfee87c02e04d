"""Processes with endpoints for tests of virtual networks, on whatever drivers a net has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lanikai.sim.host.am.amii import (
    AM_AllocateBundle,
    AM_AllocateEndpoint,
    AM_Init,
    AM_Map,
    AM_Poll,
    AM_Reply,
    AM_Request,
    AM_SetHandler,
)
from lanikai.sim.host.am.driver import SegmentDriver
from lanikai.sim.host.am.endpoint import Endpoint
from lanikai.sim.host.am.errors import AmCode, AmError
from lanikai.sim.host.am.process import AmProcess, Bundle

ECHO, ANSWER = 1, 2
PAUSE_CYCLES = 200
"""Between two polls that find nothing: a process that does something else meanwhile."""


@dataclass
class Party:
    """A process with an endpoint. `heard`: requests. `answers`: replies. `back`: messages that came back."""

    process: AmProcess
    bundle: Bundle
    endpoint: Endpoint
    heard: list[Any] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    back: list[Any] = field(default_factory=list)

    @classmethod
    async def open(cls, driver: SegmentDriver, tag: int = 7, process: AmProcess | None = None) -> Party:
        """A process of a node, or a further endpoint of `process`, that answers requests to ECHO with their words."""
        process = await AM_Init(driver) if process is None else process
        bundle = await AM_AllocateBundle(process)
        endpoint, _ = await AM_AllocateEndpoint(bundle, tag)
        party = cls(process, bundle, endpoint)

        async def echo(token: Any, *words: int) -> None:
            party.heard.append(words)
            await AM_Reply(token, ANSWER, *words)

        def answer(token: Any, *words: int) -> None:
            party.answers.append(words)

        def returned(status: Any, opcode: Any, token: Any) -> None:
            party.back.append((status, opcode, token))

        for index, handler in ((0, returned), (ECHO, echo), (ANSWER, answer)):
            await AM_SetHandler(endpoint, index, handler)
        return party

    async def map(self, other: Party, index: int = 0, tag: int | None = None) -> None:
        """Let an index lead to another party."""
        await AM_Map(self.endpoint, index, other.endpoint.name, other.endpoint.tag if tag is None else tag)

    async def send(self, *words: int, index: int = 0, handler: int = ECHO) -> None:
        """A short request."""
        await AM_Request(self.endpoint, index, handler, *words)

    async def until(self, look: Any) -> None:
        """Poll until `look` is true."""
        while not look():
            if not await AM_Poll(self.bundle):
                await self.process.driver.bus.sleep(PAUSE_CYCLES)

    @property
    def credits_home(self) -> bool:
        """Whether no request waits for an answer."""
        return not any(to.waiting for to in self.endpoint.ledger.destinations.values())


async def serve(party: Party) -> None:
    """Poll until the process or its bundle ends."""
    try:
        while True:
            if not await AM_Poll(party.bundle):
                await party.process.driver.bus.sleep(PAUSE_CYCLES)
    except AmError as error:
        assert error.code is AmCode.AM_ERR_NOT_INIT, error


async def pair(net: Any, *, serves: bool = True) -> tuple[Party, Party]:
    """Parties on nodes 0 and 1, each with the other at index 0; the second one polls by itself."""
    a, b = [await Party.open(driver, tag=10 + driver.node) for driver in net.drivers[:2]]
    await a.map(b)
    await b.map(a)
    if serves:
        net.world.spawn(serve(b), "serve")
    return a, b


async def code_of(call: Any, says: str | None = None) -> AmCode:
    """The code with which a call ends; its line, without the code, must be `says`."""
    try:
        await call
    except AmError as error:
        line = str(error)
        assert line.startswith(f"{error.code.name}: ") and "\n" not in line
        assert says is None or says in line, line
        return error.code
    assert says is None, "the call returned"
    return AmCode.AM_OK


def left(net: Any) -> list[Any]:
    """All that each driver has given away: equal before and after, unless something leaked."""
    return [
        {
            "bytes": driver.pages.free_bytes,
            "endpoints": sorted(driver.endpoints),
            "numbers": len(driver._numbers),
            "frames": [one is None for one in driver.pager.frames.values()],
            "queue": len(driver.pager.queue),
            "pinned": driver.pager.pinned,
            "processes": len(driver.processes),
            "wakers": len(driver._wakers),
        }
        for driver in net.drivers
    ]


def run(net: Any, test: Any, *, limit: int = 4_000_000, leaks: bool = True) -> Any:
    """Run a test on a net. Afterwards nothing may be left, when all processes have ended."""
    before = left(net)

    async def main() -> Any:
        found = await test()
        if leaks:
            for driver in net.drivers:
                for process in list(driver.processes):
                    await driver.kill(process)
            await net.world.sleep(20_000)
        return found

    found = net.run(main(), limit)
    if leaks:
        assert left(net) == before
    return found
