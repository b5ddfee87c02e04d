"""am-virtual-networks: a server with an endpoint for each client (chun-1998 5.4, figures 10 and 11).

A process on one node has N endpoints. Each has a client, a process on another node, that sends requests of 4 words
without end. So there are N virtual networks. The server's program is one of two:

- `one`: a single thread polls all endpoints in turn.
- `threads`: a thread an endpoint sleeps on its semaphore until messages come. Then it takes in all that are there,
  with events off, and sleeps again.

With more endpoints than frames the driver moves them to and fro. A write of a single thread to an endpoint that is not
resident stops the whole server; a thread's stops that thread alone.

The card has 7 frames, and the paper goes to 12 times as many endpoints. Quick runs have 2 frames on the server's card,
and 24 endpoints. Their 24 clients are on 11 other nodes, whose cards have 7 frames, so that no client's endpoint is
moved. Host processors are not simulated: threads cost their switches, but never wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lanikai.hdl.config import Config
from pydantic import Field, field_validator

from ...host.am.policies import POLICIES, find_policy
from ...published import source, table
from ..framework.base import Claim, Experiment, Outcome, Point, Size, within
from .ends import End, figure_3, nodes_of, open_end, start_am

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["AmVirtualNetworks", "AmVirtualNetworksParameters"]

TABLE = table("am-virtual-networks")
PEAK = TABLE["peak_messages_per_s"]
PUBLISHED_FRAMES = TABLE["parameters"]["endpoint_frames"]
OVERCOMMIT = 12
"""Most endpoints a frame, as in the paper's conclusion."""
LEAST_OF_PEAK = 0.8
"""Part of its own peak that a server keeps with 12 times as many endpoints as frames (issue 17)."""
TOLERANCE = 0.1
SERVERS = ("one", "threads")
FRAMES = {"quick": 2, "full": PUBLISHED_FRAMES}
ENDPOINTS = {"quick": (1, 2, 4, 24), "full": (1, 2, 4, 7, 8, 14, 28, 84)}
WARM_US = {"quick": 4_000, "full": 20_000}
TURN_US = 2_500
"""Window for each endpoint a frame: more than an endpoint stays in its frame, so that each has several turns."""
TURNS = {"quick": 4, "full": 20}
LEAST_WINDOW_US = {"quick": 8_000, "full": 50_000}


class AmVirtualNetworksParameters(Config):
    """Parameters of am-virtual-networks."""

    servers: list[Literal["one", "threads"]] = Field(
        ["one", "threads"],
        min_length=1,
        description="programs of the server: one thread, or one an endpoint",
        json_schema_extra={"range": "list of one, threads"},
    )
    endpoints: list[Annotated[int, Field(ge=1, le=256)]] = Field(
        [],
        max_length=16,
        description="numbers of endpoints of the server; empty: those of the size",
        json_schema_extra={"range": "list of numbers, each 1 to 256"},
    )
    policy: str = Field(
        "lru",
        description="which endpoint leaves its frame",
        json_schema_extra={"range": f"one of {', '.join(POLICIES)}"},
    )
    scan_us: int = Field(
        1000, ge=50, le=100_000, description="time between two scans for packets to be sent again"
    )

    @field_validator("policy")
    @classmethod
    def _is_there(cls, policy: str) -> str:
        find_policy(policy)
        return policy


class AmVirtualNetworks(Experiment):
    """A server with many endpoints."""

    name = "am-virtual-networks"
    asks = "What rate has a server with an endpoint a client, with fewer and with more endpoints than frames?"
    source = source(name)
    entry = "lanikai.sim.experiments.am.virtual_networks:measure"
    Parameters = AmVirtualNetworksParameters
    by_flow = ("client_messages_per_s",)
    element = "client"

    def points(self, parameters: AmVirtualNetworksParameters, size: Size) -> list[Point]:
        """A point for each program and number of endpoints."""
        frames = FRAMES[size]
        found = []
        for server in dict.fromkeys(parameters.servers):
            for count in sorted(set(parameters.endpoints or ENDPOINTS[size])):
                window_us = max(LEAST_WINDOW_US[size], TURNS[size] * TURN_US * -(-count // frames))
                found.append(
                    Point(
                        label=f"{server}, {count} endpoints",
                        parameters={
                            "server": server,
                            "endpoints": count,
                            "frames": frames,
                            "nodes": nodes_of(size),
                        },
                        spec={
                            "server": server,
                            "endpoints": count,
                            "frames": frames,
                            "policy": parameters.policy,
                            "scan_us": parameters.scan_us,
                            "warm_us": WARM_US[size],
                            "window_us": window_us if count > frames else LEAST_WINDOW_US[size],
                        },
                    )
                )
        return found

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """The network of figure 3, or the small one."""
        return figure_3(point.parameters["nodes"])

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Rates of the server and of each client, messages a second.

        `least_share` and `most_share`: parts of the mean that the client with the fewest and the most messages has.
        `loads`: endpoints that the server's driver moved into a frame.
        """
        seconds = measured["window_cycles"] / measured["clock_hz"]
        counts = measured["counts"]
        total = sum(counts)
        return {
            "messages_per_s": total / seconds,
            "mean_client_messages_per_s": total / seconds / len(counts),
            "least_share": min(counts) * len(counts) / total if total else 0.0,
            "most_share": max(counts) * len(counts) / total if total else 0.0,
            "loads": measured["loads"],
            "client_messages_per_s": [count / seconds for count in counts],
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims of 5.4 and of issue 17's rate under overcommitment."""
        found: dict[str, dict[int, Outcome]] = {server: {} for server in SERVERS}
        for one in outcomes:
            found[one.point.parameters["server"]][one.point.parameters["endpoints"]] = one
        fits = {
            server: [one for count, one in by_count.items() if count <= one.point.parameters["frames"]]
            for server, by_count in found.items()
        }
        over = {
            server: [one for count, one in by_count.items() if count > one.point.parameters["frames"]]
            for server, by_count in found.items()
        }
        most = [one for one in over["threads"] if _overcommit(one) >= OVERCOMMIT]
        best = {
            server: max((_rate(one) for one in by_count.values()), default=0.0)
            for server, by_count in found.items()
        }
        within_pct, share_pct = TABLE["one_thread_within_pct"], TABLE["per_client_fair_share_within_pct"]
        spread = TABLE["threads_client_spread_pct"]
        few = "no endpoints that all have a frame were run with one thread"
        many = "no more endpoints than frames were run with threads"
        return [
            Claim.every(
                f"one thread, an endpoint a frame at most: the rate is within {within_pct}% of the peak, {PEAK}",
                (within(_rate(one), PEAK, within_pct / 100) for one in fits["one"]),
                nothing=few,
            ),
            Claim.every(
                f"there each client's rate is within {share_pct}% of its fair share",
                (_spread_within(one, share_pct, share_pct) for one in fits["one"]),
                nothing=few,
            ),
            Claim.every(
                f"threads degrade the peak to {TABLE['threads_messages_per_s']} messages a second, within 10%",
                (
                    within(best["threads"], TABLE["threads_messages_per_s"], TOLERANCE)
                    for _ in found["threads"]
                ),
                nothing="threads were not run",
            ),
            Claim.every(
                "with 12 times as many endpoints as frames, threads keep more than 80% of their own peak",
                (_rate(one) > LEAST_OF_PEAK * best["threads"] > 0 for one in most),
                nothing="threads were not run with 12 times as many endpoints as frames",
            ),
            Claim.every(
                f"there clients are at most {spread['above']}% above and {spread['below']}% below the mean",
                (_spread_within(one, spread["above"], spread["below"]) for one in over["threads"]),
                nothing=many,
            ),
            Claim.every(
                "no client starves: each has a quarter of the mean at least",
                (one.results["least_share"] >= 0.25 for one in over["threads"]),
                nothing=many,
            ),
            Claim.every(
                "one thread drops with more endpoints than frames: less than threads at 12 times as many",
                (
                    _rate(one) < _rate(other)
                    for one in over["one"]
                    for other in most
                    if one.point.parameters["endpoints"] == other.point.parameters["endpoints"]
                ),
                nothing="both were not run with 12 times as many endpoints as frames",
            ),
            Claim.every(
                "endpoints move only where there are more than frames",
                (
                    _rate(one) > 0
                    and (one.results["loads"] == 0) == (count <= one.point.parameters["frames"])
                    for by_count in found.values()
                    for count, one in by_count.items()
                ),
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """The server's rate and the clients' over the number of endpoints, with the spread of the clients."""
        panels = figure.subplots(1, 2)
        for number, server in enumerate(SERVERS):
            mine = [one for one in outcomes if one.point.parameters["server"] == server]
            counts = [one.point.parameters["endpoints"] for one in mine]
            if not mine:
                continue
            panels[0].plot(counts, [_rate(one) for one in mine], "o-", color=f"C{number}", label=server)
            means = [one.results["mean_client_messages_per_s"] for one in mine]
            below, above = (
                [mean * abs(one.results[key] - 1) for mean, one in zip(means, mine, strict=True)]
                for key in ("least_share", "most_share")
            )
            panels[1].errorbar(counts, means, yerr=[below, above], fmt="o-", color=f"C{number}", label=server)
        panels[0].axhline(PEAK, color="black", linestyle=":", label="published peak")
        panels[0].axhline(
            TABLE["threads_messages_per_s"], color="grey", linestyle=":", label="published, threads"
        )
        for axes, name in zip(panels, ("server", "a client"), strict=True):
            axes.set_xscale("log", base=2)
            axes.set_xlabel("endpoints of the server")
            axes.set_ylabel(f"messages a second of {name}")
            axes.legend(fontsize=7)
        panels[1].set_yscale("log")
        figure.suptitle("A server with an endpoint a client")


def _rate(one: Outcome) -> float:
    return float(one.results["messages_per_s"])


def _overcommit(one: Outcome) -> float:
    return float(one.point.parameters["endpoints"] / one.point.parameters["frames"])


def _spread_within(one: Outcome, above_pct: float, below_pct: float) -> bool:
    """Whether every client is at most so many percent above and below the mean."""
    return bool(
        one.results["most_share"] <= 1 + above_pct / 100 and one.results["least_share"] >= 1 - below_pct / 100
    )


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: requests that the server's handlers took in a window, of each client."""
    from lanikai.firmware.am.config import VirtualNetworkConfig

    from ...host.am.amii import AM_AllocateBundle, AM_Init
    from ...host.am.config import AmHostConfig

    config = VirtualNetworkConfig(frames=spec["frames"], scan_us=spec["scan_us"])
    clients_config = config.replace(frames=PUBLISHED_FRAMES)
    _, drivers = start_am(cluster, config, AmHostConfig(policy=spec["policy"]), others=clients_config)
    clock, to_cycles = cluster.clock, cluster.config.nic.clock_hz / 1e6
    process = await AM_Init(drivers[0])
    shared = await AM_AllocateBundle(process) if spec["server"] == "one" else None
    others = len(drivers) - 1
    servers = [await open_end(drivers[0], process=process, bundle=shared) for _ in range(spec["endpoints"])]
    clients = [await open_end(drivers[1 + number % others]) for number in range(spec["endpoints"])]

    async def send(client: End, server: End) -> None:
        await client.to(server)
        await clock.sleep(1 + cluster.random.randrange(round(200 * to_cycles)))
        while True:
            await client.request()

    if shared is None:
        for number, server in enumerate(servers):
            clock.spawn(thread(server), f"thread {number}")
    else:
        clock.spawn(poll_all(servers[0]), "server")
    for number, (client, server) in enumerate(zip(clients, servers, strict=True)):
        clock.spawn(send(client, server), f"client {number}")
    await clock.sleep(round(spec["warm_us"] * to_cycles))
    begin, first = clock.cycle, [one.requests for one in servers]
    loads = drivers[0].pager.loads
    await clock.sleep(round(spec["window_us"] * to_cycles))
    return {
        "counts": [one.requests - before for one, before in zip(servers, first, strict=True)],
        "loads": drivers[0].pager.loads - loads,
        "window_cycles": clock.cycle - begin,
        "clock_hz": cluster.config.nic.clock_hz,
    }


async def poll_all(server: End) -> None:
    """The single thread: polls the bundle that all endpoints are in."""
    while True:
        await server.poll()


async def thread(server: End) -> None:
    """The thread of one endpoint."""
    from ...host.am.amii import AM_SetEventMask, AM_WaitSema
    from ...host.am.process import EventMask

    while True:
        await AM_SetEventMask(server.bundle, EventMask.AM_NOTEMPTY)
        await AM_WaitSema(server.bundle)
        await AM_SetEventMask(server.bundle, EventMask.AM_NOEVENTS)
        while await server.poll():
            pass
