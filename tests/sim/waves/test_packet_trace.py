"""Traces of packets: passages by the views' wires, and the events as the Trace Event Format wants them."""

import json
import random
import re
import sys
import tomllib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
from lanikai.sim.errors import MissingTool
from lanikai.sim.waves.packet_trace import (
    FIELDS,
    HEAD,
    NOTHING,
    TAIL,
    Passage,
    passages_of,
    states_of,
    trace_events,
    write_trace,
)

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
WIDTHS = {"part": 2, "lane": 1, "source": 16, "destination": 16, "kind": 4, "flow": 8, "sequence_number": 16}
EVENT = {
    "type": "object",
    "required": ["ph", "name", "pid", "tid"],
    "properties": {
        "ph": {"enum": ["X", "M", "s", "t", "f"]},
        "name": {"type": "string", "minLength": 1},
        "pid": {"type": "integer", "minimum": 1},
        "tid": {"type": "integer", "minimum": 0},
        "ts": {"type": "integer", "minimum": 0},
        "dur": {"type": "integer", "minimum": 1},
        "args": {"type": "object"},
    },
    "allOf": [
        {"if": {"properties": {"ph": {"const": "X"}}}, "then": {"required": ["ts", "dur", "cat"]}},
        {"if": {"properties": {"ph": {"const": "M"}}}, "then": {"required": ["args"]}},
        {"if": {"properties": {"ph": {"enum": ["s", "t", "f"]}}}, "then": {"required": ["ts", "id", "cat"]}},
    ],
}
"""An event of the Trace Event Format, as far as these phases go."""


def played(packets, chance):
    """The wires of a view by cycle, and the passages: packets (VL, flits, fields) whose flits are mixed, with gaps."""
    waiting, cycle, rows, wanted = defaultdict(list), 0, [], {}
    for number, (vl, flits, fields) in enumerate(packets):
        waiting[vl] += [(number, place, flits, fields) for place in range(flits)]
    while any(waiting.values()):
        cycle += 1
        if chance.random() < 0.3:
            rows.append(
                (cycle, {"part": NOTHING} | {name: (1 << WIDTHS[name]) - 1 for name in ("lane", *FIELDS)})
            )
            continue
        vl = chance.choice([vl for vl, flits in waiting.items() if flits])
        number, place, flits, fields = waiting[vl].pop(0)
        part = TAIL if place == flits - 1 else HEAD if place == 0 else 1
        # The header's last field comes with the second flit.
        known = {
            name: value if place or name != "sequence_number" or flits == 1 else 65535
            for name, value in fields.items()
        }
        rows.append((cycle, {"part": part, "lane": vl, **known}))
        first, _ = wanted.get(number, (cycle, 0))
        wanted[number] = first, cycle
    rows.append((cycle + 1, {"part": NOTHING}))
    changes, last = defaultdict(list), {}
    for at, values in rows:
        for name, value in values.items():
            if last.get(name) != value:
                changes[name].append((at, value))
                last[name] = value
    passages = [
        Passage(
            place="router0",
            end="port1_tx",
            vl=vl,
            first=wanted[number][0],
            last=wanted[number][1],
            flits=flits,
            fields=fields,
        )
        for number, (vl, flits, fields) in enumerate(packets)
    ]
    return changes, passages


@pytest.mark.parametrize("seed", range(20))
def test_every_packet_of_a_view_is_found_with_its_cycles(seed):
    chance = random.Random(seed)
    packets = [
        (chance.randrange(2), chance.choice([1, 2, 5]), {name: chance.randrange(8) for name in FIELDS})
        for _ in range(12)
    ]
    changes, wanted = played(packets, chance)
    found = passages_of("router0", "port1_tx", changes, WIDTHS)
    assert sorted(found, key=lambda one: one.last) == sorted(wanted, key=lambda one: one.last)


def way(first=10, sequence=3):
    """A packet of 4 flits on its way from node 0 through two routers."""
    fields = {"source": 0, "destination": 1, "kind": 0, "flow": 0, "sequence_number": sequence}
    places = [
        ("node0", "tx"),
        ("router0", "port0_rx"),
        ("router0", "port1_tx"),
        ("router1", "port0_tx"),
        ("node1", "rx"),
    ]
    return [
        Passage(
            place=place,
            end=end,
            vl=1,
            first=first + 5 * number,
            last=first + 3 + 5 * number,
            flits=4,
            fields=fields,
        )
        for number, (place, end) in enumerate(places)
    ]


def test_the_events_are_those_of_the_trace_event_format():
    events = json.loads(json.dumps(trace_events([*way(), *way(first=40, sequence=4)])))
    for event in events:
        jsonschema.validate(event, EVENT)
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["ph"] == "M"}
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == 10 and all((one["pid"], one["tid"]) in names for one in slices)
    assert [names[one["pid"], 0] for one in slices[:5]] == ["node0", "router0", "router0", "router1", "node1"]
    assert all(one["dur"] == 4 and one["args"]["flits"] == 4 for one in slices)
    by_thread = defaultdict(list)
    for one in slices:
        by_thread[one["pid"], one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for spans in by_thread.values():
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_arrows_lead_along_the_way_of_each_packet():
    events = trace_events([*way(), *way(first=40, sequence=4)])
    arrows = defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            arrows[event["id"]].append((event["ph"], event["ts"]))
    assert list(arrows.values()) == [
        [("s", first), ("t", first + 5), ("t", first + 10), ("t", first + 15), ("f", first + 20)]
        for first in (10, 40)
    ]


def test_states_of_a_card_are_slices_on_tracks_of_their_own():
    states = list(states_of("node0", "host bus", [(0, 0), (5, 2), (9, 1), (12, 0), (20, 1)], {2: "READ"}))
    assert [(one.first, one.cycles, one.name) for one in states] == [(5, 4, "READ"), (9, 3, "1")]
    events = trace_events(way(), states)
    for event in events:
        jsonschema.validate(event, EVENT)
    threads = {(one["pid"], one["tid"]) for one in events if one.get("cat") == "packet" and one["ph"] == "X"}
    (track,) = {(one["pid"], one["tid"]) for one in events if one.get("cat") == "state"}
    assert track not in threads


def test_without_pywellen_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pywellen", None)
    with pytest.raises(MissingTool) as caught:
        write_trace(tmp_path / "point.fst")
    assert re.fullmatch(
        r"the Python package pywellen is missing; install it with: \S*pip install (-e )?'\S*\[waves\]'",
        str(caught.value),
    )
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert [one for one in extras["waves"] if one.startswith("pywellen>=")]
