"""Calls of work queues: post, look, wait, be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ...kit.errors import RefusedError
from ..attributes import ViState
from ..completion_queue import VipCompletionQueue
from ..descriptor import VipDescriptor
from ..errors import VipError, VipReturn
from ..nic import VipNic
from ..queue import ViQueue
from ..vi import Vi
from .checks import agent_of, check_vi, deadline_of, invalid
from .ends import ends_with

__all__ = [
    "VipPostRecv",
    "VipPostSend",
    "VipRecvDone",
    "VipRecvNotify",
    "VipRecvWait",
    "VipSendDone",
    "VipSendNotify",
    "VipSendWait",
]

Called = Callable[[Any, VipNic, Vi, VipDescriptor], None]


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or a descriptor that fits no slot, or is posted already",
    VIP_ERROR_RESOURCE="the queue is full",
    VIP_ERROR="the card refuses the process' doorbell",
)
async def VipPostSend(vi: Vi, descriptor: VipDescriptor) -> None:
    """Post a descriptor to send, or of an RDMA. On a VI that is not connected it ends flushed.

    The card finds most errors of a descriptor, and ends it with them. Ends with VIP_INVALID_PARAMETER for one that does
    not fit a slot or is posted already, VIP_ERROR_RESOURCE if the queue is full.
    """
    await _post(vi, vi.send if isinstance(vi, Vi) else None, descriptor, ViState.CONNECTED)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or a descriptor that fits no slot, or is posted already",
    VIP_ERROR_RESOURCE="the queue is full",
    VIP_ERROR="the card refuses the process' doorbell",
)
async def VipPostRecv(vi: Vi, descriptor: VipDescriptor) -> None:
    """Post a descriptor to receive, in any state; in VIP_STATE_ERROR it ends flushed. Ends as `VipPostSend` does."""
    states = (ViState.IDLE, ViState.CONNECT_PENDING, ViState.CONNECTED)
    await _post(vi, vi.receive if isinstance(vi, Vi) else None, descriptor, *states)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI",
    VIP_NOT_DONE="the oldest descriptor has not ended",
    VIP_DESCRIPTOR_ERROR="it has ended with an error, or the queue is empty",
)
async def VipSendDone(vi: Vi) -> VipDescriptor | None:
    """Look once: the oldest descriptor of the queue to send, taken off, if it has ended; None (VIP_NOT_DONE) if not.

    Ends with VIP_DESCRIPTOR_ERROR for a descriptor that has ended with an error (`VipError.descriptor`; it is taken
    off), and for an empty queue.
    """
    return await _done(check_vi(vi), vi.send)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI",
    VIP_NOT_DONE="the oldest descriptor has not ended",
    VIP_DESCRIPTOR_ERROR="it has ended with an error, or the queue is empty",
)
async def VipRecvDone(vi: Vi) -> VipDescriptor | None:
    """As `VipSendDone`, of the queue to receive."""
    return await _done(check_vi(vi), vi.receive)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or a time below 0",
    VIP_DESCRIPTOR_ERROR="the descriptor has ended with an error, or the queue is empty",
    VIP_TIMEOUT="it has not ended in time",
    VIP_ERROR_RESOURCE="a completion queue tells the queue's ends, or somebody waits already",
)
async def VipSendWait(vi: Vi, timeout_ms: float | None) -> VipDescriptor:
    """Wait for the oldest descriptor of the queue to send, in a loop that holds the processor, and take it off.

    Ends as `VipSendDone` does; with VIP_TIMEOUT; with VIP_ERROR_RESOURCE if a completion queue tells the queue's ends
    (then wait for that), or if somebody waits already. A process that is to sleep waits for a completion queue: the
    card raises no interrupt for a descriptor.
    """
    return await _wait(check_vi(vi), vi.send, vi.told[0], timeout_ms)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or a time below 0",
    VIP_DESCRIPTOR_ERROR="the descriptor has ended with an error, or the queue is empty",
    VIP_TIMEOUT="it has not ended in time",
    VIP_ERROR_RESOURCE="a completion queue tells the queue's ends, or somebody waits already",
)
async def VipRecvWait(vi: Vi, timeout_ms: float | None) -> VipDescriptor:
    """As `VipSendWait`, of the queue to receive."""
    return await _wait(check_vi(vi), vi.receive, vi.told[1], timeout_ms)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or nothing that can be called",
    VIP_ERROR_RESOURCE="a completion queue tells the queue's ends, or somebody waits already",
)
async def VipSendNotify(vi: Vi, context: Any, callback: Called) -> None:
    """Have `callback(context, nic, vi, descriptor)` called, once, when the oldest descriptor to send has ended; it is
    taken off. It may be posted later than this call.

    Callbacks are called in the order of the calls, each of one descriptor. Ends with VIP_INVALID_PARAMETER, and
    VIP_ERROR_RESOURCE as `VipSendWait` does. Callbacks of a VI that is destroyed are forgotten.
    """
    _notify(check_vi(vi), vi.send, vi.told[0], context, callback)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or nothing that can be called",
    VIP_ERROR_RESOURCE="a completion queue tells the queue's ends, or somebody waits already",
)
async def VipRecvNotify(vi: Vi, context: Any, callback: Called) -> None:
    """As `VipSendNotify`, of the queue to receive."""
    _notify(check_vi(vi), vi.receive, vi.told[1], context, callback)


async def _post(vi: Vi, queue: ViQueue | None, descriptor: VipDescriptor, *states: ViState) -> None:
    check_vi(vi)
    assert queue is not None
    if not isinstance(descriptor, VipDescriptor):
        raise invalid(vi, f"{descriptor!r}: a VipDescriptor")
    if descriptor.posted:
        raise invalid(vi, "the descriptor is posted already: take it off first")
    try:
        content = descriptor.request.pack(queue.form)
    except ValueError as error:
        raise invalid(vi, str(error)) from None
    if len(queue) + queue.reserved >= queue.entries:
        raise VipError(
            VipReturn.VIP_ERROR_RESOURCE,
            f"{vi}: its queue to {'receive' if queue.receive else 'send'} is full: {queue.entries} descriptors",
        )
    descriptor.posted = True
    descriptor.begin()
    queue.reserved += 1
    try:
        await agent_of(vi.nic).spend(agent_of(vi.nic).kit.post_ns)
    finally:
        queue.reserved -= 1
    if not vi.alive or not vi.nic.alive:
        descriptor.posted = False
    check_vi(vi)
    if vi.closes or vi.state not in states:
        queue.add_ended(descriptor, CompletionStatus.FLUSHED)
        completions = vi.told[queue.receive]
        if completions is not None:
            completions.tell(queue, 1)
        return
    try:
        await queue.post(descriptor, content)
    except RefusedError as error:
        # The agent closes the channel meanwhile, and ends the descriptor; a process that is gone is told so.
        if vi.alive and vi.nic.alive and not vi.closes and vi.state in states and descriptor.posted:
            raise VipError(VipReturn.VIP_ERROR, str(error)) from None


async def _done(vi: Vi, queue: ViQueue) -> VipDescriptor | None:
    if not len(queue):
        await agent_of(vi.nic).spend(agent_of(vi.nic).kit.look_ns)
        raise VipError(
            VipReturn.VIP_DESCRIPTOR_ERROR,
            f"{vi}: its queue to {'receive' if queue.receive else 'send'} is empty",
        )
    descriptor = await queue.done()
    vi.nic.check()
    if descriptor is not None and descriptor.failed:
        raise VipError(
            VipReturn.VIP_DESCRIPTOR_ERROR,
            f"{vi}: a descriptor to {'receive' if queue.receive else 'send'} has ended with "
            f"{descriptor.errors}",
            descriptor,
        )
    return descriptor


async def _wait(
    vi: Vi, queue: ViQueue, completions: VipCompletionQueue | None, timeout_ms: float | None
) -> VipDescriptor:
    deadline = deadline_of(vi.nic, timeout_ms)
    _claim(vi, queue, completions)
    bus = agent_of(vi.nic).bus
    try:
        if deadline is not None and deadline > bus.cycle:
            bus.spawn(_alarm(vi, queue, deadline - bus.cycle), f"vipl[{bus.node}].alarm")
        while (found := await _done(vi, queue)) is None:
            if deadline is not None and bus.cycle >= deadline:
                raise VipError(
                    VipReturn.VIP_TIMEOUT,
                    f"{vi}: no descriptor to {'receive' if queue.receive else 'send'} has ended in {timeout_ms} ms",
                )
            await queue.watch.wait()
            check_vi(vi)
    finally:
        queue.waited = False
    return found


async def _alarm(vi: Vi, queue: ViQueue, cycles: int) -> None:
    await agent_of(vi.nic).bus.sleep(cycles)
    queue.watch.touch()


def _claim(vi: Vi, queue: ViQueue, completions: VipCompletionQueue | None) -> None:
    """Become the one who waits for a queue. Raises VipError."""
    kind = "receive" if queue.receive else "send"
    if completions is not None:
        raise VipError(
            VipReturn.VIP_ERROR_RESOURCE,
            f"{vi}: completion queue {completions.kit.number} tells the ends of its queue to {kind}: wait for that",
        )
    if queue.waited:
        raise VipError(VipReturn.VIP_ERROR_RESOURCE, f"{vi}: somebody waits for its queue to {kind} already")
    queue.waited = True


def _notify(
    vi: Vi, queue: ViQueue, completions: VipCompletionQueue | None, context: Any, callback: Called
) -> None:
    if not callable(callback):
        raise invalid(vi, f"{callback!r}: something that can be called")
    if not queue.handlers:
        _claim(vi, queue, completions)
        agent_of(vi.nic).bus.spawn(_call(vi, queue), f"vipl[{vi.nic.node}].notify")
    queue.handlers.append((context, callback))


async def _call(vi: Vi, queue: ViQueue) -> None:
    """Call the handlers of a queue in their order, each of one descriptor, until there are no more."""
    try:
        while queue.handlers:
            found = await _next(vi, queue)
            context, callback = queue.handlers.popleft()
            callback(context, vi.nic, vi, found)
    except VipError:
        pass  # the VI or its process is gone
    finally:
        queue.handlers.clear()
        queue.waited = False


async def _next(vi: Vi, queue: ViQueue) -> VipDescriptor:
    """The next descriptor that ends, well or not, also of those that have not been posted yet; it is taken off."""
    while True:
        check_vi(vi)
        if len(queue):
            try:
                found = await _done(vi, queue)
            except VipError as error:
                if error.descriptor is None:
                    raise
                found = error.descriptor
            if found is not None:
                return found
        await queue.watch.wait()
