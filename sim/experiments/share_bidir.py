"""share-bidir: flows that leave a node, while one comes in, share what the node can still send.

gulati-thesis-2001 5.4.3, figure 5.8: node 0 receives a flow and sends two, each from and to a node of its own. So all
three meet in its card and nowhere else. There are two points:

- *As published*: IDTs of 250 ask for 65.5 MB/s. To within a percent the node can send so much beside the incoming flow.
  So it tells little of the card: the IDTs alone would give nearly the same.
- *More is asked for*: IDTs of 100 and 200, 122.9 MB/s. Then the card is the limit. 5.4.3 says of it that "the maximum
  bandwidth achievable by an outgoing flow", 65.0 MB/s, is shared in the inverse ratio of the IDTs. This point sees the
  cost of the card's steps (`packet_turn` of `firmware/costs.py`). It is fitted to that 65.0 in incoming-rate, so this
  point is no prediction either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ..published import source, table
from ..units import KB
from .framework.base import Claim, Outcome, Point, Size, within
from .measure.flows_experiment import FlowsExperiment
from .measure.gm_flows import (
    BANDWIDTH_TOLERANCE,
    MAX_IDT_TICKS,
    SHARE_TOLERANCE,
    Flow,
    bandwidths,
    ideal_mb_per_s,
    proportions,
    shares,
)

__all__ = ["ShareBidir", "ShareBidirParameters"]

PUBLISHED = table("share-bidir")
MIDDLE, OUT_NODES, IN_NODE = 0, (1, 2), 3
WARM_UP_CYCLES = 60_000
"""Warm-up. Two messages of the published outgoing flows are 130 000 cycles; the pattern of packets is steady after a
few of them."""
WINDOW_CYCLES = {"quick": 1_100_000, "full": 3_000_000}
"""The shorter one holds 133 packets of the published incoming flow. A delivery waits for at most one other packet, 1600
cycles: 0.15% of it at each end."""
PACED = 0.003
"""Relative: the error of a flow with a packet every IDT. 2 ticks of 500 are 0.4%."""
MORE_OUT_TICKS = [100, 200]
"""IDTs that ask for more than the node can send."""
MOST_OUT_MB_PER_S: float = table("incoming-rate")["point"]["peak_outgoing_mb_per_s"]
IN_TICKS: int = PUBLISHED["idt_ticks"]["incoming"]
OUT_SUM = "out_sum_mb_per_s"
Idt = Annotated[int, Field(ge=1, le=MAX_IDT_TICKS)]


class ShareBidirParameters(Config):
    """Parameters of share-bidir; the defaults are the published set-up."""

    out_idt_ticks: list[Idt] = Field(
        default=[PUBLISHED["idt_ticks"]["out1"], PUBLISHED["idt_ticks"]["out2"]],
        min_length=1,
        max_length=len(OUT_NODES),
        description="IDTs of the flows that leave the node, ticks",
        json_schema_extra={"range": f"list of 1 or 2 IDTs, each 1 to {MAX_IDT_TICKS}"},
    )
    in_idt_ticks: int = Field(
        PUBLISHED["idt_ticks"]["incoming"],
        ge=1,
        le=MAX_IDT_TICKS,
        description="IDT of the flow that comes in, ticks",
    )
    message_bytes: int = Field(64 * KB, ge=1, le=256 * KB, description="bytes of a message")


class ShareBidir(FlowsExperiment):
    """Two flows out of a node, one into it."""

    name = "share-bidir"
    asks = "Do flows share what a node can send, in the inverse ratio of their IDTs, while it receives?"
    source = source("share-bidir")
    Parameters = ShareBidirParameters
    by_flow = ("bandwidth_mb_per_s",)
    tolerances = {
        "bandwidth_mb_per_s": BANDWIDTH_TOLERANCE,
        OUT_SUM: BANDWIDTH_TOLERANCE,
        "out_share": SHARE_TOLERANCE,
    }
    x_label = "IDT of the incoming and of the outgoing flows (ticks)"
    title = "Flows share what a node can send while it receives"
    flow_names = ("in", "out", "out")

    def points(self, parameters: ShareBidirParameters, size: Size) -> list[Point]:
        """The point that is asked for; for the published set-up there are two. Flow 0 is the incoming one, as in the
        results."""
        out = parameters.out_idt_ticks
        if parameters != ShareBidirParameters():
            return [self._point(parameters, out, size, None)]
        achieved = PUBLISHED["achieved_mb_per_s"]
        as_published = {
            "bandwidth_mb_per_s": [achieved["incoming"], achieved["out1"], achieved["out2"]],
            OUT_SUM: MOST_OUT_MB_PER_S,
            "out_share": proportions(out),
        }
        more = {OUT_SUM: MOST_OUT_MB_PER_S, "out_share": proportions(MORE_OUT_TICKS)}
        return [
            self._point(parameters, out, size, as_published),
            self._point(parameters, MORE_OUT_TICKS, size, more),
        ]

    def _point(
        self, parameters: ShareBidirParameters, out: list[int], size: Size, published: dict[str, Any] | None
    ) -> Point:
        incoming, length = parameters.in_idt_ticks, parameters.message_bytes
        # The receiving port of the node in the middle is none of its sending ones.
        ways = [(IN_NODE, 0, MIDDLE, len(OUT_NODES), incoming)]
        ways += [
            (MIDDLE, number, node, 0, idt)
            for number, (node, idt) in enumerate(zip(OUT_NODES, out, strict=False))
        ]
        return self.point(
            f"in {incoming}, out " + " ".join(map(str, out)),
            {"in_idt_ticks": incoming, "out_idt_ticks": out, "message_bytes": length},
            flows=[
                Flow(
                    source=node,
                    source_port=port,
                    target=to,
                    target_port=to_port,
                    message_bytes=length,
                    idt_ticks=idt,
                )
                for node, port, to, to_port, idt in ways
            ],
            window={"warm_up_cycles": WARM_UP_CYCLES, "window_cycles": WINDOW_CYCLES[size]},
            published=published,
        )

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth of each flow, the incoming one first; the outgoing sum; each outgoing flow's share of it."""
        found = bandwidths(measured)
        return {"bandwidth_mb_per_s": found, OUT_SUM: sum(found[1:]), "out_share": shares(found[1:])}

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's claims."""
        incoming = parameters.in_idt_ticks
        return [
            Claim.every(
                "the outgoing bandwidth is shared in the inverse ratio of the IDT values (shares within 1%)",
                (
                    within(
                        outcome.results["out_share"],
                        proportions(outcome.point.parameters["out_idt_ticks"]),
                        SHARE_TOLERANCE,
                    )
                    for outcome in outcomes
                ),
            ),
            Claim.every(
                f"the incoming flow keeps the bandwidth that its IDT says (within {PACED:.1%})",
                (
                    within(outcome.results["bandwidth_mb_per_s"][0], ideal_mb_per_s(incoming), PACED)
                    for outcome in outcomes
                ),
            ).unless(
                f"its IDT, {incoming} ticks, is below that of the section, {IN_TICKS}: a node that is asked to "
                "send all that it can need not take in so much"
                if incoming < IN_TICKS
                else ""
            ),
        ]

    def bar_label(self, outcome: Outcome) -> str:
        """The IDTs of the flows, the incoming one first."""
        idts = outcome.point.parameters
        return f"in {idts['in_idt_ticks']}, out " + ", ".join(map(str, idts["out_idt_ticks"]))
