"""descriptor-fetch: the cost of bringing a descriptor to the card.

A descriptor comes by a DMA of its own, with the data of the message before it, or by programmed I/O. The thesis,
nagar-thesis-2001, measures whole systems under load and gives curves: 4.3.9 (tailgated descriptors, figure 4.14) and
4.3.11 (shadow queues, figure 4.16). Here are two processes on two `lanai7` cards with the blocks of owners, the work
queue program, and nothing else on the way. A burst of messages is posted with one doorbell. It is timed from the call
that posts it until the receiving process has seen each completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config, NicConfig, preset
from pydantic import Field

from .framework.base import Claim, Experiment, Outcome, Point, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.cluster import Cluster, ClusterConfig

__all__ = ["DescriptorFetch", "DescriptorFetchParameters"]

WAYS = ("fetched", "tailgated", "shadow")
ENTRIES = 16
"""Descriptors of a work queue: the longest burst."""
ROUNDS = {"quick": 4, "full": 16}
"""Bursts that are measured. One before them is not: it fills the card's cache of page table entries."""
NIC = preset(
    NicConfig,
    "lanai7",
    channels=16,
    owners=4,
    receive_doorbells="merged",
    shadow_windows=True,
    completion_queues=4,
    regions=8,
)
Bytes = Annotated[int, Field(ge=4, le=NIC.mtu_bytes, multiple_of=4)]
Burst = Annotated[int, Field(ge=1, le=ENTRIES)]


class DescriptorFetchParameters(Config):
    """Parameters of descriptor-fetch. The thesis' sizes are 128 bytes, 1 KB and 4 KB; two messages on a channel at once
    are its type IV."""

    message_bytes: list[Bytes] = Field(
        [128, 1024, 4096],
        min_length=1,
        max_length=16,
        description="message sizes, bytes",
        json_schema_extra={"range": f"list of multiples of 4, each 4 to {NIC.mtu_bytes}"},
    )
    bursts: list[Burst] = Field(
        [1, 2, 8],
        min_length=1,
        max_length=16,
        description="messages posted to a queue at once",
        json_schema_extra={"range": f"list of numbers, each 1 to {ENTRIES}"},
    )


class DescriptorFetch(Experiment):
    """One process sends to another, in bursts."""

    name = "descriptor-fetch"
    asks = "What does a descriptor cost on its way to the card: fetched, behind the data before it, or written there?"
    source = "nagar-thesis-2001 4.3.9, 4.3.11 (curves of whole systems; no numbers for a message alone)"
    entry = "lanikai.sim.experiments.descriptor_fetch:measure"
    Parameters = DescriptorFetchParameters

    def points(self, parameters: DescriptorFetchParameters, size: Size) -> list[Point]:
        """A point for each way, burst and size."""
        return [
            Point(
                label=f"{way}, {burst} of {length} bytes",
                parameters={"way": way, "burst": burst, "message_bytes": length},
                spec={"way": way, "burst": burst, "message_bytes": length, "rounds": ROUNDS[size]},
            )
            for length in parameters.message_bytes
            for burst in parameters.bursts
            for way in WAYS
        ]

    def cluster(self, parameters: Any) -> ClusterConfig:
        """Two `lanai7` nodes whose cards have the blocks of owners."""
        from ..systems.cluster import cluster_preset

        return cluster_preset("lanai7", nodes=2, nic=NIC, firmware="work_queue", memory_bytes=1 << 20)

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Latency of a burst's first message and of its last, and its time a message, microseconds. Then starts of the
        host DMA engine of the sender's card a message, and the bytes' hash."""
        to_us = 1e6 / NIC.clock_hz
        first, last = (
            sum(cycles) / len(cycles) * to_us
            for cycles in (measured["first_cycles"], measured["last_cycles"])
        )
        messages = point.parameters["burst"] * (point.spec["rounds"] + 1)
        return {
            "latency_first_us": first,
            "latency_last_us": last,
            "message_us": last / point.parameters["burst"],
            "dma_starts_a_message": measured["starts"] / messages,
            "sha256": measured["sha256"],
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: the same bytes; a shadow is sooner; a tailgated descriptor is sooner behind the first, and not at
        it."""
        by_case: dict[tuple[int, int], dict[str, Mapping[str, Any]]] = {}
        for one in outcomes:
            key = one.point.parameters
            by_case.setdefault((key["message_bytes"], key["burst"]), {})[key["way"]] = one.results
        cases = [(key, ways) for key, ways in by_case.items() if ways.keys() >= set(WAYS)]
        bursts = [(key, ways) for key, ways in cases if key[1] > 1]
        single = [ways for key, ways in cases if key[1] == 1]
        gains = [1 - ways["tailgated"]["message_us"] / ways["fetched"]["message_us"] for _, ways in bursts]
        spared = [
            ways["fetched"]["latency_first_us"] - ways["shadow"]["latency_first_us"] for _, ways in cases
        ]
        return [
            Claim.every(
                "all three ways move the same bytes",
                (len({found["sha256"] for found in ways.values()}) == 1 for _, ways in cases),
            ),
            Claim.every(
                "a shadow is sooner than a fetched descriptor, whatever the size: by "
                f"{min(spared, default=0):.2f} to {max(spared, default=0):.2f} us",
                (one > 0 for one in spared),
            ),
            Claim.every(
                f"in bursts a tailgated descriptor is sooner than a fetched one: {min(gains, default=0):.1%} to "
                f"{max(gains, default=0):.1%} a message",
                (one > 0 for one in gains),
                nothing="no burst of the points is of two messages or more",
            ),
            Claim.every(
                "a message alone is fetched, tailgating or not: the same latency",
                (
                    0 < ways["tailgated"]["latency_last_us"] == ways["fetched"]["latency_last_us"]
                    for ways in single
                ),
                nothing="no burst of the points is one message",
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Time a message against the burst, a panel a size, a line a way."""
        lengths = sorted(set(parameters.message_bytes))
        columns = min(len(lengths), 4)
        grid = figure.subplots(-(-len(lengths) // columns), columns, squeeze=False)
        panels = list(grid.flat)
        for axes in panels[len(lengths) :]:
            axes.set_visible(False)
        for axes, length in zip(panels, lengths, strict=False):
            for way, style in zip(WAYS, ("o-", "s--", "^:"), strict=True):
                mine = [
                    one
                    for one in outcomes
                    if one.point.parameters["message_bytes"] == length and one.point.parameters["way"] == way
                ]
                mine.sort(key=lambda one: int(one.point.parameters["burst"]))
                axes.plot(
                    [one.point.parameters["burst"] for one in mine],
                    [one.results["message_us"] for one in mine],
                    style,
                    label=way,
                )
            axes.set_title(f"{length} bytes")
            axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        for axes in grid[:, 0]:
            axes.set_ylabel("time a message (µs)")
        figure.supxlabel("messages at once", fontsize=10)
        panels[0].legend()
        figure.suptitle("Time of a message, by the way that its descriptor comes to the card")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: bursts one after the other, each when the one before is done at both ends."""
    import hashlib
    import random

    from lanikai.firmware.work_queue.config import WorkQueueConfig
    from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

    from ..errors import SimulationError
    from ..host.kit.process import Process
    from .measure.kit_hosts import start_kit

    burst, size = spec["burst"], spec["message_bytes"]
    programs, drivers = start_kit(cluster, WorkQueueConfig(descriptors=spec["way"], queue_entries=ENTRIES))
    ends = []
    for driver in drivers:
        process = await Process.open(driver)
        queue = await process.completion_queue(64)
        ends.append((process, queue, await process.channel(queue)))
    (sender, told, out), (receiver, arrived, into) = ends
    await out.connect(node=1, channel=into.number)
    await into.connect(node=0, channel=out.number)
    source, target = await sender.allocate(burst * size), await receiver.allocate(burst * size)
    # The same for all ways, whatever their seeds.
    content, hashed = random.Random(f"{burst} of {size}").randbytes(burst * size), hashlib.sha256()
    source.buffer.write(content)
    cycles: dict[str, list[int]] = {"first_cycles": [], "last_cycles": []}
    for _ in range(spec["rounds"] + 1):
        target.buffer.write(bytes(burst * size))
        await into.receive.post_all([(target, size * i, size) for i in range(burst)])
        start = cluster.clock.cycle
        await out.send.post_all([(source, size * i, size) for i in range(burst)])
        seen = [await arrived.spin() for _ in range(burst)] + [await told.spin() for _ in range(burst)]
        if any(one.status != CompletionStatus.OK for one in seen) or target.buffer.read() != content:
            raise SimulationError("a message came with an error, or as another one than was sent")
        hashed.update(target.buffer.read())
        cycles["first_cycles"].append(seen[0].cycle - start)
        cycles["last_cycles"].append(seen[burst - 1].cycle - start)
    return {
        **{name: found[1:] for name, found in cycles.items()},
        "starts": programs[0].operations.total(),
        "sha256": hashed.hexdigest(),
    }
