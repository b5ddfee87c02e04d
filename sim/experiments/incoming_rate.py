"""incoming-rate: how much a node can send while it receives.

gulati-thesis-2001 5.3, figure 5.4: flow 1 goes from A to B and has an IDT; flow 2 goes from B to C. Sought is, for each
IDT of flow 1, the largest bandwidth of flow 2 "that *does not* affect the first flow". Flow 1 then "achieves almost the
same bandwidth for a given IDT as it would have, had flow 2 not existed".

**The search.** One point is one IDT of flow 1. Flow 1 is measured alone; then in trials with flow 2, each of an IDT of
flow 2. A trial *leaves flow 1 alone* if flow 1 has at least 1 - `SLOWER` of its bandwidth alone. The answer is the
bandwidth of flow 2 in the trial with its smallest IDT that leaves flow 1 alone:

1. flow 2 is not regulated; if that leaves flow 1 alone, it is the answer;
2. else bisection between T (regulation begins to matter) and `MAX_IDT_TICKS` (taken to leave flow 1 alone, and tried if
   nothing shorter does), down to `step_ticks`. It takes for granted that a longer IDT of flow 2 never hurts flow 1
   more.

If even that harms flow 1, nothing can go out.

Every trial starts both flows afresh: a flow that was held up keeps its arrears, and would go faster than its IDT in the
next trial.

**The meaning of the point.** Beside 16.37 MB/s the thesis' card sends 65.0. That leaves 8250 - 65.0 / 85.33 * 8250 =
1966 cycles for a received packet. They are more than the 1584 of a sent one, though a receive is less work. So a change
between sending and receiving costs something: `packet_turn` of `firmware/costs.py`. It is fitted to this point, so that
its being met says nothing. Section 5.4.3 reads the same 65.0 off figure 5.4 and shares it in two: share-bidir has no
second number. The shape of the curve is left to be judged, and that flow 1 is left alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ..published import source, table
from ..units import KB
from .framework.base import Claim, Outcome, Point, Size, within
from .measure.flows_experiment import FlowsExperiment, flows_of
from .measure.gm_flows import (
    BANDWIDTH_TOLERANCE,
    IDT_RANGE,
    MAX_IDT_TICKS,
    T_TICKS,
    Flow,
    TimeWindow,
    bandwidths,
    start_flows,
)
from .measure.gm_hosts import start_gm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.cluster import Cluster

__all__ = ["IncomingRate", "IncomingRateParameters", "smallest_harmless"]

PUBLISHED = table("incoming-rate")
PUBLISHED_IDT: int = table("share-bidir")["idt_ticks"]["incoming"]
"""The IDT of the published point: its 16.37 MB/s are those of 5.4.3."""
INCOMING, OUTGOING = "incoming_mb_per_s", "peak_outgoing_mb_per_s"
A, B, C = 0, 1, 2
SENDERS = (A, 3)
"""With `senders` = 2 a flow like flow 1 leaves each of these nodes: so a node takes in more than one sender sends."""
SLOWER = 0.01
"""Relative: the most that flow 1 may be slower with flow 2 than without, "almost the same bandwidth"."""
IDTS = {"quick": [96, 250, 500], "full": [96, 104, 116, 132, 152, 180, 220, 280, 360, 500, 750, 1000]}
"""IDTs of flow 1, ticks."""
STEP_TICKS = {"quick": 96, "full": 16}
"""The step at which bisection stops, ticks."""
WARM_UP_CYCLES = 60_000
"""A receiver that falls behind holds flow 1 when its queue is full, which takes some packets."""
WINDOW_CYCLES = {"quick": 150_000, "full": 300_000}
"""The window. Packets of IDT 500 come every 8250 cycles, early or late by the place of a packet of flow 2, up to 1600
cycles: 1% of the shorter window."""
Idt = Annotated[int, Field(ge=0, le=MAX_IDT_TICKS)]


class IncomingRateParameters(Config):
    """Parameters of incoming-rate."""

    idt_ticks: list[Idt] = Field(
        [],
        max_length=64,
        description="IDTs of flow 1, ticks; empty: those of the size",
        json_schema_extra={"range": f"list of IDTs, each {IDT_RANGE}"},
    )
    message_bytes: int = Field(64 * KB, ge=1, le=256 * KB, description="bytes of a message")
    senders: int = Field(
        1, ge=1, le=len(SENDERS), description="nodes that a flow like flow 1 comes from; each has the IDT"
    )


class IncomingRate(FlowsExperiment):
    """A flow into a node, and the most that the node sends beside it."""

    name = "incoming-rate"
    asks = "How much can a node send while it receives at a given rate?"
    source = source("incoming-rate")
    entry = "lanikai.sim.experiments.incoming_rate:measure"
    Parameters = IncomingRateParameters
    tolerances = {INCOMING: BANDWIDTH_TOLERANCE, OUTGOING: BANDWIDTH_TOLERANCE}

    def points(self, parameters: IncomingRateParameters, size: Size) -> list[Point]:
        """A point an IDT of flow 1. Flow 2 is the last one of its flows; the search gives it its IDTs."""
        return [self._point(parameters, idt, size) for idt in parameters.idt_ticks or IDTS[size]]

    def _point(self, parameters: IncomingRateParameters, idt: int, size: Size) -> Point:
        published = None
        if idt == PUBLISHED_IDT and parameters.message_bytes == 64 * KB and parameters.senders == 1:
            published = {
                INCOMING: PUBLISHED["point"]["incoming_mb_per_s"],
                OUTGOING: PUBLISHED["point"]["peak_outgoing_mb_per_s"],
            }
        length, sources = parameters.message_bytes, SENDERS[: parameters.senders]
        return self.point(
            f"IDT {idt}",
            {"idt_ticks": idt, "message_bytes": length, "senders": parameters.senders},
            # A port of B for each direction, since flow 2's is closed and opened again.
            flows=[
                *(
                    Flow(source=source, target=B, target_port=port, message_bytes=length, idt_ticks=idt)
                    for port, source in enumerate(sources, 1)
                ),
                Flow(source=B, target=C, target_port=0, message_bytes=length),
            ],
            window={"warm_up_cycles": WARM_UP_CYCLES, "window_cycles": WINDOW_CYCLES[size]},
            published=published,
            idt_ticks=idt,
            step_ticks=STEP_TICKS[size],
        )

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth of flow 1 (incoming) alone and beside flow 2, and of flow 2 (peak outgoing), its IDT, and
        the number of trials."""
        *into, outgoing = bandwidths(measured["found"])
        incoming = sum(into)
        return {
            INCOMING: incoming,
            OUTGOING: outgoing,
            "sum_mb_per_s": incoming + outgoing,
            "incoming_alone_mb_per_s": sum(bandwidths(measured["alone"])[:-1]),
            "outgoing_idt_ticks": measured["outgoing_idt_ticks"],
            "trials": measured["trials"],
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: the section's on flow 1; one on the curve, where two points or more make one."""
        found = sorted((one.results for one in outcomes), key=lambda one: float(one[INCOMING]))
        sums = [one["sum_mb_per_s"] for one in found]
        curve = "" if len(found) > 1 else "a curve takes two points"
        return [
            Claim.every(
                f"flow 1 has at least {1 - SLOWER:.0%} of what it has alone",
                (one[INCOMING] >= (1 - SLOWER) * one["incoming_alone_mb_per_s"] > 0 for one in found),
            ),
            Claim.every(
                "peak outgoing bandwidth falls as the incoming rate rises",
                (low[OUTGOING] > high[OUTGOING] for low, high in pairwise(found)),
                nothing=curve,
            ),
            Claim(
                text="the sum of both is not constant: it varies by more than 3%",
                holds=bool(sums) and not within(max(sums), min(sums), BANDWIDTH_TOLERANCE),
            ).unless(curve),
            Claim(
                text="a receive costs the card less than a send: the sum is larger at the highest "
                "incoming rate than at the lowest",
                holds=bool(sums) and sums[-1] > sums[0],
            ).unless(curve),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Peak outgoing bandwidth against incoming bandwidth, and their sum."""
        axes = figure.add_subplot()
        found = sorted((one.results for one in outcomes), key=lambda one: float(one[INCOMING]))
        incoming = [one[INCOMING] for one in found]
        axes.plot(incoming, [one[OUTGOING] for one in found], "o-", label="peak outgoing")
        axes.plot(incoming, [one["sum_mb_per_s"] for one in found], "s--", label="sum")
        point = PUBLISHED["point"]
        axes.plot(
            point["incoming_mb_per_s"],
            point["peak_outgoing_mb_per_s"],
            "kx",
            markersize=10,
            label="published point",
        )
        axes.set_xlabel("incoming bandwidth (MB/s)")
        axes.set_ylabel("bandwidth (MB/s)")
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend above the sum
        axes.set_title("What a node can send while it receives")
        axes.legend()


async def smallest_harmless(harmless: Callable[[int], Awaitable[bool]], *, step_ticks: int) -> int:
    """The smallest IDT of flow 2, in ticks and to `step_ticks`, for which `harmless` is true: 0, or T to
    `MAX_IDT_TICKS`. See the search above. Raises ValueError if none is."""
    if await harmless(0):
        return 0
    low, high = T_TICKS - step_ticks, MAX_IDT_TICKS
    while high - low > step_ticks:
        middle = (low + high) // 2
        if await harmless(middle):
            high = middle
        else:
            low = middle
    if high == MAX_IDT_TICKS and not await harmless(high):
        raise ValueError(f"even an IDT of {MAX_IDT_TICKS} ticks slows flow 1")
    return high


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: the whole search, in one simulation."""
    hosts = start_gm(cluster)
    flows = flows_of(spec)
    window = TimeWindow(cluster, flows=len(flows))
    *incoming, flow_2 = await start_flows(cluster, hosts, flows, window.deliver)
    trials: dict[int | None, dict[str, Any]] = {}

    async def trial(outgoing: int | None) -> dict[str, Any]:
        for sender in (*incoming, flow_2):
            await sender.stop()
        for sender in incoming:
            await sender.renew(spec["idt_ticks"])
        for sender in incoming:
            sender.start()
        if outgoing is not None:
            await flow_2.renew(outgoing)
            flow_2.start()
        trials[outgoing] = await window.measure(
            warm_up_cycles=spec["warm_up_cycles"], window_cycles=spec["window_cycles"], progress=False
        )
        cluster.progress(min(0.99, len(trials) / 12), f"{len(trials)} trials")
        return trials[outgoing]

    alone = await trial(None)
    least = [(1 - SLOWER) * one for one in bandwidths(alone)[:-1]]

    async def harmless(outgoing: int) -> bool:
        beside = bandwidths(await trial(outgoing))
        return all(one >= enough for one, enough in zip(beside, least, strict=False))

    try:
        found: int | None = await smallest_harmless(harmless, step_ticks=spec["step_ticks"])
    except ValueError:
        found = None  # nothing can go out beside so much: flow 2 has what it has in the trial without it, 0
    return {
        "alone": alone,
        "found": trials[found],
        "outgoing_idt_ticks": MAX_IDT_TICKS if found is None else found,
        "trials": len(trials),
    }
