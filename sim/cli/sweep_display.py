"""The display of a sweep: how many points are done, how fast, how long the rest will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from ..sweeps.sweep import SweepReport

__all__ = ["Pace", "SweepProgress", "show_sweep"]

PACE_SECONDS = 60.0
"""Time over which the rate is taken."""
LINE_SECONDS = 5.0
"""Seconds between two lines where no bar can be drawn."""


class Pace:
    """The rate of points, over the last `PACE_SECONDS`, and the time left.

    `points`: how many there are; `clock`: seconds.
    """

    def __init__(self, points: int, clock: Callable[[], float] | None = None) -> None:
        self._points, self._clock = points, clock or time.monotonic
        self._seen: deque[tuple[float, float]] = deque()

    def report(self, done: float) -> None:
        """So many points are done now. Those that were done at the first call are from before, and count for no
        rate."""
        if self._seen and self._seen[-1][1] == done:
            return
        self._seen.append((self._clock(), done))
        self._forget()

    def _forget(self) -> None:
        """Drop what is older than the time that the rate is taken over; the last two ends stay."""
        now = self._clock()
        while len(self._seen) > 2 and now - self._seen[1][0] > PACE_SECONDS:
            self._seen.popleft()

    @property
    def points_per_second(self) -> float | None:
        """Points a second; None before there is one."""
        if len(self._seen) < 2:
            return None
        self._forget()
        (first, before), (_, done) = self._seen[0], self._seen[-1]
        spent = self._clock() - first
        return (done - before) / spent if done > before and spent > 0 else None

    def text(self) -> str:
        """The rate and the time left in words; empty before a point has ended."""
        rate = self.points_per_second
        if rate is None:
            return ""
        left = round((self._points - self._seen[-1][1]) / rate)
        often = f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute"
        return f"{often}, {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"


class SweepProgress:
    """One bar for all points, with the rate and the time left; where no bar can be drawn, a line every few seconds."""

    def __init__(self, console: Console, points: int, path: Path) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._console = console
        self._points = points
        self._pace = Pace(points)
        self._bars = Progress(
            TextColumn("points"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}"),
            TextColumn("{task.fields[text]}"),
            console=console,
        )
        self._task = self._bars.add_task("", total=points, text="", pace="")
        self._told, self._told_at = -1, float("-inf")
        console.print(f"{points} points into {path}", highlight=False, markup=False, soft_wrap=True)

    def report(self, done: float, text: str) -> None:
        """Show that so many points are done, and that `text` goes on."""
        self._pace.report(done)
        if self._console.is_terminal:
            self._bars.update(self._task, completed=done, text=text, pace=self._pace.text())
            return
        now = time.monotonic()
        due = now - self._told_at >= LINE_SECONDS or done >= self._points
        if int(done) != self._told and due:
            self._told, self._told_at = int(done), now
            line = f"{self._told} of {self._points} points  {self._pace.text()}  {text}"
            self._console.print(line, highlight=False, markup=False)

    def failed(self, label: str, why: str, again: bool) -> None:
        """Show that a point has failed."""
        after = "it is run once more" if again else "it stays without a result"
        self._bars.console.print(
            f"{label} failed: {why}; {after}", highlight=False, markup=False, soft_wrap=True
        )

    def __enter__(self) -> SweepProgress:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._bars.stop()


def show_sweep(console: Console, report: SweepReport) -> None:
    """Show the end of a sweep."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    results = report.points - len(report.failures)
    say(f"{results} of {report.points} points have results, {report.reused} of them from before")
    for label, why in report.failures:
        say(f"no result: {label}: {why}")
    if report.outside:
        say(f"{report.outside} points are not within the tolerance of a published value")
    for label, text in report.broken_claims:
        say(f"does not hold: {text}  ({label})")
    for note in report.notes:
        say(f"note: {note}")
    for path in report.files.values():
        say(path)
