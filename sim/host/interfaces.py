"""The host interfaces, by name: a new one is a file of this package and a line here."""

from __future__ import annotations

from lanikai.hdl.registry import Registry, class_problem

from ..errors import UserError
from .am.interface import AmInterface
from .gm.interface import GmInterface
from .interface import HostInterface
from .kit.interface import KitInterface
from .mpi.interface import MpiInterface
from .via.interface import ViaInterface

__all__ = ["INTERFACES", "find_interface"]

INTERFACES = Registry[type[HostInterface]](
    "host_interfaces", "host interface", class_problem(HostInterface)
) | {
    "am": AmInterface,
    "gm": GmInterface,
    "kit": KitInterface,
    "mpi": MpiInterface,
    "via": ViaInterface,
}
"""The classes, by name."""


def find_interface(name: str) -> type[HostInterface]:
    """The interface `name`. Raises UserError with the names that there are."""
    if name not in INTERFACES:
        raise UserError(f"unknown host interface {name!r}; valid interfaces: {', '.join(INTERFACES)}")
    return INTERFACES[name]
