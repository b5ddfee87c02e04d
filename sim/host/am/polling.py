"""The way in of messages: look, take out of the queue, call the handler, reply."""

from __future__ import annotations

from typing import Any

from lanikai.firmware.am.layout import Queue
from lanikai.firmware.am.wire import MessageKind, Reason
from lanikai.firmware.am.words import ENTRY_WORDS, Entry, unpack_pair

from ..memory import Buffer
from . import handling, posting
from .endpoint import ERROR_HANDLER, NO_HANDLER, REJECTED, Endpoint
from .errors import AmCode, AmError, AmStatus, opcode_of, status_of
from .ledger import EndpointName
from .token import Token

__all__ = ["poll", "poll_replies"]

_HEAD = {False: (0, 3), True: (0, 2, 3)}
"""Words that are read first: kind and source, handler and count; of a reply also whether it has come back."""


async def poll(endpoint: Endpoint) -> int:
    """Take in all messages that have come to an endpoint, replies first, and call their handlers. Returns how many.

    What a handler raises comes out of here, when its request has been answered. Raises AmError if the endpoint ends.
    """
    return await _poll(endpoint, requests=True)


async def poll_replies(endpoint: Endpoint) -> int:
    """Take in replies alone: what a thread does that waits for a free entry for its own reply.

    A handler of replies sends nothing, so this ends. So two processes that wait for each other's reply queues go on.
    """
    return await _poll(endpoint, requests=False)


async def _poll(endpoint: Endpoint, *, requests: bool) -> int:
    endpoint.check()
    look = endpoint.driver.cycles(endpoint.driver.costs.poll_ns)
    taken: int | None = None
    if endpoint.ledger.lost:
        # The order counts: what has come back stood in the queue before its send entry was free.
        taken_word, word = await endpoint.page.read_all(
            [endpoint.TAKEN, endpoint.DELIVERED], after_cycles=look
        )
        taken = unpack_pair(taken_word)[0]
    else:
        word = await endpoint.page.read(endpoint.DELIVERED, after_cycles=look)
    delivered = unpack_pair(word)
    handled = 0
    try:
        for reply in (True, False) if requests else (True,):
            while (count := endpoint.claim(delivered[reply], reply=reply)) is not None:
                handled += 1
                await _take(endpoint, count, reply=reply)
    finally:
        if endpoint.alive:
            await endpoint.tell()
    if taken is not None:
        endpoint.unanswered += endpoint.ledger.settle(taken)
    if not handled and requests:
        for to in endpoint.overdue:
            await posting.ask(endpoint, to)
    return handled


async def _take(endpoint: Endpoint, count: int, *, reply: bool) -> None:
    """Take a message that the caller has claimed."""
    entry = await _read(endpoint, count, reply=reply)
    held = entry is not None and entry.kind is not MessageKind.SHORT
    if not held:
        endpoint.consume(count, reply=reply)
    if entry is None:
        endpoint.strays += 1
        return
    await endpoint.driver.spend(endpoint.driver.costs.handle_ns)
    try:
        if entry.status == Reason.VOID:
            await _without_data(endpoint, entry, reply=reply)
        elif entry.status and reply:
            await _came_back(endpoint, entry)
        elif reply:
            await _replied(endpoint, entry)
        else:
            await _requested(endpoint, entry)
    finally:
        if held:
            endpoint.consume(count, reply=reply)


async def _read(endpoint: Endpoint, count: int, *, reply: bool) -> Entry | None:
    """A message's words, those that it has; None if they make no sense, as the process has written there."""
    at = endpoint.entry(Queue.RECEIVE_REPLY if reply else Queue.RECEIVE_REQUEST, count)
    words = [0] * ENTRY_WORDS
    head = _HEAD[reply]
    for place, word in zip(
        head, await endpoint.page.read_all([at + 4 * place for place in head]), strict=True
    ):
        words[place] = word
    try:
        entry = Entry.unpack(words)
    except ValueError:
        return None
    rest = [1, 7, *range(8, 8 + (words[3] >> 8 & 15))]
    if entry.kind is not MessageKind.SHORT:
        rest += [2, 4, 5, 6]
    for place, word in zip(
        rest, await endpoint.page.read_all([at + 4 * place for place in rest]), strict=True
    ):
        words[place] = word
    return Entry.unpack(words)


def _token(endpoint: Endpoint, entry: Entry, **fields: Any) -> Token:
    source = EndpointName(entry.node, entry.endpoint)
    return Token(
        endpoint=endpoint,
        source=source,
        tag=entry.tag,
        destination=endpoint.name,
        kind=entry.kind,
        handler=entry.handler,
        words=entry.words,
        offset=entry.offset,
        reference=entry.reference,
        **fields,
    )


async def _requested(endpoint: Endpoint, entry: Entry) -> None:
    """A request: call its handler, then see that it has a reply."""
    token = _token(endpoint, entry, is_request=True)
    handler = endpoint.handlers.get(entry.handler)
    answer: int = NO_HANDLER
    words: tuple[int, ...] = ()
    if entry.handler != NO_HANDLER and (handler is None or entry.handler == ERROR_HANDLER):
        answer, words = REJECTED, (int(AmStatus.EBADHANDLER),)
    token.active = True
    try:
        if handler is not None and answer == NO_HANDLER:
            endpoint.handled += 1
            await handling.call(handler, token, token, *await _data(endpoint, entry), *entry.words)
    finally:
        token.active = False
        if not token.replied and endpoint.alive:
            token.replied = True
            await posting.reply(token, handler=answer, words=words, drain=poll_replies)


async def _replied(endpoint: Endpoint, entry: Entry) -> None:
    """A reply: its request's credit comes home, then its handler is called."""
    name = EndpointName(entry.node, entry.endpoint)
    request = endpoint.ledger.answered(entry.reference, name, endpoint.driver.bus.cycle)
    if request is None:
        endpoint.strays += 1
        return
    if entry.handler == NO_HANDLER:
        return
    if entry.handler == REJECTED:
        token = Token(
            endpoint,
            source=endpoint.name,
            tag=endpoint.tag,
            destination=name,
            is_request=True,
            kind=request.kind,
            handler=request.handler,
            words=request.words,
            data=request.data,
            offset=request.offset,
        )
        await _undeliverable(endpoint, token, AmStatus(entry.words[0]) if entry.words else AmStatus.EBADARGS)
        return
    token = _token(endpoint, entry, is_request=False)
    handler = endpoint.handlers.get(entry.handler)
    if handler is None or entry.handler == ERROR_HANDLER:
        await _undeliverable(endpoint, token, AmStatus.EBADHANDLER)
        return
    endpoint.handled += 1
    token.active = True
    try:
        await handling.call(handler, token, token, *await _data(endpoint, entry), *entry.words)
    finally:
        token.active = False


async def _without_data(endpoint: Endpoint, entry: Entry, *, reply: bool) -> None:
    """A message has come whose data the host's bus did not take: its sender has it back, and no handler is called.

    A reply's request has its credit home all the same, and the process is told that the reply is lost.
    """
    if not reply:
        return
    name = EndpointName(entry.node, entry.endpoint)
    request = endpoint.ledger.answered(entry.reference, name, endpoint.driver.bus.cycle)
    if request is None:
        endpoint.strays += 1
        return
    token = _token(endpoint, entry, is_request=False, reason=int(Reason.HOST_BUS))
    await _undeliverable(endpoint, token, AmStatus.EHOSTBUS)


async def _came_back(endpoint: Endpoint, entry: Entry) -> None:
    """A message of the endpoint's own has come back; its entry has the destination where others have the source."""
    request = None if entry.reply else endpoint.ledger.returned(entry.reference)
    if not entry.reply and request is None:
        endpoint.strays += 1
        return
    if request is not None and request.question:
        return
    token = _token(
        endpoint,
        entry,
        is_request=not entry.reply,
        data=None if request is None else request.data,
        reason=entry.status,
    )
    token.source, token.destination = endpoint.name, token.source
    await _undeliverable(endpoint, token, status_of(entry.status))


async def _undeliverable(endpoint: Endpoint, token: Token, status: AmStatus) -> None:
    """Give a message back to the process."""
    endpoint.returned += 1
    opcode = opcode_of(token.kind, reply=not token.is_request)
    handler = endpoint.handlers.get(ERROR_HANDLER)
    if handler is None:
        raise AmError(
            AmCode.AM_ERR_NOT_SENT,
            f"{endpoint}: {opcode.name} to endpoint {token.destination.number} of node {token.destination.node} came "
            f"back: {status.name}; set handler {ERROR_HANDLER} to be called instead",
        )
    await handling.call(handler, token, status, opcode, token)


async def _data(endpoint: Endpoint, entry: Entry) -> tuple[Any, ...]:
    """Pointer and length of a message's data, as its handler is given them; none of a short one.

    Medium data stay in the staging area. Bulk data are copied from there into the segment (chun-1998 3.1).
    """
    if entry.kind is MessageKind.SHORT:
        return ()
    layout = endpoint.layout
    slot = min(entry.slot, 2 * layout.config.queue_entries - 1)
    staged = endpoint.slot(slot, min(entry.bytes, layout.slot_bytes), send=False)
    if entry.kind is MessageKind.MEDIUM:
        return staged, staged.length
    segment = endpoint.segment
    if segment is None or entry.offset + staged.length > segment.length:
        return None, 0  # the segment is another one since
    await endpoint.driver.spend(endpoint.driver.costs.copy_ns(staged.length))
    place = Buffer(
        segment.start + entry.offset,
        staged.length,
        segment.data[entry.offset : entry.offset + staged.length],
    )
    place.write(staged.read())
    return place, place.length
