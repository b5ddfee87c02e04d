"""Published values beside ours: the rows of a comparison, its table, its chart, and the claims of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..experiments.framework.base import Outcome, within
from ..experiments.framework.results import declared
from .beside import unjudged
from .folders import RunData
from .page import Cell, Chart, Column, Table, plain
from .words import cell, is_number, label, number, same_and_varying, spoken, verdict_cell

__all__ = ["Compared", "claims_table", "compared", "comparison_chart", "comparison_table"]

MOST_BARS = 120
"""Most values in the chart of differences."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One published value beside ours.

    - `where`: what tells its point from the others, and its flow.
    - `result`: the name of the result.
    - `achieved`, `half`, `published`, `tolerance`: ours, half of its 95% interval if there is one, theirs, and the
      relative error that is allowed.
    - `within`: the verdict; None where there is no tolerance, and claims judge the value.
    """

    where: str
    result: str
    achieved: Any
    half: Any
    published: Any
    tolerance: float | None
    within: bool | None

    @property
    def off(self) -> float | None:
        """The difference in parts of the published value; None where it is no number or 0."""
        if not is_number(self.achieved) or not is_number(self.published) or not self.published:
            return None
        return float(self.achieved - self.published) / abs(self.published)


def compared(run: RunData) -> list[Compared]:
    """Every published value that stands beside a result of the run, those without a tolerance too."""
    by_flow: Sequence[str] = ("*",)
    element, first = "flow", 0
    if run.experiment is not None:
        by_flow = run.experiment.by_flow
        element, first = run.experiment.element, run.experiment.first_element
    _, varying = same_and_varying(
        [outcome.point.parameters for outcome in run.outcomes],
        dict.fromkeys(name for outcome in run.outcomes for name in outcome.point.parameters),
    )
    return [
        one
        for outcome in run.outcomes
        for one in _of_point(run.name, outcome, varying, by_flow, element, first)
    ]


def _of_point(
    experiment: str,
    outcome: Outcome,
    varying: Sequence[str],
    by_flow: Sequence[str],
    element: str,
    first: int,
) -> Iterator[Compared]:
    where = ", ".join(
        f"{spoken(name)} {number(outcome.point.parameters[name])}"
        for name in varying
        if name in outcome.point.parameters
    )
    judged = outcome.point.published or {}
    for key, published in {**judged, **unjudged(experiment, outcome)}.items():
        tolerance = (outcome.point.tolerance or {}).get(key, 0.0) if key in judged else None
        achieved, half = outcome.results.get(key), outcome.intervals.get(key)
        if not (
            isinstance(published, list) and isinstance(achieved, list) and len(published) == len(achieved)
        ):
            yield _one(where, key, achieved, half, published, tolerance)
            continue
        for place, (ours, theirs) in enumerate(zip(achieved, published, strict=True)):
            name = f"{element} {first + place}" if declared(key, by_flow) else f"number {place + 1}"
            width = half[place] if isinstance(half, list) and place < len(half) else None
            yield _one(f"{where}, {name}" if where else name, key, ours, width, theirs, tolerance)


def _one(where: str, key: str, achieved: Any, half: Any, published: Any, tolerance: float | None) -> Compared:
    return Compared(
        where=where or "-",
        result=key,
        achieved=achieved,
        half=half,
        published=published,
        tolerance=tolerance,
        within=None if tolerance is None else within(achieved, published, tolerance),
    )


def comparison_table(caption: str, found: Sequence[Compared]) -> Table:
    """A row for each published value: ours, theirs, the difference, what is allowed, the verdict."""
    repeated = any(one.half is not None for one in found)
    return Table(
        caption=caption,
        columns=[
            Column("point"),
            Column("result"),
            Column("achieved", True),
            *([Column("± (95%)", True)] if repeated else []),
            Column("published", True),
            Column("off by", True),
            Column("allowed", True),
            Column("verdict"),
        ],
        rows=[
            [
                cell(one.where),
                cell(label(one.result)),
                cell(one.achieved),
                *([cell(one.half)] if repeated else []),
                cell(one.published),
                Cell("" if one.off is None else f"{one.off:+.1%}", one.off),
                Cell("-") if one.tolerance is None else Cell(f"±{one.tolerance:.1%}", one.tolerance),
                verdict_cell(one.within, ("within", "OUT", "by claims")),
            ]
            for one in found
        ],
    )


def comparison_chart(title: str, found: Sequence[Compared]) -> Chart | None:
    """How far each value is from the published one, beside what is allowed; None if no value is a number."""
    shown = [one for one in found if one.off is not None][:MOST_BARS]
    if not shown:
        return None
    names = [f"{number} · {plain(_short(one))}" for number, one in enumerate(shown, 1)]
    allowed = [100 * (one.tolerance or 0) for one in shown]
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": "allowed",
            "y": names,
            "x": [2 * one for one in allowed],
            "base": [-one for one in allowed],
            "marker": {"color": "@grid"},
            "hoverinfo": "skip",
        }
    ]
    marks = (
        ("within", True, "@2", "circle"),
        ("OUT", False, "@4", "x"),
        ("judged by claims", None, "@7", "diamond"),
    )
    for text, good, colour, mark in marks:
        mine = [place for place, one in enumerate(shown) if one.within is good]
        if mine:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": text,
                    "y": [names[place] for place in mine],
                    "x": [100 * (shown[place].off or 0) for place in mine],
                    "text": [
                        f"{number(shown[place].achieved)}, published {number(shown[place].published)}"
                        for place in mine
                    ],
                    "hovertemplate": "%{y}<br>%{x:+.1f}%<br>%{text}<extra></extra>",
                    "marker": {"color": colour, "symbol": mark, "size": 9},
                }
            )
    more = f" These are the first {MOST_BARS} of {len(found)}." if len(found) > MOST_BARS else ""
    return Chart(
        title=title,
        about=f"The difference to each published value, in percent of it. A grey bar is what is allowed.{more}",
        data=traces,
        layout={
            "xaxis": {"title": {"text": "off by (%)"}, "zeroline": True},
            "yaxis": {
                "autorange": "reversed",
                "categoryorder": "array",
                "categoryarray": names,
                "tickvals": names,
                "ticktext": [_cut(name, 34) for name in names],
                "tickfont": {"size": 11},
            },
            "barmode": "overlay",
            "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        },
        height=max(240, min(1600, 140 + 24 * len(shown))),
    )


def _short(one: Compared) -> str:
    return f"{one.where}: {label(one.result)}" if one.where != "-" else label(one.result)


def _cut(text: str, most: int) -> str:
    """A text for an axis. An entity that is cut would be shown as it stands, so it goes whole."""
    return text if len(text) <= most else text[: most - 1].rsplit("&", 1)[0] + "…"


def claims_table(caption: str, facts: Mapping[str, Any]) -> Table | None:
    """The claims of a run with their verdicts, those that were not judged with the reason; None without any."""
    claims = [(claim.get("holds"), str(claim["text"]), "") for claim in facts["claims"]]
    claims += [
        (None, str(claim["text"]), str(claim.get("why", ""))) for claim in facts.get("claims_not_judged", ())
    ]
    if not claims:
        return None
    words = ("holds", "DOES NOT HOLD", "not judged")
    reasons = any(why for _, _, why in claims)
    return Table(
        caption=caption,
        columns=[Column("claim"), Column("verdict"), *([Column("why not judged")] if reasons else [])],
        rows=[
            [Cell(text, text), verdict_cell(holds, words), *([Cell(why, why)] if reasons else [])]
            for holds, text, why in claims
        ],
    )
