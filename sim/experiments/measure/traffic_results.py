"""The common part of experiments on a traffic network: checks of traffic, running a point, results by their names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import ConfigError
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.setup import ClassSetup

if TYPE_CHECKING:
    from ...systems.traffic_network import TrafficNetwork

__all__ = [
    "ACCEPTED",
    "ACTIVE",
    "MEASURE",
    "OFFERED",
    "check_traffic",
    "measure",
    "percentile",
    "traffic_results",
]

MEASURE = "lanikai.sim.experiments.measure.traffic_results:measure"
"""The `entry` of an experiment whose points are run by `measure`."""

WINDOW_PERIODS = 10
"""Periods of ON and OFF: the time spent ON is then within about a third of its mean, node by node."""
WINDOW_PACKETS = 50
"""Packets of a class in a window, all nodes together: their number is then within 15% of its mean (1 s.d.)."""
ACTIVE = "active_sources"
OFFERED = "offered_flits_per_node_per_cycle"
ACCEPTED = "accepted_flits_per_node_per_cycle"


def traffic_results(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Results from what `measure` returned.

    They are throughput, latency and verdict of all classes together, and of each if there are several (names that begin
    with `class_`, lists in the classes' order). Loads are means over the nodes that send, `active_sources`: a
    permutation leaves those silent whose packets would go to themselves. A class is saturated if not all of its own
    packets arrived in time. Latencies are None where saturated.
    """
    nodes, active = measured["counts"], measured["active"]
    numbers = range(len(nodes[0]))
    together = [counts for node in nodes for counts in node]
    found = _results(together, sum(map(any, active)), measured, saturated=measured["saturated"])
    found["drain_cycles"] = measured["drain_cycles"]
    if len(numbers) > 1:
        each = []
        for number in numbers:
            counts = [node[number] for node in nodes]
            missing = sum(one["offered_packets"] - one["latency_packets"] for one in counts)
            late = missing > 0 or any(one["deferred_cycles"] for one in counts)
            saturated = measured["saturated"] and late
            sources = sum(one[number] for one in active)
            each.append(_results(counts, sources, measured, saturated=saturated))
        found |= {f"class_{key}": [one[key] for one in each] for key in each[0]}
    return found


def _results(
    counts: Sequence[Mapping[str, Any]], sources: int, measured: Mapping[str, Any], *, saturated: bool
) -> dict[str, Any]:
    """Results of some classes of some nodes, of which `sources` send. A result is None where there is no source, a
    latency where there is no packet."""
    packets = sum(one["latency_packets"] for one in counts)
    whole = packets > 0 and not saturated
    histogram: Counter[int] = Counter()
    for one in counts:
        for latency, count in one["histogram"]:
            histogram[latency] += count
    longest = max((one["latency_max_cycles"] or 0 for one in counts), default=0)
    cycles = sources * measured["window_cycles"]
    return {
        ACTIVE: sources,
        OFFERED: sum(one["offered_flits"] for one in counts) / cycles if cycles else None,
        ACCEPTED: sum(one["accepted_flits"] for one in counts) / cycles if cycles else None,
        "latency_mean_cycles": sum(one["latency_sum_cycles"] for one in counts) / packets if whole else None,
        # A bin's last latency is the next above the true percentile; the longest is known exactly.
        "latency_p99_cycles": min(percentile(histogram, 0.99), longest) if whole else None,
        "latency_max_cycles": longest if whole else None,
        "saturated": saturated,
    }


def percentile(histogram: Mapping[int, int], fraction: float) -> int:
    """The smallest value that at least `fraction` of the counts are at or below. `histogram` has counts by value, and
    is not empty."""
    left = fraction * sum(histogram.values())
    for value in sorted(histogram):
        left -= histogram[value]
        if left <= 1e-9:
            return value
    raise ValueError("an empty histogram has no percentile")


def check_traffic(classes: Sequence[ClassSetup], config: TrafficConfig, *, window_cycles: int) -> None:
    """Raise ConfigError for traffic of which a window can say nothing. This is so in three cases:

    - no node sends;
    - the window holds fewer than `WINDOW_PERIODS` periods of ON and OFF;
    - it holds fewer than `WINDOW_PACKETS` packets of a class.
    """
    scarce: dict[int, float] = {}
    for number, setup in enumerate(classes):
        sources = sum(setup.destination(node, config) != node for node in range(config.nodes))
        if not sources:
            raise ConfigError(
                f"class {number}, pattern {setup.pattern!r}: every node's packets would go to itself, so nothing is "
                "sent: give a pattern with other destinations"
            )
        if setup.mode == "on_off" and WINDOW_PERIODS * (setup.on_cycles + setup.off_cycles) > window_cycles:
            raise ConfigError(
                f"on_cycles + off_cycles = {setup.on_cycles + setup.off_cycles}: at most "
                f"{window_cycles // WINDOW_PERIODS}, as a window of {window_cycles} cycles must hold {WINDOW_PERIODS} "
                "periods (the full size has a longer one)"
            )
        packets = sources * window_cycles * setup.mean_load / setup.packet_flits
        if setup.mode != "trace" and packets < WINDOW_PACKETS:
            scarce[number] = packets
    for number, packets in scarce.items():
        setup, few = classes[number], min(scarce.values())
        least = _rounded_up(setup.mean_load * WINDOW_PACKETS / packets)
        will_do = f"which a load of {least:g} has"
        if len(classes) > 1:
            whole = _rounded_up(sum(one.mean_load for one in classes) * WINDOW_PACKETS / few)
            will_do += f" in this class, and {whole:g} of all classes in these shares"
        raise ConfigError(
            f"class {number}: load {setup.mean_load:g} with packets of {setup.packet_flits} flits is "
            f"{packets:.0f} packets in a window of {window_cycles} cycles: at least {WINDOW_PACKETS}, {will_do} "
            "(the full size has a longer window)"
        )


def _rounded_up(load: float) -> float:
    """The load, or a little more: one that will do, in few digits."""
    return math.ceil(load * 10_000) / 10_000


async def measure(system: TrafficNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    classes = [ClassSetup(**setup) for setup in spec["classes"]]
    await system.start_nodes()
    await system.set_classes(classes)
    measured = await system.measure(
        warmup_cycles=spec["warmup_cycles"],
        window_cycles=spec["window_cycles"],
        limit_cycles=spec["limit_cycles"],
    )
    found = measured.as_json()
    traffic = system.config.traffic
    found["active"] = [
        # A source may have more classes than are set up; those stay off.
        [
            number < len(classes) and classes[number].destination(node, traffic) != node
            for number in range(traffic.classes)
        ]
        for node in range(traffic.nodes)
    ]
    for node in found["counts"]:
        for setup, counts in zip(classes, node, strict=False):
            # Where the run ended before all packets of the window were born, the set-up says what was offered.
            if found["saturated"] and counts["deferred_cycles"]:
                counts["offered_flits"] = round(setup.mean_load * spec["window_cycles"])
    return found
