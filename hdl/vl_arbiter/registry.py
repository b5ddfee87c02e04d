"""The VL arbiters by name.

A new one is a file with a subclass of `VlArbiter`, and a line in `VL_ARBITERS`.
"""

from __future__ import annotations

from ..config import ConfigError
from ..registry import Registry, class_problem
from .base import VlArbiter
from .deficit_round_robin import DeficitRoundRobinVlArbiter
from .fcfs import FcfsVlArbiter, PacketFcfsVlArbiter
from .fixed_priority import FixedPriorityVlArbiter
from .round_robin import RoundRobinVlArbiter
from .two_level import FastTableArbiter, IbaTableArbiter, SlowTableArbiter

__all__ = ["VL_ARBITERS", "make_vl_arbiter"]


VL_ARBITERS = Registry[type[VlArbiter]]("vl_arbiters", "VL arbiter", class_problem(VlArbiter, "pick")) | {
    "round_robin": RoundRobinVlArbiter,
    "fixed_priority": FixedPriorityVlArbiter,
    "fcfs": FcfsVlArbiter,
    "fcfs_packet": PacketFcfsVlArbiter,
    "deficit": DeficitRoundRobinVlArbiter,
    "table_fast": FastTableArbiter,
    "table_slow": SlowTableArbiter,
    "table_iba": IbaTableArbiter,
}
"""The arbiters that a configuration can name."""


def make_vl_arbiter(
    name: str, *, vls: int, control_vl: int | None = None, flit_bytes: int = 16, entries: int = 64
) -> VlArbiter:
    """The arbiter called `name`. Raises ConfigError with the valid names."""
    if name not in VL_ARBITERS:
        raise ConfigError(f"vl_arbiter = {name!r}: one of {', '.join(sorted(VL_ARBITERS))}")
    return VL_ARBITERS[name](vls=vls, control_vl=control_vl, flit_bytes=flit_bytes, entries=entries)
