"""admission-cluster: deadlines of video and latency on a single router of 8 ports, with and without the controls.

yum-2006 7.3 and figure 5. Fixed before the first run:

- *DMP and DMT* with both controls are to be within `FACTOR` of 0.002 and 0.04 ms, up and down. Table 2 has a DMP of
  0.021 to 0.030 for the very set-up of its first row, so the document disagrees with itself by ten. They are judged
  where frames have the document's 33.3 ms alone.
- In the quick size a frame has a tenth of that time, and a tenth of its flits. Then only orders are judged.
- *Streams*: films of `video`, scaled to seven rates (`mix.STREAM_UNITS`), as the document's traces and their rates are
  not public. With a regulator, as in 7.1: it spreads a frame over its interval, and each frame's last packet is due at
  the interval's end. Otherwise a frame of many packets would end later in its interval than one of few, and miss a
  deadline without any delay.
- *Latency* is from a message's doorbell to its receiver's completion, as in admission-mesh.
- "Orders of magnitude" is asked for at the highest load: best effort is `MAGNITUDE` times as fast with both controls.
- *Stable*: from the lowest to the highest load DMP grows by no more than `ERRORS` standard errors of the difference.
  Frames that miss are few of many, so their number has a variance of itself.
- *Length*: by 6.2 a frame misses if its delay is a record of its stream, so frame n of delays that are alike and
  independent misses with the chance 1/n. A stream's first frame leaves while others have not begun, so its delay is not
  like the others', and neither are those of a few more. After `WARMUP_FRAMES` = 10 that matters little: frames 10 to 29
  miss with a chance of 0.057. Some 390 streams then have 440 misses in `WINDOW_FRAMES` = 20. So the standard error of a
  difference is 7% of DMP. Hosts that fall behind miss nearly all. First runs had 6 frames after 2.
- *Credits*: best effort has 200, and M is 1024, as in admission-mesh. A frame of the quick size has a tenth of the time
  and of the packets, and so a tenth of both: 20, and M = 102. Each connection still has one. A claim says that
  messages wait for credits, at the highest load and without admission.
- Admission and VL tables are as in admission-mesh. Control packets are ten a host in 33.3 ms.

Differences from the document: packets keep their VL, headers look ahead. Connections are asked for before the traffic
begins, and none ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from ...published import source
from ...systems.adapters.config import AdapterNetworkConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from ..framework.charts import LoadPanel, load_panels
from .admission_schemes import (
    LATENCIES,
    SCHEMES,
    AdmissionParameters,
    Table,
    latency_panels,
    mixed_results,
    scheme_point,
)
from .mix import BEST_EFFORT, CONTROL, FRAME_CYCLES, STREAM_UNITS, Mix, mixed_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AdmissionCluster", "AdmissionClusterParameters"]

LOADS = {"quick": [0.6, 0.8], "full": [0.6, 0.7, 0.8]}
SIZE_SCHEMES = {"quick": ["both", "congestion", "none"], "full": list(SCHEMES)}
SIZE_FRAME_CYCLES = {"quick": FRAME_CYCLES // 10, "full": FRAME_CYCLES}
LEAST_PORTS, MOST_PORTS = 2, 15
ROUTERS = f"router{LEAST_PORTS} to router{MOST_PORTS}"
LEAST_FRAME_CYCLES = 100
"""As `Mix.frame_cycles`."""
WARMUP_FRAMES, WINDOW_FRAMES = 10, 20
CREDITS, BUFFER_MESSAGES = {"quick": 20, "full": 200}, {"quick": 102, "full": 1024}
"""In proportion to a frame's time."""
SATURATED_LOAD = 0.8
"""Without admission best effort heaps up from here on."""
ERRORS = 2
"""Standard errors that a difference of DMPs may be above zero."""
DMP, DMT_MS = 0.002, 0.04
"""With both controls over the whole load (7.3)."""
FACTOR = 3.0
MAGNITUDE = 10.0
MARGIN = 0.05
"""Relative, of two mean latencies that count as alike, as in admission-mesh."""


class AdmissionClusterParameters(AdmissionParameters):
    """Parameters of admission-cluster."""

    network: str = Field("router8", description="the network", json_schema_extra={"range": ROUTERS})
    regulator: bool = Field(True, description="a frame's packets are spread over its interval")
    frame_cycles: int = Field(
        0,
        ge=0,
        description="interval of frames in cycles of 80 ns; 0: that of the size",
        json_schema_extra={"range": f"0, or {LEAST_FRAME_CYCLES} and more"},
    )
    stream_units: list[int] = Field(
        list(STREAM_UNITS),
        min_length=1,
        description="mean rates of streams in turn, 1/1020 of a link",
        json_schema_extra={"range": "list of units, each 1 to 255"},
    )

    @model_validator(mode="after")
    def _check_cluster(self) -> Self:
        ports = re.fullmatch(r"router(\d{1,2})", self.network)
        if not ports or not LEAST_PORTS <= int(ports[1]) <= MOST_PORTS:
            raise ValueError(f"network = {self.network!r}: a router, {ROUTERS}")
        if 0 < self.frame_cycles < LEAST_FRAME_CYCLES:
            raise ValueError(f"frame_cycles = {self.frame_cycles}: 0, or at least {LEAST_FRAME_CYCLES}")
        return self

    @cached_property
    def system(self) -> AdapterNetworkConfig:
        """The network. Raises ConfigError."""
        return mixed_network(self.network)


class AdmissionCluster(Experiment):
    """Admission and congestion control on a single router, with MPEG real time."""

    name = "admission-cluster"
    asks = "How often do video frames miss their deadlines with and without admission and congestion control?"
    source = source("admission-cluster")
    entry = "lanikai.sim.experiments.qos.mixed:measure"
    Parameters = AdmissionClusterParameters

    def points(self, parameters: AdmissionClusterParameters, size: Size) -> list[Point]:
        """A point for each load and scheme."""
        frame = parameters.frame_cycles or SIZE_FRAME_CYCLES[size]
        judged = frame == FRAME_CYCLES and parameters.network == "router8" and parameters.regulator
        found = []
        for load in parameters.loads or LOADS[size]:
            mix = Mix(
                load=load,
                real_time_share=parameters.real_time_share,
                stream_units=tuple(parameters.stream_units),
                regulator=parameters.regulator,
                frame_cycles=frame,
                control_period_cycles=FRAME_CYCLES,
                credit_count=parameters.credits or CREDITS[size],
                buffer_messages=BUFFER_MESSAGES[size],
                warmup_cycles=WARMUP_FRAMES * frame,
                window_cycles=WINDOW_FRAMES * frame,
            )
            for scheme in parameters.schemes or SIZE_SCHEMES[size]:
                found.append(
                    scheme_point(
                        mix,
                        scheme=scheme,
                        parameters={
                            "network": parameters.network,
                            "real_time_share": parameters.real_time_share,
                            "regulator": parameters.regulator,
                            "frame_cycles": frame,
                        },
                        published={"dmp": DMP, "dmt_ms": DMT_MS} if judged and scheme == "both" else None,
                        tolerance=FACTOR - 1,
                    )
                )
        return found

    def system(self, parameters: AdmissionClusterParameters, point: Point) -> AdapterNetworkConfig:
        """The network of all points."""
        return parameters.system

    def results(
        self, parameters: AdmissionClusterParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Those of `mixed_results`."""
        return mixed_results(Mix(**point.spec), len(parameters.system.network.nodes), measured)

    def claims(self, parameters: AdmissionClusterParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The numbers and orders of 7.3."""
        by = Table(outcomes)
        judged = [one.results for one in outcomes if one.point.published]
        both, compared = by.at("both"), by.at("both", "none")
        top = max(by.loads, default=0.0)

        def within(value: float | None, published: float) -> bool:
            return value is not None and published / FACTOR <= value <= published * FACTOR

        def more(load: float) -> bool:
            dmp = [by.value(scheme, load, "dmp") for scheme in ("both", "none")]
            # Where no frame is late, none has a time.
            late = [
                by.value(scheme, load, "dmt_ms") if rate else 0.0
                for scheme, rate in zip(("both", "none"), dmp, strict=False)
            ]
            return dmp[1] > dmp[0] and late[1] > late[0]

        def variance(load: float) -> float:
            frames = by.value("both", load, "frames")
            # A probability of 0 is as uncertain as one of a single frame.
            return max(by.value("both", load, "dmp"), 1 / frames) / frames if frames else float("nan")

        def grows(low: float, high: float) -> bool:
            allowed = ERRORS * sqrt(variance(low) + variance(high))
            return not by.value("both", high, "dmp") <= by.value("both", low, "dmp") + allowed

        best_effort = LATENCIES[BEST_EFFORT]
        return [
            Claim.every(
                f"with both controls DMP is within a factor of {FACTOR:g} of {DMP}",
                (within(one["dmp"], DMP) for one in judged),
                nothing="frames have another interval than the document's",
            ),
            Claim.every(
                f"with both controls DMT is within a factor of {FACTOR:g} of {DMT_MS} ms",
                (within(one["dmt_ms"], DMT_MS) for one in judged),
                nothing="frames have another interval than the document's",
            ),
            Claim.every(
                "with both controls DMP does not grow from the lowest to the highest load, beyond chance",
                (not grows(both[0], high) for high in both[1:][-1:]),
            ),
            Claim.every(
                "without controls DMP and DMT are higher at every load",
                (more(load) for load in compared),
            ),
            Claim.every(
                f"best-effort latency is lower with both controls at every load, within {MARGIN:.0%}",
                by.no_more("both", ("none",), best_effort, margin=MARGIN),
            ),
            Claim.every(
                f"at the highest load best effort is {MAGNITUDE:g} times as fast with both controls",
                (
                    by.value("none", load, best_effort) >= MAGNITUDE * by.value("both", load, best_effort)
                    for load in compared[-1:]
                ),
            ),
            Claim.every(
                f"control latency is lower with both controls at every load, within {MARGIN:.0%}",
                by.no_more("both", ("none",), LATENCIES[CONTROL], margin=MARGIN),
            ),
            Claim.every(
                "at the highest load messages wait for a credit with congestion control alone",
                (by.value("congestion", load, "waited") > 0 for load in by.at("congestion")[-1:]),
            ).unless("" if top >= SATURATED_LOAD else "no load is above saturation"),
            Claim.every(
                "every request was answered, and every message that ended did so without an error",
                (
                    one.results["failed"] == one.results["unanswered"] == 0 < one.results["throughput"]
                    for one in outcomes
                ),
            ),
        ]

    def plot(
        self, parameters: AdmissionClusterParameters, outcomes: Sequence[Outcome], figure: Figure
    ) -> None:
        """Figure 5: DMP and DMT beside the published level, and latencies of best effort and control packets."""
        level = "published, with both"
        load_panels(
            figure,
            [
                LoadPanel(
                    result="dmp",
                    label="DMP",
                    title="figure 5 (a)",
                    outcomes=outcomes,
                    log=True,
                    level=(level, DMP),
                ),
                LoadPanel(
                    result="dmt_ms",
                    label="DMT (ms)",
                    title="figure 5 (a)",
                    outcomes=outcomes,
                    log=True,
                    level=(level, DMT_MS),
                ),
                *latency_panels(outcomes, (BEST_EFFORT, CONTROL), title="figure 5 (b)"),
            ],
            by="scheme",
            names=list(SCHEMES),
            title="MPEG streams on one router: admission and congestion control",
            columns=2,
        )
