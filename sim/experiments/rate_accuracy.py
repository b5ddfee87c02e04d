"""rate-accuracy: the rates of 2 to 1024 flows against those that were asked for.

A rate control unit runs by itself (`lanikai.sim.systems.rate_unit`): every flow always has a packet, and the link takes
the flow on offer as soon as it is free. The flows' rates are spread evenly, by their logarithms, over `spread`.
Together they ask for `load` of the link. The request of a flow is 1/IDT, with the IDT in whole ticks (here a tick is a
cycle).

**Rate.** A flow's rate is its packets from its first to its last in the window, by the cycles between them. A packet
that is late because others were before it counts as late, and is not made up for by the window's ends. With room on the
link the rate is held against 1/IDT; without, against the flow's part, by 1/IDT, of what the link carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from lanikai.hdl.config import Config, NicConfig, preset
from lanikai.hdl.config.nic import REGISTER_FLOWS
from pydantic import Field, model_validator

from ..systems.rate_unit import RateUnitConfig
from .framework.base import Claim, Experiment, Outcome, Point, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.rate_unit import RateUnit

__all__ = ["RateAccuracy", "RateAccuracyParameters", "measure"]

WITHIN = 0.001
"""Relative: a flow's rate against the one that was asked for."""
USED = 0.99
"""Part in use of a link that is asked for more than it carries."""
WINDOWS = {"quick": 1, "full": 20}
"""A size's window, in `window_cycles`."""
WARMUP_PART = 10
"""The warm-up is this part of the window: the first packets of all flows are spread over their IDTs."""
LEAST_PACKETS = 20
"""Packets of the slowest flow in the window."""


def window_cycles(count: int) -> int:
    """The shortest window for so many flows.

    A packet may be late by those of others that come at once: among two flows by 16 cycles, among 1024 by a few
    hundred. This window makes less than half a per mille of that.
    """
    return 200_000 + 800 * count


class RateAccuracyParameters(Config):
    """Parameters of rate-accuracy."""

    flows: list[Annotated[int, Field(ge=2, le=1024)]] = Field(
        [2, 16, 128, 1024],
        min_length=1,
        max_length=16,
        description="numbers of flows to compare; up to 16 in a unit of 16, more in one of 1024",
        json_schema_extra={"range": "list of numbers, each 2 to 1024"},
    )
    loads: list[Annotated[float, Field(ge=0.01, le=4)]] = Field(
        [0.9, 1.5],
        min_length=1,
        max_length=8,
        description="what all flows together ask for, of what the link carries",
        json_schema_extra={"range": "list of loads, each 0.01 to 4"},
    )
    spread: float = Field(4.0, ge=1, le=64, description="rate of the fastest flow, by that of the slowest")
    service_cycles: int = Field(
        16, ge=12, le=4096, description="cycles for which a packet takes the link; more than a decision's 10"
    )
    structure: Literal["auto", "tree"] = Field(
        "auto", description="structure of the unit of 16 flows: as the card has it, or a tree"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for count in self.flows:
            for load in self.loads:
                ticks = self.idts(count, load)
                if min(ticks) < 2:
                    raise ValueError(
                        f"flows = {count}, load = {load:g}: an IDT of {min(ticks)}; at least 2 cycles"
                    )
                most = window_cycles(count) // LEAST_PACKETS
                # Served in proportion, a flow gets a packet every so many cycles.
                if max(ticks) * max(1.0, load) > most:
                    raise ValueError(
                        f"flows = {count}, load = {load:g}: the slowest flow sends a packet every {max(ticks)} "
                        f"cycles; at most {most}, or the quick window has too few (smaller spread or service_cycles)"
                    )
        return self

    def idts(self, count: int, load: float) -> list[int]:
        """IDT of each flow, ticks of a cycle."""
        weights = [self.spread ** (-flow / (count - 1)) for flow in range(count)]
        return [round(self.service_cycles * sum(weights) / (load * weight)) for weight in weights]

    def system(self, count: int) -> RateUnitConfig:
        """The unit that `count` flows run on."""
        many = count > REGISTER_FLOWS
        return RateUnitConfig(
            nic=preset(
                NicConfig,
                "lanai4",
                flows=1024 if many else REGISTER_FLOWS,
                rate_structure=self.structure,
                rtc_cycles_num=1,
                rtc_cycles_den=1,
            )
        )


class RateAccuracy(Experiment):
    """Rates of many flows against those asked for."""

    name = "rate-accuracy"
    asks = "Does every one of up to 1024 flows get the rate that its IDT asks for, and its part if there is too little?"
    source = "gulati-thesis-2001 3.2.2"
    entry = "lanikai.sim.experiments.rate_accuracy:measure"
    Parameters = RateAccuracyParameters

    def points(self, parameters: RateAccuracyParameters, size: Size) -> list[Point]:
        """A point for each number of flows and load."""
        return [
            Point(
                label=f"{count} flows, load {load:g}",
                parameters={
                    **parameters.model_dump(mode="json", exclude={"flows", "loads"}),
                    "flows": count,
                    "load": load,
                },
                spec={
                    "idts": parameters.idts(count, load),
                    "service_cycles": parameters.service_cycles,
                    "warmup_cycles": WINDOWS[size] * window_cycles(count) // WARMUP_PART,
                    "window_cycles": WINDOWS[size] * window_cycles(count),
                },
            )
            for count in parameters.flows
            for load in parameters.loads
        ]

    def system(self, parameters: RateAccuracyParameters, point: Point) -> RateUnitConfig:
        """The unit for the point's flows."""
        return parameters.system(point.parameters["flows"])

    def results(
        self, parameters: RateAccuracyParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The results of a point:

        - `asked_packets_per_kcycle`: the sum of all 1/IDT.
        - `packets_per_kcycle`: the sum that all flows got.
        - `link_use`: the part of the link that is in use.
        - `largest_error` and `mean_error` (relative) of a flow's rate.
        - `slowest_packets`: packets, in the window, of the flow with the fewest.

        Series: every flow's IDT and rate by what it should be.
        """
        asked = [1 / idt for idt in point.spec["idts"]]
        rates = [row["rate"] for row in measured["series"]["flows"]]
        # Without room for all, all get the same part of what they ask for.
        part = min(1.0, 1 / (point.parameters["service_cycles"] * sum(asked)))
        errors = [rate / (one * part) - 1 for rate, one in zip(rates, asked, strict=True)]
        return {
            "asked_packets_per_kcycle": 1000 * sum(asked),
            "packets_per_kcycle": 1000 * sum(rates),
            "link_use": measured["busy_cycles"] / point.spec["window_cycles"],
            "largest_error": max(abs(error) for error in errors),
            "mean_error": sum(abs(error) for error in errors) / len(errors),
            "slowest_packets": min(row["packets"] for row in measured["series"]["flows"]),
        }

    def claims(self, parameters: RateAccuracyParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: every flow gets its rate, or its part; nothing is wasted meanwhile, and nobody starved."""
        roomy = [one for one in outcomes if one.point.parameters["load"] <= 1]
        short = [one for one in outcomes if one.point.parameters["load"] > 1]
        return [
            Claim.every(
                f"with room on the link every flow's rate is within {WITHIN:.1%} of 1/IDT",
                (one.results["largest_error"] <= WITHIN for one in roomy),
                nothing="no point has a load of 1 or less",
            ),
            Claim.every(
                f"where more is asked for than the link carries, flows share it within {WITHIN:.1%} of the ratio of "
                "their 1/IDT",
                (one.results["largest_error"] <= WITHIN for one in short),
                nothing="no point has a load above 1",
            ),
            Claim.every(
                f"where more is asked for than the link carries, it is in use {USED:.0%} of the time, decisions or not",
                (one.results["link_use"] >= USED for one in short),
                nothing="no point has a load above 1",
            ),
            Claim.every(
                "no flow is starved",
                (one.results["slowest_packets"] >= LEAST_PACKETS // 2 for one in outcomes),
            ),
        ]

    def plot(self, parameters: RateAccuracyParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Every flow's rate against the one it should have, and the largest errors against the number of flows."""
        left, right = figure.subplots(1, 2)
        for place, load in enumerate(parameters.loads):
            mine = [one for one in outcomes if one.point.parameters["load"] == load]
            mine.sort(key=lambda one: int(one.point.parameters["flows"]))
            for one in mine:
                rows = one.series["flows"]
                left.loglog(
                    [1 / row["idt"] for row in rows],
                    [row["rate"] for row in rows],
                    ".",
                    color=f"C{place}",
                    markersize=3,
                )
            right.semilogx(
                [one.point.parameters["flows"] for one in mine],
                [100 * one.results["largest_error"] for one in mine],
                "o-",
                color=f"C{place}",
                label=f"load {load:g}",
            )
        asked = [1 / row["idt"] for one in outcomes for row in one.series["flows"]]
        left.loglog(
            [min(asked), max(asked)],
            [min(asked), max(asked)],
            color="grey",
            linewidth=0.8,
            label="as asked for",
        )
        left.legend()
        left.set_title("each flow")
        right.set_title("the worst flow")
        figure.suptitle("Rates of many flows against those that they ask for")
        left.set_xlabel("asked for: 1/IDT (packets a cycle)")
        left.set_ylabel("rate (packets a cycle)")
        right.axhline(100 * WITHIN, color="grey", linewidth=0.8, label=f"allowed: {WITHIN:.1%}")
        right.set_xlabel("flows")
        right.set_ylabel("largest error of a rate (%)")
        right.set_ylim(bottom=0)
        right.legend()


async def measure(system: RateUnit, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point. A row a flow: its `idt`, its `packets` in the window, and its `rate`, packets a cycle."""
    idts = spec["idts"]
    for flow, idt in enumerate(idts):
        await system.set_flow(flow, idt_ticks=idt, ndt_ticks=system.random.randrange(idt))
        if flow % 64 == 63:
            system.progress(0.0, f"{flow + 1} flows set up")
    counts, busy = await system.measure(
        range(len(idts)),
        service_cycles=spec["service_cycles"],
        warmup_cycles=spec["warmup_cycles"],
        window_cycles=spec["window_cycles"],
    )
    rows = [
        {
            "idt": idt,
            "packets": one.packets,
            "rate": (one.packets - 1) / (one.last - one.first) if one.packets > 1 else 0.0,
        }
        for idt, one in zip(idts, counts, strict=True)
    ]
    return {"busy_cycles": busy, "series": {"flows": rows}}
