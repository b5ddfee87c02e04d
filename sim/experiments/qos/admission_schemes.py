"""The parts that admission-mesh and admission-cluster have in common: schemes, results, and comparisons of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lanikai.hdl.config import Config
from pydantic import Field, FiniteFloat, model_validator

from ..framework.base import Outcome, Point
from ..framework.charts import LoadPanel
from .congestion import CYCLE_NS
from .mix import BEST_EFFORT, CLASSES, CONTROL, REAL_TIME, Mix

__all__ = [
    "LATENCIES",
    "SCHEMES",
    "AdmissionParameters",
    "Table",
    "latency_panels",
    "mixed_results",
    "scheme_point",
]

SCHEMES: Mapping[str, tuple[bool, str]] = {
    "both": (True, "global"),
    "admission": (True, "none"),
    "congestion": (False, "global"),
    "none": (False, "none"),
}
"""Whether connections are asked for, and the policy of credits: A,C; A; C; and neither."""
LATENCIES = {
    REAL_TIME: "real_time_latency_us",
    BEST_EFFORT: "best_effort_latency_us",
    CONTROL: "control_latency_us",
}
"""The result that is a class' latency."""


class AdmissionParameters(Config):
    """Parameters of experiments with four schemes of admission and congestion control."""

    loads: list[FiniteFloat] = Field(
        [],
        max_length=64,
        description="injection rates, flits a node and cycle; empty: those of the size",
        json_schema_extra={"range": "list of loads, each above 0 and at most 1"},
    )
    schemes: list[str] = Field(
        [],
        description="schemes; empty: those of the size",
        json_schema_extra={"range": f"list of names: {', '.join(SCHEMES)}"},
    )
    real_time_share: FiniteFloat = Field(0.8, gt=0, lt=1, description="part of the load that is real time")
    credits: int = Field(
        0,
        ge=0,
        le=1024,
        description="credits of best effort of each host with congestion control, as far as connections leave them; 0: "
        "those of the size",
    )

    @model_validator(mode="after")
    def _check(self) -> AdmissionParameters:
        for load in self.loads:
            if not 0 < load <= 1:
                raise ValueError(f"loads: {load:g}: above 0 and at most 1")
        for scheme in self.schemes:
            if scheme not in SCHEMES:
                raise ValueError(f"schemes: {scheme!r}: one of {', '.join(SCHEMES)}")
        return self


def mixed_results(mix: Mix, nodes: int, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Results of a mixed run. A number that was not measured is None.

    - `rejection_pct`: connections that were refused, of those asked for.
    - `streams`, `unanswered`: as `run_mix` has them.
    - `dmp`, `dmt_ms`: `DeadlinesMissed`, in milliseconds of link cycles. `frames`: those delivered.
    - `control_latency_us`, `real_time_latency_us`, `best_effort_latency_us`: means from the doorbell to the receiver's
      completion. Those from birth also have the wait at the host.
    - `throughput`, and `real_time_throughput`, `best_effort_throughput`: flits that arrived, a node and cycle.
    - `waited`: best-effort messages that found no credit. `dropped`: real-time messages that had none, each time that
      they were posted. Both are 0 where credits do not bind.
    - `waiting`: messages that wait at the hosts at the end. `failed`: completions that were errors.
    """
    classes, us = measured["classes"], CYCLE_NS / 1000
    frames, missed = measured["frames"], measured["missed"]
    found: dict[str, Any] = {
        "streams": measured["streams"],
        "rejection_pct": 100 * measured["refused"] / measured["streams"] if measured["streams"] else None,
        "unanswered": measured["unanswered"],
        "frames": frames,
        "dmp": missed / frames if frames else None,
        "dmt_ms": measured["late_cycles"] / missed * us / 1000 if missed else None,
    }
    for name in CLASSES:
        one = classes[name]
        arrived = one["arrived"]
        found[f"{name}_latency_us"] = one["latency_cycles"] / arrived * us if arrived else None
        found[f"{name}_latency_from_birth_us"] = one["since_birth_cycles"] / arrived * us if arrived else None
    cycles = nodes * mix.window_cycles
    found |= {
        "throughput": sum(one["flits"] for one in classes.values()) / cycles,
        "real_time_throughput": classes[REAL_TIME]["flits"] / cycles,
        "best_effort_throughput": classes[BEST_EFFORT]["flits"] / cycles,
        "waited": classes[BEST_EFFORT]["waited"],
        "dropped": classes[REAL_TIME]["dropped"],
        "waiting": sum(one["waiting"] for one in classes.values()),
        "failed": measured["failed"],
    }
    return found


class Table:
    """Outcomes by scheme and load.

    - `loads`: those of any scheme, rising.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._by = {(one.point.parameters["scheme"], one.point.parameters["load"]): one for one in outcomes}
        self.loads: list[float] = sorted({load for _, load in self._by})

    def value(self, scheme: str, load: float, name: str) -> float:
        """A result. Nothing compares with one that was not measured: it is not a number."""
        found = self._by[scheme, load].results[name]
        return float("nan") if found is None else float(found)

    def at(self, *schemes: str) -> list[float]:
        """The loads at which all of these schemes were run."""
        return [load for load in self.loads if all((scheme, load) in self._by for scheme in schemes)]

    def no_more(
        self,
        scheme: str,
        others: Iterable[str],
        name: str,
        *,
        loads: Sequence[float] | None = None,
        margin: float,
    ) -> list[bool]:
        """For each of the others and each load of both: a result of `scheme` is at most the other's, and `margin` of
        it."""
        return [
            self.value(scheme, load, name) <= (1 + margin) * self.value(other, load, name)
            for other in others
            for load in self.at(scheme, other)
            if loads is None or load in loads
        ]


def latency_panels(outcomes: Sequence[Outcome], classes: Iterable[str], *, title: str) -> list[LoadPanel]:
    """Panels of the latencies of these classes against load."""
    return [
        LoadPanel(
            result=LATENCIES[kind],
            label=f"{kind.replace('_', ' ')}: latency (us)",
            title=title,
            outcomes=outcomes,
            log=True,
        )
        for kind in classes
    ]


def scheme_point(
    mix: Mix,
    *,
    scheme: str,
    parameters: Mapping[str, Any],
    published: Mapping[str, Any] | None,
    tolerance: float,
) -> Point:
    """The point of a mix under a scheme. All schemes of a load have the same seed, and so the same streams."""
    admission, credits = SCHEMES[scheme]
    mix = mix.replace(admission=admission, credits=credits)
    return Point(
        label=f"{scheme} {mix.load:g}",
        parameters={"scheme": scheme, "load": mix.load, **parameters},
        spec=mix.spec(),
        published=published,
        tolerance=dict.fromkeys(published, tolerance) if published else None,
        workload=f"load {mix.load:g}",
    )
