"""Which endpoint leaves its frame when another one needs it: policies, by name. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from lanikai.hdl.config import ConfigError

from .clock import ClockPolicy
from .policy import Candidate, ReplacementPolicy
from .random_choice import RandomPolicy
from .recency import LeastRecentlyUsed

__all__ = ["POLICIES", "Candidate", "ReplacementPolicy", "find_policy"]

POLICIES: Mapping[str, type[ReplacementPolicy]] = {
    "clock": ClockPolicy,
    "lru": LeastRecentlyUsed,
    "random": RandomPolicy,
}
"""The classes, by name."""


def find_policy(name: str) -> type[ReplacementPolicy]:
    """The policy `name`. Raises ConfigError with the names that there are."""
    if name not in POLICIES:
        raise ConfigError(f"unknown policy {name!r}; valid policies: {', '.join(POLICIES)}")
    return POLICIES[name]
