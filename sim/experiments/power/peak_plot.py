"""The plot of peak-power: figures 8 to 10 of yum-2006."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...published import table
from ..framework.base import Outcome
from ..framework.charts import LoadPanel, load_panels
from .peak_setup import WINDOW_CYCLES, PeakPowerParameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(
    parameters: PeakPowerParameters,
    outcomes: Sequence[Outcome],
    series: Mapping[str, Sequence[float]],
    figure: Figure,
) -> None:
    """Latency against load (figure 8), power against load for each share of real time (figure 9), power against time
    at the load nearest to 70% (figure 10). Latencies, and power against time, are those of the share nearest to a half.

    - `series`: power of every 500 cycles, by labels of points.
    """
    shares = sorted(
        {one.point.parameters["real_time_share"] for one in outcomes}, key=lambda one: abs(one - 0.5)
    )
    mixed = [one for one in outcomes if one.point.parameters["real_time_share"] == shares[0]]
    budget = (f"budget, {parameters.budget_w:.1f} W", parameters.budget_w)
    panels = [
        LoadPanel(result=name, label="latency (us)", title=f"figure 8: {title}", outcomes=mixed, log=True)
        for name, title in (
            ("latency_us", "all"),
            ("latency_best_effort_us", "best effort"),
            ("latency_real_time_us", "real time"),
        )
    ]
    panels += [
        LoadPanel(
            result="power_w",
            label="mean power (W)",
            title=f"figure 9: {share:.0%} real time",
            outcomes=[one for one in outcomes if one.point.parameters["real_time_share"] == share],
            level=budget,
        )
        for share in shares
    ]
    (time,) = load_panels(
        figure,
        panels,
        by="scheme",
        names=parameters.schemes,
        title=f"Peak power on {parameters.network} (published budget: {table('peak-power')['budget_w']} W)",
        columns=3,
        more=1,
    )
    near = min((one.point.parameters["load"] for one in mixed), key=lambda one: abs(one - 0.7))
    step = WINDOW_CYCLES * parameters.cycle_ns / 1000
    for one in mixed:
        watts = series.get(one.point.label)
        if one.point.parameters["load"] == near and watts:
            color = f"C{parameters.schemes.index(one.point.parameters['scheme'])}"
            time.plot([place * step for place in range(len(watts))], watts, "-", color=color, linewidth=0.8)
    time.axhline(budget[1], color="black", linestyle="--", linewidth=0.8)
    time.set_ylim(bottom=0)
    time.set_xlabel("time (us)")
    time.set_ylabel(f"power of {WINDOW_CYCLES} cycles (W)")
    time.set_title(f"figure 10: load {near:g}", fontsize="medium")
