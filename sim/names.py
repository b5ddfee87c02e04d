"""Names that a user gives: the error for one that there is not, and the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .errors import UserError

__all__ = ["hint", "likeness", "unknown"]


def unknown(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """The error for a `name` of this kind that there is not: the one that was probably meant, and all valid ones,
    nearest first."""
    nearest = sorted(valid, key=lambda one: -likeness(name, one))
    return UserError(f"unknown {kind} {name!r}{hint(name, nearest)}; valid {kind}s: {', '.join(nearest)}")


def hint(name: str, valid: Iterable[str]) -> str:
    """The words ` (did you mean ...?)`, empty if no valid name is near.

    Capital letters, and an underscore for a hyphen, are no difference.
    """
    folded = {_folded(one): one for one in valid}
    close = difflib.get_close_matches(_folded(name), folded, n=1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def likeness(name: str, one: str) -> float:
    """The likeness of two names, 0 to 1. Words behind the second one, such as its range, do not count."""
    return difflib.SequenceMatcher(None, _folded(name), _folded(one.partition(" (")[0])).ratio()


def _folded(name: str) -> str:
    return name.casefold().replace("_", "-")
