"""cosched: completion times of workloads of parallel jobs under strategies that schedule by communication.

**The workloads** are the 12 of nagar-thesis-2001 tables 6.2 and 6.3: two or four jobs, each with a process on each of
8 nodes. A job alone takes 25 s. A point is a workload under a strategy. Its completion time is from the start to the
end of the last process.

**The scale.** A job is cut to the part `scale` of its iterations. Slices, spin and boost times, and the work of an
iteration stay as they are. So what happens within a second is as in the thesis, and there are fewer of these seconds.
Times are reported divided by the scale. Workload `scale_workload` runs at a quarter of the scale, too, to show that the
order of the strategies does not depend on it.

**RTL.** There is none in this experiment. Hosts are those of `lanikai.sim.host.cpu`. Cards and network are a model of
times with the published latency and bandwidth (`lanikai.sim.host.cosched`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from lanikai.hdl.config import Config
from pydantic import Field, model_validator

from ...host.cosched.strategies import STRATEGIES
from ...published import table
from ...systems.no_model import PlainConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from .cosched_claims import claims
from .workloads import ALONE_SECONDS, WORKLOADS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cosched", "CoschedParameters"]

SCALES = {"quick": 0.04, "full": 0.2}
"""A size's scale."""
LEAST_SCALE = 0.002
"""Least scale. At this, a job takes 50 ms alone: a quarter of the longest slice of the time-sharing class."""
QUICK_WORKLOADS = (1, 3, 5, 6, 8, 12)
"""Workloads of the quick size."""
MONITORED = {3: ("sb", "dcs", "pb", "pbt", "pb_sy"), 5: ("sb", "dcs", "pb", "pbt", "pb_sy")}
"""Workloads and strategies of figures 6.3 and 6.4."""


class CoschedParameters(Config):
    """Parameters of cosched."""

    workloads: list[Annotated[int, Field(ge=1, le=12)]] = Field(
        [],
        max_length=12,
        description="workloads to run; none: all 12, or in the quick size 1, 3, 5, 6, 8 and 12",
        json_schema_extra={"range": "list of numbers, each 1 to 12"},
    )
    strategies: list[str] = Field(
        list(STRATEGIES),
        min_length=1,
        description="strategies, by their names in `lanikai.sim.host.cosched.strategies`",
        json_schema_extra={"range": f"list of one or more of {', '.join(STRATEGIES)}"},
    )
    scale: float = Field(
        0.0,
        ge=0,
        le=1,
        description="part of a job's iterations that is run, from 0.002 on; 0: 0.04, or 0.2 in the full size",
    )
    scale_workload: int = Field(
        12, ge=0, le=12, description="workload that runs at a quarter of the scale, too; 0: none"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if unknown := sorted(set(self.strategies) - STRATEGIES.keys()):
            raise ValueError(f"strategies = {unknown[0]}: there are {', '.join(STRATEGIES)}")
        named: Mapping[str, Sequence[Any]] = {"workloads": self.workloads, "strategies": self.strategies}
        for name, values in named.items():
            if twice := [one for one in values if values.count(one) > 1]:
                raise ValueError(f"{name}: {twice[0]} is named twice")
        if 0 < self.scale < LEAST_SCALE:
            raise ValueError(f"scale = {self.scale:g}: 0 for that of the size, or {LEAST_SCALE} to 1")
        beside = "scale_workload" in self.model_fields_set and self.scale_workload
        if beside and self.workloads and beside not in self.workloads:
            raise ValueError(f"scale_workload = {beside}: one of workloads ({self.workloads}), or 0")
        return self


class Cosched(Experiment):
    """Ten strategies, the ideal, and one of our own, on 12 workloads."""

    name = "cosched"
    asks = "Which ways to wait for a message, and to act on its arrival, bring the processes of parallel jobs together?"
    source = "nagar-thesis-2001 chapter 6"
    entry = "lanikai.sim.experiments.cosched.measure:run_point"
    Parameters = CoschedParameters
    by_flow: ClassVar[Sequence[str]] = ("job_completion_s", "job_share", "programs")
    element = "job"

    def points(self, parameters: CoschedParameters, size: Size) -> list[Point]:
        """A point for each workload and strategy, at the scale; one workload again at a quarter of it; and a ping-pong
        for each strategy."""
        scale = parameters.scale or SCALES[size]
        workloads = parameters.workloads or (list(QUICK_WORKLOADS) if size == "quick" else list(WORKLOADS))
        runs = [(number, scale) for number in workloads]
        if parameters.scale_workload in workloads:
            runs.append((parameters.scale_workload, scale / 4))
        points = [
            _point(number, strategy, one, series=one == scale and strategy in MONITORED.get(number, ()))
            for number, one in runs
            for strategy in parameters.strategies
        ]
        return [*points, *(_latency(strategy) for strategy in parameters.strategies)]

    def system(self, parameters: CoschedParameters, point: Point) -> PlainConfig:
        """There is no RTL."""
        return PlainConfig()

    def results(
        self, parameters: CoschedParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The results of a workload:

        - `completion_s`: until the end of the last process. `slowdown`: by 25 s for each job, less 1.
        - `job_completion_s`: of each job; `cv`: their coefficient of variation; `mean_s`: their mean.
        - `job_share`: the part of the processors' time of each job, until the first one ends. `fairness`: the smallest
          by the largest.
        - `interrupts` of all cards, `switches` of all processors.

        Those of a ping-pong: `latency_us`.
        """
        if point.spec["kind"] == "latency":
            return {"latency_us": measured["latency_us"]}
        times, shares = measured["job_completion_s"], measured["job_share"]
        mean = fmean(times)
        return {
            "completion_s": measured["completion_s"],
            "slowdown": measured["completion_s"] / (ALONE_SECONDS * len(times)) - 1,
            "job_completion_s": times,
            "mean_s": mean,
            "cv": pstdev(times) / mean,
            "job_share": shares,
            "fairness": min(shares) / max(shares) if max(shares) else 0.0,
            "interrupts": measured["interrupts"],
            "switches": measured["switches"],
        }

    def claims(self, parameters: CoschedParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The orderings that the thesis states in words, and what holds of our own strategy (`cosched_claims`)."""
        return claims(outcomes)

    def plot(self, parameters: CoschedParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Completion times, latencies (figure 6.2), use of a node (figures 6.3 and 6.4), and who runs where."""
        from .cosched_plot import draw

        draw(figure, outcomes)


def _point(number: int, strategy: str, scale: float, *, series: bool) -> Point:
    programs = list(WORKLOADS[number])
    published = table("cosched")["completion_s"].get(strategy)
    return Point(
        label=f"workload {number}, {STRATEGIES[strategy].title}, scale {scale:g}",
        parameters={
            "workload": number,
            "strategy": strategy,
            "scale": scale,
            "programs": programs,
            "published_completion_s": published[number - 1] if published else None,
        },
        spec={
            "kind": "workload",
            "strategy": strategy,
            "scale": scale,
            "programs": programs,
            "series": series,
        },
        workload=f"workload {number}, scale {scale:g}",
    )


def _latency(strategy: str) -> Point:
    return Point(
        label=f"ping-pong, {STRATEGIES[strategy].title}",
        parameters={"workload": 0, "strategy": strategy},
        spec={"kind": "latency", "strategy": strategy},
        workload="ping-pong",
    )
