"""Arbiters: one file each, one registry.

A new arbiter is one file with a subclass of `Arbiter`, and one line in `ARBITERS`. `lane_round_robin` is
round robin for the output VLs of a port, all at once.
"""

from __future__ import annotations

from ..config import ConfigError
from ..registry import Registry, class_problem
from .arbiter import Arbiter
from .lane_round_robin import LaneRoundRobin
from .round_robin import RoundRobinArbiter

__all__ = ["ARBITERS", "Arbiter", "LaneRoundRobin", "RoundRobinArbiter", "arbiter_class"]

ARBITERS = Registry[type[Arbiter]]("arbiters", "arbiter", class_problem(Arbiter, "elaborate")) | {
    "round_robin": RoundRobinArbiter
}
"""The arbiters that `RouterConfig.arbiter` can name."""


def arbiter_class(name: str) -> type[Arbiter]:
    """The arbiter called `name`. Raises ConfigError with the valid names."""
    if name not in ARBITERS:
        raise ConfigError(f"RouterConfig.arbiter = {name!r}: one of {', '.join(sorted(ARBITERS))}")
    return ARBITERS[name]
