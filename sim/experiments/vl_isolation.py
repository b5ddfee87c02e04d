"""vl-isolation: the effect of a class that floods the network on one that behaves, on VLs of their own and not.

Every node but node 0 sends the *flood*, all of it to node 0. Every node sends a small load of the *well-behaved* class
to all the others. There are three settings: the well-behaved class alone; both, each with half of the data VLs; both on
the same VLs. The flood alone asks several times what node 0's link can carry, so the run as a whole is saturated. The
question is whether the well-behaved class is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

from lanikai.hdl.config import Config, ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from pydantic import Field, model_validator

from ..systems.traffic_config import TrafficNetworkConfig
from .framework.base import Claim, Outcome, Point, Size
from .measure.named_networks import NETWORKS, named_network
from .measure.traffic_experiment import TrafficExperiment
from .measure.traffic_results import ACCEPTED, MEASURE, OFFERED, check_traffic
from .measure.weighted import WEIGHTED, check_weights, weight_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VlIsolation", "VlIsolationParameters"]

SETTINGS = ("alone", "own VLs", "same VLs")
WARMUP_CYCLES = {"quick": 5_000, "full": 20_000}
WINDOW_CYCLES = {"quick": 20_000, "full": 200_000}
DRAIN_PACKETS = 40
"""Packet lengths of drain: more than the way of a packet that meets no queue at its source."""
SAME = 0.05
"""Relative: accepted against offered load of a class that is not saturated; the window has hundreds of its
packets."""


class VlIsolationParameters(Config):
    """Parameters of vl-isolation."""

    network: str = Field(
        "router4", description="routers and their links", json_schema_extra={"range": NETWORKS}
    )
    vl_arbiter: str = Field(
        "round_robin,fixed_priority",
        description="VL arbiters to compare; the well-behaved class has the lower VLs",
        json_schema_extra={"range": f"one or more of {', '.join(sorted(VL_ARBITERS))}, separated by commas"},
    )
    weights: list[int] = Field(
        [],
        max_length=2,
        description="weights of the lower and of the upper VLs (the flood's, where it has its own) at links and "
        "crossbars; empty: what `vl_arbiter` has after reset",
        json_schema_extra={"range": f"two weights, each 1 to 255; vl_arbiter some of {', '.join(WEIGHTED)}"},
    )
    vls: int = Field(4, ge=2, le=16, description="virtual lanes; of 16 the last one is for control packets")
    packet_flits: int = Field(40, ge=4, le=1023, description="packet length of both classes, flits")
    load: float = Field(
        0.1, gt=0, le=0.2, description="load of the well-behaved class, flits a node and cycle",
        json_schema_extra={"range": "above 0, at most 0.2"},
    )  # fmt: skip
    flood: float = Field(
        0.8, gt=0, le=1, description="load of the flood, flits a cycle and sender",
        json_schema_extra={"range": "above 0, at most 1"},
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.vl_arbiters:
            system = self.system(name)
            check_weights(self.weights, classes=2, vl_arbiter=name, packet_flits=self.packet_flits)
        if system.traffic.nodes * self.load + (system.traffic.nodes - 1) * self.flood <= 1:
            raise ValueError(f"flood = {self.flood:g}: too little to flood node 0")
        if len(set(self.vl_arbiters)) < len(self.vl_arbiters):
            raise ValueError(f"vl_arbiter = {self.vl_arbiter!r}: one is named twice")
        return self

    @cached_property
    def vl_arbiters(self) -> list[str]:
        """The names in `vl_arbiter`."""
        return [name.strip() for name in self.vl_arbiter.split(",")]

    def system(self, vl_arbiter: str) -> TrafficNetworkConfig:
        """The network with one of the arbiters. Raises ConfigError."""
        if vl_arbiter not in VL_ARBITERS:
            raise ConfigError(f"vl_arbiter = {vl_arbiter!r}: one of {', '.join(sorted(VL_ARBITERS))}")
        router = RouterConfig(link=LinkConfig(flit_bits=64, vls=self.vls), vl_arbiter=vl_arbiter)
        network = named_network(self.network, router)
        return TrafficNetworkConfig(network=network, classes=2, agents=bool(self.weights))

    def table(self, vl_arbiter: str) -> list[tuple[int, int]]:
        """Rows (VL, weight) of every VL arbiter; none where they keep what reset gave them."""
        half = self.system(vl_arbiter).network.router.data_vls // 2
        return weight_rows(self.weights, lanes=half, vl_arbiter=vl_arbiter, packet_flits=self.packet_flits)

    def classes(self, setting: str) -> list[ClassSetup]:
        """The well-behaved class and the flood in one of the settings; alone without the flood."""
        half = self.system(self.vl_arbiters[0]).network.router.data_vls // 2
        well = ClassSetup(load=self.load, packet_flits=self.packet_flits, vl_count=half)
        flood = ClassSetup(
            load=self.flood, packet_flits=self.packet_flits, pattern="fixed", node=0, service_level=1,
            vl_first=half if setting == "own VLs" else 0, vl_count=half,
        )  # fmt: skip
        return [well] if setting == "alone" else [well, flood]


class VlIsolation(TrafficExperiment):
    """A well-behaved class next to one that floods."""

    name = "vl-isolation"
    asks = "Is a class that behaves left alone by one that floods the network, if it has virtual lanes of its own?"
    source = "Dally, Virtual-Channel Flow Control, IEEE Trans. Parallel and Distributed Systems 3(2), 1992"
    entry = MEASURE
    Parameters = VlIsolationParameters

    def points(self, parameters: VlIsolationParameters, size: Size) -> list[Point]:
        """A point for each arbiter and setting."""
        warmup, window = WARMUP_CYCLES[size], WINDOW_CYCLES[size]
        traffic = parameters.system(parameters.vl_arbiters[0]).traffic
        for setting in SETTINGS:
            check_traffic(parameters.classes(setting), traffic, window_cycles=window)
        return [
            Point(
                label=f"{arbiter}, {setting}",
                parameters={**parameters.model_dump(mode="json"), "vl_arbiter": arbiter, "setting": setting},
                spec={
                    "classes": [one.model_dump(mode="json") for one in parameters.classes(setting)],
                    "table": parameters.table(arbiter),
                    "warmup_cycles": warmup,
                    "window_cycles": window,
                    "limit_cycles": (warmup + window) // 20 + DRAIN_PACKETS * parameters.packet_flits,
                },
                workload="both classes",
            )
            for arbiter in parameters.vl_arbiters
            for setting in SETTINGS
        ]

    def system(self, parameters: VlIsolationParameters, point: Point) -> TrafficNetworkConfig:
        """The network with the point's arbiter."""
        return parameters.system(point.parameters["vl_arbiter"])

    def claims(self, parameters: VlIsolationParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: VLs of its own keep the well-behaved class from harm, and nothing else does."""
        own, same = (
            [one.results for one in outcomes if one.point.parameters["setting"] == setting]
            for setting in ("own VLs", "same VLs")
        )
        return [
            Claim.every(
                "on VLs of its own the well-behaved class is not saturated, and gets what it offers",
                (
                    not one["class_saturated"][0]
                    and bool(one[f"class_{OFFERED}"][0])
                    and abs(one[f"class_{ACCEPTED}"][0] / one[f"class_{OFFERED}"][0] - 1) <= SAME
                    for one in own
                ),
            ),
            Claim.every(
                "on the flood's VLs the well-behaved class is saturated with it",
                (one["class_saturated"][0] for one in same),
            ),
        ]

    def plot(self, parameters: VlIsolationParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Mean and 99th percentile of the well-behaved class's latency; no bar where it is saturated."""
        axes = figure.add_subplot()
        for place, outcome in enumerate(outcomes):
            mean, p99 = (outcome.results[f"class_latency_{key}_cycles"][0] for key in ("mean", "p99"))
            if mean is not None:
                axes.bar(place - 0.2, mean, width=0.4, color="C0")
                axes.bar(place + 0.2, p99, width=0.4, color="C1")
            else:
                axes.text(
                    place, 0.02, "saturated", rotation=90, ha="center", transform=axes.get_xaxis_transform()
                )
        axes.bar(0, 0, color="C0", label="mean")
        axes.bar(0, 0, color="C1", label="99th percentile")
        if len(outcomes) <= 6:
            labels = [one.point.label.replace(", ", "\n").replace("_", "\n") for one in outcomes]
            axes.set_xticks(range(len(outcomes)), labels)
        else:  # of more than two arbiters: upright, or they would overlap
            labels = [one.point.label for one in outcomes]
            axes.set_xticks(range(len(outcomes)), labels, rotation=90, fontsize="small")
        axes.set_xlim(-0.6, len(outcomes) - 0.4)
        axes.set_ylabel("latency (cycles)")
        axes.set_title("Latency of a well-behaved class beside one that floods")
        figure.legend(loc="outside lower center", ncols=2)
