"""Calls that send: requests, and replies to them."""

from __future__ import annotations

from typing import Any

from lanikai.firmware.am.wire import MOST_WORDS, MessageKind

from ...memory import Buffer
from .. import posting
from ..driver import SegmentDriver
from ..endpoint import HANDLERS, Endpoint
from ..errors import AmCode, AmError
from ..handling import running
from ..ledger import EndpointName
from ..polling import poll, poll_replies
from ..token import Token
from .checks import bad, number, of_kind, words_of
from .translations import translation

__all__ = [
    "AM_GetDestEndpoint",
    "AM_GetMsgTag",
    "AM_GetSourceEndpoint",
    "AM_MaxLong",
    "AM_MaxMedium",
    "AM_MaxSegLength",
    "AM_MaxShort",
    "AM_Reply",
    "AM_Reply4",
    "AM_Reply8",
    "AM_ReplyI",
    "AM_ReplyXfer",
    "AM_Request",
    "AM_Request4",
    "AM_Request8",
    "AM_RequestI",
    "AM_RequestXfer",
]

Data = bytes | bytearray | memoryview | Buffer


def AM_MaxShort() -> int:
    """Most words of a message."""
    return MOST_WORDS


def AM_MaxMedium(driver: SegmentDriver) -> int:
    """Most bytes of a medium message."""
    return driver.layout.data_bytes


def AM_MaxLong(driver: SegmentDriver) -> int:
    """Most bytes of a bulk message: a packet's, as of a medium one. More are several messages."""
    return driver.layout.data_bytes


def AM_MaxSegLength(driver: SegmentDriver) -> int:
    """Most bytes of a segment."""
    return len(driver.bus.memory)


async def AM_Request(endpoint: Endpoint, index: int, handler: int, *words: int) -> None:
    """Send a short request of up to 8 words to the endpoint of a translation; its `handler` is called with them.

    It returns when the request is posted. If it has no credit, or no entry is free, it polls the endpoint until it has.
    Raises AmError; inside a handler (AM_ERR_NOT_SENT).
    """
    await _request(endpoint, index, handler, words, MessageKind.SHORT)


async def AM_Request4(endpoint: Endpoint, index: int, handler: int, a: int, b: int, c: int, d: int) -> None:
    """`AM_Request` of 4 words."""
    await _request(endpoint, index, handler, (a, b, c, d), MessageKind.SHORT)


async def AM_Request8(endpoint: Endpoint, index: int, handler: int, *words: int) -> None:
    """`AM_Request` of 8 words."""
    _exactly(endpoint, words, 8)
    await _request(endpoint, index, handler, words, MessageKind.SHORT)


async def AM_RequestI(endpoint: Endpoint, index: int, handler: int, data: Data, *words: int) -> None:
    """Send a medium request: data that go into the receiver's staging area, and words. As `AM_Request`.

    The data are copied before it returns.
    """
    await _request(endpoint, index, handler, words, MessageKind.MEDIUM, data)


async def AM_RequestXfer(
    endpoint: Endpoint, index: int, offset: int, handler: int, data: Data, *words: int
) -> None:
    """Send a bulk request: data that go to an offset of the receiver's segment, and words. As `AM_RequestI`."""
    await _request(endpoint, index, handler, words, MessageKind.BULK, data, offset)


async def AM_Reply(token: Token, handler: int, *words: int) -> None:
    """Reply to a request with a short message of up to 8 words. Only the request's handler may, and once.

    While no entry is free, it takes in replies. Raises AmError (AM_ERR_NOT_SENT) elsewhere.
    """
    await _reply(token, handler, words, MessageKind.SHORT)


async def AM_Reply4(token: Token, handler: int, a: int, b: int, c: int, d: int) -> None:
    """`AM_Reply` of 4 words."""
    await _reply(token, handler, (a, b, c, d), MessageKind.SHORT)


async def AM_Reply8(token: Token, handler: int, *words: int) -> None:
    """`AM_Reply` of 8 words."""
    of_kind("token", token, Token)
    _exactly(token.endpoint, words, 8)
    await _reply(token, handler, words, MessageKind.SHORT)


async def AM_ReplyI(token: Token, handler: int, data: Data, *words: int) -> None:
    """`AM_Reply` with data for the requester's staging area."""
    await _reply(token, handler, words, MessageKind.MEDIUM, data)


async def AM_ReplyXfer(token: Token, offset: int, handler: int, data: Data, *words: int) -> None:
    """`AM_Reply` with data for an offset of the requester's segment."""
    await _reply(token, handler, words, MessageKind.BULK, data, offset)


async def AM_GetSourceEndpoint(token: Token) -> EndpointName:
    """The sender of a message."""
    of_kind("token", token, Token)
    return token.source


async def AM_GetDestEndpoint(token: Token) -> Endpoint:
    """The endpoint that has taken a message in."""
    of_kind("token", token, Token)
    return token.endpoint


async def AM_GetMsgTag(token: Token) -> int:
    """The tag of a message's sender, which a reply to it carries."""
    of_kind("token", token, Token)
    return token.tag


async def _request(
    endpoint: Endpoint,
    index: int,
    handler: int,
    words: tuple[int, ...],
    kind: MessageKind,
    data: Data | None = None,
    offset: int = 0,
) -> None:
    found = translation(endpoint, index)
    if (token := running()) is not None:
        raise AmError(
            AmCode.AM_ERR_NOT_SENT,
            f"{endpoint}: a request from inside handler {token.handler} of {token.endpoint}: a handler sends none",
        )
    await posting.request(
        endpoint,
        found,
        handler=number("handler", handler, HANDLERS - 1, least=1),
        words=words_of(endpoint, words, MOST_WORDS),
        kind=kind,
        data=_content(endpoint, data, kind),
        offset=_place(endpoint, offset),
        drain=poll,
    )


async def _reply(
    token: Token,
    handler: int,
    words: tuple[int, ...],
    kind: MessageKind,
    data: Data | None = None,
    offset: int = 0,
) -> None:
    of_kind("token", token, Token)
    endpoint = token.endpoint
    endpoint.check()
    if not token.is_request or not token.active or token.replied:
        why = (
            "it is no request" if not token.is_request else
            "its handler has returned" if not token.active else
            "it has its reply"
        )  # fmt: skip
        raise AmError(
            AmCode.AM_ERR_NOT_SENT,
            f"{endpoint}: a reply to a message of endpoint {token.source.number} of node {token.source.node}: {why}; "
            "only a request's handler may reply, once",
        )
    arguments: dict[str, Any] = {
        "handler": number("handler", handler, HANDLERS - 1, least=1),
        "words": words_of(endpoint, words, MOST_WORDS),
        "kind": kind,
        "data": _content(endpoint, data, kind),
        "offset": _place(endpoint, offset),
    }
    token.replied = True
    await posting.reply(token, drain=poll_replies, **arguments)


def _exactly(endpoint: Endpoint, words: tuple[int, ...], count: int) -> None:
    if len(words) != count:
        bad(f"{endpoint}: {len(words)} words: {count}")


def _content(endpoint: Endpoint, data: Data | None, kind: MessageKind) -> bytes | None:
    """The data of a message. Raises AmError for more than a message has."""
    if kind is MessageKind.SHORT:
        return None
    if isinstance(data, Buffer):
        content = data.read()
    elif isinstance(data, (bytes, bytearray, memoryview)):
        content = bytes(data)
    else:
        bad(f"{endpoint}: data of type {type(data).__name__}: bytes, or a Buffer")
    most = endpoint.layout.data_bytes
    if len(content) > most:
        bad(f"{endpoint}: {len(content)} bytes of data: at most {most} in a message")
    return content


def _place(endpoint: Endpoint, offset: int) -> int:
    return number("offset", offset, (1 << 32) - 1)
