"""The set-up port of a network's nodes: words written and read, one a cycle, and the words of its routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from lanikai.hdl.network import Network
from lanikai.hdl.router.routing import routing_class
from lanikai.hdl.traffic.ports import ALL_NODES, route_address

from ..inside import native_api
from ..inside.clock import Clock

__all__ = ["SetupPort", "route_words"]

_WORD = (1 << 32) - 1


class SetupPort:
    """The top module's `request`, and with `response` also that. The main loop makes the accesses: Python wakes once
    for all of them."""

    def __init__(self, clock: Clock, *, response: bool) -> None:
        self._clock = clock
        self._request = native_api.signal("request")
        self._response = native_api.signal("response") if response else None

    async def write(self, requests: Sequence[int]) -> None:
        """Write words; the last one has been taken when this returns."""
        await self._play(requests, 0)
        self._request.set(0)
        await self._clock.sleep(2)

    async def read(self, requests: Sequence[int], *, more_cycles: int) -> list[int]:
        """The answers, which come up to `more_cycles` after the last request."""
        return await self._play(requests, more_cycles)

    async def _play(self, requests: Sequence[int], more_cycles: int) -> list[int]:
        turns = len(requests) + more_cycles
        if not turns:
            return []
        words, answers = np.array(requests, np.uint64), np.zeros(turns, np.uint64)
        answered = np.zeros(1, np.uint64)
        native_api.play(self._request, self._response, words, turns=turns, answers=answers, answered=answered)
        await self._clock.sleep(turns)
        return [int(word) for word in answers[: int(answered[0])].tolist()]


def route_words(network: Network) -> Iterator[tuple[int, int, int]]:
    """Node, or `ALL_NODES`, address and word of each write.

    Source routes differ from node to node. Where routers go by the destination, one write serves all nodes: so a
    network of 1024 has 2048 writes and not two million.
    """
    nodes = range(len(network.nodes))
    if not routing_class(network.router).strips:
        for destination in nodes:
            yield from _row(ALL_NODES, destination, network.source_route(0, destination))
        return
    for node in nodes:
        for destination in nodes:
            if destination != node:
                yield from _row(node, destination, network.source_route(node, destination))


def _row(node: int, destination: int, route: int) -> Iterator[tuple[int, int, int]]:
    address = route_address(destination)
    yield node, address, route & _WORD
    yield node, address + 4, route >> 32
