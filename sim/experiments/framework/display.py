"""The display of a run: the progress bars, the table at the end, the list of experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ...tables import fitted
from .base import Listed, Outcome, Point, within
from .results import Report, declared
from .runner import BUILD

__all__ = ["RunProgress", "list_table", "result_table", "show"]

UNITS = {
    "mb_per_s": "MB/s",
    "us": "µs",
    "ms": "ms",
    "w": "W",
    "cycles": "cycles",
}
"""Units at the end of a result's name, as a table shows them."""


class TimeLeft(ProgressColumn):
    """The time that a bar's task still takes, at its pace until now."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """`1:02 left`; empty before there is a pace, and at the end."""
        return Text(left(task))


def left(task: Task) -> str:
    """The time that a task still takes, in words; empty before there is a pace, and at the end."""
    if task.finished or not task.completed or task.total is None or task.elapsed is None:
        return ""
    return f"{clock(task.elapsed * (task.total - task.completed) / task.completed)} left"


def clock(seconds: float) -> str:
    """Seconds as `1:02`, or `1:02:03` from an hour on."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


class RunProgress:
    """A bar for the build, one for each point, and one for all points; a context manager. The runner calls `report`.

    Each bar says how much time is left. `now`: a clock of seconds, by default the machine's.
    """

    def __init__(
        self, console: Console, points: Sequence[Point], *, now: Callable[[], float] | None = None
    ) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TimeLeft(),
            TextColumn("{task.fields[text]}"),
            console=console,
            get_time=now,
        )
        width = max(len(point.label) for point in points)
        self._tasks = {BUILD: self._bars.add_task("build".ljust(width), total=1.0, text="")}
        for index, point in enumerate(points):
            self._tasks[index] = self._bars.add_task(
                point.label.ljust(width), total=1.0, text="", start=False
            )
        self._all = self._bars.add_task(
            "all".ljust(width), total=len(points), text="", start=False, visible=len(points) > 1
        )
        self._done = dict.fromkeys(range(len(points)), 0.0)
        self._plain = None if console.is_terminal else console
        self._told: dict[int, tuple[int, str]] = {}

    def report(self, index: int, fraction: float, text: str) -> None:
        """Move the bar of the build (`BUILD`) or of a point. Where no bar can be drawn, print a line for each step of
        the build, and for each quarter of a point."""
        task = self._tasks[index]
        self._bars.start_task(task)
        self._bars.update(task, completed=fraction, text=text)
        if index != BUILD:
            self._done[index] = fraction
            self._bars.start_task(self._all)
            self._bars.update(self._all, completed=sum(self._done.values()))
        step = (0, text) if index == BUILD else (int(4 * fraction), "")
        if self._plain and self._told.get(index) != step:
            self._told[index] = step
            name = self._bars.tasks[task].description.strip()
            rest = "" if index == BUILD else left(self._bars.tasks[self._all])
            self._plain.print(f"{name}: {text}{'; ' if rest else ''}{rest}", highlight=False, markup=False)

    def __enter__(self) -> RunProgress:
        if not self._plain:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._plain:
            self._bars.stop()


MOST_SHOWN = 16
"""Values of a list that the table shows, if they are held against nothing; the files have all."""


def result_table(
    outcomes: Sequence[Outcome], by_flow: Sequence[str] = ("*",), element: str = "flow", first: int = 0
) -> Table:
    """Every result, achieved beside published, and whether it is within its tolerance. Lists that `by_flow` names have
    a row for each `element`, numbered from `first` on."""
    compared = any(outcome.point.published for outcome in outcomes)
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column("point")
    for heading in (element, "result"):
        table.add_column(heading, no_wrap=True)
    repeated = any(outcome.repetitions for outcome in outcomes)
    spread_heading = ("± (95%)",) if repeated else ()
    for heading in (
        "achieved",
        *spread_heading,
        *(("published", "off by", "allowed", "") if compared else ()),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in outcomes:
        shown = outcome.point.label
        for key, value in outcome.results.items():
            published = (outcome.point.published or {}).get(key)
            tolerance = (outcome.point.tolerance or {}).get(key, 0.0)
            dealt_out = isinstance(value, list) and declared(key, by_flow)
            values = list(enumerate(value)) if dealt_out else [(None, value)]
            more = max(0, len(values) - MOST_SHOWN) if published is None else 0
            values = values[: len(values) - more]
            spread = outcome.intervals.get(key)
            for flow, one in values:
                half = spread[flow] if isinstance(spread, list) and flow is not None else spread
                wanted = published[flow] if isinstance(published, list) and flow is not None else published
                table.add_row(
                    shown,
                    "" if flow is None else str(first + flow),
                    _name(key),
                    _number(one),
                    *(("" if half is None else _number(half),) if repeated else ()),
                    *(_comparison(one, wanted, tolerance) if compared else ()),
                )
                shown = ""
            if more:
                table.add_row("", "…", _name(key), f"{more} more")
        table.add_section()
    return table


def _comparison(achieved: Any, published: Any, tolerance: float) -> tuple[str, str, str, str]:
    """Cells: published, difference, allowed, verdict; empty where nothing was published."""
    if published is None:
        return "", "", "", ""
    verdict = "[green]within[/]" if within(achieved, published, tolerance) else "[bold red]OUT[/]"
    numbers = isinstance(achieved, int | float) and isinstance(published, int | float)
    difference = f"{(achieved - published) / published:+.2%}" if numbers and published else ""
    return _number(published), difference, f"±{tolerance:.1%}", verdict


def _name(key: str) -> str:
    """A result's name for reading: `bandwidth_mb_per_s` is `bandwidth (MB/s)`."""
    for ending, unit in UNITS.items():
        if key.endswith(f"_{ending}"):
            return f"{key.removesuffix(f'_{ending}').replace('_', ' ')} ({unit})"
    return key.replace("_", " ")


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"
    if value is None:
        return "-"  # nothing was measured, as the latency of a network that is saturated
    if isinstance(value, list):
        return ", ".join(map(_number, value))
    text = str(value)
    return text if len(text) <= 20 else f"{text[:16]}…"  # a hash: the files have it whole


def show(console: Console, report: Report) -> None:
    """Show the end of a run: table, claims, speed, files."""
    table = result_table(report.outcomes, report.by_flow, report.element, report.first_element)
    console.print(fitted(table, console))
    for claim in report.claims:
        if claim.holds is None:
            console.print("[yellow]not judged[/]", end=": ")
            console.print(f"{claim.text}. Why: {claim.not_judged}", markup=False, highlight=False)
            continue
        console.print("[green]holds[/]" if claim.holds else "[bold red]DOES NOT HOLD[/]", end=": ")
        console.print(claim.text, markup=False, highlight=False)
    for note in report.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    facts = report.as_json()
    console.print(
        f"{facts['cycles']} cycles in {facts['wall_seconds']:.1f} s of simulation, "
        f"{facts['cycles_per_second']:.0f} cycles/s; build "
        + ("from the cache" if report.build_cached else f"{report.build_seconds:.1f} s"),
        highlight=False,
    )
    for name, path in report.files.items():
        for one in [path] if isinstance(path, str) else path:
            if name != "waves_of_points":
                console.print(f"{name:5} {one}", markup=False, highlight=False, soft_wrap=True)


def list_table(listed: Sequence[Listed]) -> Table:
    """The table of `lanikai list`."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("experiment", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("source")
    for row in listed:
        style = "green" if row.state == "built" else None
        source = row.source if row.origin == "lanikai" else f"{row.source} [{row.origin}]"
        table.add_row(
            row.name, row.state, Text(f"{source}\n  {row.asks}" if row.asks else source), style=style
        )
    return table
