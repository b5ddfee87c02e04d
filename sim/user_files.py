"""Text and JSON files that a user gives. Marks that editors leave in them are taken; text that is ambiguous is refused.

Every fault is one line with the file's name, raised as the error class that the caller names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import UserError

__all__ = ["read_data_lines", "read_json", "read_text"]


def read_text(path: Path, what: str, error: type[Exception] = UserError) -> str:
    """The text of `path`, in UTF-8, without a byte order mark. `what` names the file's role in messages.

    Raises `error` if the file cannot be read or is no such text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as fault:
        raise error(f"{what} {str(path)!r} cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError as fault:
        raise error(f"{what} {str(path)!r} is no text in UTF-8: byte {fault.start} is wrong") from None
    except ValueError as fault:  # a name with a null character, say
        raise error(f"{what} {str(path)!r} cannot be read: {fault}") from None


def read_data_lines(path: Path, what: str, error: type[Exception] = UserError) -> Iterator[tuple[int, str]]:
    """The number (from 1) and text of every line of `path` that holds data: no comment (`#`), not empty.

    Spaces around a line are dropped. Comments may be indented and hold any letter; data is ASCII. Raises `error`.
    """
    for number, line in enumerate(read_text(path, what, error).split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not text.isascii():
            raise error(
                f"{path}:{number}: {text[:40]!r}: data is in ASCII; other letters belong in a comment (#)"
            )
        yield number, text


def read_json(path: Path, what: str, error: type[Exception] = UserError) -> Any:
    """The JSON value in `path`. Raises `error` for a file that is none, a key that an object has twice, or values
    nested too deep to read."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise error(f"{what} {str(path)!r}: key {key[:40]!r} is given twice in one object")
            found[key] = value
        return found

    try:
        return json.loads(read_text(path, what, error), object_pairs_hook=unique)
    except json.JSONDecodeError as fault:
        raise error(f"{what} {str(path)!r}: not JSON: {fault}") from None
    except RecursionError:
        raise error(f"{what} {str(path)!r}: nested too deep to be read") from None
    except ValueError as fault:
        if isinstance(fault, error):
            raise
        # A number of more digits than Python reads.
        raise error(f"{what} {str(path)!r}: {fault}") from None
