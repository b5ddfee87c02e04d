"""Looks at the buffers of a network's routers, at instants: which VLs hold flits, and which have no credit.

It reads signals of the routers that are there anyway (`hdl/router/router.py`, `public_signals`). It takes no simulated
time.
"""

from __future__ import annotations

from typing import Any

from lanikai.hdl.network import Network

from ...inside import native_api

__all__ = ["LOOKS", "BufferLooks"]

LOOKS = 256
"""Looks in a window, about: a part of 0.3 is then known within 0.06 (two standard errors, if looks are independent)."""
_SIGNALS = {"input": "input_occupied", "output": "output_occupied", "blocked": "output_blocked"}
"""The signal that is counted for each name: it has a bit for each port and VL."""


class BufferLooks:
    """Counts, for each port of the routers of `network` below the instance `top`, the VLs that hold flits."""

    def __init__(self, network: Network, top: str) -> None:
        self._ports, self._vls = network.router.ports, network.router.link.vls
        routers = range(network.routers)
        self._signals = {
            name: [native_api.signal(signal, f"{top}.network.router{router}") for router in routers]
            for name, signal in _SIGNALS.items()
        }
        self._counts = {name: [[0] * self._ports for _ in routers] for name in _SIGNALS}
        self._looks = 0

    def look(self) -> None:
        """Look at every port of every router once."""
        self._looks += 1
        mask = (1 << self._vls) - 1
        for name, signals in self._signals.items():
            for counts, signal in zip(self._counts[name], signals, strict=True):
                bits = signal.get()
                for port in range(self._ports if bits else 0):
                    counts[port] += (bits >> port * self._vls & mask).bit_count()

    def found(self) -> dict[str, Any]:
        """The number of `looks`, and for each of `input`, `output` and `blocked` the sums of VLs, a list a router."""
        return {"looks": self._looks, **self._counts}
