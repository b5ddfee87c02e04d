"""The VL arbiters by name.

A new one is a file with a subclass of `VlArbiter`, and a line in `VL_ARBITERS`.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from ..config import ConfigError
from .base import VlArbiter
from .deficit_round_robin import DeficitRoundRobinVlArbiter
from .fcfs import FcfsVlArbiter
from .fixed_priority import FixedPriorityVlArbiter
from .round_robin import RoundRobinVlArbiter
from .two_level import TwoLevelArbiter

__all__ = ["VL_ARBITERS", "VlArbiterFactory", "make_vl_arbiter"]


class VlArbiterFactory(Protocol):
    """Makes an arbiter from the parameters that all have in common (see `VlArbiter`)."""

    def __call__(
        self, *, vls: int, control_vl: int | None = None, flit_bytes: int = 16, entries: int = 64
    ) -> VlArbiter: ...


VL_ARBITERS: dict[str, VlArbiterFactory] = {
    "round_robin": RoundRobinVlArbiter,
    "fixed_priority": FixedPriorityVlArbiter,
    "fcfs": FcfsVlArbiter,
    "fcfs_packet": partial(FcfsVlArbiter, unit="packet"),
    "deficit": DeficitRoundRobinVlArbiter,
    "table_fast": partial(TwoLevelArbiter, pointer="fast"),
    "table_slow": partial(TwoLevelArbiter, pointer="slow"),
    "table_iba": partial(TwoLevelArbiter, pointer="slow", units="iba"),
}
"""The arbiters that a configuration can name."""


def make_vl_arbiter(
    name: str, *, vls: int, control_vl: int | None = None, flit_bytes: int = 16, entries: int = 64
) -> VlArbiter:
    """The arbiter called `name`. Raises ConfigError with the valid names."""
    if name not in VL_ARBITERS:
        raise ConfigError(f"vl_arbiter = {name!r}: one of {', '.join(sorted(VL_ARBITERS))}")
    return VL_ARBITERS[name](vls=vls, control_vl=control_vl, flit_bytes=flit_bytes, entries=entries)
