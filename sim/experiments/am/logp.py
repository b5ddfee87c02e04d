"""am-logp: the LogP signature of short messages (chun-1998 5.1, figure 5), and what each layer of the firmware adds.

Two processes on two nodes. The method is that of Culler, Liu, Martin and Yoshikawa, "Assessing Fast Network Interfaces"
(1996), with requests and replies of 4 words:

- `rtt`: from a request's call to the end of the handler of its reply, one request at a time.
- `o_send`: the time of the call of a request that has a credit.
- `o_recv`: the time of the poll that takes in one reply, a while after it has come.
- `gap`: the time of a request in a long burst. It is that of the slowest stage only if enough requests are under way.
  Four, the paper's credits, are not: a round trip of 37.45 us allows one every 9.36 us at best. So the burst has 8.
- `latency`: half of `rtt`, less both overheads.

The breakdown is three programs: without acknowledgements and without checks; with acknowledgements; with both. The
paper compiles its firmware in the same three ways. The firmware's costs are fitted to the first one alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import source, table
from ..framework.base import Claim, Experiment, Outcome, Point, Size, within
from .ends import open_end, pair_of_nodes, start_am

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["LAYERS", "AmLogp", "AmLogpParameters", "published_us"]

TABLE = table("am-logp")
LAYERS = {
    "baseline": {"reliability": False, "protection": False},
    "reliability": {"reliability": True, "protection": False},
    "protection": {"reliability": True, "protection": True},
}
"""The three programs, each with what the one before has."""
TIMES = ("gap", "latency", "rtt")
"""Parameters that the paper breaks down."""
TOLERANCE = 0.1
SIZES = {"quick": (20, 200), "full": (100, 2000)}
"""Requests one at a time, and of the burst."""
WARM = 8
PAUSE_CYCLES = 3_000
"""Pause, 80 us, after which a reply has come and nothing is under way."""


class AmLogpParameters(Config):
    """Parameters of am-logp."""

    credits: int = Field(
        8,
        ge=1,
        le=15,
        description="requests that may wait for their replies: more than the 4 of chun-1998 4.2, so that the burst "
        "fills the slowest stage",
    )


def published_us(layer: str) -> dict[str, float]:
    """The published parameters of a program, by the name of the result, microseconds."""
    parts = TABLE["am2_breakdown_us"]
    upto = list(LAYERS)[: list(LAYERS).index(layer) + 1]
    found = {f"{name}_us": round(sum(parts[name][part] for part in upto), 2) for name in TIMES}
    if layer == "protection":
        # The whole program, whose parameters the paper gives: the parts add up to them.
        found |= {f"{name}_us": TABLE["am2_us"][name] for name in ("o_send", "o_recv", *TIMES)}
    return found


class AmLogp(Experiment):
    """Bursts and round trips of short messages."""

    name = "am-logp"
    asks = (
        "What are overheads, gap and latency of short messages, and what do reliability and protection add?"
    )
    source = source(name)
    entry = "lanikai.sim.experiments.am.logp:measure"
    Parameters = AmLogpParameters

    def points(self, parameters: AmLogpParameters, size: Size) -> list[Point]:
        """A point for each of the three programs."""
        rounds, burst = SIZES[size]
        found = []
        for layer, switches in LAYERS.items():
            published = published_us(layer) if parameters == AmLogpParameters() else None
            found.append(
                Point(
                    label="baseline" if layer == "baseline" else f"and {layer}",
                    parameters={"layer": layer},
                    spec={**switches, "rounds": rounds, "burst": burst, "credits": parameters.credits},
                    published=published,
                    tolerance=published and dict.fromkeys(published, TOLERANCE),
                    workload="the same messages",
                )
            )
        return found

    def cluster(self, parameters: Any) -> ClusterConfig:
        """Two nodes on a switch."""
        return pair_of_nodes()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of LogP, microseconds."""
        to_us = 1e6 / measured["clock_hz"]
        found = {
            f"{name}_us": sum(times) / len(times) * to_us
            for name, times in measured["cycles"].items()
            if name != "burst"
        }
        found["latency_us"] = found["rtt_us"] / 2 - found["o_send_us"] - found["o_recv_us"]
        found["gap_us"] = measured["burst_cycles"] / measured["burst_messages"] * to_us
        return found

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The part of each layer, and the paper's words on these numbers."""
        found = {one.point.parameters["layer"]: one.results for one in outcomes}
        parts, order = TABLE["am2_breakdown_us"], list(LAYERS)
        claims = []
        for before, layer in itertools.pairwise(order):
            for name in TIMES:
                key, added = f"{name}_us", parts[name][layer]
                claims.append(
                    Claim.every(
                        f"{layer} adds {added} us to {name}, within 10%",
                        (
                            within(found[layer][key] - found[before][key], added, TOLERANCE)
                            for _ in range(1)
                            if {before, layer} <= found.keys()
                        ),
                        nothing=f"{before} and {layer} were not both run",
                    )
                )
        whole = [found["protection"]] if "protection" in found else []
        nothing = "the whole program was not run"
        claims += [
            Claim.every(
                "the firmware limits the rate of short messages: the gap is more than both overheads",
                (one["gap_us"] > one["o_send_us"] + one["o_recv_us"] for one in whole),
                nothing=nothing,
            ),
            Claim.every(
                "the round trip is within 10% of twice that of Generic Active Messages, 21 us",
                (within(one["rtt_us"], 2 * TABLE["gam_us"]["rtt"], TOLERANCE) for one in whole),
                nothing=nothing,
            ),
        ]
        why = "" if parameters == AmLogpParameters() else "with other credits the burst is another one"
        return [claim.unless(why) for claim in claims]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Parameters of each program beside the published ones."""
        axes = figure.add_subplot()
        names = ("o_send", "o_recv", *TIMES)
        for number, one in enumerate(outcomes):
            places = [5 * place + number for place in range(len(names))]
            axes.bar(places, [one.results[f"{name}_us"] for name in names], label=one.point.label)
            for place, name in zip(places, names, strict=True):
                published = (one.point.published or {}).get(f"{name}_us")
                if published is not None:
                    axes.hlines(published, place - 0.4, place + 0.4, colors="black", linewidth=2)
        axes.plot([], [], color="black", linewidth=2, label="published")
        axes.set_xticks([5 * place + 1 for place in range(len(names))], names)
        axes.set_ylabel("time (µs)")
        axes.set_title("LogP signature of short messages")
        axes.legend()


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from lanikai.firmware.am.config import VirtualNetworkConfig

    from ...host.am.config import AmHostConfig

    config = VirtualNetworkConfig(reliability=spec["reliability"], protection=spec["protection"])
    _, drivers = start_am(cluster, config, AmHostConfig(credits=spec["credits"]))
    client, server = await open_end(drivers[0]), await open_end(drivers[1])
    await client.to(server)
    # Without acknowledgements a message for an endpoint that is not resident would be lost.
    for end in (client, server):
        await end.load()
    clock = cluster.clock

    async def serve() -> None:
        while True:
            await server.poll()

    clock.spawn(serve(), "server")
    times: dict[str, list[int]] = {"o_send": [], "o_recv": [], "rtt": []}
    for number in range(WARM + spec["rounds"]):
        begin = clock.cycle
        await client.request()
        posted = clock.cycle
        await client.answered(number + 1)
        if number >= WARM:
            times["o_send"].append(posted - begin)
            times["rtt"].append(clock.cycle - begin)
        await clock.sleep(PAUSE_CYCLES)
    for _ in range(spec["rounds"]):
        await client.request()
        await clock.sleep(PAUSE_CYCLES)
        begin, before = clock.cycle, client.replies
        await client.poll()
        assert client.replies == before + 1
        times["o_recv"].append(clock.cycle - begin)
    warm = max(WARM, 4 * spec["credits"])
    for _ in range(warm):
        await client.request()
    begin = clock.cycle
    for _ in range(spec["burst"]):
        await client.request()
    return {
        "cycles": times,
        "burst_cycles": clock.cycle - begin,
        "burst_messages": spec["burst"],
        "clock_hz": cluster.config.nic.clock_hz,
    }
