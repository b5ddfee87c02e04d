"""The plot of peak-power: figures 8 to 10 of yum-2006."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...published import table
from ..framework.base import Outcome
from .peak_setup import BUDGET_LOAD, WINDOW_CYCLES, PeakPowerParameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(
    parameters: PeakPowerParameters,
    outcomes: Sequence[Outcome],
    series: Mapping[str, Sequence[float]],
    figure: Figure,
) -> None:
    """Latency and power against load, and power against time at the load nearest to 70%, of the share of real time that
    is nearest to a half. `series`: power of every 500 cycles, by labels of points."""
    figure.set_size_inches(15, 5)
    latency, power, time = figure.subplots(1, 3)
    shares = {one.point.parameters["real_time_share"] for one in outcomes}
    share = min(shares, key=lambda one: abs(one - 0.5))
    for number, scheme in enumerate(parameters.schemes):
        mine = [
            one
            for one in outcomes
            if one.point.parameters["scheme"] == scheme and one.point.parameters["real_time_share"] == share
        ]
        if not mine:
            continue
        loads = [one.point.parameters["load"] for one in mine]
        color = f"C{number}"
        for name, style in (("real_time", "o-"), ("best_effort", "s--")):
            values = [one.results[f"latency_{name}_us"] for one in mine]
            latency.plot(loads, values, style, color=color, label=f"{scheme}, {name.replace('_', ' ')}")
        power.plot(loads, [one.results["power_w"] for one in mine], "o-", color=color, label=scheme)
        power.plot(loads, [one.results["power_peak_w"] for one in mine], "^", color=color)
        shown = min(mine, key=lambda one: abs(one.point.parameters["load"] - 0.7))
        if watts := series.get(shown.point.label):
            step = WINDOW_CYCLES * parameters.cycle_ns / 1000
            time.plot([place * step for place in range(len(watts))], watts, "-", color=color, label=scheme)
            time.set_title(f"load {shown.point.parameters['load']:g}")
    published = table("peak-power")["budget_w"]
    for axes in (power, time):
        axes.axhline(parameters.budget_w, color="grey", linewidth=0.8)
        axes.set_ylim(bottom=0)
    power.axvline(BUDGET_LOAD, color="grey", linewidth=0.5)
    latency.set_yscale("log")
    latency.set_xlabel("injection (flits a node and cycle)")
    latency.set_ylabel("latency in the network (us)")
    latency.legend(fontsize="x-small")
    power.set_xlabel("injection (flits a node and cycle)")
    power.set_ylabel("power (W): mean, and largest window (triangles)")
    power.set_title(
        f"grey: the budget, {parameters.budget_w:.1f} W (published: {published} W)", fontsize="small"
    )
    time.set_xlabel("time (us)")
    time.set_ylabel(f"power of {WINDOW_CYCLES} cycles (W)")
    time.legend(fontsize="x-small")
