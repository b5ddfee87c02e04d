"""admission-mesh: rejection and latency of ON/OFF real time on a mesh under four schemes of control.

yum-2006 7.3, figure 6 and table 4. Fixed before the first run:

- The document does not print the rates of its streams. Here each has `STREAM_UNITS` of a link's 1020: 2%, 32 Mbit/s. It
  does not print ON and OFF times, either: both are 10,000 cycles (0.8 ms) in the mean, some ten packets.
- The sum of a link is that of both ways (`mix.ADMISSION`). By the sums alone it was known before the run that some 27%
  are refused at 70% (docs/admission.md), where table 4 has 10.4%. Table 4 does not rise with the load, which no stream
  of one rate can give. The rates are asked for within `FACTOR` all the same.
- *Latency* is from a message's doorbell to its receiver's completion. A message that waits for a credit at its host is
  not in the adapter or the network yet. Latencies from birth are results, too.
- *Orders* allow `MARGIN`: two means of a quick size are each uncertain by some 2%.
- *Credits*: best effort has 200, the number that served best in 7.2. A connection has C = b M / B of M = 1024, as many
  messages as a class' queue of the adapter holds. Above saturation a host's backlog grows with time, so credits bind
  after a time that is as long as there are many. The quick size has a fifth of the full one's time, warm-up included,
  and so a fifth of its credits: 40, and M = 205. First runs had 200 there too, and no message found no credit. A claim
  now says that messages do, at the highest load and without admission.
- Without admission all streams send, and VL tables have the weights that all together ask for.
- *Control traffic* is less touched by admission: its latency changes by less, relatively, than that of real time.

Differences from the document's network: headers look ahead, packets keep their VL. Connections are asked for before the
traffic begins, and none ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...published import source, table
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
from .mix import BEST_EFFORT, CONTROL, REAL_TIME, Mix, mixed_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AdmissionMesh", "AdmissionMeshParameters"]

STREAM_UNITS = 20
ON_CYCLES = OFF_CYCLES = 10_000
LOADS = {"quick": [0.4, 0.7], "full": [0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7]}
WARMUP_CYCLES = {"quick": 10_000, "full": 50_000}
WINDOW_CYCLES = {"quick": 80_000, "full": 400_000}
CREDITS, BUFFER_MESSAGES = {"quick": 40, "full": 200}, {"quick": 205, "full": 1024}
"""In proportion to the time."""
SATURATED_LOAD = 0.7
"""Without admission best effort heaps up from here on."""
FACTOR = 2.0
"""Rejection rates are within it of table 4, up and down."""
MARGIN = 0.05
"""Relative, of two mean latencies that count as alike."""


class AdmissionMeshParameters(AdmissionParameters):
    """Parameters of admission-mesh."""

    network: str = Field(
        "mesh5x5", description="the network", json_schema_extra={"range": "mesh2x2 to mesh8x8"}
    )
    stream_units: int = Field(
        STREAM_UNITS, ge=1, le=255, description="mean rate of a stream, 1/1020 of a link"
    )

    @cached_property
    def system(self) -> AdapterNetworkConfig:
        """The network. Raises ConfigError.

        Its routers are those of peak-power, which count activity: so they are compiled once.
        """
        return mixed_network(self.network, activity_counters=True)


class AdmissionMesh(Experiment):
    """Admission and congestion control on a mesh, with ON/OFF real time."""

    name = "admission-mesh"
    asks = "How many connections are refused, and how long do packets take, with and without each control?"
    source = source("admission-mesh")
    entry = "lanikai.sim.experiments.qos.mixed:measure"
    Parameters = AdmissionMeshParameters

    def points(self, parameters: AdmissionMeshParameters, size: Size) -> list[Point]:
        """A point for each load and scheme."""
        published = table("admission-mesh")
        known = dict(
            zip(
                (one / 100 for one in published["injection_pct"]),
                published["rejection_pct"]["admission"],
                strict=True,
            )
        )
        judged = parameters.network == "mesh5x5" and parameters.real_time_share == 0.8
        found = []
        for load in parameters.loads or LOADS[size]:
            mix = Mix(
                load=load,
                real_time_share=parameters.real_time_share,
                real_time="on_off",
                stream_units=(parameters.stream_units,),
                on_cycles=ON_CYCLES,
                off_cycles=OFF_CYCLES,
                control_period_cycles=ON_CYCLES + OFF_CYCLES,
                credit_count=parameters.credits or CREDITS[size],
                buffer_messages=BUFFER_MESSAGES[size],
                warmup_cycles=WARMUP_CYCLES[size],
                window_cycles=WINDOW_CYCLES[size],
            )
            for scheme in parameters.schemes or SCHEMES:
                rate = known.get(load) if SCHEMES[scheme][0] else 0.0
                found.append(
                    scheme_point(
                        mix,
                        scheme=scheme,
                        parameters={
                            "network": parameters.network,
                            "real_time_share": parameters.real_time_share,
                            "stream_units": parameters.stream_units,
                        },
                        published={"rejection_pct": rate} if judged and rate is not None else None,
                        tolerance=FACTOR - 1,
                    )
                )
        return found

    def system(self, parameters: AdmissionMeshParameters, point: Point) -> AdapterNetworkConfig:
        """The network of all points."""
        return parameters.system

    def results(
        self, parameters: AdmissionMeshParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Those of `mixed_results`."""
        return mixed_results(Mix(**point.spec), len(parameters.system.network.nodes), measured)

    def claims(self, parameters: AdmissionMeshParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """Table 4 and the orders of figure 6."""
        by = Table(outcomes)
        real_time, control = LATENCIES[REAL_TIME], LATENCIES[CONTROL]
        published = {
            (one.point.parameters["scheme"], one.point.parameters["load"]): one.point.published[
                "rejection_pct"
            ]
            for one in outcomes
            if one.point.published
        }
        others = ("admission", "congestion", "none")
        four = by.at("both", *others)
        top = max(by.loads, default=0.0)

        def change(load: float, name: str) -> float:
            return abs(by.value("none", load, name) / by.value("admission", load, name) - 1)

        return [
            Claim.every(
                f"table 4: rejection rates with admission are within a factor of {FACTOR:g}",
                (
                    rate / FACTOR <= by.value(scheme, load, "rejection_pct") <= rate * FACTOR
                    for (scheme, load), rate in published.items()
                    if rate
                ),
            ),
            Claim.every(
                "table 4: congestion control changes no rejection rate",
                (
                    by.value("both", load, "rejection_pct") == by.value("admission", load, "rejection_pct")
                    for load in by.at("both", "admission")
                ),
            ),
            Claim.every(
                "without admission no connection is rejected, and every stream sends",
                (
                    by.value(scheme, load, "rejection_pct")
                    == 0
                    < by.value(scheme, load, "real_time_throughput")
                    for scheme in ("congestion", "none")
                    for load in by.at(scheme)
                ),
            ),
            Claim.every(
                f"real-time latency is lowest with both controls at every load, within {MARGIN:.0%}",
                by.no_more("both", others, real_time, margin=MARGIN),
            ),
            Claim.every(
                f"best-effort latency is lowest with both controls at every load, within {MARGIN:.0%}",
                by.no_more("both", others, LATENCIES[BEST_EFFORT], margin=MARGIN),
            ),
            Claim.every(
                f"latencies are highest without any control at every load, within {MARGIN:.0%}",
                (
                    verdict
                    for name in (real_time, LATENCIES[BEST_EFFORT])
                    for scheme in ("admission", "congestion")
                    for verdict in by.no_more(scheme, ("none",), name, margin=MARGIN)
                ),
            ),
            Claim.every(
                "at the lowest load admission alone has lower real-time latency than congestion control alone",
                (
                    by.value("admission", load, real_time) < by.value("congestion", load, real_time)
                    for load in four[:1]
                ),
            ),
            Claim.every(
                "at the highest load congestion control alone has lower real-time latency than admission alone",
                (
                    by.value("congestion", load, real_time) < by.value("admission", load, real_time)
                    for load in four[1:][-1:]
                ),
            ),
            Claim.every(
                "admission changes the latency of control packets less than that of real time at the highest load",
                (change(load, control) < change(load, real_time) for load in by.at("admission", "none")[-1:]),
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

    def plot(self, parameters: AdmissionMeshParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Rejection rates beside table 4, and the latencies of figure 6."""
        published = table("admission-mesh")
        load_panels(
            figure,
            [
                LoadPanel(
                    result="rejection_pct",
                    label="connections refused (%)",
                    title="table 4",
                    outcomes=outcomes,
                    published={
                        "admission": (
                            [one / 100 for one in published["injection_pct"]],
                            published["rejection_pct"]["admission"],
                        )
                    },
                ),
                *latency_panels(outcomes, LATENCIES, title="figure 6"),
            ],
            by="scheme",
            names=list(SCHEMES),
            title="ON/OFF streams on a mesh: admission and congestion control",
            columns=2,
        )
