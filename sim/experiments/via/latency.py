"""via-latency: the way of a message through SVIA, PVIA and QoSVIA, stage by stage (nagar-thesis-2001 table 5.1).

Two processes on two nodes of the thesis' cluster play ping-pong by VIPL: one VI, one message at a time.

- A message's stages are timed from the doorbell, at the sender's card, and from the moment at which it has come, at the
  receiver's. Cards are idle before each of these messages, and its buffer has been posted.
- The one-way latency is half of a round of a loop at both ends: wait for a message, post a buffer for the next one,
  send. So the firmware has a doorbell to receive to serve, too, before the one to send.

The designs' costs are fitted to the columns of 4 B and 4 KB alone. Those of 1 KB and 16 KB are judged by them: within
10% or 2 us. (Times in the table are whole microseconds, each rounded.) The host's share of the one-way latency is
fitted, too, to the same columns of SVIA (`VIA_HOST`).

Buffers do not begin at a page's start: a message of 4 KB lies in two pages, and one of 16 KB in five. The table's rows
of `program_data` are explained best by a cost of each page that is touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import source, table
from ..framework.base import Claim, Outcome, Point, Size
from .cards import NAMES, TITLES, VIA_HOST, via_program
from .ends import PairExperiment, allowed_us, key, open_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster

__all__ = ["JUDGED_BYTES", "ViaLatency", "ViaLatencyParameters"]

TABLE = table("via-latency")
SIZES = tuple(TABLE["message_bytes"])
JUDGED_BYTES = (1024, 16384)
"""The columns to which nothing is fitted."""
ROUNDS = {"quick": 3, "full": 12}
"""Rounds that are measured, after one that fills the card's cache of page table entries."""
OUT, INTO = 0, 1
"""Places of an end's memory: of the message that it sends, and of the one that it receives."""
IDLE_CYCLES = 20_000
"""Pause before a message whose stages are timed: longer than anything takes that the one before has left to do."""
SIDES = {"send": "at the sender", "receive": "at the receiver"}
ROWS = {
    "program_descriptor": "host DMA of the descriptor programmed",
    "descriptor_down": "descriptor on the card",
    "program_data": "host DMA of the data programmed",
    "data_down": "data on the card",
    "data_up": "data in host memory",
    "net_send_done": "packet sent",
    "program_status": "host DMA of the status programmed",
    "status_done": "status in host memory",
}
"""The rows of the table in words."""


class ViaLatencyParameters(Config):
    """Parameters of via-latency; the defaults are those of the table."""

    designs: list[Literal["svia", "pvia", "qosvia"]] = Field(
        ["svia", "pvia", "qosvia"],
        min_length=1,
        description="firmware designs",
        json_schema_extra={"range": "list of svia, pvia, qosvia"},
    )
    message_bytes: list[Annotated[int, Field(ge=0, le=16384)]] = Field(
        list(SIZES),
        min_length=1,
        max_length=16,
        description="message sizes, bytes",
        json_schema_extra={"range": "list of numbers, each 0 to 16384"},
    )


def row_title(name: str) -> str:
    """The name of a result in words: "data on the card, at the sender"."""
    side, _, row = name.removesuffix("_us").partition("_")
    return f"{ROWS[row]}, {SIDES[side]}" if side in SIDES else "one-way latency"


def rows(design: str, size: int) -> dict[str, float]:
    """The published column of a design and size, by the name of the result."""
    if size not in SIZES:
        return {}
    place, mine = SIZES.index(size), TABLE[design]
    found = {f"{side}_{row}_us": times[place] for side in SIDES for row, times in mine[side].items()}
    return found | {"one_way_us": mine["one_way"][place]}


class ViaLatency(PairExperiment):
    """Ping-pong between two processes."""

    name = "via-latency"
    asks = "Where does a message's time go in each of the three firmware designs?"
    source = source(name)
    entry = "lanikai.sim.experiments.via.latency:measure"
    Parameters = ViaLatencyParameters

    def published_us(self, design: str, size: int) -> Mapping[str, float]:
        """The published column."""
        return rows(design, size)

    def told(self, parameters: ViaLatencyParameters, size: Size) -> Mapping[str, Any]:
        """The number of rounds."""
        return {"rounds": ROUNDS[size]}

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Microseconds at which each stage ends, at both ends, and the one-way latency: means of all rounds."""
        to_us = 1e6 / measured["clock_hz"]
        return {
            f"{name}_us": sum(cycles) / len(cycles) * to_us
            for name, cycles in measured["cycles"].items()
            if cycles
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: both columns that are judged, and the order of the designs at each size."""
        claims = []
        for design in NAMES:
            for length in JUDGED_BYTES:
                found = [one for one in outcomes if key(one) == (design, length)]
                off = [
                    (abs(one.results[name] - us) / allowed_us(us), name, one.results[name], us)
                    for one in found
                    for name, us in rows(design, length).items()
                ]
                _, name, got, us = max(off, default=(0.0, "", 0.0, 0.0))
                furthest = f"; the furthest is {row_title(name)}: {got:.1f} us, published {us}" if off else ""
                claims.append(
                    Claim.every(
                        f"{TITLES[design]}, {length} bytes: every stage ends within 10% or 2 us of the published time"
                        + furthest,
                        (one[0] <= 1 for one in off),
                    )
                )
        order = []
        for length in parameters.message_bytes:
            ways = {key(one)[0]: one.results["one_way_us"] for one in outcomes if key(one)[1] == length}
            if all(name in ways for name in NAMES):
                order.append(ways["svia"] < ways["pvia"] < ways["qosvia"])
        claims.append(
            Claim.every(
                "a message takes longer by PVIA than by SVIA, and longest by QoSVIA, at each size", order
            )
        )
        return claims

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """One-way latency against the size, measured and published."""
        there = {design: dict(zip(SIZES, TABLE[design]["one_way"], strict=True)) for design in NAMES}
        self.draw(figure, outcomes, "one_way_us", there)
        figure.axes[0].set_ylabel("one-way latency (µs)")
        figure.suptitle("Latency of a message alone; crosses: published")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: rounds one after the other, each when the one before is done at both ends."""
    from lanikai.firmware.via.trace import Stage

    from ...errors import SimulationError
    from ...host.via.vipl import VipPostRecv, VipPostSend, VipRecvWait, VipSendWait

    size, rounds = spec["message_bytes"], spec["rounds"] + 1
    programs, [(here, there)] = await open_pairs(
        cluster, via_program(spec["design"]), VIA_HOST, vis=1, size=size, places=2
    )
    clock, posts, times = cluster.clock, [], []
    for _ in range(rounds):
        await VipPostRecv(there.vi, there.descriptor(INTO))
        await clock.sleep(IDLE_CYCLES)
        await VipPostSend(here.vi, here.descriptor(OUT))
        posts.append(clock.cycle)
        await VipRecvWait(there.vi, None)
        await VipSendWait(here.vi, None)
    await clock.sleep(IDLE_CYCLES)

    async def pong() -> None:
        for _ in range(rounds):
            await VipRecvWait(there.vi, None)
            await VipPostRecv(there.vi, there.descriptor(INTO))
            await VipPostSend(there.vi, there.descriptor(OUT))

    await VipPostRecv(there.vi, there.descriptor(INTO))
    await clock.sleep(IDLE_CYCLES)
    clock.spawn(pong(), "pong")
    begin = clock.cycle
    for _ in range(rounds):
        await VipPostRecv(here.vi, here.descriptor(INTO))
        await VipPostSend(here.vi, here.descriptor(OUT))
        came = await VipRecvWait(here.vi, None)
        times.append(clock.cycle - begin)
        begin = clock.cycle
        if came.length != size:
            raise SimulationError(f"a message of {came.length} bytes came, and {size} were sent")
    await clock.sleep(IDLE_CYCLES)
    sent = [one for one in programs[0].trace if (one.channel, one.receive) == (here.vi.channel, False)][
        :rounds
    ]
    taken = [one for one in programs[1].trace if (one.channel, one.receive) == (there.vi.channel, True)][
        :rounds
    ]
    found: dict[str, list[float]] = {"one_way": [cycles / 2 for cycles in times[1:]]}
    stages = {
        "program_descriptor": Stage.PROGRAM_DESCRIPTOR,
        "descriptor_down": Stage.DESCRIPTOR,
        "program_data": Stage.PROGRAM_DATA,
        "data_down": Stage.DATA,
        "data_up": Stage.DATA,
        "net_send_done": Stage.SEND,
        "program_status": Stage.PROGRAM_STATUS,
        "status_done": Stage.STATUS,
    }
    arrivals = [min(span.begin for span in (*one.of(Stage.WAIT), *one.of(Stage.FOUND))) for one in taken]
    for side, messages, starts in (("send", sent, posts), ("receive", taken, arrivals)):
        for row in TABLE[spec["design"]][side]:
            ends_of = [one.end(stages[row]) for one in messages]
            found[f"{side}_{row}"] = [
                float(end - start)
                for end, start in zip(ends_of[1:], starts[1:], strict=True)
                if end is not None
            ]
    return {"cycles": found, "clock_hz": cluster.config.nic.clock_hz}
