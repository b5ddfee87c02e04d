"""wrr-variants: missed deadlines under small and large frames of weights, with a fast or a slow moving pointer.

yum-2006 7.1 and table 2. Fixed before the first run:

- *Set-up*: hosts at one router send 80% real time and 20% best effort, and control packets at the document's rate.
  Streams of films have a regulator and ask for admission. Best effort has the credits that served best in 7.2, and a
  connection has b M / B. VLs 0 to 10 are real time's, and k is 4, so F is 44. The large frame is 255 for each entry of
  the table but ten, which leaves room for the last entry of each VL.
- *Load* is what hosts offer. Admission has one sum for both ways of a link (`mix.ADMISSION`), so real time is let in up
  to half a link each way in the mean. Beyond a load of 62% some connections are refused.
- *DMP* depends on how long a stream is watched, which the document does not say. By its rule a frame misses if its
  delay is a record of its stream. Delays of frames that are alike and independent have ln n + 0.58 records in n frames.
  Published values of 0.02 to 0.035 are those of 130 to 250 frames. So the full size watches `FRAMES` = 150, 5 s of
  video. Values are judged there alone, within a factor of `DMP_FACTOR`.
- *Time is shortened in the quick size*: a frame comes every 10,000 cycles, and not every 416,667. Rates are the same.
  So queues of packets are as long, but a frame has 2.5 packets in the mean, and not 100. A stream has 24 frames.
- *DMT* is the mean of what missed frames are late. It is a time that packets wait, and no part of a frame's time. It is
  judged in both sizes, within a factor of `DMT_FACTOR`.
- *Orders* are those of two variants at the same load, where the document's values differ by `DISTINCT` or more. Ours
  are not to be the other way round by more than twice the standard error of their difference. DMP is taken for a
  binomial share. What missed frames are late is taken to vary as much as its mean. Variants have the same streams and
  seeds at a load, so that less than this error is chance.
- *Text of 7.1*: at the highest load the small frame with the fast pointer has the lowest DMT by far. Others are to have
  `LEAD` times as much, half of the document's lead. Rounding of weights in the small frame is to harm nobody: its DMP
  is at most `TRUNCATION` above that of the large frame.

In the reference file the two DMTs of the large frame at 70% are exchanged against the printed table. All four at that
load differ by less than `DISTINCT`, so no order depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config
from pydantic import Field, FiniteFloat, model_validator

from ...published import source, table
from ...systems.adapters.config import AdapterNetworkConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from ..framework.charts import LoadPanel, load_panels
from .mix import ADMISSION, BEST_EFFORT, CONTROL, FRAME_CYCLES, REAL_TIME, Mix, mixed_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VARIANTS", "WrrVariants", "WrrVariantsParameters"]

CYCLE_NS = 80
"""A flit of 128 bits at 1.6 Gbit/s (yum-2006 6.1)."""
VARIANTS: Mapping[str, tuple[str, str]] = {
    "small_fast": ("small", "table_fast"),
    "small_slow": ("small", "table_slow"),
    "large_fast": ("large", "table_fast"),
    "large_slow": ("large", "table_slow"),
}
"""Frame of the VL tables, and VL arbiter of routers and adapters."""
BEST = "small_fast"
LOADS = [0.6, 0.7, 0.8]
FRAME_INTERVAL = {"quick": 10_000, "full": FRAME_CYCLES}
FRAMES = {"quick": 24, "full": 150}
"""Frames of a stream in the window."""
LEAST_FRAME_CYCLES = 5_000
"""The slowest stream has 24 flits a frame then. In a shorter time small frames were less than the shortest packet."""
WARMUP_FRAMES = 1
CREDITS = 200
"""Best-effort credits of each host."""
DMP_FACTOR = 3.0
DMT_FACTOR = 3.0
DISTINCT = 0.15
"""Relative, of two published values."""
ERRORS = 2
"""Standard errors that a difference may be beyond zero."""
LEAD = 1.6
"""At 80% the others have 2.2 times the lowest DMT at least."""
TRUNCATION = 0.15
"""Relative, of DMP. The document has 0.125 at most."""
ARRIVES = 0.97
"""Part of real time's flits that arrive in the window. At its ends up to a packet a stream is cut: 1% of the quick
size's flits."""


class WrrVariantsParameters(Config):
    """Parameters of wrr-variants."""

    network: str = Field(
        "router8", description="the network", json_schema_extra={"range": "router2 to router64, or a mesh"}
    )
    loads: list[FiniteFloat] = Field(
        LOADS,
        min_length=1,
        max_length=64,
        description="real time and best effort together, flits a node and cycle",
        json_schema_extra={"range": "list of loads, each above 0 and at most 1"},
    )
    variants: list[str] = Field(
        list(VARIANTS),
        min_length=1,
        description="frame and pointer",
        json_schema_extra={"range": ", ".join(VARIANTS)},
    )
    frames: int = Field(
        0, ge=0, le=100_000, description="frames of a stream that are watched; 0: those of the size"
    )
    frame_cycles: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description=f"time of a frame, cycles: 0, that of the size, or at least {LEAST_FRAME_CYCLES}",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for load in self.loads:
            if not 0 < load <= 1:
                raise ValueError(f"loads: {load:g}: above 0 and at most 1")
        for variant in self.variants:
            if variant not in VARIANTS:
                raise ValueError(f"variants: {variant!r}: one of {', '.join(VARIANTS)}")
        if 0 < self.frame_cycles < LEAST_FRAME_CYCLES:
            raise ValueError(f"frame_cycles = {self.frame_cycles}: 0, or at least {LEAST_FRAME_CYCLES}")
        return self

    def mix(self, variant: str, load: float, size: Size) -> Mix:
        """The traffic of a point."""
        frame, _ = VARIANTS[variant]
        interval = self.frame_cycles or FRAME_INTERVAL[size]
        return Mix(
            load=load,
            real_time_share=0.8,
            frame_cycles=interval,
            control_period_cycles=interval,
            admission_config=ADMISSION.replace(frame=frame),
            credits="global",
            credit_count=CREDITS,
            warmup_cycles=WARMUP_FRAMES * interval,
            window_cycles=(self.frames or FRAMES[size]) * interval,
        )


class WrrVariants(Experiment):
    """Frames and pointers of weighted round robin against each other."""

    name = "wrr-variants"
    asks = "Which frame and which pointer of weighted round robin miss the fewest deadlines?"
    source = source("wrr-variants")
    entry = "lanikai.sim.experiments.qos.mixed:measure"
    Parameters = WrrVariantsParameters

    def points(self, parameters: WrrVariantsParameters, size: Size) -> list[Point]:
        """A point for each variant and load."""
        return [
            Point(
                label=f"{variant} {load:g}",
                parameters={
                    "network": parameters.network,
                    "variant": variant,
                    "load": load,
                    "frames": parameters.frames or FRAMES[size],
                    "frame_cycles": parameters.frame_cycles or FRAME_INTERVAL[size],
                },
                spec=parameters.mix(variant, load, size).spec(),
                workload=f"load {load:g}",
            )
            for variant in parameters.variants
            for load in parameters.loads
        ]

    def system(self, parameters: WrrVariantsParameters, point: Point) -> AdapterNetworkConfig:
        """The network, with the variant's arbiter."""
        _, arbiter = VARIANTS[point.parameters["variant"]]
        return mixed_network(parameters.network, vl_arbiter=arbiter)

    def results(
        self, parameters: WrrVariantsParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Deadlines, latencies from the doorbell, and what became of connections; None where there was nothing.

        - `dmp`, `dmt_ms`: deadline missing probability and time. `frames`, `missed`: what they are made from.
        - `real_time_us`, `best_effort_us`, `control_us`: mean latencies.
        - `real_time_arrived`: flits of real time that arrived, of those that were due.
        - `rejected_pct`: connections that were refused. `unanswered`: those that nobody answered.
        - `waited`: best-effort messages that found no credit. `dropped`: real-time messages that had none, each time
          that they were posted. Both are 0 where credits do not bind.
        - `failed`: ends that were errors.
        """
        us = CYCLE_NS / 1000

        def part(total: float, count: float, scale: float = 1.0) -> float | None:
            return total / count * scale if count else None

        real_time, best_effort, control = (
            measured["classes"][name] for name in (REAL_TIME, BEST_EFFORT, CONTROL)
        )

        def latency(one: Mapping[str, Any]) -> float | None:
            return part(one["latency_cycles"], one["arrived"], us)

        return {
            "dmp": part(measured["missed"], measured["frames"]),
            "dmt_ms": part(measured["late_cycles"], measured["missed"], us / 1000),
            "frames": measured["frames"],
            "missed": measured["missed"],
            "real_time_us": latency(real_time),
            "best_effort_us": latency(best_effort),
            "control_us": latency(control),
            "real_time_arrived": part(real_time["flits"], real_time["born_flits"]),
            "rejected_pct": part(measured["refused"], measured["streams"], 100),
            "unanswered": measured["unanswered"],
            "waited": best_effort["waited"],
            "dropped": real_time["dropped"],
            "failed": measured["failed"],
        }

    def claims(self, parameters: WrrVariantsParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """Table 2 and what 7.1 says of it."""
        by = {
            (one.point.parameters["variant"], one.point.parameters["load"]): one.results for one in outcomes
        }
        loads = sorted({load for _, load in by})
        variants = list(dict.fromkeys(variant for variant, _ in by))
        published = {
            (variant, pct / 100): {name: row[name][place] for name in ("dmp", "dmt_ms")}
            for variant, row in table("wrr-variants").items()
            if variant in VARIANTS
            for place, pct in enumerate(table("wrr-variants")["load_pct"])
        }
        known = [key for key in by if key in published] if parameters.network == "router8" else []
        whole = all(
            (one.point.parameters["frame_cycles"], one.point.parameters["frames"])
            == (FRAME_CYCLES, FRAMES["full"])
            for one in outcomes
        )

        def value(key: tuple[str, float], name: str) -> float:
            # Nothing compares with a number that was not measured.
            found = by[key][name]
            return float("nan") if found is None else float(found)

        def error(key: tuple[str, float], name: str) -> float:
            """The standard error of a mean."""
            frames, missed = by[key]["frames"], by[key]["missed"]
            if not missed:
                return float("nan")
            if name == "dmt_ms":
                return value(key, name) / sqrt(missed)
            return sqrt(value(key, name) * (1 - value(key, name)) / frames)

        def no_more(
            first: tuple[str, float], second: tuple[str, float], name: str, factor: float = 1.0
        ) -> bool:
            """Whether the first is at most `factor` times the second, within chance."""
            chance = ERRORS * sqrt(error(first, name) ** 2 + (factor * error(second, name)) ** 2)
            return value(first, name) <= factor * value(second, name) + chance

        def like(name: str, factor: float) -> Iterator[bool]:
            for key in known:
                yield published[key][name] / factor <= value(key, name) <= published[key][name] * factor

        def orders(name: str) -> Iterator[bool]:
            for load in loads:
                for lower, higher in permutations(variants, 2):
                    first, second = (lower, load), (higher, load)
                    if not {first, second} <= {*known}:
                        continue
                    if published[first][name] * (1 + DISTINCT) <= published[second][name]:
                        yield no_more(first, second, name)

        # The lowest and the highest load of each variant.
        ends = [
            ((one, loads[0]), (one, loads[-1]))
            for one in variants
            if {(one, loads[0]), (one, loads[-1])} <= {*by}
        ]
        single = "" if len(loads) > 1 else "there is one load"
        top = loads[-1] if loads else 0.0
        shorter = (
            "" if whole else "frames are shorter than the document's, or another number of them is watched"
        )
        return [
            Claim.every(
                f"table 2: DMP is within a factor of {DMP_FACTOR:g} of the document's",
                like("dmp", DMP_FACTOR),
            ).unless(shorter),
            Claim.every(
                f"table 2: DMT is within a factor of {DMT_FACTOR:g} of the document's",
                like("dmt_ms", DMT_FACTOR),
            ),
            Claim.every(
                "table 2: where DMPs are distinct they are in the document's order, beyond chance",
                orders("dmp"),
            ),
            Claim.every(
                "table 2: where DMTs are distinct they are in the document's order, beyond chance",
                orders("dmt_ms"),
            ),
            Claim.every(
                f"at the highest load all others have {LEAD} times the DMT of the small frame with the fast pointer",
                (
                    value((other, top), "dmt_ms") >= LEAD * value((BEST, top), "dmt_ms")
                    for other in variants
                    if other != BEST and (other, top) in by and (BEST, top) in by
                ),
            ).unless("" if top >= 0.8 else "no load is as high as the document's highest"),
            Claim.every(
                f"rounding of weights does no harm: DMP of the small frame is at most {TRUNCATION:.0%} above that of "
                "the large one, beyond chance",
                (
                    no_more((f"small_{pointer}", load), (f"large_{pointer}", load), "dmp", 1 + TRUNCATION)
                    for pointer in ("fast", "slow")
                    for load in loads
                    if (f"small_{pointer}", load) in by and (f"large_{pointer}", load) in by
                ),
            ),
            Claim.every(
                "DMP does not grow from the lowest to the highest load, beyond chance",
                (no_more(high, low, "dmp") for low, high in ends),
            ).unless(single),
            Claim.every(
                "DMT grows from the lowest to the highest load",
                (value(low, "dmt_ms") < value(high, "dmt_ms") for low, high in ends),
            ).unless(single),
            Claim.every(
                f"real time arrives, {ARRIVES:.0%} of its flits at least, and so do control packets",
                (value(key, "real_time_arrived") >= ARRIVES and value(key, "control_us") > 0 for key in by),
            ),
            Claim.every(
                "every request was answered, and every message that ended did so without an error",
                (one["failed"] == one["unanswered"] == 0 < one["frames"] for one in by.values()),
            ),
        ]

    def plot(self, parameters: WrrVariantsParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """DMP and DMT against load, beside table 2."""
        published = table("wrr-variants")
        loads = [one / 100 for one in published["load_pct"]]
        load_panels(
            figure,
            [
                LoadPanel(
                    result=name,
                    label=label,
                    outcomes=outcomes,
                    log=True,
                    published={variant: (loads, published[variant][name]) for variant in parameters.variants},
                )
                for name, label in (("dmp", "DMP"), ("dmt_ms", "DMT (ms)"))
            ],
            by="variant",
            names=parameters.variants,
            title="Weights and pointers of the VL arbiter (table 2)",
            columns=2,
        )
