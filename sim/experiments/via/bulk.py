"""via-bulk: the time of a message in a stream, by SVIA, PVIA and QoSVIA (nagar-thesis-2001 5.4.1.1, table 5.2).

Two processes on two nodes have a VI for each direction. One sends a window of messages, then waits for as many; the
other does the reverse. "By varying the window size" the thesis finds the lowest average. So are windows swept here.

The table's "average 1-way latency" cannot be the time of a round over its messages. SVIA would take 8 us for a message
of 4 B, of which table 5.1 has 14 us in the sender's program alone. PVIA would take 86 us for one of 16 KB, whose data
need 128 us of the host DMA engine at each card. So `average_us` is half of that: a round has 2 w messages, and is
divided by 4 w. Then the table says 16 to 304 us (SVIA) and 52 to 172 us (PVIA) a message, which its stages allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import source, table
from ..framework.base import Claim, Outcome, Point, Size
from .cards import NAMES, VIA_HOST, via_program
from .ends import PairExperiment, key, open_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster

__all__ = ["ViaBulk", "ViaBulkParameters"]

TABLE = table("via-bulk")
SIZES = tuple(TABLE["message_bytes"])
TIMES = {name: dict(zip(SIZES, times, strict=False)) for name, times in TABLE["per_message_us"].items()}
"""The published averages, microseconds, by design and size."""
ROUNDS = {"quick": 1, "full": 4}
"""Rounds of a window that are measured, after one that is not."""
LONG_BYTES = 4096
"""From this size on overlap pays (5.4.1.1); below it does not."""
Window = Annotated[int, Field(ge=1, le=32)]


class ViaBulkParameters(Config):
    """Parameters of via-bulk; the defaults are those of the table."""

    designs: list[Literal["svia", "pvia", "qosvia"]] = Field(
        ["svia", "pvia", "qosvia"],
        min_length=1,
        description="firmware designs",
        json_schema_extra={"range": "list of svia, pvia, qosvia"},
    )
    message_bytes: list[Annotated[int, Field(ge=4, le=16384, multiple_of=4)]] = Field(
        list(SIZES),
        min_length=1,
        max_length=16,
        description="message sizes, bytes",
        json_schema_extra={"range": "list of multiples of 4, each 4 to 16384"},
    )
    windows: list[Window] = Field(
        [2, 4, 8, 16],
        min_length=1,
        max_length=8,
        description="messages before the direction changes; the one with the lowest average counts",
        json_schema_extra={"range": "list of numbers, each 1 to 32"},
    )


class ViaBulk(PairExperiment):
    """Ping-bulk between two processes."""

    name = "via-bulk"
    asks = "How long does a message take in a stream, by each of the three firmware designs?"
    source = source(name)
    entry = "lanikai.sim.experiments.via.bulk:measure"
    Parameters = ViaBulkParameters

    def published_us(self, design: str, size: int) -> Mapping[str, float]:
        """The published average; none of QoSVIA with 16 KB."""
        return {"average_us": TIMES[design][size]} if size in TIMES[design] else {}

    def told(self, parameters: ViaBulkParameters, size: Size) -> Mapping[str, Any]:
        """The windows, and the rounds of each."""
        return {"windows": sorted(set(parameters.windows)), "rounds": ROUNDS[size]}

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """The window with the lowest average, that average, and the time of a message, microseconds."""
        to_us = 1e6 / measured["clock_hz"]
        averages = {
            window: sum(rounds) / len(rounds) / (4 * window) * to_us
            for window, rounds in zip(point.spec["windows"], measured["cycles"], strict=True)
        }
        best = min(averages, key=lambda window: averages[window])
        return {
            "average_us": averages[best],
            "window": best,
            "message_us": 2 * averages[best],
            "averages_us": list(averages.values()),
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims in words of 5.4.1.1, and the order of PVIA and QoSVIA."""
        by_size: dict[int, dict[str, float]] = {}
        for one in outcomes:
            name, length = key(one)
            by_size.setdefault(length, {})[name] = one.results["average_us"]
        whole = {length: ways for length, ways in by_size.items() if set(NAMES) <= ways.keys()}
        nothing = "no size was run by all three designs"
        return [
            Claim.every(
                "from 4 KB on PVIA and QoSVIA outperform SVIA",
                (
                    max(ways["pvia"], ways["qosvia"]) < ways["svia"]
                    for length, ways in whole.items()
                    if length >= LONG_BYTES
                ),
                nothing=nothing,
            ),
            Claim.every(
                "with 1 KB or less their overheads are not made up for: SVIA is the fastest",
                (
                    ways["svia"] < min(ways["pvia"], ways["qosvia"])
                    for length, ways in whole.items()
                    if length < LONG_BYTES
                ),
                nothing=nothing,
            ),
            Claim.every(
                "QoSVIA's stamps and insertions cost a message something: it is slower than PVIA",
                (ways["pvia"] < ways["qosvia"] for ways in whole.values()),
                nothing=nothing,
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Average against the size, measured and published."""
        self.draw(figure, outcomes, "average_us", TIMES)
        figure.axes[0].set_ylabel("average one-way latency (µs)")
        figure.suptitle("A message's average in streams both ways; crosses: published")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: for each window rounds, one after the other. Each round's messages come in order and whole."""
    from ...errors import SimulationError
    from ...host.via.vipl import VipPostRecv, VipPostSend, VipRecvWait, VipSendWait

    size, windows = spec["message_bytes"], spec["windows"]
    programs, pairs = await open_pairs(
        cluster, via_program(spec["design"]), VIA_HOST, vis=2, size=size, places=max(windows)
    )
    (out, into), (back, away) = (pairs[0], tuple(reversed(pairs[1])))
    clock, flag = cluster.clock, cluster.clock.flag()

    async def sends(end: Any, window: int) -> None:
        for place in range(window):
            await VipPostSend(end.vi, end.descriptor(place))

    async def takes(end: Any, window: int) -> None:
        for place in range(window):
            found = await VipRecvWait(end.vi, None)
            if found.length != size:
                raise SimulationError(f"a message of {found.length} bytes came, and {size} were sent")
            await VipPostRecv(end.vi, end.descriptor(place))

    async def ended(end: Any, window: int) -> None:
        for _ in range(window):
            await VipSendWait(end.vi, None)

    async def other(window: int) -> None:
        for _ in range(spec["rounds"] + 1):
            await takes(into, window)
            await sends(back, window)
            await ended(back, window)
        flag.set()

    posted = 0
    cycles: list[list[int]] = []
    for window in windows:
        for place in range(posted, window):
            for end in (into, away):
                await VipPostRecv(end.vi, end.descriptor(place))
        posted = max(posted, window)
        flag.clear()
        clock.spawn(other(window), f"window of {window}")
        times = []
        for _ in range(spec["rounds"] + 1):
            begin = clock.cycle
            await sends(out, window)
            await takes(away, window)
            await ended(out, window)
            times.append(clock.cycle - begin)
        await flag.wait()
        cycles.append(times[1:])
    if any(program.dropped for program in programs):
        raise SimulationError(f"packets were dropped: {[dict(program.drops) for program in programs]}")
    return {"cycles": cycles, "clock_hz": cluster.config.nic.clock_hz}
