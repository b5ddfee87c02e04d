"""The parts of an experiment: a question, parameters, points, a coroutine, results, a plot and published values.

To add one: write a module in `sim/experiments` with a subclass of `Experiment`, and name it in `registry.py`. One on
flows of messages is made from `measure/flows_experiment.py`.

An experiment says which system a point runs on and which coroutine runs it. The runner
(`lanikai.sim.experiments.framework.runner`) builds, runs the points in parallel and compares. Nothing here imports the
simulator, so that listing experiments and checking parameters is quick.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lanikai.hdl.config import Config

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Claim", "Curve", "Experiment", "Listed", "Outcome", "Point", "Size", "within"]

Size = Literal["quick", "full"]
"""`quick`: seconds, for tests and a first look; `full`: the published size."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run of an experiment.

    - `label`: a few words that tell it from the others, for tables and progress.
    - `parameters`: its set-up, as the results record it; a value for each flow is a list in the flows' order.
    - `spec`: the spec that the coroutine inside the simulation is given; plain JSON.
    - `published`: results as published, by result name, or None.
    - `tolerance`: the relative error allowed for each published result, or None.
    - `workload`: points with the same one have the same seed, since they differ in the design alone; "": a seed of its
      own.
    """

    label: str
    parameters: Mapping[str, Any]
    spec: Mapping[str, Any]
    published: Mapping[str, Any] | None = None
    tolerance: Mapping[str, float] | None = None
    workload: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A point that has run.

    - `results`: by name. They are means if it has run with several seeds.
    - `seed`: its seed.
    - `cycles`: the NIC clock cycles simulated.
    - `wall_seconds`: the time that took.
    - `within`: whether every published result is within its tolerance (None if the point has none).
    - `log`, `waves`: files, where there are any.
    - `series`: lists by name that the plot is drawn from and that are too long to be results.
    - `tables`: rows by table, of what is too long to be results (`Experiment.tables`).
    - `intervals`: with several seeds, half the length of each mean's 95% interval (None where there is none).
    - `repetitions`: with several seeds, `seed`, `cycles` and `results` of each run.
    """

    point: Point
    results: Mapping[str, Any]
    seed: int
    cycles: int
    wall_seconds: float
    log: str | None = None
    waves: str | None = None
    series: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    intervals: Mapping[str, Any] = field(default_factory=dict)
    repetitions: Sequence[Mapping[str, Any]] = ()
    within: bool | None = field(init=False)

    def __post_init__(self) -> None:
        """Hold the results against the published ones."""
        verdict = None
        if self.point.published is not None:
            tolerance = self.point.tolerance or {}
            verdict = all(
                within(self.results.get(key), value, tolerance.get(key, 0.0))
                for key, value in self.point.published.items()
            )
        object.__setattr__(self, "within", verdict)


def within(achieved: Any, published: Any, tolerance: float) -> bool:
    """Whether `achieved` is within the relative `tolerance` of `published`; for lists, every element of both.

    A published zero allows `tolerance` itself; anything that is not a number must be equal.
    """
    if isinstance(published, list):
        return (
            isinstance(achieved, list)
            and len(achieved) == len(published)
            and all(within(a, p, tolerance) for a, p in zip(achieved, published, strict=True))
        )
    if isinstance(published, bool) or isinstance(achieved, bool):
        return achieved is published
    if not isinstance(published, int | float):
        return bool(achieved == published)
    if not isinstance(achieved, int | float):
        return False
    return abs(achieved - published) <= tolerance * (abs(published) or 1.0)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the source, or of the experiment, checked in code: its `text`, and whether it `holds`.

    A claim is meant for the set-up of its source. Elsewhere, and where nothing was measured that it could be judged by,
    `holds` is None and `not_judged` says why. Raises ValueError for one without the other.
    """

    text: str
    holds: bool | None
    not_judged: str = ""

    def __post_init__(self) -> None:
        """Check that there is a verdict or a reason, and not both."""
        if (self.holds is None) != bool(self.not_judged):
            raise ValueError(f"claim {self.text!r} is judged, or says why it is not")

    @classmethod
    def every(
        cls, text: str, verdicts: Iterable[bool], *, nothing: str = "there is no point that it is about"
    ) -> Claim:
        """A claim on each of several things: it holds if all `verdicts` are true. Without a verdict it is not judged,
        for the reason `nothing`."""
        found = list(verdicts)
        return cls(text=text, holds=all(found)) if found else cls.unjudged(text, nothing)

    @classmethod
    def unjudged(cls, text: str, why: str) -> Claim:
        """A claim that is not judged, and why."""
        return cls(text=text, holds=None, not_judged=why)

    def unless(self, why: str) -> Claim:
        """The same claim; not judged if there is a reason `why` not to."""
        return Claim.unjudged(self.text, why) if why else self


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A plot of a sweep.

    - `by`: the parameter of points whose values are the places along a line; seeds are averaged there.
    - `x`, `y`: results, or parameters, against each other.
    - `x_label`, `y_label`: with units; "" for the names.
    """

    by: str
    x: str
    y: str
    x_label: str = ""
    y_label: str = ""


class Experiment(ABC):
    """An experiment. Subclasses set the class variables and write the methods.

    - `name`: as in `published.toml`, where it stands there.
    - `asks`: the question, in a sentence.
    - `source`: the document and place it is from.
    - `entry`: `module:coroutine` that runs one point inside the simulation. It is given the cluster (or the system in
      its place) and the point's `spec`, and returns its measurement as plain JSON.
    - `Parameters`: a `Config` whose defaults are the published set-up.
    - `by_flow`: names of the points' parameters and results that are lists with a value for each flow (or rank, VL,
      class, slot). `*` stands for any letters. These lists are dealt out to the rows of `results.csv`. No other list
      is.
    - `element`: the thing that has one value in such a list: the heading of its number in tables.
    - `first_element`: the number of the first of them.
    - `curves`: the plots of a sweep. None: its first results against the first number of the grid.
    """

    name: ClassVar[str]
    asks: ClassVar[str]
    source: ClassVar[str]
    entry: ClassVar[str]
    Parameters: ClassVar[type[Config]]
    by_flow: ClassVar[Sequence[str]] = ()
    element: ClassVar[str] = "flow"
    first_element: ClassVar[int] = 0
    curves: ClassVar[Sequence[Curve]] = ()

    @abstractmethod
    def points(self, parameters: Any, size: Size) -> Sequence[Point]:
        """The points to run, in order. Raises UserError for parameters that cannot be run."""

    def cluster(self, parameters: Any) -> Any:
        """The `ClusterConfig` that all points run on: one build for the whole experiment. The subclass gives either
        this or `system`."""
        raise NotImplementedError(f"{self.name} has neither cluster() nor system()")

    def system(self, parameters: Any, point: Point) -> Any:
        """The system that a point runs on, a `backend.System`: `cluster`, or a configuration of the point's own. Points
        with equal ones share a build."""
        return self.cluster(parameters)

    @abstractmethod
    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> Mapping[str, Any]:
        """The measurement of the point's coroutine, as results under the project's names and units."""

    def tables(
        self, parameters: Any, point: Point, measured: Mapping[str, Any]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Tables of the point that are too long to be results: rows of one form, by the table's name. They become
        files in the folder `tables` of a run or a sweep. None by default."""
        return {}

    def more_plots(
        self, parameters: Any, outcomes: Sequence[Outcome]
    ) -> Mapping[str, Callable[[Figure], None]]:
        """Functions that draw more than `plot` does, each on an empty figure, by name. They become files in
        a run's folder `plots`. None by default."""
        return {}

    def notes(self, parameters: Any, points: Sequence[Point]) -> Sequence[str]:
        """Sentences on what a reader of the results would not expect of these points. None by default."""
        return ()

    @abstractmethod
    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> Sequence[Claim]:
        """The claims that this experiment checks, judged on all outcomes. A claim is judged where the run has its
        subject. Else it has the reason why it is not judged."""

    @abstractmethod
    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw the outcomes beside the published values on an empty matplotlib figure."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A line of `lanikai list`: `name`, `state` (`built` or `not built yet`), `source`, and the question that it `asks`
    where it is built. `origin`: `lanikai`, or the distribution that it comes from."""

    name: str
    state: str
    source: str
    asks: str = ""
    origin: str = "lanikai"
