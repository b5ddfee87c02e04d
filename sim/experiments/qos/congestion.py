"""congestion: queueing delay and throughput of best effort under credits, Self-Tuned, ALO and no control.

yum-2006 7.2, figure 4 and table 3. Fixed before the first run:

- *Queueing delay* is the time from a packet's doorbell until its header is put into the buffer of its VL, less that of
  a lone packet in the same run. So the adapter's own latency is left out: the document prints none. A packet waits for
  its credit before its doorbell, so that wait is not in it. In the document the delays with C credits stay below C
  packets' time on the link.
- The document does not say where the delay ends. Up to 60% its values are within 7% of the mean wait for a server with
  40 flits' time a packet (M/D/1: 1.07, 1.60, 2.40 us). That is the transfer into a VL's buffer. So the time in that
  buffer is not counted, but reported (`buffered_delay_us`). First runs took the completion as the end, as headers had
  no stamp then.
- A link cycle is 80 ns: 128 bits at 1.6 Gbit/s. Here a link carries a flit a cycle.
- *Table 3* is judged up to 70% injection, where the network is not saturated: within `TOLERANCE`. At 80% and 90% the
  document's delays depend on how long it was simulated, which it does not say.
- Self-Tuned and ALO are judged by order alone. The document's row of Self-Tuned has a number too few.

Fixed after first runs, and why:

- *Room of a VL in the adapter*: the document does not give it. It is fitted to one number, the delay without control at
  70%: of 2, 3, 4 and 8 packets, 3 comes nearest (`VL_PACKETS`). So the column of 70% is a claim of its own, and says
  that it is fitted. The other columns were not looked at to choose it. With another room they differ by 10% at most.
- *Credits of the quick size* are a tenth, as its time is: with all of them no packet waited for one.
- *Latencies that are alike*: where no scheme keeps anything back, all have the same mean but for its last digits. So
  `SAME` holds for latencies as it did for throughputs.

The adapter has its work queue elements posted: one DMA a message, as in the document (3.2).

Differences from the document's network: headers look ahead, output VLs go round the inputs, and every data VL is open
to best effort, as it is alone. Real processing in the adapter overlaps with sending.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config, ConfigError, HcaConfig, RouterConfig, preset
from lanikai.hdl.hca.injection.registry import INJECTION
from pydantic import Field, FiniteFloat, model_validator

from ...published import source, table
from ...systems.adapters.config import AdapterNetworkConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from ..framework.charts import LoadPanel, load_panels
from ..measure.named_networks import MOST_SIDE, named_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SCHEMES", "BestEffortParameters", "Congestion", "CongestionParameters", "delays"]

LEAST_SIDE = 2
PUBLISHED_NETWORK = "mesh4x4"
MESHES = f"mesh{LEAST_SIDE}x{LEAST_SIDE} to mesh{MOST_SIDE}x{MOST_SIDE}"
"""Networks of experiments on best effort alone."""
CYCLE_NS = 80
"""A flit of 128 bits at 1.6 Gbit/s (yum-2006 6.1)."""
SCHEMES: Mapping[str, tuple[str, str, int]] = {
    "none": ("none", "none", 0),
    "credit_200": ("none", "global", 200),
    "credit_300": ("none", "global", 300),
    "credit_400": ("none", "global", 400),
    "credit_600": ("none", "global", 600),
    **{name: (name, "none", 0) for name in INJECTION if name != "none"},
}
"""Injection control in the adapter, credits at the host, and their number. Every policy of `INJECTION` is a scheme."""
LOADS = {"quick": [0.4, 0.6, 0.9], "full": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}
WARMUP_CYCLES = {"quick": 5_000, "full": 50_000}
WINDOW_CYCLES = {"quick": 40_000, "full": 400_000}
CREDITS_PART = {"quick": 10, "full": 1}
"""A scheme's credits are divided by this, as the time is. Above saturation a host's backlog grows with time, so credits
bind after a time that is as long as there are many."""
TOLERANCE = 0.10
"""Relative, of table 3 up to `JUDGED_LOAD`: the project's own aim."""
JUDGED_LOAD = 0.7
FITTED_LOAD = 0.7
VL_PACKETS = 3
"""Packets. Without control, full size, seed 1, the delay at `FITTED_LOAD` is 9.24, 5.14, 4.09 and 3.82 us with 2, 3, 4
and 8 of them; table 3 has 5.26. The load that is accepted at 0.8 is 0.752, 0.767, 0.770 and 0.774. Table 3's 231 and
1050 us at 80% and 90% are those of queues that grow from empty at an accepted load of 0.772."""
SAME = 0.02
"""Relative: throughputs and latencies that differ by less are alike. In the quick size 4000 packets arrive at a load
of 0.9: their number's standard deviation is 1.6% of it at most. It was fixed for 12,000 cycles, a third of today's."""
QUICK_TOLERANCE_FACTOR = 3
"""The quick size has 16 nodes times 12,000 cycles: some 1900 packets at 0.4. A queue's mean delay over so many is
uncertain by about 5% (2 s.d. 10%), which comes on top of `TOLERANCE`; three times it is allowed there. It was fixed for
12,000 cycles, too."""


class BestEffortParameters(Config):
    """Parameters of experiments on best effort alone, and their network."""

    network: str = Field("mesh4x4", description="a mesh", json_schema_extra={"range": MESHES})
    loads: list[FiniteFloat] = Field(
        [],
        max_length=64,
        description="injection rates, flits a node and cycle; empty: those of the size",
        json_schema_extra={"range": "list of loads, each above 0 and at most 1"},
    )
    packet_flits: int = Field(40, ge=4, le=40, description="packet length, header and CRC included, flits")
    vl_packets: int = Field(
        VL_PACKETS, ge=2, le=16, description="room of each VL of an adapter towards the link, packets"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for load in self.loads:
            if not 0 < load <= 1:
                raise ValueError(f"loads: {load:g}: above 0 and at most 1")
        sides = re.fullmatch(r"mesh(\d{1,2})x(\d{1,2})", self.network)
        if not sides or not all(LEAST_SIDE <= int(side) <= MOST_SIDE for side in sides.groups()):
            raise ValueError(f"network = {self.network!r}: a mesh, {MESHES}")
        return self

    @cached_property
    def router(self) -> RouterConfig:
        """The document's router, whose weighted arbiter is plain round robin for best effort (3.3)."""
        return preset(RouterConfig, "yum2006").replace(vl_arbiter="round_robin", activity_counters=True)

    def system(self, injection: str) -> AdapterNetworkConfig:
        """The network with adapters of this injection control. Raises ConfigError."""
        hca = preset(HcaConfig, "yum2006").replace(
            queue_pairs=16,
            completion_queues=16,
            wqe="posted",
            posted_entries=128,
            regions=4,
            classes=1,
            class_queue_entries=4096,
            vl_arbiter="round_robin",
            vl_packets=self.vl_packets,
            injection=injection,
        )
        return AdapterNetworkConfig.on(named_network(self.network, self.router), hca)


def delays(parameters: BestEffortParameters, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Delays in microseconds of link cycles, throughput in flits a node and cycle; None where nothing arrived.

    - `queueing_delay_us`: mean of the packets whose completion came in the window.
    - `buffered_delay_us`: mean time of their headers in the buffers of their VLs.
    - `latency_us`, `latency_from_birth_us`: means from the doorbell, and from birth, to the receiver's completion.
    - `throughput`: flits that arrived, a node and cycle.
    - `lone_cycles`: from the doorbell until the header of a lone packet is in the buffer of its VL.
    - `waited`: packets that found no credit at their birth in the window: 0 where credits do not bind.
    - `waiting`: packets that wait at hosts for a credit in the end. `failed`: ends that were errors.
    """
    sent, arrived = measured["sent"], measured["arrived"]
    us = CYCLE_NS / 1000
    nodes = len(parameters.system(point.parameters["injection"]).network.nodes)

    def mean(total: float, count: int) -> float | None:
        return total / count * us if count else None

    return {
        "queueing_delay_us": mean(measured["queueing_cycles"], sent),
        "buffered_delay_us": mean(measured["buffered_cycles"], sent),
        "latency_us": mean(measured["latency_cycles"], arrived),
        "latency_from_birth_us": mean(measured["since_birth_cycles"], arrived),
        "throughput": arrived * parameters.packet_flits / (nodes * point.spec["window_cycles"]),
        "lone_cycles": measured["lone_cycles"],
        "waited": measured["waited"],
        "waiting": measured["waiting"],
        "failed": measured["failed"],
    }


class CongestionParameters(BestEffortParameters):
    """Parameters of congestion."""

    schemes: list[str] = Field(
        list(SCHEMES),
        min_length=1,
        description="schemes",
        json_schema_extra={"range": f"list of one or more names: {', '.join(SCHEMES)}"},
    )

    @model_validator(mode="after")
    def _check_schemes(self) -> Self:
        for scheme in self.schemes:
            if scheme not in SCHEMES:
                raise ValueError(f"schemes: {scheme!r}: one of {', '.join(SCHEMES)}")
        return self


class Congestion(Experiment):
    """Queueing delay and throughput of best effort against load."""

    name = "congestion"
    asks = "How long do best-effort packets wait under each scheme of congestion control?"
    source = source("congestion")
    entry = "lanikai.sim.experiments.qos.best_effort:measure"
    Parameters = CongestionParameters

    def points(self, parameters: CongestionParameters, size: Size) -> list[Point]:
        """A point for each scheme and load."""
        published = table("congestion")
        loads = parameters.loads or LOADS[size]
        if not loads:
            raise ConfigError("loads: none")
        tolerance = TOLERANCE * (QUICK_TOLERANCE_FACTOR if size == "quick" else 1)
        found = []
        for scheme in parameters.schemes:
            injection, credits, count = SCHEMES[scheme]
            count //= CREDITS_PART[size]
            # A scheme that is not the document's has no row.
            row = published["queueing_delay_us"].get(scheme, [])
            known = dict(zip((one / 100 for one in published["injection_pct"]), row, strict=False))
            for load in loads:
                judged = (
                    scheme not in ("alo", "self_tuned")
                    and load in known
                    and load <= JUDGED_LOAD
                    and parameters.network == PUBLISHED_NETWORK
                    and parameters.packet_flits == 40
                )
                found.append(
                    Point(
                        label=f"{scheme} {load:g}",
                        parameters={
                            "network": parameters.network,
                            "packet_flits": parameters.packet_flits,
                            "scheme": scheme,
                            "load": load,
                            "injection": injection,
                            "credits": count,
                            "vl_packets": parameters.vl_packets,
                        },
                        spec={
                            "load": load,
                            "packet_flits": parameters.packet_flits,
                            "credits": credits,
                            "credit_count": count,
                            "warmup_cycles": WARMUP_CYCLES[size],
                            "window_cycles": WINDOW_CYCLES[size],
                            "interval_cycles": 0,
                            "setup": [],
                        },
                        published={"queueing_delay_us": known[load]} if judged else None,
                        tolerance={"queueing_delay_us": tolerance} if judged else None,
                        workload=f"load {load:g}",
                    )
                )
        return found

    def system(self, parameters: CongestionParameters, point: Point) -> AdapterNetworkConfig:
        """The network, with the scheme's injection control."""
        return parameters.system(point.parameters["injection"])

    def results(
        self, parameters: CongestionParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Those of `delays`."""
        return delays(parameters, point, measured)

    def claims(self, parameters: CongestionParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """Figure 4's orders, and table 3 where it is judged."""
        by = {(one.point.parameters["scheme"], one.point.parameters["load"]): one for one in outcomes}
        loads = sorted({load for _, load in by})
        credits = [scheme for scheme, _ in by if scheme.startswith("credit")]
        credits = list(dict.fromkeys(credits))

        def value(scheme: str, load: float, name: str) -> float:
            # Nothing compares with a number that was not measured, nor with a throughput of 0.
            return float(by[scheme, load].results[name] or "nan")

        def pairs(others: Sequence[str]) -> list[tuple[str, str, float]]:
            return [
                (credit, other, load)
                for credit in credits
                for other in others
                for load in loads
                if (credit, load) in by and (other, load) in by
            ]

        top = max(loads, default=0.0)
        return [
            Claim.every(
                f"table 3: queueing delays below {FITTED_LOAD:.0%} injection, within the size's tolerance",
                (
                    bool(one.within)
                    for one in outcomes
                    if one.within is not None and one.point.parameters["load"] < FITTED_LOAD
                ),
                nothing=f"it is about {PUBLISHED_NETWORK}, packets of 40 flits, none or credits, and loads below 0.7",
            ),
            Claim.every(
                f"table 3: queueing delays at {FITTED_LOAD:.0%}, to which the room of a VL is fitted, within the same",
                (
                    bool(one.within)
                    for one in outcomes
                    if one.within is not None and one.point.parameters["load"] >= FITTED_LOAD
                ),
                nothing=f"it is about {PUBLISHED_NETWORK}, packets of 40 flits, none or credits, and a load of 0.7",
            ),
            Claim.every(
                f"credits have no higher latency than ALO and Self-Tuned at every load, within {SAME:.0%}",
                (
                    value(credit, load, "latency_from_birth_us")
                    <= (1 + SAME) * value(other, load, "latency_from_birth_us")
                    for credit, other, load in pairs(["alo", "self_tuned"])
                ),
                nothing="it needs a scheme with credits, and alo or self_tuned",
            ),
            Claim.every(
                f"credits have no less throughput than ALO and Self-Tuned at every load, within {SAME:.0%}",
                (
                    value(credit, load, "throughput") >= (1 - SAME) * value(other, load, "throughput")
                    for credit, other, load in pairs(["alo", "self_tuned"])
                ),
                nothing="it needs a scheme with credits, and alo or self_tuned",
            ),
            Claim.every(
                f"without control there is no drop of throughput at the highest load, within {SAME:.0%}",
                (
                    value("none", top, "throughput") >= (1 - SAME) * value("none", load, "throughput")
                    for load in loads
                    if load < top and ("none", load) in by and ("none", top) in by
                ),
            ),
            Claim.every(
                "at the highest load packets wait for credits, and the more of them the fewer there are",
                (
                    value(lower, top, "waited") >= value(higher, top, "waited") > 0
                    for lower, higher in zip(credits, credits[1:] or credits, strict=False)
                    if (lower, top) in by and (higher, top) in by
                ),
                nothing="there are no credits among the schemes",
            ).unless("" if top >= 0.8 else "no load is above saturation"),
            Claim.every(
                "at the highest load fewer credits have lower queueing delay, and none has the most",
                (
                    value(lower, top, "queueing_delay_us") <= value(higher, top, "queueing_delay_us")
                    for lower, higher in zip(credits, [*credits[1:], "none"], strict=False)
                    if (lower, top) in by and (higher, top) in by
                ),
                nothing="there are no credits among the schemes",
            ).unless("" if top >= 0.8 else "no load is above saturation"),
            Claim.every(
                "every message that ended did so without an error",
                (one.results["failed"] == 0 < one.results["throughput"] for one in outcomes),
            ),
        ]

    def plot(self, parameters: CongestionParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Table 3 and figure 4: queueing delay beside the published one, latency and throughput."""
        published = table("congestion")
        loads = [one / 100 for one in published["injection_pct"]]
        rows = published["queueing_delay_us"]
        load_panels(
            figure,
            [
                LoadPanel(
                    result="queueing_delay_us",
                    label="queueing delay (us)",
                    title="table 3",
                    outcomes=outcomes,
                    log=True,
                    # A row with a value too few says not to which loads its values belong.
                    published={
                        name: (loads, rows[name])
                        for name in parameters.schemes
                        if parameters.network == PUBLISHED_NETWORK and len(rows.get(name, ())) == len(loads)
                    },
                ),
                LoadPanel(
                    result="latency_from_birth_us",
                    label="latency from birth (us)",
                    title="figure 4: latency",
                    outcomes=outcomes,
                    log=True,
                ),
                LoadPanel(
                    result="throughput",
                    label="flits a node and cycle",
                    title="figure 4: throughput",
                    outcomes=outcomes,
                ),
            ],
            by="scheme",
            names=parameters.schemes,
            title=f"Best effort on {parameters.network}",
            columns=3,
        )
