"""Lines of a JSON text: where a value begins, and where a key is given twice. The text must be valid JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]

__all__ = ["JsonPath", "twice", "where"]

JsonPath = Sequence[str | int]
"""Keys and positions that lead from the outermost value to one inside."""
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def where(text: str, path: JsonPath) -> int:
    """The number (from 1) of the line in which the value at `path` begins, or the nearest value around it. A key's own
    line counts for its value."""
    at = place = _skip(text, 0)
    for step in path:
        for name, begins, value in _parts(text, place):
            if name == step:
                at, place = begins, value
                break
        else:
            break
    return _line(text, at)


def twice(text: str) -> tuple[str, int]:
    """The first key that an object of the text has for the second time, and the number of its line.

    Raises ValueError if there is none.
    """
    found = _twice(text, _skip(text, 0))
    if found is None:
        raise ValueError("no key is given twice")
    return found[0], _line(text, found[1])


def _twice(text: str, place: int) -> tuple[str, int] | None:
    seen: set[str | int] = set()
    for name, begins, value in _parts(text, place):
        if name in seen:
            return str(name), begins
        seen.add(name)
        if found := _twice(text, value):
            return found
    return None


def _parts(text: str, place: int) -> Iterator[tuple[str | int, int, int]]:
    """Each part of the object or array at `place`: its key or position, where it begins (with its key), and its
    value."""
    kind = text[place : place + 1]
    if kind not in ("{", "["):
        return
    at = _skip(text, place + 1)
    number = 0
    while text[at] not in "}]":
        begins, name = at, number
        key: str | int = name
        if kind == "{":
            key, at = scanstring(text, at + 1, False)
            at = _skip(text, _skip(text, at) + 1)
        yield key, begins, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        number += 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
