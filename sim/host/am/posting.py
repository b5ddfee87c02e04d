"""The way out of a message: credit, entry, staging area, doorbell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lanikai.firmware.am.layout import Queue
from lanikai.firmware.am.wire import MessageKind
from lanikai.firmware.am.words import Entry

from .endpoint import NO_HANDLER, Endpoint, Translation
from .errors import AmError
from .ledger import Destination, Outstanding
from .token import Token

__all__ = ["ask", "reply", "request"]

MOST_PAUSE_US = 20
"""Longest time between two looks of a process that waits."""
Drain = Callable[[Endpoint], Awaitable[int]]
"""Takes messages in while something is waited for; returns how many."""


def entry_writes(at: int, entry: Entry) -> list[tuple[int, int]]:
    """The words of an entry that its kind has, (offset, word) each: no others are read."""
    words = entry.pack()
    places = {0, 1, 3, 7, *range(8, len(words))}
    if entry.kind is not MessageKind.SHORT:
        places |= {4}
    if entry.kind is MessageKind.BULK:
        places |= {6}
    return [(at + 4 * place, words[place]) for place in sorted(places)]


async def request(
    endpoint: Endpoint,
    translation: Translation,
    *,
    handler: int,
    words: tuple[int, ...],
    kind: MessageKind = MessageKind.SHORT,
    data: bytes | None = None,
    offset: int = 0,
    drain: Drain,
) -> None:
    """Post a request once its destination has a credit and an entry is free. Meanwhile `drain` takes messages in.

    Raises AmError if the endpoint ends.
    """
    to = translation.destination
    since = endpoint.driver.bus.cycle
    while not to.credits:
        await wait(endpoint, drain, since)
    to.tag = translation.tag
    outstanding = Outstanding(to, handler, kind, words, data, offset)
    reference = endpoint.ledger.send(outstanding, endpoint.driver.bus.cycle)
    entry = Entry(
        node=to.name.node,
        endpoint=to.name.number,
        kind=kind,
        tag=translation.tag,
        handler=handler,
        bytes=len(data or b""),
        offset=offset,
        reference=reference,
        words=words,
    )
    try:
        await post(endpoint, entry, data, outstanding=outstanding, drain=drain)
    except AmError:
        endpoint.ledger.withdraw(reference)
        raise


async def reply(
    token: Token,
    *,
    handler: int,
    words: tuple[int, ...] = (),
    kind: MessageKind = MessageKind.SHORT,
    data: bytes | None = None,
    offset: int = 0,
    drain: Drain,
) -> None:
    """Post the reply to a request once an entry is free. Meanwhile `drain` takes replies in, and no requests."""
    entry = Entry(
        node=token.source.node,
        endpoint=token.source.number,
        kind=kind,
        tag=token.tag,
        handler=handler,
        reply=True,
        bytes=len(data or b""),
        offset=offset,
        reference=token.reference,
        words=words,
    )
    await post(token.endpoint, entry, data, drain=drain)


async def ask(endpoint: Endpoint, to: Destination) -> None:
    """Ask whether a destination is still there, by a request of the library's own that has no credit.

    It is asked later if no entry is free.
    """
    async with endpoint.lock:
        if to.asked or not await free(endpoint, reply=False):
            return
        question = Outstanding(to, NO_HANDLER, question=True)
        reference = endpoint.ledger.send(question, endpoint.driver.bus.cycle)
        entry = Entry(
            node=to.name.node, endpoint=to.name.number, tag=to.tag, handler=NO_HANDLER, reference=reference
        )
        await put(endpoint, entry, None, question)


async def post(
    endpoint: Endpoint,
    entry: Entry,
    data: bytes | None,
    *,
    outstanding: Outstanding | None = None,
    drain: Drain,
) -> None:
    """Post an entry once one is free."""
    since = endpoint.driver.bus.cycle
    while True:
        endpoint.check()
        async with endpoint.lock:
            if await free(endpoint, reply=entry.reply):
                await put(endpoint, entry, data, outstanding)
                return
        await wait(endpoint, drain, since)


async def free(endpoint: Endpoint, *, reply: bool) -> bool:
    """Whether an entry of a send queue is free. The page is looked at only if none was, as far as was known."""
    if not endpoint.room(reply=reply):
        endpoint.saw_taken(await endpoint.page.read(endpoint.TAKEN))
    return endpoint.room(reply=reply)


async def put(
    endpoint: Endpoint, entry: Entry, data: bytes | None, outstanding: Outstanding | None = None
) -> None:
    """Write an entry and ring, by the holder of the lock; an entry must be free."""
    costs, driver, count = endpoint.driver.costs, endpoint.driver, endpoint.posted[entry.reply]
    nanoseconds = costs.request_ns
    if outstanding is not None:
        outstanding.count = count
    if data:
        slot = endpoint.layout.slot(reply=entry.reply, count=count)
        endpoint.slot(slot, len(data), send=True).write(data)
        nanoseconds += costs.copy_ns(len(data))
    at = endpoint.entry(Queue.SEND_REPLY if entry.reply else Queue.SEND_REQUEST, count)
    await endpoint.write(entry_writes(at, entry), reply=entry.reply, after_cycles=driver.cycles(nanoseconds))


async def wait(endpoint: Endpoint, drain: Drain, since: int) -> None:
    """Take messages in; if there are none, look again after `spin_ns`.

    A process that waits looks all the time. In the simulation its looks become rarer: the next one comes after an
    eighth of the time that it has waited since cycle `since`, at most `MOST_PAUSE_US`.
    """
    endpoint.check()
    if await drain(endpoint):
        return
    driver = endpoint.driver
    if endpoint.page.resident:
        waited = driver.bus.cycle - since
        pause = min(waited // 8, driver.cycles(1000 * MOST_PAUSE_US))
        await driver.bus.sleep(max(1, pause, driver.cycles(driver.costs.spin_ns)))
    else:
        # Nothing comes while the page is in host memory: all looks until it moves are one.
        await endpoint.page.until_moved(driver.cycles(1000 * driver.costs.patience_us))
