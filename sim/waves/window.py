"""The part of a run that goes into its waveforms: a window of cycles, some instances, a largest size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UserError

__all__ = ["BYTES_PER_NODE_AND_CYCLE", "CYCLES", "LIMIT_MB", "WaveWindow"]

CYCLES = 20_000
"""Cycles of a window, if nothing else is said: so many an eye can look through, and they take some MB."""
LIMIT_MB = 64
"""Largest file of a point, MB, if nothing else is said."""
BYTES_PER_NODE_AND_CYCLE = 250
"""Size of a waveform, measured. Each of four cards with PCI hosts that send all the time takes 150. Each router of a
4x4 mesh with 16 VLs at load 0.3 takes 300."""


@dataclass(frozen=True, kw_only=True)
class WaveWindow:
    """The waves of each point.

    - `first_cycle`, `cycles`: the window; with 0 `cycles` it lasts to the end.
    - `instances`: `node0`, `router2`, ...: the instances that are written of the system, beside all signals of its top;
      all if empty.
    - `limit_mb`: the file ends with the cycle in which it has this size (10^6 bytes).
    """

    first_cycle: int = 0
    cycles: int = CYCLES
    instances: Sequence[str] = ()
    limit_mb: int = LIMIT_MB

    @classmethod
    def of(cls, text: str, **values: Any) -> WaveWindow:
        """The window with the instances named in `text`, separated by commas. Raises UserError for a name of another
        form."""
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if not re.fullmatch(r"(node|router)(0|[1-9][0-9]{0,8})", name):
                raise UserError(f"--waves-of {name!r}: node0, node1, ..., router0, ..., separated by commas")
        return cls(instances=tuple(names), **values)

    def check(self, system: Any) -> None:
        """Raise UserError for an instance that `system` (a cluster or a traffic network) has not."""
        network = getattr(system, "network", None)
        if network is None:
            if self.instances:
                raise UserError(
                    f"--waves-of {self.instances[0]}: this system has no nodes and routers to choose from"
                )
            return
        for name in self.instances:
            kind, number = re.fullmatch(r"([a-z]+)(\d+)", name).groups()  # type: ignore[union-attr]
            count = len(network.nodes) if kind == "node" else network.routers
            if int(number) >= count:
                raise UserError(f"--waves-of {name}: {kind}s are {kind}0 to {kind}{count - 1}")

    def estimate_mb(self, system: Any) -> float | None:
        """The approximate size of the file of a point, MB. It is None for a window without an end, of an unknown
        size."""
        network = getattr(system, "network", None)
        if network is None or not self.cycles:
            return None
        nodes = len(self.instances) or len(network.nodes)
        return min(self.limit_mb, self.cycles * nodes * BYTES_PER_NODE_AND_CYCLE / 1e6)

    def arguments(self, top: str) -> list[str]:
        """The simulator's arguments (`native/trace.h`). `top`: the name of the top module."""
        found = ["--trace-from", str(self.first_cycle), "--trace-limit", str(self.limit_mb * 1_000_000)]
        if self.cycles:
            found += ["--trace-cycles", str(self.cycles)]
        for name in self.instances:
            for scope in scopes(name):
                found += ["--trace-of", f"{top}.{scope}"]
        return [*found, "--trace-top", top] if self.instances else found


def scopes(name: str) -> list[str]:
    """The instances below the top module that `node0` or `router2` stands for; some only in clusters or networks."""
    number = name.lstrip("noderut")
    if name.startswith("router"):
        return [f"network.router{number}"]
    return [f"{part}{number}" for part in ("node", "nic", "host", "mailbox")]
