"""No claim of any experiment holds on nothing: without a point, and with the points of a part of a run."""

from collections.abc import Mapping
from typing import Any

import pytest
from lanikai.sim.experiments.descriptor_fetch import WAYS
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.qos.mix import CLASSES
from lanikai.sim.experiments.registry import EXPERIMENTS, find

from .test_gm_experiments import NOTHING_MOVES
from .test_video_reservation import HZ, SPAN

SETTINGS = {"transfer": (f"file={__file__}",)}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_claim_is_judged_without_a_point(name):
    experiment = find(name)
    claims = experiment.claims(parse(experiment, SETTINGS.get(name, ())), [])
    assert [claim.text for claim in claims if claim.holds is not None] == []
    assert all(claim.not_judged for claim in claims)


def dead_films(point: Any) -> dict[str, Any]:
    """A run in which no frame arrives."""
    films = [
        {"due": [0, SPAN // 2], "arrivals": [], "sizes": one["frames"][:2], "bound_us": 100.0}
        for one in point.spec["films"]
    ]
    return {"clock_hz": HZ, "span_cycles": SPAN, "bulk_bytes": 0, "films": films}


def silent_network(point: Any) -> dict[str, Any]:
    """A run in which no node sends a packet."""
    nothing = {
        "offered_flits": 0,
        "accepted_flits": 0,
        "injected_flits": 0,
        "offered_packets": 0,
        "latency_packets": 0,
        "latency_sum_cycles": 0,
        "latency_max_cycles": None,
        "deferred_cycles": 0,
        "histogram": [],
    }
    classes = len(point.spec["classes"])
    return {
        "counts": [[nothing] * 2] * 4,
        "active": [[number < classes for number in range(2)]] * 4,
        "saturated": False,
        "drain_cycles": 0,
        "window_cycles": point.spec["window_cycles"],
    }


def still_network(point: Any) -> dict[str, Any]:
    """A run in which no node sends a packet, and no router counts anything."""
    return silent_network(point) | {"intervals": [[0] * 5] * 3, "whole": [0] * 5}


def starved_flows(point: Any) -> dict[str, Any]:
    """A run in which the rate control unit dispatches nothing."""
    rows = [{"idt": idt, "rate": 0.0, "packets": 0} for idt in point.spec["idts"]]
    return {"series": {"flows": rows}, "busy_cycles": 0}


def deaf_vis(point: Any) -> dict[str, Any]:
    """A run in which no message of a VI arrives."""
    due = [100.0 * number for number in range(int(point.spec["until_us"] / 100))]
    one = {"due_us": due, "received_us": [], "bytes": [4096] * len(due), "refused": ""}
    return {
        "end_us": point.spec["until_us"],
        "channels": [one] * len(point.spec["channels"]),
        "backlog": len(due),
    }


def mute_cards(point: Any) -> dict[str, Any]:
    """A run in which no active message arrives."""
    spec = point.spec
    nodes, clients = len(spec.get("partners", ())), spec.get("clients", spec.get("endpoints", 1))
    return {
        "clock_hz": HZ,
        "cycles": 1 if "messages" in spec else {name: [0] for name in ("o_send", "o_recv", "rtt")},
        "messages": 0,
        "burst_cycles": 0,
        "burst_messages": 1,
        "sent_cycles": [1 << 40] * nodes,
        "rounds_cycles": [0] * nodes,
        "counts": [0] * clients,
        "rtt_cycles": [],
        "loads": 0,
        "window_cycles": 1000,
    }


def dead_links(point: Any) -> dict[str, Any]:
    """A run in which nothing is sent, and so nothing is lost."""
    names = "offered delivered others_offered others_delivered others_rate wrong seen dropped_packets after_offered"
    counts = "after_delivered begun_anew refused altered dropped invented packets_hit"
    return dict.fromkeys(f"{names} {counts}".split(), 0)


def mute_adapters(point: Any) -> dict[str, Any]:
    """A run in which no message gets from an adapter to another."""
    names = (
        "sent queueing_cycles buffered_cycles arrived latency_cycles since_birth_cycles waited waiting failed"
    )
    spec = point.spec
    intervals = spec["window_cycles"] // spec["interval_cycles"] if spec["interval_cycles"] else 0
    return dict.fromkeys(names.split(), 0) | {"lone_cycles": 1, "intervals": [[0] * 5] * intervals}


def mute_mix(point: Any) -> dict[str, Any]:
    """A run of mixed traffic in which no host asks for anything, and no message gets anywhere."""
    names = (
        "born born_flits arrived flits latency_cycles since_birth_cycles longest_cycles dropped waited waiting timed "
        "network_cycles"
    )
    counts = "streams units refused refused_units unanswered frames missed late_cycles failed setup_cycles"
    mix = point.spec.get("mix", point.spec)
    intervals = mix["window_cycles"] // mix["interval_cycles"] if mix["interval_cycles"] else 0
    return dict.fromkeys(counts.split(), 0) | {
        "refusals": {},
        "classes": {name: dict.fromkeys(names.split(), 0) for name in CLASSES},
        "intervals": [],
        "series": {"activity": [[0] * 5] * intervals, "adapters": [[0] * 7] * intervals},
    }


def mute_streams(point: Any) -> dict[str, Any]:
    """A run of mixed traffic in which no message gets from an adapter to another."""
    names = "streams refused unanswered frames missed late_cycles failed"
    nothing = dict.fromkeys(("arrived", "latency_cycles", "flits", "born_flits", "waited", "dropped"), 0)
    classes = dict.fromkeys(("control", "real_time", "best_effort"), nothing)
    return dict.fromkeys(names.split(), 0) | {"classes": classes}


SILENT: Mapping[str, Any] = {
    **dict.fromkeys(("admission-cluster", "admission-mesh"), mute_mix),
    **dict.fromkeys(("congestion", "cq-config"), mute_adapters),
    **dict.fromkeys(
        ("am-bandwidth", "am-contention", "am-logp", "am-permutations", "am-virtual-networks"), mute_cards
    ),
    **{name: (lambda point, name=name: NOTHING_MOVES[name]) for name in NOTHING_MOVES},
    **dict.fromkeys(
        ("via-admission", "via-cbr", "via-hns", "via-qos-load", "via-schedulers", "via-vbr"), deaf_vis
    ),
    "video-reservation": dead_films,
    "faults": dead_links,
    "network-load": silent_network,
    "peak-power": mute_mix,
    "power-load": still_network,
    "vl-isolation": silent_network,
    "rate-accuracy": starved_flows,
    "wrr-variants": mute_streams,
    "wrr-shares": lambda point: {
        "accepted_flits": {},
        "window_cycles": point.spec["window_cycles"],
    },
}
"""Measurements, by experiment, where nothing moves."""
CONTROLS = ("control: ",)
"""Beginning of claims that something does harm: they hold where nothing moves, and those beside them do not."""


@pytest.mark.parametrize("name", SILENT)
def test_no_claim_holds_on_a_point_where_nothing_moves(name):
    experiment = find(name)
    parameters = parse(experiment, SETTINGS.get(name, ()))
    outcomes = []
    for point in experiment.points(parameters, "quick"):
        results = experiment.results(parameters, point, SILENT[name](point))
        outcomes.append(Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0))
    claims = [one for one in experiment.claims(parameters, outcomes) if not one.text.startswith(CONTROLS)]
    assert [one.text for one in claims if one.holds] == []
    assert any(one.holds is False for one in claims)
    # A part of the run is judged as far as it goes: by no claim that holds, and without an error.
    for outcome in outcomes:
        some = experiment.claims(parameters, [outcome])
        assert not any(one.holds for one in some if not one.text.startswith(CONTROLS))


def test_claims_of_latencies_are_not_judged_on_one_kind_of_point():
    """The cases are descriptor-fetch with one way and doorbell-latency with one number of channels: there is nothing to
    compare with."""
    experiment = find("descriptor-fetch")
    parameters = parse(experiment, ())
    found = [
        Outcome(
            point=point,
            results={key: 1.0 for key in ("latency_first_us", "latency_last_us", "message_us")}
            | {"sha256": "same"},
            seed=1,
            cycles=1,
            wall_seconds=1.0,
        )
        for point in experiment.points(parameters, "quick")
        if point.parameters["way"] == WAYS[0]
    ]
    assert {claim.holds for claim in experiment.claims(parameters, found)} == {None}
    experiment = find("doorbell-latency")
    parameters = parse(experiment, ("channels=[4, 4]",))
    found = [
        Outcome(
            point=point,
            results={f"latency_{what}_cycles": 9 for what in ("min", "mean", "max")}
            | {"look_period_cycles": 8},
            seed=1,
            cycles=1,
            wall_seconds=1.0,
        )
        for point in experiment.points(parameters, "quick")
    ]
    assert {claim.holds for claim in experiment.claims(parameters, found)} == {None}
