"""A GTKWave save file for a run's waves: the signals that tell what a component does, enumerations by name.

A cluster or a network has thousands of variables. Those of `NODE`, `TRAFFIC_NODE` and `ROUTER` are shown; the others
are in GTKWave's own tree of instances.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lanikai.hdl.packet import HEADER_LAYOUT, Kind
from vcd.gtkw import GTKWSave, make_translation_filter

from ..build.packet_view import FIELDS, PARTS
from ..models.pci_host import BusUse
from .fst import Variable, end_time, read_hierarchy

__all__ = ["KIND_IDLE", "composed_path", "group_variables", "write_save_file"]

KIND_IDLE = 15
"""Value of the top module's `..._kind` wires while no header passes."""
OPEN_NODES, OPEN_PORTS = 2, 2
"""Nodes, and ports of each router, whose groups are open at first."""
WAVE_PIXELS = 750
"""Width of GTKWave's area of waves in a window of its default size, about."""
ZOOM_PIXELS = 200
"""GTKWave's unit of zoom: zoom -z shows 2**z time steps in so many pixels."""


def _names(enum: Any) -> dict[int, str]:
    return {member.value: member.name for member in enum}


_ENUMS: Mapping[str, tuple[int, Mapping[int, str]]] = {
    r"_kind$": (4, _names(Kind) | {KIND_IDLE: "-"}),
    r"(_packet|port\d+_[rt]x)\.kind$": (4, _names(Kind) | {KIND_IDLE: "-"}),
    r"(_packet|port\d+_[rt]x)\.part$": (2, PARTS),
    **{
        rf"(_packet|port\d+_[rt]x)\.{name}$": (bits, {(1 << bits) - 1: "-"})
        for name, field in FIELDS.items()
        if name != "kind" and (bits := HEADER_LAYOUT[field].width)
    },
    r"(^|\.)bus_use$": (2, _names(BusUse)),
}
"""Pattern of a variable's path: bits, and the names of its values."""

NODE: Mapping[str, Sequence[str]] = {
    "link": [
        *(f"nic#.{end}_packet.{field}" for end in ("tx", "rx") for field in ("part", *FIELDS)),
        *("nic#_tx__credit_valid", "nic#_rx__credit_valid", "nic#.packets.credits.available"),
    ],
    "firmware": ["nic#_step"],
    "host bus": ["host#.bus_use", "host#.bus_state", "host#.programmed", "nic#.host_port.fsm_state"],
    "engines": [
        *("nic#.watch_host_dma_busy", "nic#.host_dma.to_host", "nic#.host_dma.beats_left"),
        *("nic#.watch_send_busy", "nic#.watch_send_held", "nic#.send.to_come"),
        *("nic#.watch_receive_armed", "nic#.watch_receive_held", "nic#.receive.payload_left"),
    ],
    "doorbell": ["nic#.doorbell.ring__valid", "nic#.doorbell.ring__payload.channel", "nic#.watch_doorbells"],
    "rate control": [
        *("nic#.rate.dispatch__valid", "nic#.rate.dispatch__flow", "nic#.rate.dispatched__valid"),
        *("nic#.rate.is_enqueued", "nic#.watch_rtc"),
    ],
    "interrupt status": [
        *(f"nic#.ISR__r_data.{event}" for event in ("host_dma", "send", "receive", "timer")),
        *(f"nic#.ISR__r_data.{event}" for event in ("doorbell", "dispatch")),
        *("nic#.watch_enabled", "nic#_event", "nic#_interrupt"),
    ],
}
"""The variables that are shown of node #: groups, and variables below the top module of a cluster that is one model."""
_COMPOSED: Mapping[str, str] = {
    **{f"nic#.{end}_packet": f"node#.{end}_packet" for end in ("tx", "rx")},
    **{f"nic#_{end}__": f"node#.{end}__" for end in ("tx", "rx")},
    "nic#_step": "node#.step",
    "nic#_event": "node#.pending",
    "nic#_interrupt": "node#.host_interrupt",
    "nic#.": "node#.nic.",
    "host#.": "node#.host.",
}
"""Beginnings of those variables, and what stands in their place in a composed cluster."""

ROUTER: Sequence[str] = [
    *(f"port%_rx.{field}" for field in ("part", "lane", *FIELDS)),
    *("route_%.port", "held__%"),
    *(f"port%_tx.{field}" for field in ("part", "lane", *FIELDS)),
    *("transmit_%.blocked", "transmit_%.credits.available", "tx__%__credit_valid", "rx__%__credit_valid"),
]
"""The variables that are shown of port % of a router, in its instance: the packets at its ends, and others."""
TRAFFIC_NODE: Sequence[str] = [
    *(f"node#.{end}_packet.{field}" for end in ("tx", "rx") for field in ("part", "lane", *FIELDS)),
    *("node#.tx__credit_valid", "node#.rx__credit_valid", "node#.born", "node#.done", "node#.behind"),
]
"""The variables that are shown of node # of a network under synthetic load."""
MEASUREMENT = ("phase", "phase_event", "dropped", "watchdog_fired", "network_activity", "moving")
"""The variables that are shown of its measurement."""
SYSTEMS = ("cluster", "network_bench")
"""Top modules whose components are known here."""
ROUTER_STATE = ("input_occupied", "output_vl_held", "output_occupied", "output_blocked", "dropped")
"""The variables that are shown of a router as a whole."""

DECIMAL = ("cycle", "source", "destination", "sequence_number", "lane")
"""Variables whose values are shown as decimal numbers."""

Groups = dict[str, "Groups | list[Variable]"]


def write_save_file(waves: Path, enums: Mapping[str, Mapping[int, str]] | None = None) -> Path:
    """Write `waves` with the ending `.gtkw`, and the filter files that it names, beside the FST file `waves`.

    `enums`: names of the values of more variables, by the end of their paths. All files are named relative to
    their folder, in which GTKWave has to be started; so the folder can be moved. Returns the save file's
    path. Raises ValueError if `waves` is not a whole FST file.
    """
    variables = read_hierarchy(waves)
    known = dict(_ENUMS)
    for end, values in (enums or {}).items():
        known[rf"(^|\.){re.escape(end)}$"] = (max(1, max(values).bit_length()), values)
    filters = {}
    for pattern, (bits, values) in known.items():
        name = re.sub(r"\W*\$$|^\(.*\)\\?|\\|^_|^\.", "", pattern).lstrip(".")
        if "_packet" in pattern:
            name = f"packet_{name}"
        path = waves.with_name(f"{waves.stem}.{name}.filter")
        # A filter sees what would be shown: a number in the variable's own format.
        shown = "dec" if name.removeprefix("packet_") in DECIMAL else "hex"
        path.write_text(make_translation_filter(list(values.items()), datafmt=shown, size=bits) + "\n")
        filters[pattern] = path.name
    save_path = waves.with_suffix(".gtkw")
    with save_path.open("w") as file:
        save = GTKWSave(file)
        save.dumpfile(waves.name, abspath=False)
        save.sst_expanded(True)
        save.signals_width(320)
        save.size(1400, 900)
        save.zoom_markers(-math.log2(max(1, end_time(waves)) * ZOOM_PIXELS / WAVE_PIXELS))
        _write(save, group_variables(variables), filters)
    return save_path


def _write(save: GTKWSave, groups: Groups, filters: Mapping[str, str], place: tuple[str, ...] = ()) -> None:
    for name, content in groups.items():
        with save.group(name, closed=_closed((*place, name))):
            if isinstance(content, dict):
                _write(save, content, filters, (*place, name))
                continue
            for variable in content:
                plain = _plain(variable)
                path = ".".join((*variable.scope, plain))
                save.trace(
                    gtkwave_name(variable),
                    alias=_alias(variable),
                    datafmt=_format(plain),
                    translate_filter_file=next((f for p, f in filters.items() if re.search(p, path)), None),
                )


def _format(name: str) -> str:
    """How a variable's values are shown: numbers that count are decimal, a step's name is letters."""
    if re.fullmatch(r"(nic\d+_)?step(_1)?", name):
        return "ascii"
    return "dec" if name in DECIMAL else "hex"


def _closed(place: tuple[str, ...]) -> bool:
    """Whether a group is closed at first: nodes and ports after the first few, and instances inside others
    of a design that is no cluster."""
    found = re.fullmatch(r"(node|port|router)(\d+)", place[-1])
    if found:
        return int(found[2]) >= (OPEN_PORTS if found[1] == "port" else OPEN_NODES)
    return len(place) > 1 and place[-1] not in NODE and place[-1] not in ("state", "signals")


def _alias(variable: Variable) -> str:
    """The variable's name in its group: its path without the words of the groups around it."""
    if variable.scope[0] not in SYSTEMS:
        return _plain(variable)
    path = ".".join((*variable.scope[1:], _plain(variable)))
    # GTKWave shows a name from its last dot on.
    return re.sub(
        r"^(nic\d+[._]+|host\d+[._]+|node\d+[._](nic\.|host\.)?|network\.router\d+\.(port\d+_)?)", "", path
    ).replace(".", "/")


def gtkwave_name(variable: Variable) -> str:
    """The variable as GTKWave names it: the range follows the name without a space."""
    return variable.path.replace(" [", "[")


def composed_path(path: str) -> str:
    """The path in a composed cluster of a variable of `NODE`."""
    begin = next(begin for begin in _COMPOSED if path.startswith(begin))
    return _COMPOSED[begin] + path.removeprefix(begin)


def _plain(variable: Variable) -> str:
    """The variable's name without its range."""
    return variable.name.partition(" ")[0]


def group_variables(variables: Sequence[Variable]) -> Groups:
    """Variables by component: of a cluster those that are worth a look (`NODE`, `ROUTER`), of any other design all, by
    instance. Names that a tool made up are left out."""
    known = [v for v in variables if v.scope and v.scope[0] != "$rootio" and "$" not in v.name]
    if system := next((v.scope[0] for v in known if v.scope[0] in SYSTEMS), None):
        return _system_groups(known, system)
    groups: Groups = {}
    for variable in known:
        level = groups
        for name in variable.scope[:-1]:
            inner = level.setdefault(name, {})
            # Variables and groups at one level: the variables go into a group of their own.
            if isinstance(inner, list):
                inner = {"signals": inner}
                level[name] = inner
            level = inner
        leaf = level.setdefault(variable.scope[-1], [])
        if isinstance(leaf, dict):
            leaf = leaf.setdefault("signals", [])
        assert isinstance(leaf, list)
        leaf.append(variable)
    return groups


def _system_groups(variables: Sequence[Variable], system: str) -> Groups:
    """The groups of a cluster or a network under load.

    `sim/systems/cluster_top.py` and `sim/systems/traffic_top.py` name the instances and the wires.
    """
    at = {".".join((*v.scope[1:], _plain(v))): v for v in variables if v.scope[0] == system}

    def those(paths: Sequence[str]) -> list[Variable]:
        return [at[path] for path in paths if path in at]

    def numbers(pattern: str) -> list[int]:
        return sorted({int(found[1]) for path in at if (found := re.match(pattern, path))})

    groups: Groups = {"time": those(["clk", "cycle"])}
    nodes = {*numbers(r"nic(\d+)\."), *numbers(r"node(\d+)\.nic\.")}
    for node in sorted(nodes):
        inner: Groups = {
            name: those(
                [path.replace("#", str(node)) for plain in paths for path in (plain, composed_path(plain))]
            )
            for name, paths in NODE.items()
        }
        groups[f"node{node}"] = {name: content for name, content in inner.items() if content}
    if system == "network_bench":
        groups["measurement"] = those(MEASUREMENT)
        for node in numbers(r"node(\d+)\."):
            groups[f"node{node}"] = those([path.replace("#", str(node)) for path in TRAFFIC_NODE])
    for router in numbers(r"network\.router(\d+)\."):
        where = f"network.router{router}."
        ports: Groups = {"state": those([where + name for name in ROUTER_STATE])}
        for port in numbers(re.escape(where) + r"rx__(\d+)__"):
            ports[f"port{port}"] = those([where + name.replace("%", str(port)) for name in ROUTER])
        groups[f"router{router}"] = ports
    if system == "cluster":
        groups["watchdog"] = those(["watchdog_fired", "network_activity", "moving", "network_dropped"])
    return groups
