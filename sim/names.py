"""Names that a user gives: the error for one that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .errors import UserError

__all__ = ["unknown"]


def unknown(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """The error for a `name` of this kind that there is not: the one that was probably meant, and all valid ones,
    nearest first."""
    nearest = sorted(valid, key=lambda one: -difflib.SequenceMatcher(None, name, one).ratio())
    close = difflib.get_close_matches(name, nearest, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return UserError(f"unknown {kind} {name!r}{hint}; valid {kind}s: {', '.join(nearest)}")
