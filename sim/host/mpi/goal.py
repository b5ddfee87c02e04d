"""A rank of a GOAL schedule, played on a communicator: messages hold data that their receiver checks.

A rank is one thread: it starts all messages that may start, in the order of the schedule, then computes, and waits for
messages when nothing else can start. While it computes, messages move no further than the card takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...inputs.goal import Operation
from .comm.intracomm import Intracomm
from .data.request import Request
from .errors import MpiError

__all__ = ["GoalDataError", "GoalRank", "play_goal"]


class GoalDataError(MpiError):
    """A message of a schedule did not arrive as it was sent."""


@dataclass(frozen=True)
class GoalRank:
    """A rank that has played: its `cycles`, `computing_cycles` of them, messages and bytes that it received."""

    cycles: int
    computing_cycles: int
    messages: int
    received_bytes: int


def _content(source: int, target: int, tag: int, length: int) -> np.ndarray[Any, Any]:
    """The bytes of a message, which ends, tag and length decide."""
    return ((np.arange(length) * 31 + source * 7 + target * 13 + tag * 17) % 251).astype(np.uint8)


async def play_goal(
    world: Intracomm,
    operations: Sequence[Operation],
    *,
    calc_scale: float = 1.0,
    done: Callable[[], None] = lambda: None,
) -> GoalRank:
    """Play the operations of `world`'s rank; `done` is called after each. Raises GoalDataError."""
    transport = world.process.transport
    began = transport.cycle
    waiting = set(range(len(operations)))
    started: set[int] = set()
    ended: set[int] = set()
    active: dict[int, tuple[Request, np.ndarray[Any, Any]]] = {}
    computing = received = 0

    def may_start(place: int) -> bool:
        one = operations[place]
        return ended.issuperset(one.requires) and started.issuperset(one.irequires)

    def end(place: int) -> None:
        nonlocal received
        ended.add(place)
        one = operations[place]
        if one.kind == "recv":
            _, buffer = active[place]
            if not np.array_equal(buffer, _content(one.peer, world.rank, one.tag, one.amount)):
                raise GoalDataError(
                    f"the message of {one.amount} bytes from rank {one.peer}, tag {one.tag}, is not as it was sent"
                )
            received += one.amount
        active.pop(place, None)
        done()

    while waiting or active:
        ready = sorted(place for place in waiting if may_start(place))
        messages = [place for place in ready if operations[place].kind != "calc"]
        if messages or ready:
            place = (messages or ready)[0]
            one = operations[place]
            waiting.remove(place)
            started.add(place)
            if one.kind == "calc":
                before = transport.cycle
                await transport.spend(round(one.amount * calc_scale))
                computing += transport.cycle - before
                end(place)
            elif one.kind == "send":
                buffer = _content(world.rank, one.peer, one.tag, one.amount)
                active[place] = await world.Isend(buffer, one.peer, one.tag), buffer
            else:
                buffer = np.zeros(one.amount, np.uint8)
                active[place] = await world.Irecv(buffer, one.peer, one.tag), buffer
        else:
            places = list(active)
            which = await Request.Waitany([active[place][0] for place in places])
            end(places[which])
    count = sum(one.kind == "recv" for one in operations)
    return GoalRank(transport.cycle - began, computing, count, received)
