"""idt-sweep: the bandwidth of a lone flow against its IDT.

gulati-thesis-2001 5.3, figure 5.3: T is found as the IDT below which nothing changes any more, Bmax as the
bandwidth of a flow that is not regulated. Each IDT is one point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ..published import source, table
from ..units import KB
from .framework.base import Claim, Outcome, Point, Size, within
from .measure.flows_experiment import FlowsExperiment
from .measure.gm_flows import (
    IDT_RANGE,
    MAX_IDT_TICKS,
    MESSAGES_IN_FLIGHT,
    T_TICKS,
    Flow,
    bandwidths,
    ideal_mb_per_s,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["IdtSweep", "IdtSweepParameters"]

PUBLISHED = table("idt-sweep")
PUBLISHED_MB_PER_S = {
    0: ideal_mb_per_s(T_TICKS),
    table("share-bidir")["idt_ticks"]["incoming"]: table("incoming-rate")["point"]["incoming_mb_per_s"],
}
"""Published bandwidth by IDT: Bmax, which is an MTU every T; and the one that 5.4.3 gives for IDT 500."""
IDTS = {
    "quick": [0, 48, 90, 96, 106, 144, 250, 500],
    "full": [*range(0, 96, 8), 92, 95, 96, 97, 100, *range(104, 200, 8), *range(200, 501, 25)],
}
"""IDTs, ticks."""
SAME = 0.005
"""Relative: bandwidths that are equal, or as 1/IDT says."""
WARM_UP_CYCLES = 40_000
WINDOW_CYCLES = {"quick": 100_000, "full": 300_000}
"""The window. A lone flow is periodic: its packets' intervals differ by a tick, 16.5 cycles."""
Idt = Annotated[int, Field(ge=0, le=MAX_IDT_TICKS)]


class IdtSweepParameters(Config):
    """Parameters of idt-sweep."""

    idt_ticks: list[Idt] = Field(
        [],
        max_length=256,
        description="IDTs, ticks; empty: those of the size",
        json_schema_extra={"range": f"list of IDTs, each {IDT_RANGE}"},
    )
    message_bytes: int = Field(
        PUBLISHED["message_bytes"],
        ge=4096,
        le=256 * KB,
        multiple_of=4096,
        description="bytes of a message, whole packets",
    )


class IdtSweep(FlowsExperiment):
    """A lone flow, at one IDT after another."""

    name = "idt-sweep"
    asks = "Up to which IDT does a lone flow have all of the bandwidth, and how does it fall above?"
    source = source("idt-sweep")
    Parameters = IdtSweepParameters

    def points(self, parameters: IdtSweepParameters, size: Size) -> list[Point]:
        """A point an IDT: the flow goes from node 0 to node 1."""
        length, points = parameters.message_bytes, []
        for idt in parameters.idt_ticks or IDTS[size]:
            published = None
            if idt in PUBLISHED_MB_PER_S and length == PUBLISHED["message_bytes"]:
                published = {"bandwidth_mb_per_s": PUBLISHED_MB_PER_S[idt]}
            points.append(
                self.point(
                    f"IDT {idt}",
                    {"idt_ticks": idt, "message_bytes": length},
                    flows=[Flow(source=0, target=1, message_bytes=length, idt_ticks=idt)],
                    window={"warm_up_cycles": WARM_UP_CYCLES, "window_cycles": WINDOW_CYCLES[size]},
                    published=published,
                )
            )
        return points

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth of the flow over the window."""
        (found,) = bandwidths(measured)
        return {"bandwidth_mb_per_s": found}

    def claims(self, parameters: IdtSweepParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's claims, for messages that keep the card busy. The second is judged where a flow without
        regulation is among the points."""
        found = {one.point.parameters["idt_ticks"]: one.results["bandwidth_mb_per_s"] for one in outcomes}
        free = found.get(0)
        length = parameters.message_bytes
        short = ""
        if length < PUBLISHED["message_bytes"]:
            short = (
                f"the section's messages have {PUBLISHED['message_bytes']} bytes; {MESSAGES_IN_FLIGHT} of {length} in "
                "flight need not keep the card busy"
            )
        return [
            Claim.every(
                f"for every IDT of {T_TICKS} ticks and more the bandwidth is a packet every IDT (within {SAME:.1%})",
                (within(one, ideal_mb_per_s(idt), SAME) for idt, one in found.items() if idt >= T_TICKS),
                nothing=f"no IDT of the points is {T_TICKS} or more",
            ).unless(short),
            Claim.every(
                f"for every IDT below {T_TICKS} ticks the bandwidth equals that of an unregulated flow "
                f"(within {SAME:.1%})",
                (within(one, free, SAME) for idt, one in found.items() if 0 < idt < T_TICKS and free),
                nothing=f"it takes points with IDT 0 and below {T_TICKS}, and a flow that moves",
            ).unless(short),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw bandwidth against IDT, the published values, T."""
        axes = figure.add_subplot()
        found = sorted(
            (one.point.parameters["idt_ticks"], one.results["bandwidth_mb_per_s"]) for one in outcomes
        )
        axes.plot(*zip(*found, strict=True), "o-", label="achieved")
        axes.plot(
            list(PUBLISHED_MB_PER_S),
            list(PUBLISHED_MB_PER_S.values()),
            "kx",
            markersize=10,
            label="published",
        )
        axes.axvline(T_TICKS, color="grey", linewidth=0.8, label=f"T = {T_TICKS} ticks")
        axes.set_xlabel("IDT (ticks)")
        axes.set_ylabel("bandwidth (MB/s)")
        axes.set_ylim(bottom=0)
        axes.set_title("Bandwidth of a lone flow against its IDT")
        axes.legend()
