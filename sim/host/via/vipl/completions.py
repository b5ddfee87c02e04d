"""Calls of completion queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanikai.hdl.nic.owners.completion_layout import INDEX_BITS

from ...kit.errors import DeadQueueError
from ..completion_queue import VipCompletionQueue
from ..errors import VipError, VipReturn
from ..nic import VipNic
from ..vi import Vi
from .checks import agent_of, check_queue, deadline_of, in_kernel, invalid
from .ends import ends_with

__all__ = ["VipCQDone", "VipCQNotify", "VipCQWait", "VipCreateCQ", "VipDestroyCQ", "VipResizeCQ"]

MOST_ENTRIES = 1 << (INDEX_BITS - 1)


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, or entries that there cannot be",
    VIP_ERROR_RESOURCE="card or host have no more, or the process has as many as it may",
)
async def VipCreateCQ(nic: VipNic, entries: int) -> VipCompletionQueue:
    """A completion queue of at least `entries`: a power of two. Ends with VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE."""
    async with in_kernel(nic):
        return await agent_of(nic).create_queue(nic, _rounded(nic, entries))


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a completion queue of the process",
    VIP_ERROR_RESOURCE="a VI is told in it",
)
async def VipDestroyCQ(queue: VipCompletionQueue) -> None:
    """Destroy it. Ends with VIP_ERROR_RESOURCE while a VI is told in it."""
    check_queue(queue)
    async with in_kernel(queue.nic):
        check_queue(queue)
        if queue.members:
            raise VipError(
                VipReturn.VIP_ERROR_RESOURCE,
                f"{queue.nic}: completion queue {queue.kit.number} tells the ends of {len(queue.members)} work queues",
            )
        await agent_of(queue.nic).destroy_queue(queue)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a completion queue of the process, or entries that there cannot be",
    VIP_ERROR_RESOURCE="the host has no memory for it",
)
async def VipResizeCQ(queue: VipCompletionQueue, entries: int) -> None:
    """Give it a ring of at least `entries`. No end is lost. Ends with VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE."""
    check_queue(queue)
    async with in_kernel(queue.nic):
        check_queue(queue)
        await agent_of(queue.nic).resize_queue(queue, _rounded(queue.nic, entries))


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a completion queue of the process",
    VIP_NOT_DONE="nothing has ended",
    VIP_ERROR_RESOURCE="the bus has refused its ring",
)
async def VipCQDone(queue: VipCompletionQueue) -> tuple[Vi, bool] | None:
    """Look once: a VI of which a descriptor has ended, and whether it is one to receive; None (VIP_NOT_DONE) for none.

    VipSendDone or VipRecvDone of that VI then takes the descriptor off.

    Ends with VIP_ERROR_RESOURCE if the bus has refused the queue's ring: VipResizeCQ makes it anew.
    """
    check_queue(queue)
    try:
        found = await queue.done()
    except DeadQueueError as error:
        raise VipError(VipReturn.VIP_ERROR_RESOURCE, str(error)) from None
    check_queue(queue)
    return None if found is None else (agent_of(queue.nic).vis[found.channel], found.receive)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a completion queue of the process, or a time below 0",
    VIP_TIMEOUT="nothing has ended in time",
    VIP_ERROR_RESOURCE="somebody waits already, or the bus has refused its ring",
)
async def VipCQWait(queue: VipCompletionQueue, timeout_ms: float | None) -> tuple[Vi, bool]:
    """As `VipCQDone`, but it sleeps in the kernel until there is one: the card's interrupt wakes it.

    Ends with VIP_TIMEOUT, too, and with VIP_ERROR_RESOURCE if somebody waits already.
    """
    check_queue(queue)
    deadline = deadline_of(queue.nic, timeout_ms)
    _claim(queue)
    bus = agent_of(queue.nic).bus
    try:
        if deadline is not None and deadline > bus.cycle:
            bus.spawn(_alarm(queue, deadline - bus.cycle), f"vipl[{bus.node}].alarm")
        found = await _next(queue, deadline)
    finally:
        queue.waited = False
    if found is None:
        raise VipError(
            VipReturn.VIP_TIMEOUT,
            f"{queue.nic}: completion queue {queue.kit.number} has told nothing in {timeout_ms} ms",
        )
    return found


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a completion queue of the process, or nothing that can be called",
    VIP_ERROR_RESOURCE="somebody waits already",
)
async def VipCQNotify(
    queue: VipCompletionQueue, context: Any, callback: Callable[[Any, VipNic, Vi, bool], None]
) -> None:
    """Have `callback(context, nic, vi, receives)` called, once, when the queue tells an end.

    Callbacks are called in the order of the calls, each of one end. Ends with VIP_INVALID_PARAMETER, and
    VIP_ERROR_RESOURCE as `VipCQWait` does. Callbacks of a queue that is destroyed, or dead, are forgotten.
    """
    check_queue(queue)
    if not callable(callback):
        raise invalid(queue.nic, f"{callback!r}: something that can be called")
    if not queue.handlers:
        _claim(queue)
        agent_of(queue.nic).bus.spawn(_call(queue), f"vipl[{queue.nic.node}].notify")
    queue.handlers.append((context, callback))


async def _call(queue: VipCompletionQueue) -> None:
    """Call the handlers of a queue in their order, each of one end, until there are no more."""
    try:
        while queue.handlers:
            found = await _next(queue, None)
            assert found is not None
            context, callback = queue.handlers.popleft()
            callback(context, queue.nic, *found)
    except VipError:
        pass  # the queue or its process is gone
    finally:
        queue.handlers.clear()
        queue.waited = False


async def _next(queue: VipCompletionQueue, deadline: int | None) -> tuple[Vi, bool] | None:
    """Sleep until the queue tells an end; None if cycle `deadline` has come first."""
    bus = agent_of(queue.nic).bus
    while (found := await VipCQDone(queue)) is None:
        if deadline is not None and bus.cycle >= deadline:
            return None
        if not queue.told:
            await queue.kit.sleep()
    return found


async def _alarm(queue: VipCompletionQueue, cycles: int) -> None:
    await agent_of(queue.nic).bus.sleep(cycles)
    queue.kit.wake()


def _claim(queue: VipCompletionQueue) -> None:
    if queue.waited:
        raise VipError(
            VipReturn.VIP_ERROR_RESOURCE,
            f"{queue.nic}: somebody waits for completion queue {queue.kit.number} already",
        )
    queue.waited = True


def _rounded(nic: VipNic, entries: int) -> int:
    """The power of two from `entries` on that a ring can have. Raises VipError."""
    least = max(2, agent_of(nic).nic.completion_batch)
    if not isinstance(entries, int) or not 0 < entries <= MOST_ENTRIES:
        raise invalid(nic, f"a completion queue of {entries!r} entries: 1 to {MOST_ENTRIES}")
    return max(least, 1 << (entries - 1).bit_length())
