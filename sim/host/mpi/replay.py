"""The trace of a rank played again: its calls with their lengths, peers and tags, and its computing between them.

The computing between two calls is the time from the one's end to the other's start, times a scale: the trace's machine
is not the one that is simulated. Messages hold zeroes; their content changes no time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .comm.intracomm import Intracomm
from .data.buffers import IN_PLACE
from .trace import Call, Trace

__all__ = ["LONGEST_COMPUTING_US", "Replayed", "replay"]

LONGEST_COMPUTING_US = 30_000
"""Longest computing. More is cut: the program's work between its calls when it starts (reading its input), or the time
where calls of the trace have been left out."""


@dataclass(frozen=True)
class Replayed:
    """`cycles` from the first call to the last one's end; `call_cycles` of it inside calls; `messages` sent."""

    cycles: int
    call_cycles: int
    messages: int


async def replay(
    world: Intracomm, trace: Trace, compute_scale: float, played: Callable[[], None] = lambda: None
) -> Replayed:
    """Play `trace` as `world`'s rank, which it must be; `played` is called after each call."""
    assert (world.rank, world.size) == (trace.rank, trace.size)
    transport = world.process.transport
    longest = max((call.length for call in trace.calls), default=0)
    buffer = np.zeros(longest, np.uint8)
    began = transport.cycle
    inside = 0
    before: Call | None = None
    for call in trace.calls:
        if before is not None:
            computing_us = min(call.start_us - before.end_us, LONGEST_COMPUTING_US) * compute_scale
            await transport.spend(round(computing_us * 1000))
        before = call
        start = transport.cycle
        await _call(world, call, buffer[: call.length])
        inside += transport.cycle - start
        played()
    sent = sum(call.name == "MPI_Send" for call in trace.calls)
    return Replayed(transport.cycle - began, inside, sent)


async def _call(world: Intracomm, call: Call, buffer: np.ndarray) -> None:  # type: ignore[type-arg]
    match call.name:
        case "MPI_Send":
            await world.Send(buffer, call.peer, call.tag)
        case "MPI_Recv":
            await world.Recv(buffer, call.peer, call.tag)
        case "MPI_Barrier":
            await world.Barrier()
        case "MPI_Bcast":
            await world.Bcast(buffer, call.peer)
        case "MPI_Allreduce":
            await world.Allreduce(IN_PLACE, buffer)
        case _:
            pass  # Init, Finalize, Comm_size and Comm_rank send nothing
