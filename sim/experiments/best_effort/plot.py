"""The plot of best-effort: packets per 1000 ticks over time, as in figures 5.11 and 5.12 of gulati-thesis-2001."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ..framework.base import Outcome
from ..measure.gm_flows import ideal_mb_per_s

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(figure: Figure, panels: Sequence[tuple[Outcome, Sequence[str], Sequence[str]]]) -> None:
    """Draw a panel for each point: its outcome, the names of its flows, and those of its stages.

    A flow's line is the mean of each bin. A published rate is a dashed line over its stage.
    """
    figure.set_size_inches(9, 2.6 * len(panels))
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (outcome, names, stages) in zip(all_axes, panels, strict=True):
        series = outcome.series
        width = series.get("bin_ticks", 1000)
        for number, (name, packets) in enumerate(zip(names, series.get("packets", ()), strict=False)):
            at = [(place + 0.5) * width / 1000 for place in range(len(packets))]
            rates = [count * 1000 / width for count in packets]
            axes.plot(at, rates, drawstyle="steps-mid", color=f"C{number}", label=name)
        changes = [ticks / 1000 for ticks in series.get("stage_ticks", ())]
        for at_change in changes[1:]:
            axes.axvline(at_change, color="grey", linewidth=0.5, linestyle=":")
        lines = {
            (begin, end, rate / ideal_mb_per_s(1000))
            for stage, (begin, end) in zip(stages, pairwise([*changes, axes.get_xlim()[1]]), strict=False)
            for rate in (outcome.point.published or {}).get(f"{stage}_mb_per_s", ())
            if rate
        }
        for begin, end, rate in sorted(lines):
            axes.hlines(rate, begin, end, colors="black", linewidth=1, linestyles="dashed", zorder=3)
        if lines:
            axes.plot([], [], color="black", linewidth=1, linestyle="dashed", label="published")
        axes.set_title(outcome.point.label, fontsize=10)
        axes.set_ylabel("packets per 1000 ticks", fontsize=8)
        axes.set_ylim(0, 14)  # a peak of 10.4, and room for the legend
        axes.legend(fontsize=8, loc="upper right", ncols=len(names) + 1)
    all_axes[-1].set_xlabel("time (1000 ticks of the card's clock)")
