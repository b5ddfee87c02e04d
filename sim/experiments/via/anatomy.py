"""via-anatomy: the twelve stages of a message (nagar-thesis-2001 4.3.2, figure 4.3) in each design of the ladder.

A process on one node sends bursts by several VIs to a process on the other. The ends of all descriptors are told in a
completion queue at each node. The firmware's trace has every stage of every message, in cycles. The results are mean
times of the stages, and the plot is a timeline of one burst: buses, engines and processors of both cards, and the link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.firmware.via.ladder import LADDER, rung
from lanikai.hdl.config import Config, NicConfig, preset
from pydantic import Field

from ...errors import UserError
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from .cards import VIA_HOST
from .timeline import draw, overlapping, spared, stage_means, timeline_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["ViaAnatomy", "ViaAnatomyParameters"]

ROUNDS = {"quick": 3, "full": 12}
"""Bursts that are measured, after one that fills the card's cache of page table entries."""
IDLE_CYCLES = 30_000
"""Pause between bursts: longer than anything takes that a burst has left to do."""
CARD = preset(NicConfig, "via5", channels=16, regions=32)
FETCHED = ("Base", "Base+O", "Base+O+DMAQ", "Door+O+DMAQ", "Door+O+DMAQ+2CPU")
OVERLAP = tuple(name for name in LADDER if name != "Base")
HALF = (0.4, 0.6)
"""Least and most part of bursts of two on a VI that is spared: "nearly half" (4.3.9)."""


class ViaAnatomyParameters(Config):
    """Parameters of via-anatomy. Bursts of two on a VI are the thesis' type IV."""

    designs: list[str] = Field(
        list(LADDER),
        min_length=1,
        max_length=len(LADDER),
        description="designs of the ladder",
        json_schema_extra={"range": f"designs: {', '.join(LADDER)}"},
    )
    message_bytes: int = Field(128, ge=4, le=4096, multiple_of=4, description="message size, bytes")
    vis: int = Field(2, ge=1, le=8, description="VIs by which messages are sent at once")
    burst: Annotated[int, Field(ge=1, le=4)] = Field(2, description="messages posted to a VI at once")


class ViaAnatomy(Experiment):
    """Bursts from one process to another, stage by stage."""

    name = "via-anatomy"
    asks = (
        "Which stages does a message go through in each design, how long is each, and which of them overlap?"
    )
    source = "nagar-thesis-2001 4.3.2, figure 4.3 (a drawing; no numbers)"
    entry = "lanikai.sim.experiments.via.anatomy:measure"
    Parameters = ViaAnatomyParameters
    by_flow = ("send_us", "receive_us")
    element = "stage"
    first_element = 1

    def points(self, parameters: ViaAnatomyParameters, size: Size) -> list[Point]:
        """A point for each design."""
        for name in parameters.designs:
            if name not in LADDER:
                raise UserError(f"designs: {name!r} is none; valid designs: {', '.join(LADDER)}")
        where = {name: getattr(parameters, name) for name in ("message_bytes", "vis", "burst")}
        return [
            Point(
                label=name,
                parameters={"design": name, **where},
                spec={"design": name, **where, "rounds": ROUNDS[size]},
                workload="the same bursts",
            )
            for name in dict.fromkeys(parameters.designs)
        ]

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """Two nodes of chapter 5 with the design's card."""
        from ...systems.cluster import cluster_preset

        nic = rung(point.parameters["design"]).nic(CARD)
        return cluster_preset("via5", nodes=2, nic=nic, firmware="via", memory_bytes=1 << 20)

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Mean time of each stage at the sender and at the receiver, microseconds, and of a burst.

        Then pairs of spans of different messages that overlap, and the part of the sent messages whose descriptor had
        no DMA of its own.
        """
        series, to_us = measured["series"], 1e6 / measured["series"]["clock_hz"]
        sent = [one for one in series["messages"] if not one["receive"]]
        came = [one for one in series["messages"] if one["receive"]]
        bursts = series["bursts"]
        return {
            "burst_us": sum(over - begin for begin, over in bursts) / len(bursts) * to_us,
            "overlaps": overlapping(series["messages"]),
            "spared": spared(sent),
            "spared_receive": spared(came),
            "messages": len(sent),
            "send_us": stage_means(sent, to_us),
            "receive_us": stage_means(came, to_us),
        }

    def tables(
        self, parameters: Any, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, list[dict[str, Any]]]:
        """The table `timeline` of the last burst: which bus, engine or processor has a message when."""
        return {"timeline": list(timeline_rows(measured["series"]))}

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: what overlaps, and whose stages 3 and 4 are absent."""
        found = {one.point.parameters["design"]: one.results for one in outcomes}
        alone = (
            "a burst of one message has nothing to overlap with"
            if parameters.burst * parameters.vis < 2
            else ""
        )
        short = "no burst on a VI is of two messages or more" if parameters.burst < 2 else ""
        tailed = [one["spared"] for name, one in found.items() if "tailgating" in name]
        half = tailed if parameters.burst == 2 else []
        shadows = [one for name, one in found.items() if "shadow" in name]
        return [
            Claim.every(
                "in Base the stages of messages follow one another: none overlaps",
                (one["overlaps"] == 0 for name, one in found.items() if name == "Base"),
                nothing="Base was not run",
            ).unless(alone),
            Claim.every(
                "from Base+O on stages of different messages overlap",
                (one["overlaps"] > 0 for name, one in found.items() if name in OVERLAP),
                nothing="only Base was run",
            ).unless(alone),
            Claim.every(
                "every descriptor that is sent has stages 3 and 4, where it neither tailgates nor has a shadow",
                (one["spared"] == 0 for name, one in found.items() if name in FETCHED),
                nothing="no such design was run",
            ),
            Claim.every(
                "of bursts of two nearly half of the messages skip stages 3 and 4 by tailgating",
                (HALF[0] <= one <= HALF[1] for one in half),
                nothing="tailgating was not run, or not with bursts of two",
            ).unless(short),
            Claim.every(
                "with shadow queues stages 3 and 4 are absent, at both ends",
                (one["spared"] == one["spared_receive"] == 1 for one in shadows),
                nothing="shadow queues were not run",
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """A timeline of the last burst of each design; grey is what is done for no one message."""
        panels = figure.subplots(len(outcomes), 1, squeeze=False)[:, 0]
        figure.set_size_inches(9, 2.4 * len(outcomes))
        for axes, one in zip(panels, outcomes, strict=True):
            begin, over = one.series["bursts"][-1]
            draw(axes, one.series, to_us=1e6 / one.series["clock_hz"], begin_cycle=begin, end_cycle=over)
            axes.set_title(one.point.label, fontsize=9)
            axes.tick_params(labelsize=7)
        panels[-1].set_xlabel("time since the first post (µs)")
        figure.suptitle(f"A burst of messages of {parameters.message_bytes} bytes")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: bursts one after the other, each when the one before is done at both ends."""
    from lanikai.firmware.via.trace import Stage

    from ...host.via.vipl import VipCQWait, VipPostRecv, VipPostSend, VipRecvDone, VipSendDone
    from .ends import open_pairs

    burst, vis, rounds = spec["burst"], spec["vis"], spec["rounds"] + 1
    config = rung(spec["design"]).config(queue_entries=8)
    programs, pairs = await open_pairs(
        cluster, config, VIA_HOST, vis=vis, size=spec["message_bytes"], places=burst, told=64
    )
    clock = cluster.clock
    told, arrived = pairs[0][0].queue, pairs[0][1].queue
    assert told is not None and arrived is not None
    steps = [watch(program, clock) for program in programs]
    posts: list[list[tuple[int, int]]] = [[], []]
    bursts: list[tuple[int, int]] = []
    done = clock.flag()
    doorbells: dict[int, list[int]] = {}

    async def takes() -> None:
        for _ in range(burst * vis):
            vi, _ = await VipCQWait(arrived, None)
            await VipRecvDone(vi)
        done.set()

    for _ in range(rounds):
        for _, there in pairs:
            for place in range(burst):
                begin = clock.cycle
                await VipPostRecv(there.vi, there.descriptor(place))
                posts[1].append((begin, clock.cycle))
        await clock.sleep(IDLE_CYCLES)
        done.clear()
        clock.spawn(takes(), "takes")
        first = clock.cycle
        for here, _ in pairs:
            for place in range(burst):
                begin = clock.cycle
                await VipPostSend(here.vi, here.descriptor(place))
                posts[0].append((begin, clock.cycle))
                doorbells.setdefault(here.vi.channel, []).append(clock.cycle)
        for _ in range(burst * vis):
            vi, _ = await VipCQWait(told, None)
            await VipSendDone(vi)
        await done.wait()
        bursts.append((first, clock.cycle))
    await clock.sleep(IDLE_CYCLES)
    bursts = bursts[1:]
    since = bursts[0][0]
    channels = [{end.vi.channel for end in side} for side in zip(*pairs, strict=True)]
    messages = []
    for node, program in enumerate(programs[:2]):
        mine = [one for one in program.trace if one.receive == bool(node) and one.channel in channels[node]]
        for number, one in enumerate(mine[burst * vis :]):
            spans = [(int(span.stage), span.begin, span.end) for span in one.spans]
            if not node and (found := one.end(Stage.FOUND)) is not None:
                # The firmware knows when it has found a doorbell, the host when it was rung.
                spans = [(Stage.FOUND, min(found, doorbells[one.channel][one.number]), found), *spans]
            messages.append(
                {"number": number, "channel": one.channel, "receive": one.receive, "spans": spans}
            )
    ends = ("sender", "receiver")
    return {
        "series": {
            "messages": messages,
            "steps": {end: [one for one in steps[i] if one[1] >= since] for i, end in enumerate(ends)},
            "posts": {end: [one for one in posts[i] if one[1] >= since] for i, end in enumerate(ends)},
            "bursts": bursts,
            "clock_hz": cluster.config.nic.clock_hz,
        }
    }


def watch(program: Any, clock: Any) -> list[tuple[int, int]]:
    """Have a program's processors note when they are at work: begin and end of each step, as they come."""
    found: list[tuple[int, int]] = []
    for processor in program.processors:
        begun: list[int] = []

        def note(step: str, begun: list[int] = begun) -> None:
            if step and not begun:
                begun.append(clock.cycle)
            elif not step and begun:
                found.append((begun.pop(), clock.cycle))

        processor.watch = note
    return found
