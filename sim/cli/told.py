"""The text of an error as a terminal shows it: one line, and a long list of valid names on lines of its own."""

from __future__ import annotations

import re
import textwrap

from ..names import likeness

__all__ = ["told"]

LONG_LIST_CHARACTERS = 80
"""A list of this length stays on the message's line: a terminal's line has as many."""
_LISTED = (
    re.compile(r"(?P<what>.*); (?P<heading>valid(?: \w+)*|built are): (?P<names>.+)"),
    re.compile(r"(?P<what>.*):(?P<heading> (?:must be )?one of) (?P<names>.+)"),
)
"""A message of the house that ends in the list of what would be right."""
_WRONG = (re.compile(r"unknown [\w ]*?'([^']*)'"), re.compile(r"'([^']*)'"))
"""The wrong name in a message: the one that is said to be unknown, or else the first in quotes."""
_COMMA = re.compile(r", (?![^(]*\))")
"""A comma between names. One within parentheses belongs to its name."""


def told(message: str, *, columns: int, wrapped: bool = False) -> list[str]:
    """The lines that tell `message`, of which only the first line counts.

    A message that ends in a long list of valid names has them below it. They stand in rows of at most `columns`
    characters, and the one nearest to the wrong name comes first. Only where it is to be `wrapped`, for a terminal,
    the message itself has several lines. They break between words, and those behind the first are indented.
    """
    line = message.partition("\n")[0]
    listed = next((match for one in _LISTED if (match := one.fullmatch(line))), None)
    if listed is None or len(listed["names"]) <= LONG_LIST_CHARACTERS:
        return _lines(line, columns if wrapped else None)
    names = _COMMA.split(listed["names"])
    found = [match[1] for pattern in _WRONG if (match := pattern.search(listed["what"]))]
    if found:
        names.sort(key=lambda one: -likeness(found[0], one))
    first = line[: listed.start("names")].rstrip(": ") + ":"
    return [*_lines(first, columns if wrapped else None), *_rows(names, columns)]


def _lines(text: str, columns: int | None) -> list[str]:
    """The text in lines of at most `columns` characters; one line if that is None. A longer word stays whole."""
    if columns is None:
        return [text]
    lines = textwrap.wrap(
        text, max(columns, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return lines or [""]


def _rows(names: list[str], columns: int) -> list[str]:
    """The names in rows, read from left to right, each column as wide as the longest name."""
    width = max(map(len, names)) + 2
    per_row = max(1, (columns - 2) // width)
    rows = [names[start : start + per_row] for start in range(0, len(names), per_row)]
    return ["  " + "".join(name.ljust(width) for name in row).rstrip() for row in rows]
