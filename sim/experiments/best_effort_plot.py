"""The plot of best-effort: packets per 1000 ticks over time, as in figures 5.11 and 5.12 of gulati-thesis-2001."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(figure: Figure, panels: Sequence[tuple[Outcome, Sequence[str]]]) -> None:
    """A panel a point: its outcome, and the names of its flows. Lines of a flow are the mean of each bin."""
    figure.set_size_inches(9, 2.6 * len(panels))
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (outcome, names) in zip(all_axes, panels, strict=True):
        series = outcome.series
        width = series.get("bin_ticks", 1000)
        for number, (name, packets) in enumerate(zip(names, series.get("packets", ()), strict=False)):
            at = [(place + 0.5) * width / 1000 for place in range(len(packets))]
            rates = [count * 1000 / width for count in packets]
            axes.plot(at, rates, drawstyle="steps-mid", color=f"C{number}", label=name)
        for ticks in series.get("stage_ticks", ())[1:]:
            axes.axvline(ticks / 1000, color="grey", linewidth=0.5, linestyle=":")
        axes.set_title(outcome.point.label, fontsize=10)
        axes.set_ylabel("packets per 1000 ticks", fontsize=8)
        axes.set_ylim(0, 14)  # a peak of 10.4, and room for the legend
        axes.legend(fontsize=8, loc="upper right", ncols=len(names))
    all_axes[-1].set_xlabel("time (1000 ticks of the card's clock)")
