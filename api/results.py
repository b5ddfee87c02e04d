"""The results of an experiment's run, as Polars frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Claim, Outcome, Point
from lanikai.sim.experiments.framework.results import Report, declared, rows

from .errors import plain

if TYPE_CHECKING:
    import polars
    from lanikai.sim.experiments.framework.base import Experiment

__all__ = ["Run", "load"]


class Run:
    """An experiment that has run.

    - `name`, `size`, `seed`: the experiment, `quick` or `full`, and the seed of the run.
    - `folder`: its files. `files`: their paths by kind (`csv`, `json`, `plot`, `log`).
    - `ok`: whether all published values are met within their tolerances, and no claim that is judged is broken.
    - `report`: the whole run as the JSON file has it (docs/results.md).
    """

    def __init__(self, report: Report, folder: Path) -> None:
        self._report = report
        self.folder = folder
        self.name, self.size, self.seed = report.experiment, report.size, report.seed
        self.files: Mapping[str, Any] = dict(report.files)
        self.ok = not report.exit_status

    @cached_property
    def report(self) -> dict[str, Any]:
        """The run as the JSON file has it."""
        return self._report.as_json()

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters that are the same at all points, by name."""
        each = [dict(outcome.point.parameters) for outcome in self._report.outcomes]
        return {name: value for name, value in each[0].items() if all(one.get(name) == value for one in each)}

    @cached_property
    def frame(self) -> polars.DataFrame:
        """A row a point, or a row for each of its flows, as `results.csv` has them: parameters, results, published."""
        import polars

        report = self._report
        listed = list(rows(report.outcomes, report.by_flow, report.element, report.first_element))
        return polars.DataFrame(listed, infer_schema_length=None)

    @cached_property
    def published(self) -> polars.DataFrame:
        """Ours beside theirs: a row for each published value, of each flow where it is a list.

        Columns: `point`, `label`, `result`, `flow` (its place in a list, or None), `ours`, `published`, `off_by`
        (relative), `tolerance`, `within`. It is empty where nothing was published.
        """
        import polars

        schema = {
            "point": polars.Int64,
            "label": polars.String,
            "result": polars.String,
            "flow": polars.Int64,
        }
        numbers = ("ours", "published", "off_by", "tolerance")
        schema |= dict.fromkeys(numbers, polars.Float64) | {"within": polars.Boolean}
        listed = []
        for number, outcome in enumerate(self._report.outcomes):
            for key, published in (outcome.point.published or {}).items():
                ours, tolerance = outcome.results.get(key), (outcome.point.tolerance or {}).get(key, 0.0)
                listed += [
                    (number, outcome.point.label, key, flow, *compared)
                    for flow, compared in _beside(ours, published, tolerance)
                ]
        return polars.DataFrame(listed, schema=schema, orient="row")

    @cached_property
    def claims(self) -> polars.DataFrame:
        """A row a claim: `text`, `holds` (None if it is not judged), `why` it is not judged."""
        import polars

        schema = {"text": polars.String, "holds": polars.Boolean, "why": polars.String}
        listed = [(claim.text, claim.holds, claim.not_judged) for claim in self._report.claims]
        return polars.DataFrame(listed, schema=schema, orient="row")

    def show(self) -> None:
        """Print the table that `lanikai run` prints; in a notebook, its plot too."""
        from lanikai.sim.cli.screen import screen
        from lanikai.sim.experiments.framework.display import show

        from .screen import show_image

        show(screen(), self._report)
        show_image(Path(self.files["plot"]))

    def __repr__(self) -> str:
        verdict = "ok" if self.ok else self._report.failures()
        points = len(self._report.outcomes)
        return f"<Run {self.name}, {self.size}, seed {self.seed}, {points} points: {verdict}; {self.folder}>"


def _beside(ours: Any, published: Any, tolerance: float) -> list[tuple[int | None, tuple[Any, ...]]]:
    """Place, and cells, of a published value beside ours; one for each of a list."""
    from lanikai.sim.experiments.framework.base import within

    if isinstance(published, list):
        found = ours if isinstance(ours, list) else []
        pairs = [
            (place, found[place] if place < len(found) else None, one) for place, one in enumerate(published)
        ]
    else:
        pairs = [(None, ours, published)]  # type: ignore[list-item]
    listed: list[tuple[int | None, tuple[Any, ...]]] = []
    for place, mine, theirs in pairs:
        numbers = all(isinstance(one, int | float) for one in (mine, theirs))
        off = (mine - theirs) / theirs if numbers and theirs else None
        cells = (mine if numbers else None, theirs if numbers else None, off)
        listed.append((place, (*cells, tolerance, within(mine, theirs, tolerance))))
    return listed


@plain
def load(folder: str | Path) -> Run:
    """The run whose files are in `folder`: that of an earlier `lanikai.run`, or of `lanikai run`.

    Raises UserError for a folder that holds no run.
    """
    from lanikai.sim.experiments.registry import find

    path = Path(folder)
    try:
        text = json.loads((path / "results.json").read_text())
        experiment = find(text["experiment"])
        return Run(_report(text, experiment), path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{str(path)!r} holds no run: results.json: {type(error).__name__}: {error}"
        ) from None


def _report(text: Mapping[str, Any], experiment: Experiment) -> Report:
    """The report whose `as_json` is `text`."""
    outcomes = [
        Outcome(
            point=Point(
                label=point.get("label") or _label(point["parameters"], experiment),
                parameters=point["parameters"],
                spec={},
                published=point["published"],
                tolerance=point["tolerance"],
            ),
            results=point["results"],
            seed=point["seed"],
            cycles=point["cycles"],
            wall_seconds=text["wall_seconds"] / len(text["points"]),
            intervals=point.get("intervals", {}),
            repetitions=point.get("repetitions", ()),
        )
        for point in text["points"]
    ]
    judged = [Claim(text=one["text"], holds=one["holds"]) for one in text["claims"]]
    return Report(
        experiment=text["experiment"],
        size=text["size"],
        seed=text["seed"],
        outcomes=outcomes,
        claims=judged + [Claim.unjudged(one["text"], one["why"]) for one in text["claims_not_judged"]],
        build_seconds=text["build_seconds"],
        build_cached=text["build_cached"],
        files=text["files"],
        by_flow=experiment.by_flow,
        element=experiment.element,
        first_element=experiment.first_element,
    )


def _label(parameters: Mapping[str, Any], experiment: Experiment) -> str:
    """Words for a point of an older file, which has no labels: its parameters of flows, or else the first few."""
    named = [key for key in parameters if declared(key, experiment.by_flow)] or list(parameters)[:3]
    return ", ".join(f"{key} {parameters[key]}" for key in named)
