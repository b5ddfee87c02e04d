"""Checks of arguments that calls share."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import ArgumentTypeError
from ..endpoint import Endpoint
from ..errors import AmCode, AmError
from ..ledger import EndpointName

__all__ = ["MOST_TAG", "TRANSLATIONS", "bad", "number", "of_kind", "words_of"]

TRANSLATIONS = 4096
"""Entries of a translation table."""
MOST_TAG = (1 << 32) - 1
"""Largest tag. The C interface has two special tags, for all senders and for none; they are not built."""


def bad(message: str) -> NoReturn:
    """Raise AM_ERR_BAD_ARG."""
    raise AmError(AmCode.AM_ERR_BAD_ARG, message)


def number(what: str, value: Any, most: int, *, least: int = 0) -> int:
    """A whole number in a range. Raises AmError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        bad(f"{what} = {value!r}: a whole number")
    found = int(value.__index__())
    if not least <= found <= most:
        bad(f"{what} = {found}: {least} to {most}")
    return found


def of_kind(what: str, value: Any, kind: type) -> None:
    """Check the type of a handle. Raises ArgumentTypeError."""
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"{what} = {value!r}: not of {kind.__name__}")


def words_of(endpoint: Endpoint, words: tuple[Any, ...], most: int) -> tuple[int, ...]:
    """The words of a message, each of 32 bits: negative ones as C's casts have them. Raises AmError."""
    if len(words) > most:
        bad(f"{endpoint}: {len(words)} words: at most {most}")
    return tuple(number("word", word, (1 << 32) - 1, least=-(1 << 31)) & 0xFFFFFFFF for word in words)


def name_of(endpoint: Endpoint, name: Any) -> EndpointName:
    """The name of an endpoint. Raises ArgumentTypeError, AmError."""
    of_kind("name", name, EndpointName)
    number("name.node", name.node, 0xFFF)
    number("name.number", name.number, 0xFFF)
    return EndpointName(int(name.node), int(name.number))
