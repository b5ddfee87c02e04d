"""am-bandwidth: bandwidth of medium messages between two nodes (chun-1998 5.2, figure 6).

A process sends medium requests, as many as it has credits for; the other one answers each with a short reply. Packets
are moved whole: from host memory to the card, over the network, and from the card to host memory.

The SBus bridge of an Ultra 1 has two ways of DMA (`PciTiming.of_sbus`):

- consistent: each burst waits for memory, and the processor sees what was written.
- streaming: buffers of the bridge hide memory. Software must flush them when a transfer is over, by a system call:
  `FLUSH_NS`. Both ends pay it for each message: the sender before its buffer may be used again, the receiver before it
  looks at the data.

The table in `published.toml` names 31 and 23 MB/s. The paper's text says which is which: streaming transfers reach 31
MB/s with messages of 4 KB, and consistent ones 23 MB/s with 8 KB.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import source, table
from ...units import mb_per_s
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from .ends import open_end, pair_of_nodes, start_am

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["FLUSH_NS", "PEAKS", "AmBandwidth", "AmBandwidthParameters"]

TABLE = table("am-bandwidth")
PEAKS = {("streaming", 4096): 31.0, ("consistent", 8192): 23.0}
"""The peaks that the paper's text names, MB/s, by buffers and message size."""
FLUSH_NS = 3_000
"""Flushing the streaming buffers of a transfer: into the kernel and back (2 us, `AmHostConfig.system_call_ns`), a write
to the bridge, and waiting for its flag in memory. Assumption."""
TOLERANCE = 0.1
SMALL_BYTES = 128
MESSAGES = {"quick": 24, "full": 200}
WARM = 8


class AmBandwidthParameters(Config):
    """Parameters of am-bandwidth."""

    buffers: list[Literal["consistent", "streaming"]] = Field(
        ["consistent", "streaming"],
        min_length=1,
        description="ways of DMA through the SBus bridge",
        json_schema_extra={"range": "list of consistent, streaming"},
    )
    message_bytes: list[Annotated[int, Field(ge=4, le=8192, multiple_of=4)]] = Field(
        [128, 512, 1024, 2048, 4096, 8192],
        min_length=1,
        max_length=16,
        description="message sizes, bytes",
        json_schema_extra={"range": "list of multiples of 4, each 4 to 8192"},
    )
    credits: int = Field(
        4,
        ge=1,
        le=15,
        description="messages that may wait for their replies (chun-1998 4.2); 1: one at a time",
    )


class AmBandwidth(Experiment):
    """Medium messages in one direction."""

    name = "am-bandwidth"
    asks = "What bandwidth do medium messages have, with consistent and with streaming buffers?"
    source = source(name)
    entry = "lanikai.sim.experiments.am.bandwidth:measure"
    Parameters = AmBandwidthParameters

    def points(self, parameters: AmBandwidthParameters, size: Size) -> list[Point]:
        """A point for each way and size."""
        found = []
        for way in dict.fromkeys(parameters.buffers):
            for length in dict.fromkeys(parameters.message_bytes):
                peak = PEAKS.get((way, length))
                where = {"buffers": way, "message_bytes": length}
                found.append(
                    Point(
                        label=f"{way}, {length} bytes",
                        parameters=where,
                        spec={**where, "messages": MESSAGES[size], "credits": parameters.credits},
                        published=None if peak is None else {"bandwidth_mb_per_s": peak},
                        tolerance=None if peak is None else {"bandwidth_mb_per_s": TOLERANCE},
                        workload=f"{length} bytes",
                    )
                )
        return found

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """Two nodes on a switch, with these buffers."""
        return pair_of_nodes(streaming=point.parameters["buffers"] == "streaming")

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth, MB/s, and time of a message, microseconds."""
        count, cycles, clock_hz = (measured[name] for name in ("messages", "cycles", "clock_hz"))
        return {
            "bandwidth_mb_per_s": mb_per_s(count * point.parameters["message_bytes"], cycles, clock_hz),
            "message_us": cycles / count / clock_hz * 1e6 if count else None,
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims of figure 6: which way is faster, and where."""
        ways: dict[str, dict[int, float]] = {}
        for one in outcomes:
            where = one.point.parameters
            ways.setdefault(where["buffers"], {})[where["message_bytes"]] = one.results["bandwidth_mb_per_s"]
        consistent, streaming = ways.get("consistent", {}), ways.get("streaming", {})
        both = sorted(consistent.keys() & streaming.keys())
        peaks = [max(found.values()) for found in (consistent, streaming) if found]
        nothing = "no such size was run in both ways"
        return [
            Claim.every(
                "small transfers are faster with consistent buffers",
                (consistent[length] > streaming[length] for length in both if length <= SMALL_BYTES),
                nothing=nothing,
            ),
            Claim.every(
                "large transfers are faster with streaming buffers",
                (streaming[length] > consistent[length] for length in both if length >= 4096),
                nothing=nothing,
            ),
            Claim.every(
                "bandwidth grows with the size of the messages",
                (
                    found[small] < found[large]
                    for found in (consistent, streaming)
                    for small, large in itertools.pairwise(sorted(found))
                ),
                nothing="no two sizes were run",
            ),
            Claim.every(
                "messages that are moved whole do not reach the 38 MB/s of GAM, whose firmware pipelines",
                (0 < peak < TABLE["peak_mb_per_s"]["gam"] for peak in peaks),
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Bandwidth by size, a line a way, and the published peaks."""
        axes = figure.add_subplot()
        for number, way in enumerate(dict.fromkeys(one.point.parameters["buffers"] for one in outcomes)):
            mine = [one for one in outcomes if one.point.parameters["buffers"] == way]
            sizes = [one.point.parameters["message_bytes"] for one in mine]
            bandwidths = [one.results["bandwidth_mb_per_s"] for one in mine]
            axes.plot(sizes, bandwidths, "o-", color=f"C{number}", label=f"{way} DMA")
            for (name, length), peak in PEAKS.items():
                if name == way:
                    axes.plot(length, peak, "x", color=f"C{number}", markersize=10, label=f"{way}, published")
        axes.set_xscale("log", base=2)
        axes.set_xlabel("message size (bytes)")
        axes.set_ylabel("bandwidth (MB/s)")
        axes.set_title("Medium messages between two nodes")
        axes.legend()


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: the time from the reply that ends the warming to the last one."""
    from ...host.am.config import AmHostConfig

    _, drivers = start_am(cluster, costs=AmHostConfig(credits=spec["credits"]))
    clock = cluster.clock
    flush = drivers[0].cycles(FLUSH_NS) if spec["buffers"] == "streaming" else 0
    data = bytes(number % 251 for number in range(spec["message_bytes"]))
    wrong = 0

    async def flushed(arguments: Any) -> None:
        nonlocal wrong
        if flush:
            await clock.sleep(flush)
        wrong += bytes(arguments[0].read()) != data

    client = await open_end(drivers[0], timed=True)
    server = await open_end(drivers[1], takes=flushed)
    await client.to(server)

    async def serve() -> None:
        while True:
            await server.poll()

    clock.spawn(serve(), "server")
    for _ in range(WARM + spec["messages"]):
        await client.until_credit()
        if flush:
            await clock.sleep(flush)
        await client.medium(data)
    await client.answered(WARM + spec["messages"])
    assert not wrong, f"{wrong} messages came with wrong data"
    return {
        "messages": spec["messages"],
        "cycles": client.reply_cycles[-1] - client.reply_cycles[WARM - 1],
        "clock_hz": cluster.config.nic.clock_hz,
    }
