"""The set-up port of a network's nodes in its simulation: words written and read, one a cycle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..inside import native_api
from ..inside.clock import Clock

__all__ = ["SetupPort"]


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
