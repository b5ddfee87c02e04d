"""via-scalability: points, and each of the ten claims fails when its curve is another one."""

from __future__ import annotations

import pytest
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.via.scalability import (
    BASE,
    DOOR,
    OVERLAP,
    QUEUES,
    SHADOW,
    TAILGATING,
    TWO_CPUS,
    ViaScalability,
    ladder_card,
    loads,
    rounds,
)
from matplotlib.figure import Figure

PROCESSING_US = {
    BASE: 30.0,
    OVERLAP: 40.0,
    QUEUES: 36.0,
    DOOR: 36.0,
    TAILGATING: 32.0,
    TWO_CPUS: 20.0,
    SHADOW: 15.0,
}
POLLED = (BASE, OVERLAP, QUEUES)


def measured(spec, changes):
    """Results of the loads of a point."""
    shared = {name: spec[name] for name in ("design", "immediate", "completion_queue")}
    return {"loads": [one_load({**shared, **load}, changes) for load in spec["loads"]]}


def one_load(spec, changes):
    """A card whose messages wait for those before them, and for half a turn of polls, as the thesis says."""
    design, declared, active = spec["design"], spec["declared_vis"], spec["active_vis"]
    size, at_once = spec["message_bytes"], spec["messages_at_once"]
    each = PROCESSING_US[design]
    poll = declared * 0.2 if design in POLLED else 0.0
    if design in (OVERLAP, QUEUES):
        # Polls are hidden behind DMAs, up to a number.
        poll = max(0.0, declared - 2 * active) * 0.2
    data = size / 128 * (0.3 if design != BASE else 1.0)
    each += {OVERLAP: 0, QUEUES: 0}.get(design, 0) if size > 1000 else 0
    wait = poll + active * at_once * (each + data) / 2
    if active == 508 and size == 8:
        wait += 1500
    found = {
        "latencies_us": [wait + 2 * (each + data)] * 3,
        "wait_us": wait,
        "host_receive_us": 0.1 * declared / 2 if not spec["completion_queue"] else 0.4,
        "descriptor_dmas": 3 * {SHADOW: 0.0, TAILGATING: 0.5}.get(design, 1.0),
        "messages": 3,
        "peer": {"latency_us": 50.0, "interval_us": 10.0},
    }
    for change in changes:
        change(spec, found)
    return found


def judge(*changes):
    experiment = ViaScalability()
    parameters = experiment.Parameters(peers="card")
    outcomes = [
        Outcome(
            point=point,
            results=experiment.results(parameters, point, measured(point.spec, changes)),
            seed=1,
            cycles=1,
            wall_seconds=1.0,
        )
        for point in experiment.points(parameters, "quick")
    ]
    figure = Figure()
    experiment.plot(parameters, outcomes, figure)
    assert len(figure.axes) == 3
    return [claim.holds for claim in experiment.claims(parameters, outcomes)]


def latency(design, factor, **where):
    """A change: `factor` times the latency of a design, where the point is as said."""

    def change(spec, found):
        if spec["design"] == design and all(spec[name] == value for name, value in where.items()):
            found["latencies_us"] = [one * factor for one in found["latencies_us"]]

    return change


def value(name, number, design, **where):
    def change(spec, found):
        if spec["design"] == design and all(spec[key] == its for key, its in where.items()):
            found[name] = number

    return change


def test_all_hold_where_the_thesis_curves_are():
    assert judge() == [True] * 11


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, latency(BASE, 2, declared_vis=124, active_vis=8)),
        (0, value("wait_us", 5.0, BASE, active_vis=8)),
        (1, latency(BASE, 0.1, message_bytes=8)),
        (2, value("host_receive_us", 9.0, BASE, completion_queue=True, declared_vis=508)),
        (2, value("host_receive_us", 9.0, BASE, completion_queue=False)),
        (3, latency(OVERLAP, 9, message_bytes=4096)),
        (3, latency(OVERLAP, 0.5, message_bytes=128)),
        (4, latency(QUEUES, 0.7, message_bytes=4096)),
        (4, latency(QUEUES, 2, message_bytes=128, declared_vis=60)),
        (5, latency(DOOR, 1.05, declared_vis=508)),
        (5, latency(QUEUES, 0.3, declared_vis=508)),
        (6, latency(TAILGATING, 1.2)),
        (6, value("descriptor_dmas", 3, TAILGATING)),
        (7, latency(TWO_CPUS, 1.6)),
        (8, latency(SHADOW, 1.6, message_bytes=128)),
        (8, value("descriptor_dmas", 1, SHADOW)),
        (9, latency(SHADOW, 30, message_bytes=1024, active_vis=12)),
        (10, latency(DOOR, 1.03, declared_vis=508, active_vis=4)),
    ],
)
def test_a_claim_fails_when_its_curve_is_another(number, change):
    assert judge(change)[number] is False


def test_points_are_once_each_and_cards_are_legal():
    for size in ("quick", "full"):
        found = loads(size)
        assert len(set(found)) == len(found)
        assert {one.kind for one in found} == {"I", "II", "III", "IV"}
        assert all(one.active <= one.declared for one in found)
    assert {ladder_card(design).channels for design in PROCESSING_US} == {512}
    # 4 processes with a VI to each of the other nodes: 2 to 128 nodes.
    assert {one.declared for one in loads("full")} == {4 * (nodes - 1) for nodes in (2, 8, 16, 32, 64, 128)}


def test_no_claim_is_judged_on_nothing():
    experiment = ViaScalability()
    assert {claim.holds for claim in experiment.claims(experiment.Parameters(), [])} == {None}


def test_a_load_whose_curve_is_to_be_a_line_has_messages_enough():
    """Both sizes; of the others some have less."""
    for size in ("quick", "full"):
        counts = {one: rounds(one, size) * one.active for one in loads(size)}
        assert min(count for one, count in counts.items() if one.line) >= 208
        assert min(counts.values()) < 208
        lines = {(one.design, one.kind, one.immediate, one.completion_queue) for one in counts if one.line}
        assert (BASE, "I", False, False) in lines and (BASE, "III", True, True) in lines


def test_designs_that_are_compared_have_as_many_rounds():
    """In a round after another one messages meet those of other processes' rounds, and wait longer."""
    counts = {}
    for one in loads("quick"):
        if not one.line:
            kind = one.kind, one.declared, one.active, one.message_bytes, one.messages
            counts.setdefault(kind, set()).add(rounds(one, "quick"))
    assert [kind for kind, found in counts.items() if len(found) > 1] == []
