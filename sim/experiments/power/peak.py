"""peak-power: power and latency of a mesh under congestion control, peak power control and PowerHerd.

yum-2006 5.1, 7.4, figures 8 to 10: a 4 x 4 mesh, half real time and half best effort. The budget is the mean power at
50% injection. `peak_setup.py` has the choices that were made before the first run; besides these:

- *Latency* is that of the network: from a packet's header on the adapter's link to the receiver's completion. What
  peak power control or credits hold back waits in front of that, and its time without bound at a load above the budget
  is no latency of the network. The time from birth is among the results.
- *Any window of 500 cycles* is one that begins at any multiple of 50 cycles. The series of figure 10 has every tenth.
- *A severe cost* of PowerHerd: `SEVERE` times the latency without control, at the highest load.
- *The lowest latency*: no other scheme's is lower by more than `SAME`, at any load, for both classes.
- Figures 8 to 10 have no numbers in the text, so no value but the budget is published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...published import source, table
from ...systems.adapters.config import AdapterNetworkConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from ..qos.mix import BEST_EFFORT, REAL_TIME
from .peak_plot import draw
from .peak_setup import BUDGET_LOAD, LOADS, REAL_TIME_SHARES, WINDOW_CYCLES, PeakPowerParameters
from .peak_windows import adapters_w, powers_w

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PeakPower"]

SAMPLE_CYCLES = 50
BUDGET_TOLERANCE = 0.10
"""Relative: measured mean power at 50% injection over E_packet's. A quick run has some 190 streams. Their destinations'
mean number of hops is uncertain by 3% (s.d.), as is the load of ON/OFF sources over so short a time; each has half of
the traffic."""
SAME = 0.05
"""Relative, of two mean latencies: in the quick size each is uncertain by about as much."""
SEVERE = 2.0
CONTROLLED = {"power": "peak power control", "power_herd": "PowerHerd"}


class PeakPower(Experiment):
    """Power and latency under each scheme of control."""

    name = "peak-power"
    asks = "Which control keeps a network's power under its budget, and at what latency?"
    source = source("peak-power")
    entry = "lanikai.sim.experiments.power.peak_measure:measure"
    Parameters = PeakPowerParameters

    def points(self, parameters: PeakPowerParameters, size: Size) -> list[Point]:
        """A point for each scheme, share of real time and load."""
        loads = parameters.loads or LOADS[size]
        shares = parameters.real_time_shares or REAL_TIME_SHARES[size]
        return [
            Point(
                label=f"{scheme} {load:g}" + (f", {share:.0%} real time" if len(shares) > 1 else ""),
                parameters={
                    "network": parameters.network,
                    "scheme": scheme,
                    "load": load,
                    "real_time_share": share,
                    "credits": parameters.credits,
                    "cycle_ns": parameters.cycle_ns,
                },
                spec={
                    "scheme": scheme,
                    "mix": parameters.mix(
                        scheme, load=load, real_time_share=share, size=size, sample_cycles=SAMPLE_CYCLES
                    ).spec(),
                },
                workload=f"load {load:g}, {share:.0%} real time",
            )
            for share in shares
            for scheme in parameters.schemes
            for load in loads
        ]

    def system(self, parameters: PeakPowerParameters, point: Point) -> AdapterNetworkConfig:
        """The network of the point's scheme."""
        return parameters.system(point.parameters["scheme"])

    def results(
        self, parameters: PeakPowerParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Power in W, times in microseconds, throughput in flits a node and cycle; None where nothing arrived.

        - `budget_w`, `power_w`, `power_peak_w`: the budget, the mean, and the largest window of 500 cycles.
        - `adapters_w`: the mean power of the adapters, their links to the network included. No budget covers it.
        - `windows`, `windows_above`: windows of 500 cycles, and those above the budget.
        - `latency_us`, `latency_real_time_us`, `latency_best_effort_us`: in the network, of all and of each class.
        - `from_birth_us`: from birth, of all.
        - `throughput`, `throughput_real_time`, `throughput_best_effort`: what arrived.
        - `refused_part`: the part of the real-time bandwidth asked for that was refused. `refused_for_power`: streams.
        - `failed`: completions that were errors, and streams without an answer.
        """
        mix = point.spec["mix"]
        nodes = len(parameters.plain_system.network.nodes)
        powers = self._powers(parameters, measured)
        classes = measured["classes"]
        real_time, best_effort = classes[REAL_TIME], classes[BEST_EFFORT]
        us = parameters.cycle_ns / 1000

        def mean(name: str, count: str, *several: Mapping[str, int]) -> float | None:
            many = sum(one[count] for one in several)
            return sum(one[name] for one in several) / many * us if many else None

        def throughput(*several: Mapping[str, int]) -> float:
            return sum(one["flits"] for one in several) / (nodes * mix["window_cycles"])

        moved = any(any(one) for one in measured["series"]["activity"])
        return {
            "budget_w": parameters.budget_w,
            "power_w": sum(powers) / len(powers) if moved else None,
            "power_peak_w": max(powers) if moved else None,
            "adapters_w": adapters_w(
                measured["series"]["adapters"],
                sample_cycles=SAMPLE_CYCLES,
                flit_bits=parameters.plain_system.network.router.link.flit_bits,
                cycle_ns=parameters.cycle_ns,
            ),
            "windows": len(powers),
            "windows_above": sum(one > parameters.budget_w for one in powers),
            "latency_us": mean("network_cycles", "timed", real_time, best_effort),
            "latency_real_time_us": mean("network_cycles", "timed", real_time),
            "latency_best_effort_us": mean("network_cycles", "timed", best_effort),
            "from_birth_us": mean("since_birth_cycles", "arrived", real_time, best_effort),
            "throughput": throughput(real_time, best_effort),
            "throughput_real_time": throughput(real_time),
            "throughput_best_effort": throughput(best_effort),
            "refused_part": measured["refused_units"] / measured["units"] if measured["units"] else None,
            "refused_for_power": measured["refusals"].get("POWER", 0),
            "failed": measured["failed"] + measured["unanswered"],
        }

    def _powers(self, parameters: PeakPowerParameters, measured: Mapping[str, Any]) -> list[float]:
        return powers_w(
            measured["series"]["activity"],
            sample_cycles=SAMPLE_CYCLES,
            window_cycles=WINDOW_CYCLES,
            flit_bits=parameters.plain_system.network.router.link.flit_bits,
            cycle_ns=parameters.cycle_ns,
        )

    def claims(self, parameters: PeakPowerParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The budget, what keeps to it and what does not, and the orders of latencies and powers."""
        by = {
            (
                one.point.parameters["scheme"],
                one.point.parameters["real_time_share"],
                one.point.parameters["load"],
            ): one.results
            for one in outcomes
        }
        shares = sorted({share for _, share, _ in by})
        mixed = [share for share in shares if 0 < share < 1]
        top = max((load for _, _, load in by), default=0.0)
        above = "" if top > BUDGET_LOAD else f"no load is above {BUDGET_LOAD:.0%}"

        def value(place: tuple[str, float, float], name: str) -> float:
            # Nothing compares with a number that was not measured.
            found = by[place][name]
            return float("nan") if found is None else float(found)

        def both(scheme: str, other: str, share: float, name: str) -> tuple[float, float] | None:
            places = (scheme, share, top), (other, share, top)
            return (
                (value(places[0], name), value(places[1], name)) if all(one in by for one in places) else None
            )

        def pairs(scheme: str, other: str, among: Sequence[float], name: str) -> list[tuple[float, float]]:
            return [pair for share in among if (pair := both(scheme, other, share, name))]

        powers = [
            (value(("none", share, load), "power_w"), value(("none", share, load), "budget_w"))
            for scheme, share, load in by
            if scheme == "none" and load == BUDGET_LOAD
        ]
        kept = {scheme: [one for (mine, _, _), one in by.items() if mine == scheme] for scheme in CONTROLLED}
        published = table("peak-power")["budget_w"]
        return [
            Claim.every(
                f"the budget is the mean power at {BUDGET_LOAD:.0%} injection without control, within "
                f"{BUDGET_TOLERANCE:.0%}",
                (abs(power / budget - 1) <= BUDGET_TOLERANCE for power, budget in powers),
                nothing=f"there is no point without control at {BUDGET_LOAD:.0%}",
            ),
            *(
                Claim.every(
                    f"with {title} no {WINDOW_CYCLES} cycles take more than the budget",
                    (
                        one["windows"] > 0 == one["windows_above"] and one["power_w"] is not None
                        for one in kept[scheme]
                    ),
                )
                for scheme, title in CONTROLLED.items()
            ),
            Claim.every(
                "at the highest load congestion control alone takes more than the budget in the mean",
                (
                    value(("congestion", share, top), "power_w")
                    > value(("congestion", share, top), "budget_w")
                    for share in mixed
                    if ("congestion", share, top) in by
                ),
            ).unless(above),
            *(
                Claim.every(
                    f"peak power control has the lowest latency of {title} at every load, within {SAME:.0%}",
                    (
                        value(("power", share, load), name) <= (1 + SAME) * value((other, share, load), name)
                        for other, share, load in by
                        if other != "power" and ("power", share, load) in by and share in mixed
                    ),
                )
                for name, title in (
                    ("latency_real_time_us", "real time"),
                    ("latency_best_effort_us", "best effort"),
                )
            ),
            Claim.every(
                f"at the highest load PowerHerd costs {SEVERE:g} times the latency without control at least",
                (mine >= SEVERE * other for mine, other in pairs("power_herd", "none", mixed, "latency_us")),
            ).unless(above),
            Claim.every(
                "best effort alone takes less power under peak power control than under PowerHerd, at the highest load",
                (mine < other for mine, other in pairs("power", "power_herd", [0.0], "power_w")),
            ).unless(above),
            Claim.every(
                "real time alone takes more power under peak power control than under PowerHerd, at the highest load",
                (mine > other for mine, other in pairs("power", "power_herd", [1.0], "power_w")),
            ).unless(above),
            Claim.every(
                "every message that ended did so without an error, and every request was answered",
                (one.results["failed"] == 0 < one.results["throughput"] for one in outcomes),
            ),
            Claim.unjudged(
                f"the budget is {published} W",
                f"the document's power has adapters in it, without numbers; routers and links alone take "
                f"{parameters.budget_w:.1f} W at {parameters.cycle_ns} ns a cycle",
            ),
        ]

    def plot(self, parameters: PeakPowerParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Figures 8, 9 and 10: latency and power against load, and the power of every 500 cycles."""
        series = {
            one.point.label: self._powers(parameters, {"series": one.series})[
                :: WINDOW_CYCLES // SAMPLE_CYCLES
            ]
            for one in outcomes
            if "activity" in one.series
        }
        draw(parameters, outcomes, series, figure)
