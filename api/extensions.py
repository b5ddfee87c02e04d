"""Extensions of a script or notebook: arbiters, patterns, firmware and the rest, under names of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lanikai.sim.extensions import registry

from .errors import plain

__all__ = ["register"]

T = TypeVar("T")


@plain
def register(kind: str, name: str) -> Callable[[T], T]:
    """A decorator that gives an extension a name, under which runs of this program find it.

    - `kind`: `experiments`, `vl_arbiters`, `arbiters`, `allocators`, `routing`, `topologies`, `patterns`, `firmware` or
      `host_interfaces`.
    - `name`: small letters, digits, `-` and `_`. A second extension of the same name takes the first one's place.

    docs/extending.md says what each kind is. Raises UserError for a name that is taken, and for an extension that lacks
    something.
    """
    asked = registry(kind)

    @plain
    def add(extension: T) -> T:
        asked.add(name, extension)
        return extension

    return add
