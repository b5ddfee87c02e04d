"""The common part of experiments on a traffic network: checks of traffic, running a point, results by their names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import ConfigError
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.setup import ClassSetup

from ...systems.watch.watching import Watching
from .traffic_tables import PERCENTILES, jain, percentiles

if TYPE_CHECKING:
    from ...systems.traffic_network import TrafficNetwork

__all__ = [
    "ACCEPTED",
    "ACTIVE",
    "MEASURE",
    "NO_PERCENTILES",
    "OFFERED",
    "TABLE_CYCLES",
    "check_traffic",
    "measure",
    "silent_nodes",
    "traffic_results",
]

MEASURE = "lanikai.sim.experiments.measure.traffic_results:measure"
"""The `entry` of an experiment whose points are run by `measure`."""

WINDOW_PERIODS = 10
"""Periods of ON and OFF: the time spent ON is then within about a third of its mean, node by node."""
WINDOW_PACKETS = 50
"""Packets of a class in a window, all nodes together: their number is then within 15% of its mean (1 s.d.)."""
TABLE_CYCLES = 400
"""Time from the commit of a table to its use, where nobody asks: two walks over entries (`VlTables`) take less."""
MOST_NAMED = 16
"""Most silent nodes that a sentence names."""
ACTIVE = "active_sources"
OFFERED = "offered_flits_per_node_per_cycle"
ACCEPTED = "accepted_flits_per_node_per_cycle"


NO_PERCENTILES: Mapping[str, None] = dict.fromkeys((f"latency_{name}_cycles" for name in PERCENTILES), None)
"""The percentiles of a class that is saturated, or has no packet."""


def traffic_results(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Results from what `measure` returned.

    They are throughput, latency and verdict of all classes together, and of each if there are several (names that begin
    with `class_`, lists in the classes' order). Loads are means over the nodes that send, `active_sources`: a
    permutation leaves those silent whose packets would go to themselves. `fairness_jain` is Jain's index of the flits
    that each of them sent in the window. A class is saturated if not all of its own
    packets arrived in time. Latencies are None where saturated.
    """
    nodes, active = measured["counts"], measured["active"]
    numbers = range(len(nodes[0]))
    found = _results(nodes, [any(one) for one in active], measured, saturated=measured["saturated"])
    found["drain_cycles"] = measured["drain_cycles"]
    if len(numbers) > 1:
        each = []
        for number in numbers:
            counts = [node[number] for node in nodes]
            missing = sum(one["offered_packets"] - one["latency_packets"] for one in counts)
            late = missing > 0 or any(one["deferred_cycles"] for one in counts)
            saturated = measured["saturated"] and late
            sends = [one[number] for one in active]
            each.append(_results([[one] for one in counts], sends, measured, saturated=saturated))
        found |= {f"class_{key}": [one[key] for one in each] for key in each[0]}
    return found


def _results(
    nodes: Sequence[Sequence[Mapping[str, Any]]],
    sends: Sequence[bool],
    measured: Mapping[str, Any],
    *,
    saturated: bool,
) -> dict[str, Any]:
    """Results of some classes of all nodes, and whether each node `sends`. A result is None where there is no source, a
    latency where there is no packet."""
    counts, sources = [one for node in nodes for one in node], sum(sends)
    sent = [
        sum(one["injected_flits"] for one in node) for node, does in zip(nodes, sends, strict=True) if does
    ]
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
        **(percentiles(histogram, longest=longest) if whole else NO_PERCENTILES),
        "latency_max_cycles": longest if whole else None,
        "fairness_jain": jain(sent),
        "saturated": saturated,
    }


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


def silent_nodes(classes: Sequence[ClassSetup], nodes: int) -> list[str]:
    """A sentence for each class of which some nodes send nothing, as its pattern leads them to themselves."""
    config = TrafficConfig(nodes=nodes)
    found = []
    for number, setup in enumerate(classes):
        own = [node for node in range(nodes) if setup.destination(node, config) == node]
        if own:
            some = ", ".join(map(str, own[:MOST_NAMED])) + (", ..." if len(own) > MOST_NAMED else "")
            which = f"class {number}, " if len(classes) > 1 else ""
            found.append(
                f"{which}pattern {setup.pattern!r}: {nodes - len(own)} of {nodes} nodes send; "
                f"{'node' if len(own) == 1 else 'nodes'} {some} would send to "
                f"{'itself' if len(own) == 1 else 'themselves'}"
            )
    return found


def _rounded_up(load: float) -> float:
    """The load, or a little more: one that will do, in few digits."""
    return math.ceil(load * 10_000) / 10_000


async def measure(system: TrafficNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point. `spec["watch"]`, if there is one, has the fields of `Watching`, and `spec["table"]` the rows
    (VL, weight) of every router's VL arbiters."""
    classes = [ClassSetup(**setup) for setup in spec["classes"]]
    await system.start_nodes()
    if spec.get("table"):
        for router in range(system.network.routers):
            await system.agent(router).write_tables(high=[], low=[tuple(row) for row in spec["table"]])
        await system.clock.sleep(TABLE_CYCLES)
    await system.set_classes(classes)
    window = {name: spec[name] for name in ("warmup_cycles", "window_cycles")}
    watching = Watching(**spec.get("watch", {}))
    watch = system.watch_traffic(watching, **window) if watching != Watching() else None
    measured = await system.measure(**window, limit_cycles=spec["limit_cycles"])
    found = measured.as_json() | (watch.found() if watch else {})
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
