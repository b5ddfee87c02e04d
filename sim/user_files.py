"""Text and JSON files that a user gives. Marks that editors leave in them are taken; text that is ambiguous is refused.

Every fault is one line with the file's name and, where it stands in one, the line's number. It is raised as the error
class that the caller names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .errors import UserError
from .json_places import JsonPath, twice, where

__all__ = ["at_line", "quoted", "read_data_lines", "read_json", "read_model", "read_text", "whole"]

Model = TypeVar("Model", bound=BaseModel)
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_ECHO_CHARACTERS = 40


def read_text(path: Path, what: str, error: type[Exception] = UserError) -> str:
    """The text of `path`, in UTF-8, without a byte order mark. `what` names the file's role in messages.

    Raises `error` if the file cannot be read or is no such text.
    """
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise error(f"{what} {str(path)!r} cannot be read: {fault.strerror}") from None
    except ValueError as fault:  # a name with a null character, say
        raise error(f"{what} {str(path)!r} cannot be read: {fault}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content[: fault.start].count(b"\n") + 1
        raise error(
            f"{what} {str(path)!r} is no text in UTF-8: byte {fault.start}, in line {line}, is wrong"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_data_lines(path: Path, what: str, error: type[Exception] = UserError) -> Iterator[tuple[int, str]]:
    """The number (from 1) and text of every line of `path` that holds data, without comment and spaces at its ends.

    A comment is all from a `#` on that begins a line or follows a space. Comments hold any letter; data is ASCII.
    Raises `error`.
    """
    for number, line in enumerate(read_text(path, what, error).split("\n"), 1):
        text = _COMMENT.sub("", line).strip()
        if not text:
            continue
        if not text.isascii():
            raise error(
                f"{path}:{number}: {text[:_ECHO_CHARACTERS]!r}: data is in ASCII; other letters belong in a comment (#)"
            )
        yield number, text


def at_line(path: Path, line: int, found: str, right: str, error: type[Exception] = UserError) -> Exception:
    """The error for a fault in a line of a file: what was `found` there, and what would be `right`."""
    return error(f"{path}:{line}: {found}: {right}")


def quoted(text: str) -> str:
    """A text of the user's in quotes, cut to the length that a message may repeat."""
    return repr(text if len(text) <= _ECHO_CHARACTERS else text[: _ECHO_CHARACTERS - 1] + "…")


def whole(text: str, low: int, high: int) -> int | None:
    """The whole number in `text`, in decimal digits, if it is from `low` to `high`; else None."""
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        return None
    value = int(text)
    return value if low <= value <= high else None


def read_json(path: Path, what: str, error: type[Exception] = UserError) -> Any:
    """The JSON value in `path`. Raises `error` for a file that is none, a key that an object has twice, or values
    nested too deep to read."""
    return _json(read_text(path, what, error), path, what, error)


def _json(text: str, path: Path, what: str, error: type[Exception]) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key, line = twice(text)
            raise error(f"{path}:{line}: key {quoted(key)} is given twice in one object: give it once")
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as fault:
        raise error(f"{what} {str(path)!r}: not JSON: {fault}") from None
    except RecursionError:
        raise error(f"{what} {str(path)!r}: nested too deep to be read") from None
    except ValueError as fault:
        if isinstance(fault, error):
            raise
        # A number of more digits than Python reads.
        raise error(f"{what} {str(path)!r}: {fault}") from None


def read_model(
    path: Path, what: str, model: type[Model], error: type[Exception] = UserError
) -> tuple[Model, JsonLines]:
    """The JSON object in `path` as `model`, and the lines of its parts. Raises `error`, which names the line of the
    part that is wrong."""
    text = read_text(path, what, error)
    value = _json(text, path, what, error)
    lines = JsonLines(text)
    try:
        return model.model_validate(value), lines
    except ValidationError as fault:
        first = fault.errors()[0]
    place: JsonPath = first["loc"]
    if first["type"] == "extra_forbidden":
        valid = [name for name, one in model.model_fields.items() if not one.alias]
        nearest = sorted(valid, key=lambda one: -SequenceMatcher(None, str(place[-1]), one).ratio())
        found = f"unknown key {quoted(str(place[-1]))}; valid keys"
        raise at_line(path, lines.of(place), found, ", ".join(nearest), error) from None
    if not place:
        raise at_line(path, 1, _brief(value), "an object, { ... }", error) from None
    right = first["msg"].removeprefix("Value error, ").replace("Input should be ", "must be ", 1)
    if first["type"] == "missing" and isinstance(last := place[-1], int):  # an entry of a tuple
        place, right = place[:-1], f"must have at least {last + 1} values"
    name = f"{place[0]}" + "".join(f"[{step}]" for step in place[1:])
    found = f"{name} = {_brief(first['input'])}"
    raise at_line(path, lines.of(place), found, right, error) from None


def _brief(value: Any) -> str:
    """A value of a JSON file as a message repeats it."""
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, default=str)
    return text if len(text) <= _ECHO_CHARACTERS else text[: _ECHO_CHARACTERS - 1] + "…"


class JsonLines:
    """The lines of the parts of a JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, path: JsonPath) -> int:
        """The number of the line in which the value at `path` (keys and positions) begins, or the nearest part around
        it that there is."""
        return where(self._text, path)
