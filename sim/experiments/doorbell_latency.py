"""doorbell-latency: from a host's bus write to the firmware's having it, polled words against the hardware queue.

Without hardware the processor looks at the channels' words one by one, so that each declared channel costs all the
others (nagar-thesis-2001 4.2.3). A hardware queue shows the doorbells that were rung and no others (4.2.4, 4.3.8). The
thesis measures whole messages (figures 4.12, 4.13). Here is the doorbell alone, on an idle card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lanikai.hdl.config import Config, NicConfig, preset
from pydantic import Field

from .framework.base import Claim, Experiment, Outcome, Point, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.cluster import Cluster

__all__ = ["DoorbellLatency", "DoorbellLatencyParameters", "line"]

KINDS = ("polled", "queue")
MOST_CHANNELS = 1024
"""Doorbell pages of the card: the most that it may have. Points vary the number of declared ones instead, so that all
points of a kind share a build."""
SAMPLES = {"quick": 16, "full": 64}
"""Doorbells of a point."""
SLOPE_TOLERANCE = 0.05
"""Relative. A doorbell's distance from the polling pointer is spread evenly, not at random, but in as many steps as
there are samples."""
Channels = Annotated[int, Field(ge=2, le=MOST_CHANNELS)]


class DoorbellLatencyParameters(Config):
    """Parameters of doorbell-latency; the defaults are the thesis' range of declared channels, and the card's."""

    channels: list[Channels] = Field(
        [4, 16, 64, 256, 508, 1024],
        min_length=2,
        max_length=16,
        description="declared channels",
        json_schema_extra={"range": f"list of 2 to 16 numbers, each 2 to {MOST_CHANNELS}"},
    )
    look_cycles: int = Field(
        5,
        ge=1,
        le=1000,
        description="processor's cycles for a look at a doorbell word, beside those of its accesses",
    )


class DoorbellLatency(Experiment):
    """One host rings, one card's firmware looks."""

    name = "doorbell-latency"
    asks = "How long does a doorbell wait for the firmware, polled and queued, as channels are declared?"
    source = "nagar-thesis-2001 4.2.3, 4.2.4, 4.3.8"
    entry = "lanikai.sim.experiments.doorbell_latency:measure"
    Parameters = DoorbellLatencyParameters

    def points(self, parameters: DoorbellLatencyParameters, size: Size) -> list[Point]:
        """A point for each kind of doorbell and number of channels."""
        return [
            Point(
                label=f"{kind}, {channels} channels",
                parameters={"doorbell": kind, "channels": channels},
                spec={
                    "doorbell": kind,
                    "channels": channels,
                    "look_cycles": parameters.look_cycles,
                    "samples": SAMPLES[size],
                },
            )
            for kind in KINDS
            for channels in parameters.channels
        ]

    def system(self, parameters: Any, point: Point) -> Any:
        """One node, its card with all the pages that there can be."""
        from ..systems.cluster import ClusterConfig

        kind: Literal["polled", "queue"] = point.parameters["doorbell"]
        nic = preset(NicConfig, "lanai4", channels=MOST_CHANNELS, doorbell=kind)
        return ClusterConfig(nodes=1, nic=nic, firmware=None, memory_bytes=4096)

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Latency: mean, least and most, cycles, and the mean in microseconds."""
        cycles = measured["latency_cycles"]
        mean = sum(cycles) / len(cycles)
        return {
            "latency_mean_cycles": mean,
            "latency_min_cycles": min(cycles),
            "latency_max_cycles": max(cycles),
            "latency_mean_us": mean / measured["clock_hz"] * 1e6,
            "look_period_cycles": measured["look_period_cycles"],
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The queue's latency is a constant; the polled one rises by half a look a channel."""
        queued, polled = (
            [one for one in outcomes if one.point.parameters["doorbell"] == kind]
            for kind in ("queue", "polled")
        )
        least = min((one.results["latency_min_cycles"] for one in queued), default=0)
        most = max((one.results["latency_max_cycles"] for one in queued), default=0)
        means = [(one.point.parameters["channels"], one.results["latency_mean_cycles"]) for one in polled]
        slope, _, worst = line(means) if means else (0.0, 0.0, 0.0)
        half = polled[0].results["look_period_cycles"] / 2 if polled else 0.0
        highest = max((mean for _, mean in means), default=0.0)
        numbers = {
            kind: len({one.point.parameters["channels"] for one in of_kind})
            for kind, of_kind in (("queue", queued), ("polled", polled))
        }
        return [
            Claim(
                text="the hardware queue's latency does not depend on the number of channels: "
                f"{least} to {most} cycles",
                holds=0 < least == most,
            ).unless("" if numbers["queue"] > 1 else "it takes two numbers of channels"),
            Claim(
                text=f"the polled latency rises by half a look, {half:g} cycles, a channel (within "
                f"{SLOPE_TOLERANCE:.0%}): {slope:.3f} cycles",
                holds=abs(slope - half) <= SLOPE_TOLERANCE * half,
            ).unless("" if numbers["polled"] > 1 else "it takes two numbers of channels"),
            Claim(
                text=f"and linearly: no point is further from the line than {SLOPE_TOLERANCE:.0%} of the highest: "
                f"{worst:.1f} cycles",
                holds=worst <= SLOPE_TOLERANCE * highest,
            ).unless("" if numbers["polled"] > 2 else "a line goes through any two points: it takes three"),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Mean latency against channels, a line a kind; a band from the least to the most."""
        axes = figure.subplots()
        for kind, style in zip(KINDS, ("o-", "s--"), strict=True):
            mine = [one for one in outcomes if one.point.parameters["doorbell"] == kind]
            mine.sort(key=lambda one: int(one.point.parameters["channels"]))
            channels = [one.point.parameters["channels"] for one in mine]
            lowest, mean, highest = (
                [one.results[f"latency_{what}_cycles"] for one in mine] for what in ("min", "mean", "max")
            )
            name = "polled words" if kind == "polled" else "hardware queue"
            axes.plot(channels, mean, style, label=f"{name}, mean")
            axes.fill_between(channels, lowest, highest, alpha=0.2, label=f"{name}, shortest to longest")
        axes.set_xlabel("declared channels")
        axes.set_ylabel("bus write to firmware (cycles)")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.legend()
        figure.suptitle("How long a doorbell waits for the firmware")


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The straight line through `points` (x, y) by least squares: slope, y at 0, and the largest distance in y."""
    n = len(points)
    mean_x, mean_y = (sum(point[i] for point in points) / n for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    start = mean_y - slope * mean_x
    return slope, start, max(abs(y - start - slope * x) for x, y in points)


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: ring, let the firmware find it, and ring again, each time from another place of the pointer."""
    from lanikai.firmware.costs import CostTable
    from lanikai.firmware.polling import PollPointer
    from lanikai.firmware.processor import Processor
    from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES

    from ..errors import SimulationError

    channels, samples, look = spec["channels"], spec["samples"], spec["look_cycles"]
    node = cluster.nodes[0]
    processor = Processor(node.processor, CostTable("doorbell-latency", {"look": look}))
    # DOORBELL_SELECT written (1), DOORBELL_WORD read (2).
    period = look + 3
    pointer = PollPointer(channels=channels, period_cycles=period)
    latency: list[int] = []

    async def polled() -> int:
        """Walk the pointer from where it stands until it finds the word."""
        cycle, at = pointer.next_look(cluster.clock.cycle)
        if cycle > cluster.clock.cycle:
            await cluster.clock.sleep(cycle - cluster.clock.cycle)
        while True:
            async with processor.step("look"):
                await processor.write("DOORBELL_SELECT", channel=at)
                word = await processor.read("DOORBELL_WORD")
            if word["valid"]:
                return at
            at = (at + 1) % channels

    async def queued() -> int:
        """Take the entry when the event line comes up."""
        async with processor.step("look"):
            entry = await processor.read("DOORBELL_QUEUE")
        if not entry["valid"]:
            raise SimulationError("the event came without a doorbell")
        return entry["channel"]

    async with processor.step("look"):
        await processor.enable("doorbell")
    for sample in range(samples):
        await cluster.clock.sleep(1 + cluster.random.randrange(channels * period))
        start = cluster.clock.cycle
        # Evenly spread over the distances from the pointer: as many near as far.
        _, at = pointer.next_look(start)
        channel = (at + (2 * sample + 1) * channels // (2 * samples)) % channels
        cluster.clock.spawn(node.host.write(DOORBELL_BASE + channel * DOORBELL_PAGE_BYTES, sample), "ring")
        await node.processor.event()
        found = await (polled if spec["doorbell"] == "polled" else queued)()
        if found != channel:
            raise SimulationError(f"channel {channel} was rung, and channel {found} was found")
        latency.append(cluster.clock.cycle - start)
        async with processor.step("look"):
            await processor.write("ISR", doorbell=1)
        pointer = pointer.moved(channel=(found + 1) % channels, cycle=cluster.clock.cycle)
    return {
        "latency_cycles": latency,
        "look_period_cycles": period,
        "clock_hz": cluster.config.nic.clock_hz,
    }
