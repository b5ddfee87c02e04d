"""The way from a node's manager to the master, whoever that is."""

from __future__ import annotations

from collections.abc import Callable

from .rpc import Calls, SilentError
from .wire import Answer, Kind, Status

__all__ = ["MasterLine"]

TIMES_AGAIN = 3
"""Times that a call goes again to a manager that became master by it: another one may depose it meanwhile."""


class MasterLine:
    """Calls to the master of a cluster of `nodes`. `leader` says which node is held to be the master's, `ended` whether
    the manager has ended."""

    def __init__(
        self, calls: Calls, *, nodes: int, leader: Callable[[], int], ended: Callable[[], bool]
    ) -> None:
        self._calls, self._nodes, self._leader, self._ended = calls, nodes, leader, ended

    async def call(self, kind: Kind, body: bytes) -> Answer:
        """Call the master; if it is silent, call the others in turn, from the next node on.

        A manager that is asked in the master's stead looks whether the master is alive, and else becomes master. Raises
        SilentError if no master can be reached, or if a master that is alive may have served the call already.
        """
        first = target = self._leader()
        asked: set[int] = set()
        silent: SilentError | None = None
        answer: Answer | None = None
        again = TIMES_AGAIN
        while True:
            asked.add(target)
            try:
                answer = await self._calls.call(target, kind, body)
            except SilentError as error:
                silent = error if silent is None else silent
            else:
                if answer.status is Status.LOST:
                    silent = SilentError(target) if silent is None else silent
                elif answer.status is not Status.NO_MASTER:
                    return answer
                named = answer.vote - 1
                if (named == target or answer.status is Status.LOST) and again:
                    again -= 1  # it is master since just now, or was until just now
                    continue
                if silent is not None and named == silent.node:
                    raise silent  # others reach it
                if 0 <= named < self._nodes and named not in asked:
                    target = named
                    continue
                if named < 0 and answer.status is Status.NO_MASTER:
                    break  # it has asked them all
            rest = [(first + step) % self._nodes for step in range(self._nodes)]
            rest = [node for node in rest if node not in asked]
            if self._ended() or not rest:
                break
            target = rest[0]
        if silent is not None:
            raise silent  # it may have served the call
        assert answer is not None
        return answer
