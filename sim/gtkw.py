"""A GTKWave save file for a run's waves: signals in groups by component, enumerations by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lanikai.hdl.packet import Kind
from vcd.gtkw import GTKWSave, make_translation_filter

from .pci import BusUse
from .waves import Variable, read_hierarchy

__all__ = ["KIND_IDLE", "group_variables", "write_save_file"]

KIND_IDLE = 15
"""Value of the top module's `..._kind` wires while no header passes."""


def _names(enum: Any) -> dict[int, str]:
    return {member.value: member.name for member in enum}


_ENUMS: Mapping[str, tuple[str, int, Mapping[int, str]]] = {
    r"_kind$": ("kind", 4, _names(Kind) | {KIND_IDLE: "-"}),
    r"^bus_use$": ("bus_use", 2, _names(BusUse)),
}
"""Pattern of a variable's name, and its enumeration: name, bits, names of its values."""

Groups = dict[str, "Groups | list[Variable]"]


def write_save_file(waves: Path) -> Path:
    """Write `waves` with the ending `.gtkw`, and the filter files that it names, beside the FST file `waves`.

    Returns its path. Raises ValueError if `waves` is not a whole FST file.
    """
    filters = {}
    for pattern, (name, bits, values) in _ENUMS.items():
        path = waves.with_name(f"{waves.stem}.{name}.filter")
        path.write_text(make_translation_filter(list(values.items()), datafmt="hex", size=bits) + "\n")
        filters[pattern] = path.resolve()
    save_path = waves.with_suffix(".gtkw")
    with save_path.open("w") as file:
        save = GTKWSave(file)
        save.dumpfile(str(waves))
        save.sst_expanded(True)
        save.signals_width(320)
        _write(save, group_variables(read_hierarchy(waves)), filters)
    return save_path


def _write(save: GTKWSave, groups: Groups, filters: Mapping[str, Path], depth: int = 0) -> None:
    for name, content in groups.items():
        with save.group(name, closed=depth > 0):
            if isinstance(content, dict):
                _write(save, content, filters, depth + 1)
                continue
            for variable in content:
                filter_file = next((f for p, f in filters.items() if re.search(p, _plain(variable))), None)
                save.trace(
                    gtkwave_name(variable),
                    alias=_plain(variable),
                    datafmt="hex",
                    translate_filter_file=str(filter_file) if filter_file else None,
                )


def gtkwave_name(variable: Variable) -> str:
    """The variable as GTKWave names it: the range follows the name without a space."""
    return variable.path.replace(" [", "[")


def _plain(variable: Variable) -> str:
    """The variable's name without its range."""
    return variable.name.partition(" ")[0]


def group_variables(variables: Sequence[Variable]) -> Groups:
    """Variables by component: for a cluster nodes (link, host, NIC, each of its engines), routers (state,
    each port) and the watchdog; for any other design by instance. Names that a tool made up are left out."""
    known = [v for v in variables if v.scope and v.scope[0] != "$rootio" and "$" not in v.name]
    groups: Groups = {}
    for variable in known:
        place = _cluster_place(variable) if variable.scope[0] == "cluster" else variable.scope
        if place is None:
            continue
        level = groups
        for name in place[:-1]:
            inner = level.setdefault(name, {})
            # Variables and groups at one level: the variables go into a group of their own.
            if isinstance(inner, list):
                inner = {"signals": inner}
                level[name] = inner
            level = inner
        leaf = level.setdefault(place[-1], [])
        if isinstance(leaf, dict):
            leaf = leaf.setdefault("signals", [])
        assert isinstance(leaf, list)
        leaf.append(variable)
    return {name: groups[name] for name in sorted(groups, key=_natural)}


def _natural(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Sorting key: nodes first, numbers by value."""
    parts = re.findall(r"\d+|\D+", name)
    return not name.startswith("node"), [(int(p), "") if p.isdigit() else (-1, p) for p in parts]


def _cluster_place(variable: Variable) -> tuple[str, ...] | None:
    """Groups, outermost first, of a variable of the cluster (`sim/structure.py` names the instances)."""
    scope, name = variable.scope[1:], _plain(variable)
    if not scope:
        found = re.match(r"(nic|host)(\d+)_(tx|rx|dma|host|memory|processor)?", name)
        if not found:
            return ("watchdog",) if name.startswith("watchdog") else None
        kind, node, part = found.groups()
        if kind == "host" or part in ("dma", "host"):
            return f"node{node}", "host", "bus" if part else "programmed I/O"
        return f"node{node}", "link" if part in ("tx", "rx") else "processor"
    found = re.fullmatch(r"(nic|host|mailbox|memory)(\d+)", scope[0])
    if found:
        kind, node = found.groups()
        where = f"node{node}"
        if kind == "nic":
            return (where, "nic", *(scope[1:] or ("card",)))
        return (where, "host", "state") if kind == "host" and len(scope) == 1 else None
    if scope[0] == "network" and len(scope) > 1:
        if len(scope) == 2:
            port = re.match(r"[rt]x__(\d+)__", name)
            return scope[1], f"port{port[1]}" if port else "state", "link" if port else "signals"
        port = re.match(r"(\w+)_(\d+)$", scope[2])
        return (scope[1], f"port{port[2]}", port[1]) if port else (scope[1], *scope[2:3])
    return ("watchdog",) if scope[0] == "watchdog" else None
