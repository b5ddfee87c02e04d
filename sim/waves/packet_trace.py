"""A trace of packets for Perfetto or chrome://tracing, from a waveform: a slice a packet on each link that it passes.

The waveform has a packet view at each end of a link (`sim/build/packet_view.py`). A router or node is a process of the
trace, a VL of one of its link ends a thread. A slice begins with the packet's head and ends with its tail. Arrows lead
from slice to slice of one packet. The cards of a cluster have tracks besides for doorbell, host bus, engines and
firmware. A microsecond of the trace is a cycle.

The format is that of the Trace Event Format (JSON object, events of the phases X, M, s, t and f).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import MissingTool, UserError
from ..extras import install_command
from ..models.pci_host import BusUse

__all__ = ["Passage", "State", "passages_of", "read_waves", "states_of", "trace_events", "write_trace"]

PERIOD_STEPS = 10
"""Steps of a waveform's time in a cycle (`sim/inside/clock.py`)."""
FIELDS = ("source", "destination", "kind", "flow", "sequence_number")
HEAD, TAIL, NOTHING = 0, 2, 3
"""Values of a view's `part` (`packet_view.PARTS`)."""

STATES: Mapping[str, tuple[str, Mapping[int, str]]] = {
    r"\.doorbell\.ring__valid$": ("doorbell", {1: "ring"}),
    r"\.bus_use$": ("host bus", {member.value: member.name for member in BusUse.__members__.values()}),
    r"\.watch_host_dma_busy$": ("host DMA", {1: "busy"}),
    r"\.watch_send_busy$": ("send engine", {1: "busy"}),
    r"\.(node|nic)\d+[._]step$": ("firmware (number of the step)", {}),
}
"""Patterns of the names of a card's variables, their tracks, and the names of their values; 0 is idle."""
_COMPONENT = re.compile(r"(router|node|nic|host)\d+")

Changes = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A packet that passes one end of a link.

    - `place`, `end`: its component, as `router0`, and the end of its link: port and direction.
    - `vl`: its VL there.
    - `first`, `last`: cycles of its first and last flit.
    - `flits`: how many they are.
    - `fields`: those of its header that are known.
    """

    place: str
    end: str
    vl: int
    first: int
    last: int
    flits: int
    fields: Mapping[str, int]

    @property
    def packet(self) -> tuple[int, ...]:
        """The header, which is the packet's name; empty if no flit of the header was in the waveform."""
        return tuple(self.fields[name] for name in FIELDS) if len(self.fields) == len(FIELDS) else ()


@dataclass(frozen=True, kw_only=True)
class State:
    """A time in which a part of a card does something.

    - `place`, `track`: where, as `node0` and `host bus`.
    - `first`, `cycles`: its first cycle, and how many.
    - `name`: what is done.
    """

    place: str
    track: str
    first: int
    cycles: int
    name: str


def passages_of(place: str, end: str, changes: Changes, widths: Mapping[str, int]) -> Iterator[Passage]:
    """The passages at one view. `changes`: (cycle, value) of each of its variables, in order; `widths`: their bits. A
    packet that the waveform's beginning or end cuts is left out."""
    times = sorted({cycle for rows in changes.values() for cycle, _ in rows})
    at = dict.fromkeys(changes, 0)
    now = dict.fromkeys(changes, 0) | {"part": NOTHING}
    open_packets: dict[int, tuple[int, int, dict[str, int]]] = {}
    begun: tuple[int, int, dict[str, int]] | None
    for cycle, until in zip(times, [*times[1:], times[-1] + 1] if times else [], strict=True):
        for name, rows in changes.items():
            while at[name] < len(rows) and rows[at[name]][0] <= cycle:
                now[name] = rows[at[name]][1]
                at[name] += 1
        if now["part"] == NOTHING:
            continue
        vl = now["lane"]
        for one in range(cycle, until):
            begun = open_packets.get(vl)
            if begun is None:
                if now["part"] not in (HEAD, TAIL):
                    continue
                begun = (one, 0, {})
            first, flits, fields = begun
            fields = fields | {name: now[name] for name in FIELDS if now[name] != (1 << widths[name]) - 1}
            if now["part"] != TAIL:
                open_packets[vl] = (first, flits + 1, fields)
                continue
            open_packets.pop(vl, None)
            yield Passage(place=place, end=end, vl=vl, first=first, last=one, flits=flits + 1, fields=fields)


def states_of(
    place: str, track: str, rows: Sequence[tuple[int, int]], names: Mapping[int, str]
) -> Iterator[State]:
    """The times in which a variable is not 0, by (cycle, value) of its changes. `names`: those of values; others are
    shown as numbers. A time that the waveform's end cuts is left out."""
    for (first, value), (until, _) in pairwise(rows):
        if value and until > first:
            yield State(
                place=place, track=track, first=first, cycles=until - first, name=names.get(value, str(value))
            )


def _changes(variable: Any) -> list[tuple[int, int]]:
    return [(time // PERIOD_STEPS, int(value)) for time, value in variable.tv]


def _place(path: str) -> str:
    """The component that a scope belongs to: the innermost one with a number."""
    return next((name for name in reversed(path.split(".")) if _COMPONENT.fullmatch(name)), path)


def read_waves(waves: Path) -> tuple[list[Passage], list[State]]:
    """All passages of a waveform, and the states of cards in it. Raises MissingTool, and UserError for one without
    packets."""
    try:
        import pywellen
    except ImportError:
        raise MissingTool("the Python package pywellen", install_command("waves")) from None
    views: dict[str, dict[str, Any]] = {}
    states: list[State] = []
    for variable in pywellen.Waveform(str(waves)).all_vars():
        name = re.sub(r" ?\[-?\d+:\d+\]$", "", variable.full_name)
        scope, _, last = name.rpartition(".")
        for ending, (track, names) in STATES.items():
            if re.search(ending, name):
                states += states_of(_place(scope), track, _changes(variable), names)
        if last in ("part", "lane", *FIELDS):
            views.setdefault(scope, {})[last] = variable
    found: list[Passage] = []
    for scope, variables in sorted(views.items()):
        if {"part", "lane", *FIELDS} - variables.keys():
            continue
        changes = {name: _changes(variable) for name, variable in variables.items()}
        widths = {name: variable.bitwidth or 1 for name, variable in variables.items()}
        found += passages_of(_place(scope), scope.rpartition(".")[2], changes, widths)
    if not found:
        raise UserError(f"{str(waves)!r} has no packet: choose other cycles (--waves-from, --waves-cycles)")
    return found, states


def trace_events(passages: Sequence[Passage], states: Sequence[State] = ()) -> list[dict[str, Any]]:
    """The events of the trace: names of processes and threads, slices, arrows."""
    named = sorted({one.place for one in passages} | {one.place for one in states})
    places = {place: number for number, place in enumerate(named, 1)}
    threads: dict[tuple[str, str, int], int] = {}
    events: list[dict[str, Any]] = []
    for place, pid in places.items():
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": place}})
    for one in sorted(passages, key=lambda one: (one.place, one.end, one.vl)):
        if (key := (one.place, one.end, one.vl)) not in threads:
            threads[key] = len(threads) + 1
            name = {"name": f"{one.end} VL {one.vl}"}
            events.append(
                {
                    "ph": "M",
                    "name": "thread_name",
                    "pid": places[one.place],
                    "tid": threads[key],
                    "args": name,
                }
            )
    tracks: dict[tuple[str, str], int] = {}
    for state in states:
        pid = places[state.place]
        if (track := (state.place, state.track)) not in tracks:
            tracks[track] = len(threads) + len(tracks) + 1
            named_track = {"name": state.track}
            events.append(
                {"ph": "M", "name": "thread_name", "pid": pid, "tid": tracks[track], "args": named_track}
            )
        span = {"ts": state.first, "dur": state.cycles, "pid": pid, "tid": tracks[track]}
        events.append({"ph": "X", "name": state.name, "cat": "state", **span})
    ways: dict[tuple[int, ...], list[Passage]] = {}
    for one in sorted(passages, key=lambda one: (one.first, one.last)):
        where = {"pid": places[one.place], "tid": threads[one.place, one.end, one.vl]}
        source, destination = (one.fields.get(name, "?") for name in ("source", "destination"))
        events.append(
            {
                "ph": "X",
                "name": f"{source} to {destination}",
                "cat": "packet",
                "ts": one.first,
                "dur": one.last - one.first + 1,
                **where,
                "args": {**one.fields, "vl": one.vl, "flits": one.flits},
            }
        )
        if one.packet:
            ways.setdefault(one.packet, []).append(one)
    for number, way in enumerate(ways.values(), 1):
        for step, one in enumerate(way):
            phase = "s" if step == 0 else "f" if step == len(way) - 1 else "t"
            if len(way) > 1:
                arrow = {"ph": phase, "name": "way", "cat": "packet", "id": number, "ts": one.first}
                where = {"pid": places[one.place], "tid": threads[one.place, one.end, one.vl]}
                events.append(arrow | where | ({"bp": "e"} if phase == "f" else {}))
    return events


def write_trace(waves: Path) -> Path:
    """Write the trace of a waveform beside it. Returns the file. Raises as `read_waves`."""
    path = waves.with_suffix(".trace.json")
    events = trace_events(*read_waves(waves))
    path.write_text(json.dumps({"traceEvents": events, "otherData": {"unit": "1 us is a cycle"}}) + "\n")
    return path
