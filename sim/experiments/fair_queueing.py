"""fair-queueing: messages in turn against packets in turn.

gulati-thesis-2001 2.2, figure 2.3: flow A has messages of three packets, flow B of one, and both always have the next
one ready. Served message by message A gets three times as much as B; served packet by packet, both get the same. Both
disciplines are those of the unmodified GM control program's connection queue. The rate-controlled program with no flow
regulated stands beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config, NicConfig, preset
from pydantic import Field

from ..published import source, table
from .framework.base import Claim, Outcome, Point, Size, within
from .measure.flows_experiment import FlowsExperiment, flows_of
from .measure.gm_flows import SHARE_TOLERANCE, Flow, measure_rounds, shares
from .measure.gm_hosts import start_gm

if TYPE_CHECKING:
    from lanikai.firmware.gm import GmProgram

    from ..systems.cluster import Cluster

__all__ = ["FairQueueing", "FairQueueingParameters"]

PUBLISHED = table("fair-queueing")
PACKETS = list(PUBLISHED["message_packets"].values())
DISCIPLINES: Mapping[str, Mapping[str, Any]] = {
    "message": {"rate_controlled": False, "discipline": "message"},
    "packet": {"rate_controlled": False, "discipline": "packet"},
    "rate_controlled": {"rate_controlled": True},
}
"""Changes of `GmConfig`, by name of the discipline."""
ROUNDS = {"quick": 30, "full": 300}
"""Rounds of messages (of the flow with the most packets, one) in the window."""
WARM_UP_ROUNDS = 8
ORDER_PACKETS = 12
"""Dispatches that are recorded, from the window's start: figure 2.3 shows as many or fewer."""
Packets = Annotated[int, Field(ge=1, le=16)]


class FairQueueingParameters(Config):
    """Parameters of fair-queueing; the defaults are the published set-up."""

    message_packets: list[Packets] = Field(
        PACKETS,
        min_length=2,
        max_length=3,
        description="packets of a message of each flow",
        json_schema_extra={"range": "list of 2 or 3 flows, each 1 to 16 packets"},
    )


def uses(discipline: str, message_packets: Sequence[int]) -> list[int]:
    """Packets of each flow in a round of a discipline."""
    return list(message_packets) if discipline == "message" else [1] * len(message_packets)


class FairQueueing(FlowsExperiment):
    """Two flows of one sender, in two disciplines."""

    name = "fair-queueing"
    asks = "Does a flow with longer messages get more than one with short ones?"
    source = source("fair-queueing")
    entry = "lanikai.sim.experiments.fair_queueing:measure"
    Parameters = FairQueueingParameters
    by_flow = ("message_packets", "bandwidth_mb_per_s", "share")
    x_label = "discipline, order of packets"
    title = "Messages in turn against packets in turn"
    flow_names = "ABC"

    def points(self, parameters: FairQueueingParameters, size: Size) -> list[Point]:
        """A point a discipline: flow f goes from node 0 to node f + 1, and has no IDT."""
        packets, mtu = parameters.message_packets, preset(NicConfig, "lanai4").mtu_bytes
        flows = [
            Flow(source=0, source_port=flow, target=flow + 1, message_bytes=one * mtu, idt_ticks=None)
            for flow, one in enumerate(packets)
        ]
        points = []
        for discipline in DISCIPLINES:
            in_round = sum(uses(discipline, packets))
            published = None
            if packets == PACKETS and discipline in PUBLISHED["uses"]:
                published = {"share": shares(PUBLISHED["uses"][discipline])}
            points.append(
                self.point(
                    discipline.replace("_", " "),
                    {"discipline": discipline, "message_packets": packets},
                    flows=flows,
                    window={
                        "warm_up_packets": WARM_UP_ROUNDS * in_round,
                        # As many packets in every discipline, whole rounds of it.
                        "window_packets": -(-ROUNDS[size] * sum(packets) // in_round) * in_round,
                    },
                    published=published,
                    discipline=discipline,
                )
            )
        return points

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth and share of each flow, and the order in which packets were chosen: the first flow is A."""
        return super().results(parameters, point, measured) | {"order": measured["order"]}

    def claims(self, parameters: FairQueueingParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's two claims, for any messages that were asked for."""
        texts = {
            "message": "message by message, flows get what their messages' lengths are (shares within 1%)",
            "packet": "packet by packet, all flows get the same (shares within 1%)",
            "rate_controlled": "so they do when the rate control unit chooses among flows without regulation",
        }
        return [
            Claim(
                text=texts[outcome.point.parameters["discipline"]],
                holds=within(
                    outcome.results["share"],
                    shares(uses(outcome.point.parameters["discipline"], parameters.message_packets)),
                    SHARE_TOLERANCE,
                ),
            )
            for outcome in outcomes
        ]

    def bar_label(self, outcome: Outcome) -> str:
        """The discipline, and below it the order of packets."""
        return f"{outcome.point.label}\n{outcome.results['order']}"


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point, with the program that its discipline says; beside the flows, the order of dispatches."""
    from lanikai.firmware.gm import GmConfig

    order: list[str] = []

    def record(program: GmProgram) -> None:
        if program.node == 0:
            program.dispatched = lambda cycle, node, key: order.append("ABC"[node - 1])

    gm = GmConfig.for_nic(cluster.config.nic, **DISCIPLINES[spec["discipline"]])
    measured = await measure_rounds(cluster, start_gm(cluster, gm, record), flows_of(spec), spec)
    first = spec["warm_up_packets"]
    return measured | {"order": "".join(order[first : first + ORDER_PACKETS])}
