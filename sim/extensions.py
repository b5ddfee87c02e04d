"""Extensions from outside of the tree: the registries that take them, where their code is, how they travel.

An extension of an installed distribution is found by its entry point, in every process. One that a script has added
goes with its runs (`carried.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lanikai.hdl.registry import GROUP, REGISTRIES, Registry, outside_points

from .errors import UserError

__all__ = ["KINDS", "added", "adds_hardware", "outside_lines", "outside_roots", "registry", "take"]

KINDS = {
    "experiments": "lanikai.sim.experiments.registry",
    "vl_arbiters": "lanikai.hdl.vl_arbiter.registry",
    "arbiters": "lanikai.hdl.arbiter",
    "allocators": "lanikai.hdl.router.allocators",
    "routing": "lanikai.hdl.router.routing",
    "topologies": "lanikai.hdl.topologies",
    "patterns": "lanikai.hdl.traffic.pattern",
    "firmware": "lanikai.firmware.programs",
    "host_interfaces": "lanikai.sim.host.interfaces",
}
"""Registry -> the module that has it. Entry points are in the groups `lanikai.` and one of these names."""
HARDWARE = ("vl_arbiters", "arbiters", "allocators", "routing", "topologies")
"""Registries whose things are in designs."""
MAIN = "__main__"
Added = list[tuple[str, str, Any]]


def registry(kind: str) -> Registry[Any]:
    """The registry of a kind. Raises UserError for a kind that there is not."""
    if kind not in KINDS:
        raise UserError(f"no such kind of extension: {kind!r}; one of {', '.join(KINDS)}")
    import_module(KINDS[kind])
    return REGISTRIES[kind]


def outside_lines() -> Iterator[str]:
    """A line for each extension of another distribution: its kind, name and origin, or why it cannot be used."""
    for kind in KINDS:
        if GROUP + kind not in outside_points():
            continue  # the registry need not be imported
        asked = registry(kind)
        broken = asked.broken()
        for name in dict.fromkeys(point.name for point in asked.outside()):
            if not any(f" {name!r} of " in line for line in broken):
                yield f"{asked.kind} {name}: from {asked.origin(name)}"
        yield from broken
    yield from (
        f"entry points {group}: there is no such kind; one of {', '.join(KINDS)}" for group in _unknown()
    )


def _unknown() -> list[str]:
    """Groups of entry points of ours that no registry reads."""
    return sorted(group for group in outside_points() if group.removeprefix(GROUP) not in KINDS)


def outside_roots() -> tuple[Path, ...]:
    """The files and folders that hold the code of extensions of other distributions: their top-level packages.

    None of them is imported for this.
    """
    points = [point for group in outside_points().values() for point in group]
    names = sorted({point.module.split(".")[0] for point in points})
    roots: list[Path] = []
    for name in names:
        spec = find_spec(name)
        if spec is None:
            continue
        if spec.submodule_search_locations:
            roots += map(Path, spec.submodule_search_locations)
        elif spec.origin:
            roots.append(Path(spec.origin))
    return tuple(roots)


def adds_hardware() -> bool:
    """Whether this program has added anything that designs are made of."""
    return any(name in REGISTRIES and REGISTRIES[name].added() for name in HARDWARE)


def added() -> Added:
    """All that this program has added: kind, name and thing. Coroutines of `__main__` that experiments name by
    `entry` are of the kind `__main__`."""
    found: Added = []
    for kind in KINDS:
        if kind not in REGISTRIES:
            continue
        for name, value in REGISTRIES[kind].added().items():
            if kind == "experiments":
                value = type(value)
                module, _, function = value.entry.partition(":")
                if module == MAIN and hasattr(sys.modules[MAIN], function):
                    found.append((MAIN, function, getattr(sys.modules[MAIN], function)))
            found.append((kind, name, value))
    return found


def take(things: Added) -> None:
    """Add in this process all that another one has added."""
    for kind, name, value in things:
        if kind == MAIN:
            setattr(sys.modules[MAIN], name, value)
        else:
            registry(kind).add(name, value)
