"""power-load: the power that the routers and links of a network take, against the load that they carry.

yum-2006 3.4, 5.1 and figure 3. Half of the load is real-time traffic of a constant rate, half is best effort (Poisson),
each on half of the data VLs. Every router counts what costs energy; a reading of all counters every `interval_cycles`
gives the power of that interval. Energies are those of table 1 (`sim/energy/table.py`).

Choices where the document is silent:

- *The clock.* Section 7.4 has 500 cycles in 1.88 us. So a cycle takes 3.76 ns, and a link of a flit a cycle carries
  34 Gbit/s. Its links of 2.5 Gbit/s (6.1) would carry a flit in 13.6 cycles. Energy does not depend on it; power does.
  `cycle_ns` sets it, and the load is in flits a cycle, as in all networks here.
- *The adapters.* The document has them in its energy model without numbers. They are left out here.
- *Links* are those between routers, as in `E_packet` of 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config, ConfigError, RouterConfig, preset
from lanikai.hdl.traffic.setup import ClassSetup
from pydantic import Field, FiniteFloat, model_validator

from ...energy.activity import Activity
from ...energy.budget import mean_flit_pj
from ...energy.table import published_energy
from ...published import source, table
from ...systems.traffic_config import TrafficNetworkConfig
from ..framework.base import Claim, Outcome, Point, Size
from ..measure.named_networks import NETWORKS, named_network
from ..measure.traffic_experiment import TrafficExperiment
from ..measure.traffic_results import ACCEPTED, check_traffic, traffic_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PowerLoad", "PowerLoadParameters"]

LOADS = {"quick": [0.1, 0.3, 0.5, 0.7], "full": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}
WARMUP_CYCLES = {"quick": 5_000, "full": 20_000}
WINDOW_CYCLES = {"quick": 20_000, "full": 200_000}
DRAIN_PACKETS = 40
"""Packet lengths of drain: as in network-load."""
PUBLISHED_NETWORK = "mesh4x4"
"""The network of the document's section 7.4."""
PUBLISHED_LOAD = 0.5
"""The load whose mean power is the budget of the document's section 7.4."""
PROPORTIONAL = 0.05
"""Relative: power over accepted load, of two points. In the quick size, at a load of 0.1, some 800 packets choose their
destinations. Their mean number of routers is within 3% (2 s.d.). Flits under way at the window's ends are 1%."""
ATTOJOULES_PER_NJ = 1e9
PJ_PER_NJ = 1e3


class PowerLoadParameters(Config):
    """Parameters of power-load."""

    network: str = Field(
        "mesh4x4", description="routers and their links", json_schema_extra={"range": NETWORKS}
    )
    loads: list[FiniteFloat] = Field(
        [],
        max_length=64,
        description="offered loads, flits a node and cycle; empty: those of the size",
        json_schema_extra={"range": "list of loads, each above 0 and at most 1"},
    )
    real_time: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="part of the load that is real-time traffic, which is class 0; best effort is class 1",
        json_schema_extra={"range": "above 0 and below 1"},
    )
    packet_flits: int = Field(40, ge=2, le=1023, description="packet length, header included, flits")
    interval_cycles: int = Field(
        500, ge=1, le=200_000, description="cycles from reading to reading; they divide the window"
    )
    cycle_ns: float = Field(
        3.76,
        gt=0,
        le=1e6,
        description="length of a cycle, ns",
        json_schema_extra={"range": "above 0, at most 1000000"},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for load in self.loads:
            if not 0 < load <= 1:
                raise ValueError(f"loads: {load:g}: above 0 and at most 1")
        self.network_config.network.check_routes()
        return self

    @cached_property
    def network_config(self) -> TrafficNetworkConfig:
        """The network, whose routers count their activity. Raises ConfigError."""
        router = preset(RouterConfig, "yum2006").replace(activity_counters=True)
        return TrafficNetworkConfig(network=named_network(self.network, router), classes=2)

    def classes(self, load: float) -> list[ClassSetup]:
        """Real-time traffic, and best effort, of every node at a load."""
        lanes = self.network_config.network.router.data_vls
        first = lanes // 2
        return [
            ClassSetup(
                mode=mode,
                load=load * share,
                packet_flits=self.packet_flits,
                vl_first=vl_first,
                vl_count=vl_count,
                service_level=number,
            )
            for number, (mode, share, vl_first, vl_count) in enumerate(
                (("periodic", self.real_time, 0, first), ("random", 1 - self.real_time, first, lanes - first))
            )
        ]

    def watts(self, activity: Activity, cycles: int) -> float:
        """The power of an activity in so many cycles, W."""
        flit_bits = self.network_config.network.router.link.flit_bits
        attojoules = activity.attojoules(published_energy(), flit_bits=flit_bits)
        return attojoules / ATTOJOULES_PER_NJ / (cycles * self.cycle_ns)

    def expected_nj_per_flit(self) -> float:
        """The energy that a flit takes from source to destination, mean over all pairs of nodes (yum-2006 5.1), nJ."""
        found = mean_flit_pj(self.network_config.network, published_energy(), packet_flits=self.packet_flits)
        return found / PJ_PER_NJ


class PowerLoad(TrafficExperiment):
    """Power against load."""

    name = "power-load"
    asks = "How much power do the routers and links of a network take at a load?"
    source = f"{source('energy')}; yum-2006 5.1, figure 3"
    entry = "lanikai.sim.experiments.power.measure:measure"
    Parameters = PowerLoadParameters

    def points(self, parameters: PowerLoadParameters, size: Size) -> list[Point]:
        """A point for each load. Raises ConfigError for traffic that the window is too short for, and for intervals
        that do not divide it."""
        warmup, window = WARMUP_CYCLES[size], WINDOW_CYCLES[size]
        if window % parameters.interval_cycles:
            raise ConfigError(
                f"interval_cycles = {parameters.interval_cycles}: a number that divides the window of {window} cycles"
            )
        loads = parameters.loads or LOADS[size]
        for load in loads:
            check_traffic(parameters.classes(load), parameters.network_config.traffic, window_cycles=window)
        return [
            Point(
                label=f"load {load:g}",
                parameters={**parameters.model_dump(mode="json", exclude={"loads"}), "load": load},
                spec={
                    "classes": [setup.model_dump(mode="json") for setup in parameters.classes(load)],
                    "warmup_cycles": warmup,
                    "window_cycles": window,
                    "limit_cycles": (warmup + window) // 20 + DRAIN_PACKETS * parameters.packet_flits,
                    "interval_cycles": parameters.interval_cycles,
                },
            )
            for load in loads
        ]

    def system(self, parameters: PowerLoadParameters, point: Point) -> TrafficNetworkConfig:
        """The network."""
        return parameters.network_config

    def results(
        self, parameters: PowerLoadParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Throughput and latency; power in the window.

        - `power_w`, `power_peak_w`: mean, and the largest of an interval.
        - `energy_nj_per_flit`: of a flit that has arrived.
        - `link_part`: the part of the energy that the links take.
        - `balanced`: each flit that was written has been read, has crossed and was written again, in all routers
          together. None where packets were under way at the end.
        """
        intervals = [Activity.from_list(one) for one in measured["intervals"]]
        cycles = parameters.interval_cycles
        found = traffic_results(measured)
        total, whole = Activity.total(intervals), Activity.from_list(measured["whole"])
        power = parameters.watts(total, cycles * len(intervals)) if intervals else None
        link = Activity(link_flits=total.link_flits)
        flits_per_ns = (found[ACCEPTED] or 0) * parameters.network_config.traffic.nodes / parameters.cycle_ns
        return found | {
            "power_w": power,
            "power_peak_w": max((parameters.watts(one, cycles) for one in intervals), default=None),
            "energy_nj_per_flit": power / flits_per_ns if power and flits_per_ns else None,
            "link_part": parameters.watts(link, cycles * len(intervals)) / power if power else None,
            "balanced": None
            if found["saturated"]
            else whole.buffer_writes == whole.buffer_reads == 2 * whole.crossbar_flits > 0,
        }

    def claims(self, parameters: PowerLoadParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: power is proportional to load, as 5.1 says; energies add up."""
        calm = [one.results for one in outcomes if not one.results["saturated"]]
        energies = [float(one["energy_nj_per_flit"] or 0) for one in calm]
        expected = parameters.expected_nj_per_flit()
        half = [
            one.results["power_w"]
            for one in outcomes
            if one.point.parameters["load"] == PUBLISHED_LOAD and one.results["power_w"]
        ]
        budget = table("peak-power")["budget_w"]
        ours = f"{half[0]:.1f} W" if half else "not measured"
        return [
            Claim(
                text=f"power is proportional to the load that is accepted, within {PROPORTIONAL:.0%}",
                holds=min(energies, default=0) > 0
                and max(energies) - min(energies) <= PROPORTIONAL * min(energies),
            ).unless("" if len(energies) > 1 else "fewer than two points are below saturation"),
            Claim.every(
                f"a flit takes what E_packet says for its way, {expected:.2f} nJ, within {PROPORTIONAL:.0%}",
                (abs(energy / expected - 1) <= PROPORTIONAL for energy in energies),
                nothing="no point is below saturation",
            ),
            Claim.every(
                "every flit that routers have written they have read, and as many have crossed",
                (bool(one["balanced"]) for one in calm),
                nothing="no point is below saturation",
            ),
            Claim.unjudged(
                f"at a load of {PUBLISHED_LOAD} the network takes {budget} W",
                f"the document's adapters are in its power, without numbers, and its clock does not fit its links; "
                f"routers and links alone, at {parameters.cycle_ns} ns a cycle: {ours}"
                if parameters.network == PUBLISHED_NETWORK
                else f"it is about {PUBLISHED_NETWORK}, and here it is {parameters.network}",
            ),
        ]

    def plot(self, parameters: PowerLoadParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Mean power and that of the largest interval against accepted load, and E_packet's line."""
        axes = figure.add_subplot()
        rows = sorted(
            (one.results[ACCEPTED], one.results["power_w"], one.results["power_peak_w"])
            for one in outcomes
            if one.results["power_w"]
        )
        if rows:
            loads, means, peaks = zip(*rows, strict=True)
            axes.plot(loads, means, "o-", label="mean of the window")
            axes.plot(loads, peaks, "^", color="C1", label=f"largest of {parameters.interval_cycles} cycles")
            slope = parameters.expected_nj_per_flit() / parameters.cycle_ns
            nodes = parameters.network_config.traffic.nodes
            axes.plot(
                [0, max(loads)],
                [0, max(loads) * nodes * slope],
                color="grey",
                linewidth=0.8,
                label="E_packet",
            )
            axes.legend()
        axes.set_xlabel("accepted load (flits a node and cycle)")
        axes.set_ylabel("power of routers and links (W)")
        axes.set_title(f"Power of {parameters.network}")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
