"""am-permutations: bandwidth and round trip of every node at once (chun-1998 5.2, table 1), on the network of figure 3.

All nodes send at the same time, each to its partner of a permutation:

- cshift: each to its right neighbour, the last one to the first.
- neighbor: pairs of adjacent nodes.
- bisection: pairs of nodes that the network's bisection separates: node i of the first half with node i of the second.
  With three subclusters of 31, 31 and 30 nodes no pair is in one subcluster.

Bandwidth is measured with medium messages of 8 KB, round trips with messages of 4 words, one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import source, table
from ...units import mb_per_s
from ..framework.base import Claim, Experiment, Outcome, Point, Size, within
from .ends import LARGE_NODES, SILENCE_SCANS, End, figure_3, nodes_of, open_end, start_am

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["AmPermutations", "AmPermutationsParameters", "partners"]

TABLE = table("am-permutations")
TOLERANCE = 0.1
MESSAGES = {"quick": (24, 10), "full": (24, 40)}
"""Medium messages of each node, and round trips. With 8 the first one's way would count for much."""
WARM = 4
MESSAGE_BYTES = 8192
LONE_RTT_US = table("am-logp")["am2_us"]["rtt"]


class AmPermutationsParameters(Config):
    """Parameters of am-permutations."""

    patterns: list[Literal["cshift", "neighbor", "bisection"]] = Field(
        ["cshift", "neighbor", "bisection"],
        min_length=1,
        description="permutations",
        json_schema_extra={"range": "list of cshift, neighbor, bisection"},
    )
    buffers: Literal["consistent", "streaming"] = Field(
        "streaming",
        description="buffers of the SBus bridge, as in am-bandwidth: table 1 has the peak of streaming ones",
    )


def partners(pattern: str, nodes: int) -> list[int]:
    """The node that each of an even number of nodes sends to."""
    if pattern == "cshift":
        return [(node + 1) % nodes for node in range(nodes)]
    if pattern == "neighbor":
        return [node ^ 1 for node in range(nodes)]
    half = nodes // 2
    return [(node + half) % nodes for node in range(nodes)]


class AmPermutations(Experiment):
    """Every node sends to its partner."""

    name = "am-permutations"
    asks = "What bandwidth and round trip has each node, if all nodes send at once?"
    source = source(name)
    entry = "lanikai.sim.experiments.am.permutations:measure"
    Parameters = AmPermutationsParameters
    by_flow = ("node_mb_per_s", "node_rtt_us")
    element = "node"

    def points(self, parameters: AmPermutationsParameters, size: Size) -> list[Point]:
        """A point for each permutation. Published numbers are those of 92 nodes."""
        messages, rounds = MESSAGES[size]
        found = []
        for pattern in dict.fromkeys(parameters.patterns):
            row = TABLE.get(pattern, {}) if size == "full" else {}
            published = {
                mine: row[theirs]
                for mine, theirs in (
                    ("bandwidth_mb_per_s", "mb_per_s"),
                    ("aggregate_gb_per_s", "aggregate_gb_per_s"),
                    ("rtt_us", "rtt_us"),
                )
                if theirs in row
            }
            found.append(
                Point(
                    label=pattern,
                    parameters={"pattern": pattern, "nodes": nodes_of(size)},
                    spec={
                        "partners": partners(pattern, nodes_of(size)),
                        "messages": messages,
                        "rounds": rounds,
                        "streaming": parameters.buffers == "streaming",
                    },
                    published=published or None,
                    tolerance=dict.fromkeys(published, TOLERANCE) or None,
                )
            )
        return found

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """The network of figure 3, or the small one."""
        return figure_3(point.parameters["nodes"], streaming=parameters.buffers == "streaming")

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Mean bandwidth of a node, their sum, mean round trip, and those of each node."""
        clock_hz = measured["clock_hz"]
        moved = point.spec["messages"] * MESSAGE_BYTES
        rates = [mb_per_s(moved, cycles, clock_hz) for cycles in measured["sent_cycles"]]
        trips = [cycles / point.spec["rounds"] / clock_hz * 1e6 for cycles in measured["rounds_cycles"]]
        return {
            "bandwidth_mb_per_s": sum(rates) / len(rates),
            "aggregate_gb_per_s": sum(rates) / 1000,
            "rtt_us": sum(trips) / len(trips),
            "node_mb_per_s": rates,
            "node_rtt_us": trips,
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims in words of 5.2."""
        found = {one.point.parameters["pattern"]: one for one in outcomes}
        local = [found[name] for name in ("cshift", "neighbor") if name in found]
        far = found.get("bisection")
        scaled = (
            "12 nodes do not saturate the small network"
            if outcomes and (outcomes[0].point.parameters["nodes"] != LARGE_NODES)
            else ""
        )
        peak = 31.0
        return [
            Claim.every(
                "circular shift and neighbor exchange have the peak of two nodes, 31 MB/s, within 10%",
                (within(one.results["bandwidth_mb_per_s"], peak, TOLERANCE) for one in local),
            ),
            Claim.every(
                "their round trips are within 20% of that of two nodes alone, 41.94 us",
                (0 < one.results["rtt_us"] <= 1.2 * LONE_RTT_US for one in local),
            ),
            Claim.every(
                "the bisection exchange saturates the network: less than a third of the peak",
                (0 < far.results["bandwidth_mb_per_s"] < peak / 3 for _ in range(1) if far is not None),
            ).unless(scaled),
            Claim.every(
                "its short round trips suffer little: within 10% of those of neighbors",
                (
                    far.results["rtt_us"] > 0
                    and within(far.results["rtt_us"], found["neighbor"].results["rtt_us"], TOLERANCE)
                    for _ in range(1)
                    if far is not None and "neighbor" in found
                ),
                nothing="bisection and neighbor were not both run",
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Bandwidth and round trip of each node, sorted, a line a permutation."""
        panels = figure.subplots(1, 2)
        for axes, key, name in zip(
            panels, ("node_mb_per_s", "node_rtt_us"), ("bandwidth (MB/s)", "round trip (µs)"), strict=True
        ):
            for number, one in enumerate(outcomes):
                values = sorted(one.results[key])
                axes.plot(range(1, len(values) + 1), values, color=f"C{number}", label=one.point.label)
                mean = (one.point.published or {}).get(
                    "bandwidth_mb_per_s" if key == "node_mb_per_s" else "rtt_us"
                )
                if mean is not None:
                    axes.axhline(
                        mean, color=f"C{number}", linestyle=":", label=f"{one.point.label}, published"
                    )
            axes.set_xlabel("nodes, sorted")
            axes.set_ylabel(name)
            axes.legend(fontsize=7)
        figure.suptitle("Every node sends to its partner")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: every node first sends its medium messages, then its short ones, each when all are ready."""
    from lanikai.firmware.am.config import VirtualNetworkConfig

    from .bandwidth import FLUSH_NS

    _, drivers = start_am(cluster, VirtualNetworkConfig(silence_scans=SILENCE_SCANS))
    clock, nodes = cluster.clock, len(spec["partners"])
    flush = drivers[0].cycles(FLUSH_NS) if spec["streaming"] else 0
    data = bytes(number % 251 for number in range(MESSAGE_BYTES))

    async def flushed(arguments: Any) -> None:
        if flush and len(arguments) == 2:
            await clock.sleep(flush)

    ends = [await open_end(driver, takes=flushed) for driver in drivers]
    for end, partner in zip(ends, spec["partners"], strict=True):
        await end.to(ends[partner])
    ready, over = [0] * 3, clock.flag()
    sent, rounds = [0] * nodes, [0] * nodes

    async def all_are(stage: int, end: End) -> None:
        ready[stage] += 1
        while ready[stage] < nodes:
            await end.poll()

    async def program(node: int) -> None:
        end = ends[node]
        for _ in range(WARM):
            await end.request()
        await end.answered(WARM)
        await all_are(0, end)
        begin = clock.cycle
        for _ in range(spec["messages"]):
            await end.until_credit()
            if flush:
                await clock.sleep(flush)
            await end.medium(data)
        await end.answered(WARM + spec["messages"])
        sent[node] = clock.cycle - begin
        await all_are(1, end)
        begin = clock.cycle
        for number in range(spec["rounds"]):
            await end.request()
            await end.answered(WARM + spec["messages"] + number + 1)
        rounds[node] = clock.cycle - begin
        await all_are(2, end)
        over.set()

    for node in range(nodes):
        clock.spawn(program(node), f"program {node}")
    await over.wait()
    return {"sent_cycles": sent, "rounds_cycles": rounds, "clock_hz": cluster.config.nic.clock_hz}
