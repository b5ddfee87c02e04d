"""fair-queueing: messages in turn against packets in turn.

gulati-thesis-2001 2.2, figure 2.3: flow A has messages of three packets, flow B of one, and both always have
the next one ready. Served message by message A gets three times of what B gets; served packet by packet, both
get the same. Both disciplines are those of the unmodified GM control program's connection queue; the
rate-controlled program with no flow regulated stands beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ..published import source, table
from ..units import mb_per_s
from .framework.base import Claim, Experiment, Outcome, Point, Size, within
from .framework.charts import bandwidth_bars
from .measure.gm_flows import SHARE_TOLERANCE, Flow, measure_rounds, shares
from .measure.gm_hosts import gm_cluster, start_gm

if TYPE_CHECKING:
    from lanikai.firmware.gm import GmProgram
    from matplotlib.figure import Figure

    from ..systems.cluster import Cluster

__all__ = ["FairQueueing", "FairQueueingParameters"]

PUBLISHED = table("fair-queueing")
PACKETS = list(PUBLISHED["message_packets"].values())
DISCIPLINES: Mapping[str, Mapping[str, Any]] = {
    "message": {"rate_controlled": False, "discipline": "message"},
    "packet": {"rate_controlled": False, "discipline": "packet"},
    "rate_controlled": {"rate_controlled": True},
}
"""By name: changes of `GmConfig`."""
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


class FairQueueing(Experiment):
    """Two flows of one sender, in two disciplines."""

    name = "fair-queueing"
    asks = "Does a flow with longer messages get more than one with short ones?"
    source = source("fair-queueing")
    entry = "lanikai.sim.experiments.fair_queueing:measure"
    Parameters = FairQueueingParameters
    by_flow = ("message_packets", "bandwidth_mb_per_s", "share")

    def points(self, parameters: FairQueueingParameters, size: Size) -> list[Point]:
        """A point a discipline."""
        packets = parameters.message_packets
        points = []
        for discipline in DISCIPLINES:
            in_round = sum(uses(discipline, packets))
            # As many packets in every discipline, whole rounds of it.
            window = -(-ROUNDS[size] * sum(packets) // in_round) * in_round
            published = None
            if packets == PACKETS and discipline in PUBLISHED["uses"]:
                published = {"share": shares(PUBLISHED["uses"][discipline])}
            points.append(
                Point(
                    label=discipline.replace("_", " "),
                    parameters={"discipline": discipline, "message_packets": packets},
                    spec={
                        "discipline": discipline,
                        "message_packets": packets,
                        "warm_up_packets": WARM_UP_ROUNDS * in_round,
                        "window_packets": window,
                    },
                    published=published,
                    tolerance={"share": SHARE_TOLERANCE} if published else None,
                )
            )
        return points

    def cluster(self, parameters: FairQueueingParameters) -> Any:
        """A sender, and a receiver for each flow."""
        return gm_cluster()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth and share of each flow, and the order in which packets were chosen: the first flow is
        A."""
        delivered = measured["payload_bytes"]
        return {
            "bandwidth_mb_per_s": [
                mb_per_s(flow, measured["window_cycles"], measured["clock_hz"]) for flow in delivered
            ],
            "share": shares(delivered),
            "order": measured["order"],
        }

    def claims(self, parameters: FairQueueingParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's two claims, for whatever messages were asked for."""
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

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """A group of bars a discipline, and below it the order of packets."""
        bandwidth_bars(
            figure,
            outcomes,
            [f"{outcome.point.label}\n{outcome.results['order']}" for outcome in outcomes],
            x_label="discipline, order of packets",
            title="Messages in turn against packets in turn",
            flow_names="ABC",
        )


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: flow f goes from node 0 to node f + 1."""
    from lanikai.firmware.gm import GmConfig

    order: list[str] = []

    def record(program: GmProgram) -> None:
        if program.node == 0:
            program.dispatched = lambda cycle, node, key: order.append("ABC"[node - 1])

    nic = cluster.config.nic
    gm = GmConfig.for_nic(nic, **DISCIPLINES[spec["discipline"]])
    hosts = start_gm(cluster, gm, record)
    flows = [
        Flow(
            source=0,
            source_port=number,
            target=number + 1,
            message_bytes=packets * nic.mtu_bytes,
            idt_ticks=None,
        )
        for number, packets in enumerate(spec["message_packets"])
    ]
    measured = await measure_rounds(cluster, hosts, flows, spec)
    first = spec["warm_up_packets"]
    return measured | {"order": "".join(order[first : first + ORDER_PACKETS])}
