"""An experiment with a mutant in it, and the claims that it makes false."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lanikai.sim.experiments.framework.base import Point, Size

__all__ = ["Broken", "place"]


def _all(point: Point) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Broken:
    """An experiment with a `mutant` in it.

    - `settings`: of its parameters.
    - `keep`: the points of it that are run.
    - `claims`: those that do not hold.
    - `outside`: points outside of their tolerance.
    - `size`: of the points. `spec`: changes of their specs, which make them shorter.
    """

    experiment: str
    mutant: str
    claims: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    keep: Callable[[Point], bool] = _all
    outside: bool = False
    size: Size = "quick"
    spec: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """For the names of tests."""
        return f"{self.experiment}: {self.mutant}"


def place(key: str, *values: Any) -> Callable[[Point], bool]:
    """Points where a parameter has one of these values."""
    return lambda point: point.parameters[key] in values
