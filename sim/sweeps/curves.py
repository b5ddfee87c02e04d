"""Plots of a sweep: results against a parameter, a line for each combination of the others, intervals over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..experiments.framework.base import Curve, Experiment, Outcome
from ..experiments.framework.repetitions import half_width

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Run", "curves_of", "lines_of", "sweep_plots"]

MOST_LINES = 24
"""Most lines of a plot; it says how many it leaves out."""
MOST_GENERIC = 4
"""Most results of an experiment without `curves` that are drawn."""

Value = tuple[float, float, float]
"""Mean of x, mean of y, and half the length of the 95% interval of y's mean: nan for one seed."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A point of a sweep that has a result: the `settings` of its combination, seed included, and its `outcome`."""

    settings: Mapping[str, Any]
    outcome: Outcome

    def at(self, key: str) -> Any:
        """The value of a parameter of the point or of the combination, or a result; None if there is none."""
        for values in (self.outcome.results, self.outcome.point.parameters, self.settings):
            if key in values:
                return values[key]
        return None


def sweep_plots(experiment: Experiment, runs: Sequence[Run]) -> dict[str, Callable[[Figure], None]]:
    """Functions that draw a sweep, by the name of the plot: one for each curve that has a value."""
    plots: dict[str, Callable[[Figure], None]] = {}
    for curve in curves_of(experiment, runs):
        if lines := lines_of(curve, runs):
            plots[curve.y] = partial(_draw, experiment.name, curve, lines)
    return plots


def curves_of(experiment: Experiment, runs: Sequence[Run]) -> Sequence[Curve]:
    """The experiment's curves. Without any: its first results that are numbers, or numbers for each flow, against the
    first parameter of the grid that is a number."""
    if experiment.curves:
        return experiment.curves
    varied = [key for key in _varied([run.settings for run in runs]) if key != "seed"]
    axes = [key for key in varied if all(_number(run.settings[key]) for run in runs)]
    if not axes:
        return ()
    results = [key for key in runs[0].outcome.results if any(_numbers(run.at(key)) for run in runs)]
    return [Curve(by=axes[0], x=axes[0], y=key) for key in results[:MOST_GENERIC]]


def _varied(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys that have different values in different rows."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return [key for key in keys if any(row.get(key) != rows[0].get(key) for row in rows)]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(value: Any) -> bool:
    return _number(value) or (isinstance(value, list) and bool(value) and all(map(_number, value)))


def lines_of(curve: Curve, runs: Sequence[Run]) -> dict[str, list[Value]]:
    """The points of each line, by its label: a line for each value of what varies beside the seed and the curve's own
    parameter. Seeds are averaged. A point that has no value with one of its seeds (a latency that is saturated) is left
    out."""
    settings = [
        {
            **run.settings,
            **{k: v for k, v in run.outcome.point.parameters.items() if k not in (curve.by, "seed")},
        }
        for run in runs
    ]
    # A list of which a point has one value (`loads`, `load`) tells no lines apart.
    keys = [key for key in _varied(settings) if key not in ("seed", curve.by, f"{curve.by}s")]
    groups: dict[tuple[str, Any], list[tuple[float, float | None]]] = {}
    for run, mine in zip(runs, settings, strict=True):
        x, y, place = run.at(curve.x), run.at(curve.y), run.at(curve.by)
        label = ", ".join(f"{key} = {mine.get(key)}" for key in keys)
        several = y if isinstance(y, list) else [y]
        for number, one in enumerate(several):
            line = label if not isinstance(y, list) else ", ".join(filter(None, [label, f"[{number}]"]))
            if _number(x):
                groups.setdefault((line, place), []).append((float(x), float(one) if _number(one) else None))
    lines: dict[str, list[Value]] = {}
    for (line, _place), pairs in groups.items():
        ys = [y for _, y in pairs if y is not None]
        if len(ys) == len(pairs):
            spread = half_width(ys) if len(ys) > 1 else math.nan
            lines.setdefault(line, []).append(
                (statistics.fmean(x for x, _ in pairs), statistics.fmean(ys), spread)
            )
    return {line: sorted(values) for line, values in lines.items()}


def _draw(name: str, curve: Curve, lines: Mapping[str, Sequence[Value]], figure: Figure) -> None:
    axes = figure.add_subplot()
    repeated = False
    for number, (label, values) in enumerate(list(lines.items())[:MOST_LINES]):
        xs, ys, spreads = zip(*values, strict=True)
        known = [0.0 if math.isnan(spread) else spread for spread in spreads]
        repeated |= any(known)
        axes.errorbar(
            xs,
            ys,
            yerr=known,
            color=f"C{number % 10}",
            linestyle=("-", "--", ":")[number // 10 % 3],
            marker="osD^vP"[number % 6],
            capsize=3,
            label=label or None,
        )
    axes.set_xlabel(curve.x_label or curve.x.replace("_", " "))
    axes.set_ylabel(curve.y_label or curve.y.replace("_", " "))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_title(name + (" (bars: 95% intervals over the seeds)" if repeated else ""), fontsize="medium")
    if len(lines) > MOST_LINES:
        more = f"{len(lines) - MOST_LINES} more lines are not drawn"
        axes.text(0.99, 0.01, more, ha="right", transform=axes.transAxes)
    if any(lines):
        figure.legend(
            loc="outside lower center", ncols=1 if max(map(len, lines)) > 40 else 3, fontsize="small"
        )
