"""The registry of mutants: changes of mechanisms, with which claims do not hold (`mutants.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["MUTANTS", "Change", "mutant"]

Change = Callable[[Mapping[str, Any]], None]

MUTANTS: dict[str, Change] = {}
"""Every mutant, by name: makes its change, for a point with a spec."""


def mutant(change: Change) -> Change:
    """Register a mutant under its function's name, with spaces."""
    MUTANTS[change.__name__.replace("_", " ")] = change
    return change
