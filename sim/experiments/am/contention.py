"""am-contention: one server endpoint and a growing number of clients (chun-1998 5.3, figures 7 to 9).

Each client is a process on a node of its own that sends requests to the server's endpoint without end. Three loads:

- `rate` (figure 7): requests of 4 words, as many as there are credits for.
- `bulk` (figure 8): bulk requests of 1 KB, as many as there are credits for.
- `rtt` (figure 9): requests of 4 words, one at a time: a client's time of a round trip.

What is counted are requests that the server's handler takes in a window, after a time for the beginning. Client starts
are spread at random.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import table
from ..framework.base import Claim, Experiment, Outcome, Point, Size, within
from .ends import SILENCE_SCANS, figure_3, nodes_of, open_end, start_am

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["AmContention", "AmContentionParameters", "slope"]

GAP_US = table("am-logp")["am2_us"]["gap"]
LOADS = ("rate", "bulk", "rtt")
BULK_BYTES = 1024
TOLERANCE = 0.1
CLIENTS = {"quick": (1, 2, 4, 8, 11), "full": (1, 2, 4, 8, 16, 32, 64, 91)}
WINDOWS_US = {"quick": (1_500, 4_000), "full": (5_000, 20_000)}
"""Time for the beginning, and measured."""
SATURATED = 4
"""Clients from which on the server is surely busy: 3 round trips of 41.94 us are less than 4 gaps of 15.98 us."""


class AmContentionParameters(Config):
    """Parameters of am-contention."""

    loads: list[Literal["rate", "bulk", "rtt"]] = Field(
        ["rate", "bulk", "rtt"],
        min_length=1,
        description="loads: figures 7, 8 and 9",
        json_schema_extra={"range": "list of rate, bulk, rtt"},
    )
    clients: list[Annotated[int, Field(ge=1, le=91)]] = Field(
        [],
        max_length=16,
        description="numbers of clients; empty: those of the size",
        json_schema_extra={"range": "list of numbers, each 1 to 91"},
    )
    scan_us: int = Field(
        1000, ge=50, le=100_000, description="time between two scans for packets to be sent again"
    )
    silence_scans: int = Field(
        SILENCE_SCANS,
        ge=1,
        le=255,
        description="scans without an answer before a packet is sent again; with 10 and the 255 tries of chun-1998 "
        "4.4.2 a card is given up after 2.8 s",
    )


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope of the straight line with the least squares through points; None for fewer than two places."""
    if len({x for x, _ in points}) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / sum((x - mean_x) ** 2 for x, _ in points)


class AmContention(Experiment):
    """Clients of one endpoint."""

    name = "am-contention"
    asks = "What do rate, bandwidth and round trip become, as more and more clients send to one endpoint?"
    source = "chun-1998 5.3, figures 7 to 9"
    entry = "lanikai.sim.experiments.am.contention:measure"
    Parameters = AmContentionParameters
    by_flow = ("client_messages_per_s",)
    element = "client"

    def points(self, parameters: AmContentionParameters, size: Size) -> list[Point]:
        """A point for each load and number of clients."""
        warm_us, window_us = WINDOWS_US[size]
        return [
            Point(
                label=f"{load}, {count} clients",
                parameters={"load": load, "clients": count, "nodes": nodes_of(size, at_least=count + 1)},
                spec={
                    "load": load,
                    "clients": count,
                    "warm_us": warm_us,
                    "window_us": window_us,
                    "scan_us": parameters.scan_us,
                    "silence_scans": parameters.silence_scans,
                },
            )
            for load in dict.fromkeys(parameters.loads)
            for count in sorted(set(parameters.clients or CLIENTS[size]))
        ]

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """The network of figure 3, or the small one."""
        return figure_3(point.parameters["nodes"])

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Rates, MB/s, and mean time of a round trip.

        - `messages_per_s`: of the server. `client_messages_per_s`: of each client.
        - `least_share`: part that the client with the fewest messages has of the mean.
        - `rtt_us`: mean over all requests of a client that had their reply in the window; None without any.
        """
        seconds = measured["window_cycles"] / measured["clock_hz"]
        counts = measured["counts"]
        total = sum(counts)
        waited = measured["rtt_cycles"]
        found = {
            "messages_per_s": total / seconds,
            "mean_client_messages_per_s": total / seconds / len(counts),
            "least_share": min(counts) * len(counts) / total if total else 0.0,
            "client_messages_per_s": [count / seconds for count in counts],
            "rtt_us": sum(waited) / len(waited) / measured["clock_hz"] * 1e6 if waited else None,
        }
        if point.parameters["load"] == "bulk":
            found["bandwidth_mb_per_s"] = total * BULK_BYTES / seconds / 1e6
        return found

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims of figures 7, 8 and 9."""
        found: dict[str, dict[int, Mapping[str, Any]]] = {load: {} for load in LOADS}
        for one in outcomes:
            found[one.point.parameters["load"]][one.point.parameters["clients"]] = one.results
        busy = {
            load: {count: one for count, one in by_count.items() if count >= SATURATED}
            for load, by_count in found.items()
        }
        line = slope(
            [(count, one["rtt_us"]) for count, one in busy["rtt"].items() if one["rtt_us"] is not None]
        )
        several = "fewer than two numbers of clients of 4 or more were run"
        peak = max((one["messages_per_s"] for one in found["rate"].values()), default=0.0)
        return [
            *(
                Claim.every(
                    f"{figure}: {what} degrades gracefully: with 4 clients or more within 20% of its peak",
                    self._stays(busy[load], key),
                    nothing=several,
                )
                for load, key, figure, what in (
                    ("rate", "messages_per_s", "figure 7", "the server's message rate"),
                    ("bulk", "bandwidth_mb_per_s", "figure 8", "the server's bandwidth"),
                )
            ),
            Claim.every(
                "figure 7: the peak is within 10% of a message a gap of 15.98 us",
                (within(peak, 1e6 / GAP_US, TOLERANCE) for _ in busy["rate"]),
            ),
            *(
                Claim.every(
                    f"{figure}: a client's mean {what} falls as clients are added",
                    (
                        later["mean_client_messages_per_s"] < earlier["mean_client_messages_per_s"]
                        for (_, earlier), (_, later) in itertools.pairwise(sorted(found[load].items()))
                    ),
                    nothing="fewer than two numbers of clients were run",
                )
                for load, figure, what in (("rate", "figure 7", "rate"), ("bulk", "figure 8", "bandwidth"))
            ),
            Claim.every(
                "figure 9: the slope of the round trip over clients is the gap, 15.98 us, within 10%",
                (within(line, GAP_US, TOLERANCE) for _ in range(1) if line is not None),
                nothing=several,
            ),
            Claim.every(
                "no client starves: each has a quarter of the mean at least",
                (one["least_share"] >= 0.25 for by_count in found.values() for one in by_count.values()),
            ),
        ]

    @staticmethod
    def _stays(busy: Mapping[int, Mapping[str, Any]], key: str) -> list[bool]:
        values = [one[key] for one in busy.values()]
        return [value >= 0.8 * max(values) > 0 for value in values] if len(values) > 1 else []

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """The three figures side by side."""
        loads = [load for load in LOADS if any(one.point.parameters["load"] == load for one in outcomes)]
        panels = figure.subplots(1, len(loads), squeeze=False)[0]
        figure.set_size_inches(4 * len(loads), 4)
        for axes, load in zip(panels, loads, strict=True):
            mine = [one for one in outcomes if one.point.parameters["load"] == load]
            counts = [one.point.parameters["clients"] for one in mine]
            key, name = {
                "rate": ("messages_per_s", "messages a second"),
                "bulk": ("bandwidth_mb_per_s", "bandwidth (MB/s)"),
                "rtt": ("rtt_us", "round trip (µs)"),
            }[load]
            axes.plot(
                counts, [one.results[key] for one in mine], "o-", label="server" if load != "rtt" else "mean"
            )
            if load == "rtt":
                axes.plot(
                    counts, [GAP_US * count for count in counts], ":", label="a gap of 15.98 µs a client"
                )
            else:
                axes.plot(
                    counts,
                    [one.results[key] / one.point.parameters["clients"] for one in mine],
                    "s-",
                    label="a client, mean",
                )
            axes.set_xlabel("clients")
            axes.set_ylabel(name)
            axes.legend(fontsize=7)
        figure.suptitle("One server endpoint")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from lanikai.firmware.am.config import VirtualNetworkConfig

    config = VirtualNetworkConfig(scan_us=spec["scan_us"], silence_scans=spec["silence_scans"])
    _, drivers = start_am(cluster, config)
    clock, load = cluster.clock, spec["load"]
    to_cycles = cluster.config.nic.clock_hz / 1e6
    bulk = BULK_BYTES if load == "bulk" else 0
    server = await open_end(drivers[0], segment_bytes=bulk)
    clients = [await open_end(driver) for driver in drivers[1 : spec["clients"] + 1]]
    data = bytes(number % 251 for number in range(bulk))
    trips: list[int] = []
    open_cycle, close_cycle = 0, 0

    async def serve() -> None:
        while True:
            await server.poll()

    async def send(client: Any, delay: int) -> None:
        await client.to(server)
        await clock.sleep(1 + delay)
        while True:
            begin, before = clock.cycle, client.replies
            if load == "bulk":
                await client.bulk(data)
            else:
                await client.request()
            if load == "rtt":
                await client.answered(before + 1)
                if open_cycle and begin >= open_cycle and not close_cycle:
                    trips.append(clock.cycle - begin)

    clock.spawn(serve(), "server")
    for number, client in enumerate(clients):
        clock.spawn(send(client, cluster.random.randrange(round(200 * to_cycles))), f"client {number}")
    await clock.sleep(round(spec["warm_us"] * to_cycles))
    open_cycle, first = clock.cycle, dict(server.sources)
    await clock.sleep(round(spec["window_us"] * to_cycles))
    close_cycle = clock.cycle
    counts = [server.sources.get(one.name, 0) - first.get(one.name, 0) for one in clients]
    return {
        "counts": counts,
        "rtt_cycles": trips,
        "window_cycles": close_cycle - open_cycle,
        "clock_hz": cluster.config.nic.clock_hz,
    }
