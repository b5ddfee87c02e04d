"""Calls that wait for messages: polling, the event mask, the semaphore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..endpoint import Endpoint
from ..errors import AmCode, AmError
from ..polling import poll
from ..process import Bundle, EventMask
from .checks import of_kind

__all__ = ["AM_GetEventMask", "AM_Poll", "AM_SetEventMask", "AM_WaitSema"]

IDLE_US = 20
"""Time for which a poll looks on, if no endpoint of its bundle is resident. Nothing can come meanwhile."""


async def AM_Poll(bundle: Bundle) -> int:
    """Take in the messages that have come to a bundle's endpoints, and call their handlers. Returns how many.

    Each endpoint is first in its turn. An exception of a handler comes out of here; messages behind it wait for the
    next poll.

    If no endpoint is resident and none has a message, the poll looks on for up to 20 us, or until one moves. So a loop
    of polls is one wait.
    """
    of_kind("bundle", bundle, Bundle)
    bundle.check()
    handled = 0
    bundle.first = (bundle.first + 1) % max(1, len(bundle.endpoints))
    order = [*bundle.endpoints[bundle.first :], *bundle.endpoints[: bundle.first]]
    quiet = 0
    for endpoint in order:
        if not endpoint.alive:
            continue
        if _quiet(endpoint):
            quiet += 1
        else:
            with _unless_freed(bundle, endpoint):
                handled += await poll(endpoint)
    if quiet:
        costs, driver = bundle.process.driver.costs, bundle.process.driver
        await driver.spend(quiet * (costs.look_ns + costs.poll_ns))
        if not handled and quiet == len(order):
            deadline = driver.bus.cycle + driver.cycles(1000 * IDLE_US)
            await bundle.bell.until(lambda: not all(map(_quiet, bundle.endpoints)), deadline)
        bundle.check()
    return handled


@contextmanager
def _unless_freed(bundle: Bundle, endpoint: Endpoint) -> Iterator[None]:
    """Go on if another thread has freed the endpoint meanwhile: the bundle and its other endpoints are there."""
    try:
        yield
    except AmError as error:
        if error.code is not AmCode.AM_ERR_NOT_INIT or endpoint.alive:
            raise
        bundle.check()


def _quiet(endpoint: Endpoint) -> bool:
    """Whether nothing can have come: its page is in host memory, and has no message that is not taken."""
    paged = endpoint.page.endpoint
    return (
        endpoint.alive
        and endpoint.page.at_rest
        and not endpoint.waiting(int(paged.words[endpoint.DELIVERED // 4]))
        and not endpoint.overdue
    )


async def AM_GetEventMask(bundle: Bundle) -> EventMask:
    """The bundle's event mask."""
    of_kind("bundle", bundle, Bundle)
    bundle.check()
    return bundle.mask


async def AM_SetEventMask(bundle: Bundle, mask: EventMask) -> None:
    """Have the bundle's semaphore posted when a receive queue is no longer empty (AM_NOTEMPTY), or never.

    It is posted at once if a message is there already. Whoever sets the mask and then waits misses none.
    """
    of_kind("bundle", bundle, Bundle)
    bundle.check()
    bundle.mask = EventMask(mask)
    for endpoint in list(bundle.endpoints):
        with _unless_freed(bundle, endpoint):
            endpoint.check()
            if endpoint.mask != bundle.mask:
                endpoint.mask = bundle.mask
                await endpoint.driver.set_word(endpoint.page, endpoint.EVENT_MASK, int(bundle.mask))
            if bundle.mask and endpoint.waiting(await endpoint.page.read(endpoint.DELIVERED)):
                bundle.post()
    bundle.check()


async def AM_WaitSema(bundle: Bundle, timeout_us: int | None = None) -> bool:
    """Sleep until the bundle's semaphore is posted, and take it. Returns False if `timeout_us` are over first.

    It is a system call; a thread that was woken pays for the switch. Raises AmError if the process or the bundle ends.
    """
    of_kind("bundle", bundle, Bundle)
    bundle.check()
    driver = bundle.process.driver
    await driver.spend(driver.costs.system_call_ns)
    deadline = None if timeout_us is None else driver.bus.cycle + driver.cycles(1000 * timeout_us)
    slept = not bundle.posted
    found = await bundle.bell.until(
        lambda: bundle.posted or not bundle.alive or not bundle.process.alive, deadline
    )
    if slept:
        await driver.spend(driver.costs.wake_ns)
    bundle.check()
    if found:
        bundle.posted = False
    return found
