"""Components whose interfaces are watched: a simulation of them stops at the first rule that is broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, TypeVar

from amaranth import Module
from amaranth.lib import wiring

from . import MONITORS

__all__ = ["watched"]

Parameters = Callable[[str], Mapping[str, Any] | None]
C = TypeVar("C", bound=wiring.Component)


def watched(component: C, parameters: Parameters, *, counts: bool = True) -> C:
    """The component, with a monitor at each of its interfaces that has one in `MONITORS`.

    `parameters` gives those of the monitor at an interface, named as in Verilog (`rx__0`), which its signature does not
    tell. None leaves the interface alone. The first broken rule stops a simulation, in Amaranth or in Verilog with
    assertions. The message names the interface, the rule and, unless `counts` is false, the cycle.

    The component itself is changed, before it is elaborated, and has the same ports and names inside as without.
    """
    elaborate = component.elaborate

    def with_monitors(platform: object) -> Module:
        m = elaborate(platform)
        for name, interface, signature in _interfaces(component):
            told = parameters(name)
            if told is not None:
                m.submodules[f"monitor_{name}"] = monitor = MONITORS[type(signature)].of(signature, **told)
                monitor.watch(m, interface)
                monitor.stop(m, name, counts=counts)
        return m

    vars(component)["elaborate"] = with_monitors
    return component


def _interfaces(component: wiring.Component) -> list[tuple[str, Any, Any]]:
    """Name, interface and signature, of either direction, of every interface that has a monitor."""
    found = []
    for name, member in component.signature.members.items():
        if member.is_port:
            continue
        signature = member.signature if member.flow == wiring.Out else member.signature.flip()
        if type(signature) not in MONITORS:
            continue
        for place in product(*(range(size) for size in member.dimensions)):
            interface = getattr(component, name)
            for index in place:
                interface = interface[index]
            found.append(("__".join([name, *map(str, place)]), interface, signature))
    return found
