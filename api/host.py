"""The host that a program of a cluster runs on: its library, simulated time, and other coroutines beside it."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from lanikai.sim.errors import UserError

if TYPE_CHECKING:
    from lanikai.firmware.ports import Flag
    from lanikai.sim.systems.cluster import Cluster

__all__ = ["Host"]


class Host:
    """One host of a cluster, as the program that runs on it sees it.

    - `node`: its number. `nodes`: how many there are.
    - `library`: the library of its interface, which has the interface's name besides: `host.gm` (docs/gm.md),
      `host.mpi` (the communicator `world`, docs/mpi.md), `host.via`, `host.am`, `host.kit`.
    - `random`: random numbers of its own, which follow from the run's seed.
    - `shared`: what the run's `prepare` returned, the same for all hosts.
    - `system`: the whole cluster inside its simulation (`lanikai.sim.systems.cluster.Cluster`).
    """

    def __init__(
        self, system: Cluster, node: int, interface: str, library: Any, number: int, shared: Any = None
    ) -> None:
        self.system, self.node, self.nodes = system, node, system.config.nodes
        self.interface, self.library = interface, library
        self.shared = shared
        self.random = random.Random(f"{system.seed}/{number}")

    def __getattr__(self, name: str) -> Any:
        """The library, by the name of the interface. Raises AttributeError for another name."""
        if name == self.__dict__.get("interface"):
            return self.library
        raise AttributeError(f"a host of interface {self.__dict__.get('interface')!r} has no {name!r}")

    @property
    def cycle(self) -> int:
        """Cycles of the card's clock since the start."""
        return self.system.clock.cycle

    @property
    def microseconds(self) -> float:
        """Simulated time since the start."""
        return self.cycle * 1e6 / self.system.config.nic.clock_hz

    async def sleep(self, microseconds: float = 0.0, *, cycles: int = 0) -> None:
        """Let simulated time pass: both of these together, at least a cycle. Raises UserError for less than none."""
        if microseconds < 0 or cycles < 0:
            raise UserError(f"sleep({microseconds:g}, cycles={cycles}): 0 or more of each")
        await self.system.clock.sleep(
            max(1, cycles + round(microseconds * self.system.config.nic.clock_hz / 1e6))
        )

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str = "") -> None:
        """Run a coroutine beside the program. An exception in it ends the run, as one of the program does."""
        self.system.clock.spawn(coroutine, name or f"beside the program of node {self.node}")

    def flag(self) -> Flag:
        """A flag for which coroutines wait: `set()`, `clear()`, `is_set()`, `await flag.wait()`. Programs of several
        hosts may share one that a function around them holds."""
        return self.system.clock.flag()

    def progress(self, fraction: float, text: str = "") -> None:
        """Tell how far the run is: `fraction` from 0 to 1."""
        self.system.progress(fraction, text)

    def __repr__(self) -> str:
        return f"<Host {self.node} of {self.nodes}, {self.interface}>"
