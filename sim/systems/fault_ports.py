"""Links that fail inside a simulation: where they may be, how their faults are set, what they have counted."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.config import ConfigError
from lanikai.hdl.fault_link import FAULT_COUNTS, FaultPlace, FaultSetup
from lanikai.hdl.network import Network

from ..inside import native_api

__all__ = ["check_faults", "fault_counts", "guard_counts", "set_fault"]


def check_faults(network: Network, faults: Sequence[FaultPlace]) -> None:
    """Raise ConfigError for a place twice, or one where no link is."""
    for i, (router, port, way) in enumerate(faults):
        if (router, port, way) in faults[:i]:
            raise ConfigError(f"faults[{i}]: the link {way} of port {port} of router {router} is named twice")
        if (router, port) not in network.neighbours and (router, port) not in network.nodes:
            raise ConfigError(f"faults[{i}]: port {port} of router {router} has no link")


def set_fault(number: int, setup: FaultSetup) -> None:
    """Let the link `number` of `faults` fail so from the next cycle on."""
    native_api.signal(f"fault{number}_control").set(setup.word())


def fault_counts(number: int) -> dict[str, int]:
    """The counts (`FAULT_COUNTS`) of the link `number` of `faults`."""
    word = native_api.signal(f"fault{number}_counts").get()
    return {name: word >> field.offset & (1 << field.width) - 1 for name, field in FAULT_COUNTS}


def guard_counts() -> dict[str, int]:
    """Links that routers have begun anew, flits that they refused, and packets that they dropped. Without guards the
    first two are 0."""
    found = {}
    for name in ("begun_anew", "refused"):
        try:
            found[name] = native_api.signal(name).get()
        except KeyError:
            found[name] = 0
    return found
