"""mpi-share: two flows of MPI messages from one node share in the inverse ratio of their IDTs.

gulati-thesis-2001 5.5.2, figure 5.10: two MPI programs, each with a rank on node 0 that sends to one on a node of its
own. Each pair of IDTs is one point. Nothing is fitted here: the MPI layer's costs are those of mpi-idt.

There are two programs, not two flows of one rank. A rank's copies let 53 MB/s through, all its flows together, which is
what one flow of IDT 140 takes. The thesis uses such IDTs for flows that share. There are not two ranks of one program
either. In a program of four ranks a peer has a third of the receive buffers, 8. With these a flow of IDT 140 beside
another one gets 51 MB/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from lanikai.hdl.config import Config
from pydantic import Field, model_validator

from ...published import source
from ...units import KB
from ..framework.base import Claim, Experiment, Outcome, Point, Size, within
from ..framework.charts import bandwidth_bars
from ..measure.gm_flows import MAX_IDT_TICKS, SHARE_TOLERANCE, ideal_mb_per_s, proportions, shares
from ..measure.hosts import open_programs, start_hosts
from ..measure.mpi_flows import MpiFlow, flow_bandwidths, payload_share, run_flows
from .idt import KNEE_TICKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster

__all__ = ["MpiShare", "MpiShareParameters"]

SETTINGS = {
    "quick": [[140, 420], [210, 210], [200, 300]],
    "full": [
        [140, 420],
        [140, 560],
        [150, 300],
        [160, 320],
        [210, 210],
        [200, 300],
        [200, 800],
        [280, 280],
        [300, 700],
    ],
}
"""Pairs of IDTs, ticks: of 140 and more. Together they ask for no more than the card of the sending node can
dispatch."""
WARM_UP_MESSAGES = {"quick": 3, "full": 6}
WINDOW_MESSAGES = {"quick": 4, "full": 8}
"""Messages of the slower flow in the window.

A flow is periodic, with the message as its period, except for a packet of the other flow that is in the way at a
window's end. That packet takes 48 us: 0.6% of at least 4 messages of 18 packets at IDT 210 (7.6 ms).
"""
TOGETHER_TICKS = 101
"""Two destinations in turn take the card 50.06 us a packet (figure 5.5)."""
Idt = Annotated[int, Field(ge=1, le=MAX_IDT_TICKS)]


class MpiShareParameters(Config):
    """Parameters of mpi-share."""

    idt_ticks: list[list[Idt]] = Field(
        [],
        max_length=64,
        description="settings, IDTs of the two flows each, ticks; empty: those of the size",
        json_schema_extra={"range": f"list of settings, each a list of 2 IDTs, each 1 to {MAX_IDT_TICKS}"},
    )
    message_bytes: int = Field(
        65536, ge=4096, le=256 * KB, multiple_of=4096, description="bytes of a message, whole packets"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, setting in enumerate(self.idt_ticks):
            if len(setting) != 2:
                raise ValueError(f"idt_ticks[{number}] has {len(setting)} IDTs: a setting is two flows")
        return self


class MpiShare(Experiment):
    """Two flows of MPI messages that leave one node."""

    name = "mpi-share"
    asks = "Do two MPI flows of one node share its bandwidth in the inverse ratio of their IDTs?"
    source = source("mpi-share")
    entry = "lanikai.sim.experiments.mpi.share:measure"
    Parameters = MpiShareParameters
    by_flow = ("idt_ticks", "bandwidth_mb_per_s", "share")

    def points(self, parameters: MpiShareParameters, size: Size) -> list[Point]:
        """A point a setting."""
        return [
            Point(
                label=f"IDT {setting[0]} {setting[1]}",
                parameters={"idt_ticks": list(setting), "message_bytes": parameters.message_bytes},
                spec={
                    "idt_ticks": list(setting),
                    "message_bytes": parameters.message_bytes,
                    "warm_up_messages": WARM_UP_MESSAGES[size],
                    "window_messages": WINDOW_MESSAGES[size],
                },
            )
            for setting in parameters.idt_ticks or SETTINGS[size]
        ]

    def cluster(self, parameters: MpiShareParameters) -> Any:
        """Three nodes, and one that stays idle."""
        from ..measure.gm_hosts import gm_cluster

        return gm_cluster()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth and share of each flow."""
        found = flow_bandwidths(measured)
        return {"bandwidth_mb_per_s": found, "share": shares(found)}

    def claims(self, parameters: MpiShareParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's claim on every setting with IDTs of 140 and more. The mapping of 4.4.2 adds one on the
        bandwidths of the settings that the card can dispatch."""
        payload = payload_share(parameters.message_bytes)
        judged = [one for one in outcomes if min(one.point.parameters["idt_ticks"]) >= KNEE_TICKS]
        fitting = [
            one
            for one in judged
            if sum(1 / idt for idt in one.point.parameters["idt_ticks"]) <= 1 / TOGETHER_TICKS
        ]
        return [
            Claim.every(
                f"two MPI flows of one node share in the inverse ratio of their IDTs, for IDTs of {KNEE_TICKS} and "
                f"more (shares within {SHARE_TOLERANCE:.0%})",
                (
                    within(
                        one.results["share"],
                        proportions(one.point.parameters["idt_ticks"]),
                        SHARE_TOLERANCE,
                    )
                    for one in judged
                ),
                nothing=f"every setting has an IDT below {KNEE_TICKS}",
            ),
            # 2 ticks of 140 are 1.4%.
            Claim.every(
                f"each has a packet every IDT, {payload:.3f} of it payload (within {SHARE_TOLERANCE:.0%})",
                (
                    within(
                        one.results["bandwidth_mb_per_s"],
                        [ideal_mb_per_s(idt) * payload for idt in one.point.parameters["idt_ticks"]],
                        SHARE_TOLERANCE,
                    )
                    for one in fitting
                ),
                nothing=f"every setting has an IDT below {KNEE_TICKS}, or asks for more than the card can dispatch",
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """A group of bars a setting."""
        bandwidth_bars(
            figure,
            outcomes,
            [", ".join(map(str, one.point.parameters["idt_ticks"])) for one in outcomes],
            x_label="IDT of the flows (ticks)",
            title="Two MPI flows of one node share in the inverse ratio of their IDTs",
        )


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: each program has a rank on node 0 that sends to one on a node of its own."""
    hosts = start_hosts(cluster, "mpi")
    flows = []
    for number, idt in enumerate(spec["idt_ticks"]):
        sender, receiver = await open_programs(cluster, "mpi", hosts, [0, 1 + number], first_port=number)
        flow = MpiFlow(source=sender, target=receiver, message_bytes=spec["message_bytes"], idt_ticks=idt)
        flows.append(flow)
    return await run_flows(
        cluster,
        flows,
        warm_up_messages=spec["warm_up_messages"],
        window_messages=spec["window_messages"],
    )
