"""mpi-idt: the bandwidth of a flow of MPI messages against its IDT, beside that of GM messages.

gulati-thesis-2001 5.5.1, figure 5.9: one rank sends, another receives. The MPI layer's one fitted cost
(`host/mpi/config.py`) is fitted on the knee of this curve. Each IDT and layer is one point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import source, table
from ...units import KB
from ..framework.base import Claim, Outcome, Point, Size, within
from ..measure.flows_experiment import FlowsExperiment, flows_of
from ..measure.flows_experiment import measure as measure_flows
from ..measure.gm_flows import (
    BANDWIDTH_TOLERANCE,
    IDT_RANGE,
    MAX_IDT_TICKS,
    T_TICKS,
    Flow,
    bandwidths,
    ideal_mb_per_s,
)
from ..measure.hosts import open_programs, start_hosts
from ..measure.mpi_flows import MpiFlow, flow_bandwidths, payload_share, run_flows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster

__all__ = ["KNEE_TICKS", "MpiIdt", "MpiIdtParameters"]

PUBLISHED = table("mpi-idt")
KNEE_TICKS = 140
"""The IDT below which the MPI level's bandwidth is flat (5.5.1, and 5.5.2 again)."""
MESSAGE_BYTES = 64 * KB
"""Bytes of the thesis' messages (5.3)."""
LEVEL_MB_PER_S = 50.0
ABOUT = 0.1
"""Relative: "in the range of 50 MB/s" (5.5.1) are the values that round to 50 in tens, 45 to 55.

The level here follows from the knee, 53.3 MB/s: at IDT 140 a message already moves at 52.0.
"""
IDTS = {
    "quick": [0, 96, 120, 140, 160, 250],
    "full": [0, 48, *range(96, 193, 8), 200, 250, 300, 350, 400, 500],
}
"""IDTs, ticks."""
WARM_UP_MESSAGES = {"quick": 3, "full": 6}
"""Warm-up. At the knee the host is only 2.5% faster than the flow: its packets take some messages to queue in the
card."""
WINDOW_MESSAGES = {"quick": 4, "full": 8}
"""The window. A flow is periodic, with the message as its period."""
GM_WARM_UP_CYCLES = 40_000
GM_WINDOW_CYCLES = {"quick": 100_000, "full": 200_000}
Idt = Annotated[int, Field(ge=0, le=MAX_IDT_TICKS)]


class MpiIdtParameters(Config):
    """Parameters of mpi-idt."""

    idt_ticks: list[Idt] = Field(
        [],
        max_length=256,
        description="IDTs, ticks; empty: those of the size",
        json_schema_extra={"range": f"list of IDTs, each {IDT_RANGE}"},
    )
    message_bytes: int = Field(
        MESSAGE_BYTES, ge=4096, le=256 * KB, multiple_of=4096, description="bytes of a message, whole packets"
    )


class MpiIdt(FlowsExperiment):
    """A lone flow, of GM messages and of MPI messages, at one IDT after another."""

    name = "mpi-idt"
    asks = "Up to which IDT does a flow of MPI messages have all the bandwidth that the MPI layer can give?"
    source = source("mpi-idt")
    entry = "lanikai.sim.experiments.mpi.idt:measure"
    Parameters = MpiIdtParameters

    def points(self, parameters: MpiIdtParameters, size: Size) -> list[Point]:
        """A point an IDT and layer: the flow goes from node 0 to node 1."""
        length = parameters.message_bytes
        return [
            self.point(
                f"{layer} IDT {idt}",
                {"layer": layer, "idt_ticks": idt, "message_bytes": length},
                flows=[Flow(source=0, target=1, message_bytes=length, idt_ticks=idt)],
                window={"warm_up_cycles": GM_WARM_UP_CYCLES, "window_cycles": GM_WINDOW_CYCLES[size]},
                layer=layer,
                warm_up_messages=WARM_UP_MESSAGES[size],
                window_messages=WINDOW_MESSAGES[size],
            )
            for layer in ("GM", "MPI")
            for idt in parameters.idt_ticks or IDTS[size]
        ]

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth of the flow over the window."""
        found = bandwidths if point.parameters["layer"] == "GM" else flow_bandwidths
        (one,) = found(measured)
        return {"bandwidth_mb_per_s": one}

    def claims(self, parameters: MpiIdtParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's claims, each where there are points to judge it by, for messages of 64 KB: the knee at IDT 140
        is theirs.

        Other lengths have more or less than 18 packets for their copies, and another knee.
        """
        gm, mpi = _curve(outcomes, "GM"), _curve(outcomes, "MPI")
        flat = {idt: one for idt, one in mpi.items() if idt < KNEE_TICKS}
        share = payload_share(parameters.message_bytes)
        rising = [gm[idt] for idt in sorted(gm) if T_TICKS <= idt < KNEE_TICKS]
        other = ""
        if parameters.message_bytes != MESSAGE_BYTES:
            other = f"the knee at IDT {KNEE_TICKS} is that of messages of {MESSAGE_BYTES} bytes"
        below = f"no IDT of the points is below {KNEE_TICKS}"
        return [
            Claim.every(
                f"for every IDT of {KNEE_TICKS} and more the MPI level has a packet every IDT: {share:.3f} of it is "
                f"payload (within {BANDWIDTH_TOLERANCE:.0%})",
                (
                    within(one, ideal_mb_per_s(idt) * share, BANDWIDTH_TOLERANCE)
                    for idt, one in mpi.items()
                    if idt >= KNEE_TICKS
                ),
                nothing=f"no IDT of the points is {KNEE_TICKS} or more",
            ).unless(other),
            Claim.every(
                f"below IDT {KNEE_TICKS} the MPI level's bandwidth is flat (within {BANDWIDTH_TOLERANCE:.0%} of its "
                "mean)",
                (
                    one > 0 and within(one, sum(flat.values()) / len(flat), BANDWIDTH_TOLERANCE)
                    for one in flat.values()
                ),
                nothing=below,
            ).unless(other),
            Claim.every(
                f"it is in the range of {LEVEL_MB_PER_S:.0f} MB/s (within {ABOUT:.0%})",
                (within(one, LEVEL_MB_PER_S, ABOUT) for one in flat.values()),
                nothing=below,
            ).unless(other),
            Claim(
                text=f"GM's goes on rising below IDT {KNEE_TICKS} to its peak, a packet every {T_TICKS} ticks",
                holds=all(one > other for one, other in pairwise(rising))
                and within(max(gm.values(), default=0), ideal_mb_per_s(T_TICKS), BANDWIDTH_TOLERANCE)
                and max(gm.values()) > max(flat.values(), default=0),
            ).unless(other or ("" if len(rising) > 1 else f"it takes two IDTs of {T_TICKS} to {KNEE_TICKS}")),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw both bandwidths against the IDT, the knee, the published level."""
        axes = figure.add_subplot()
        for layer in ("GM", "MPI"):
            curve = sorted(_curve(outcomes, layer).items())
            axes.plot(*zip(*curve, strict=True), "o-", markersize=4, label=f"{layer} level")
        axes.hlines(
            LEVEL_MB_PER_S, 0, KNEE_TICKS, colors="black", linestyles="dashed", label="MPI level, published"
        )
        axes.axvline(KNEE_TICKS, color="grey", linewidth=0.8, label=f"published knee, IDT {KNEE_TICKS}")
        axes.set_xlabel("IDT (ticks)")
        axes.set_ylabel("bandwidth (MB/s)")
        axes.set_ylim(bottom=0)
        axes.set_title("Bandwidth of a lone flow against its IDT")
        axes.legend()


def _curve(outcomes: Sequence[Outcome], layer: str) -> dict[int, float]:
    return {
        one.point.parameters["idt_ticks"]: one.results["bandwidth_mb_per_s"]
        for one in outcomes
        if one.point.parameters["layer"] == layer
    }


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: its flow, of GM messages or of MPI messages."""
    if spec["layer"] == "GM":
        return await measure_flows(cluster, spec)
    (flow,) = flows_of(spec)
    hosts = start_hosts(cluster, "mpi")
    sender, receiver = await open_programs(cluster, "mpi", hosts, [flow.source, flow.target])
    return await run_flows(
        cluster,
        [
            MpiFlow(
                source=sender,
                target=receiver,
                message_bytes=flow.message_bytes,
                idt_ticks=flow.idt_ticks or 0,
            )
        ],
        warm_up_messages=spec["warm_up_messages"],
        window_messages=spec["window_messages"],
    )
