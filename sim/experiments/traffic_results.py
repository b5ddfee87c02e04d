"""What the experiments on a network bench have in common: running a point, and its results by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.traffic.setup import ClassSetup

if TYPE_CHECKING:
    from ..network.bench import NetworkBench

__all__ = ["ACCEPTED", "MEASURE", "OFFERED", "measure", "percentile", "traffic_results"]

MEASURE = "lanikai.sim.experiments.traffic_results:measure"
"""The `entry` of an experiment whose points are run by `measure`."""

OFFERED = "offered_flits_per_node_per_cycle"
ACCEPTED = "accepted_flits_per_node_per_cycle"


def traffic_results(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Results of what `measure` returned: throughput, latency and verdict of all classes together, and of each if
    there are several (names that begin with `class_`, lists in the classes' order).

    A class is saturated if not all of its own packets arrived in time. Latencies are None where saturated.
    """
    nodes = measured["counts"]
    numbers = range(len(nodes[0]))
    together = [counts for node in nodes for counts in node]
    found = _results(together, len(nodes), measured, saturated=measured["saturated"])
    found["drain_cycles"] = measured["drain_cycles"]
    if len(numbers) > 1:
        each = []
        for number in numbers:
            counts = [node[number] for node in nodes]
            missing = sum(one["offered_packets"] - one["latency_packets"] for one in counts)
            late = missing > 0 or any(one["deferred_cycles"] for one in counts)
            saturated = measured["saturated"] and late
            each.append(_results(counts, len(nodes), measured, saturated=saturated))
        found |= {f"class_{key}": [one[key] for one in each] for key in each[0]}
    return found


def _results(
    counts: Sequence[Mapping[str, Any]], nodes: int, measured: Mapping[str, Any], *, saturated: bool
) -> dict[str, Any]:
    """Results of some classes of some nodes; latencies are None without a packet too."""
    packets = sum(one["latency_packets"] for one in counts)
    whole = packets > 0 and not saturated
    histogram: Counter[int] = Counter()
    for one in counts:
        for latency, count in one["histogram"]:
            histogram[latency] += count
    longest = max((one["latency_max_cycles"] or 0 for one in counts), default=0)
    cycles = nodes * measured["window_cycles"]
    return {
        OFFERED: sum(one["offered_flits"] for one in counts) / cycles,
        ACCEPTED: sum(one["accepted_flits"] for one in counts) / cycles,
        "latency_mean_cycles": sum(one["latency_sum_cycles"] for one in counts) / packets if whole else None,
        # A bin's last latency is the next above the true percentile; the longest is known exactly.
        "latency_p99_cycles": min(percentile(histogram, 0.99), longest) if whole else None,
        "latency_max_cycles": longest if whole else None,
        "saturated": saturated,
    }


def percentile(histogram: Mapping[int, int], fraction: float) -> int:
    """The smallest value that at least `fraction` of the counts are at or below; counts by value, not
    empty."""
    left = fraction * sum(histogram.values())
    for value in sorted(histogram):
        left -= histogram[value]
        if left <= 1e-9:
            return value
    raise ValueError("an empty histogram has no percentile")


async def measure(bench: NetworkBench, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    classes = [ClassSetup(**setup) for setup in spec["classes"]]
    await bench.start_nodes()
    await bench.set_classes(classes)
    measured = await bench.measure(
        warmup_cycles=spec["warmup_cycles"],
        window_cycles=spec["window_cycles"],
        limit_cycles=spec["limit_cycles"],
    )
    found = measured.as_json()
    for node in found["counts"]:
        # A source may have more classes than are set up; those stay off.
        for setup, counts in zip(classes, node, strict=False):
            # Births that a full queue put off are offered all the same, when the set-up says.
            if counts["deferred_cycles"]:
                counts["offered_flits"] = round(setup.load * spec["window_cycles"])
    return found
