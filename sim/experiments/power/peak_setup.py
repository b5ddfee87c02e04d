"""The set-up of peak-power: parameters, the budget, and how each scheme divides it (yum-2006 5.1, 7.4).

Choices where the document is silent or does not agree with itself, all made before the first run:

- *The clock.* 500 cycles are 1.88 us in 7.4, so a cycle is 3.76 ns. A flit of 128 bits on a link of 2.5 Gbit/s (6.1)
  takes 51.2 ns. Both cannot be. Energies are those of the link of 2.5 Gbit/s, as table 1 has no other. The cycle is
  3.76 ns, as in power-load: power is then of the order of the document's. Budget and power both go by 1 / `cycle_ns`,
  so no claim depends on it.
- *The budget* is what E_packet says of 50% injection without control: the mean over all pairs of nodes. A claim holds
  the measured mean against it. It covers routers and the links between them, as E_packet does, and as power is
  measured. What adapters take is measured beside it (`adapters_w`): the document has no numbers of them.
- *Shares.* Real time and best effort have parts of the budget by the traffic's ratio.
- *Real time.* Each router has an equal part of its budget. A connection takes (E_router + E_link) r / f at each router
  on its way. The last router sends to no other one, so connections take a little less than what they are charged.
- *Best effort.* T is the window of 500 cycles. Each adapter has an equal part of best effort's energy in T. The wait in
  the adapter is chosen so that L_packet to the nearest node is T. With a shorter one a packet's energy would come back
  before the window is over, and as much again could be sent in it.
- *PowerHerd.* Each router has an equal part of the budget for any 500 cycles, and lends a sixteenth of it to a
  neighbour at a time. The document gives neither.
- *Credits.* Peak power control stands on the credits of congestion control (5), so it has them, too.
- *Admission* is part of peak power control alone: the other schemes send all streams.
- *Streams* are ON/OFF sources of 2% to 4% of a link. The document does not say which source it took here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self

from lanikai.hdl.config import Config
from lanikai.hdl.network import Network
from pydantic import Field, FiniteFloat, model_validator

from ...admission.config import AdmissionConfig
from ...admission.ledger import power_units
from ...energy.budget import adapter_words, hop_prices_pj, mean_flit_pj
from ...energy.table import published_energy
from ...systems.adapters.config import AdapterNetworkConfig
from ..qos.messages import PACKET_FLITS
from ..qos.mix import BEST_EFFORT, CLASSES, Mix, mixed_network

__all__ = ["BUDGET_LOAD", "SCHEMES", "WINDOW_CYCLES", "PeakPowerParameters"]

Size = Literal["quick", "full"]
SCHEMES = ("none", "congestion", "power", "power_herd")
"""No control; credits; peak power control (with credits); PowerHerd. None, CC, PC and PH in the document's figures."""
BUDGET_LOAD = 0.5
"""The injection whose mean power is the budget (7.4)."""
WINDOW_CYCLES = 500
"""T, and the window that power is averaged over (7.4)."""
SHARE_PART = 16
"""A router lends this part of its budget at a time."""
STREAM_UNITS = (20, 25, 30, 35, 40)
LINK_UNITS = 1020
DATA_VLS = 15
NS_PER_S = 1e9
J_PER_PJ = 1e-12
PJ_PER_NJ = 1e3
TRAFFIC_CYCLES = {"quick": (5_000, 15_000), "full": (50_000, 200_000)}
"""Warm-up and measured time."""
LOADS = {"quick": [0.5, 0.7], "full": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]}
REAL_TIME_SHARES = {"quick": [0.5], "full": [0.5, 0.0, 1.0]}


class PeakPowerParameters(Config):
    """Parameters of peak-power."""

    network: str = Field("mesh4x4", description="a mesh", json_schema_extra={"range": "mesh2x2 to mesh32x32"})
    schemes: list[str] = Field(
        list(SCHEMES),
        min_length=1,
        description="schemes",
        json_schema_extra={"range": f"list of one or more names: {', '.join(SCHEMES)}"},
    )
    loads: list[FiniteFloat] = Field(
        [],
        max_length=64,
        description="injection, real time and best effort together, flits a node and cycle; empty: those of the size",
        json_schema_extra={"range": "list of loads, each above 0 and at most 1"},
    )
    real_time_shares: list[FiniteFloat] = Field(
        [],
        max_length=16,
        description="parts of the load that are real time; empty: those of the size",
        json_schema_extra={"range": "list of parts, each 0 to 1"},
    )
    credits: int = Field(200, ge=1, le=1024, description="credits of best effort of each host")
    cycle_ns: float = Field(
        3.76,
        gt=0,
        le=1e6,
        description="length of a cycle, ns",
        json_schema_extra={"range": "above 0, at most 1000000"},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for scheme in self.schemes:
            if scheme not in SCHEMES:
                raise ValueError(f"schemes: {scheme!r}: one of {', '.join(SCHEMES)}")
        for load in self.loads:
            if not 0 < load <= 1:
                raise ValueError(f"loads: {load:g}: above 0 and at most 1")
        for share in self.real_time_shares:
            if not 0 <= share <= 1:
                raise ValueError(f"real_time_shares: {share:g}: 0 to 1")
        if not self.network.startswith("mesh"):
            raise ValueError(f"network = {self.network!r}: a mesh")
        return self

    @cached_property
    def plain_system(self) -> AdapterNetworkConfig:
        """The network without power control. Raises ConfigError."""
        return self._counted()

    def _counted(self, **others: Any) -> AdapterNetworkConfig:
        """A network whose routers and adapters count their activity."""
        return mixed_network(self.network, activity_counters=True, adapter_counters=True, **others)

    @property
    def _network(self) -> Network:
        return self.plain_system.network

    @cached_property
    def prices_pj(self) -> tuple[int, int]:
        """E_router and E_link."""
        return hop_prices_pj(self._network, published_energy(), packet_flits=PACKET_FLITS)

    @cached_property
    def budget_pj(self) -> float:
        """The budget of the whole network for a cycle, pJ."""
        flit = mean_flit_pj(self._network, published_energy(), packet_flits=PACKET_FLITS)
        return BUDGET_LOAD * len(self._network.nodes) * flit

    @property
    def budget_w(self) -> float:
        """The budget, W."""
        return self.budget_pj / PJ_PER_NJ / self.cycle_ns

    def power_units(self, share: float) -> int:
        """Units of bandwidth that each router may promise to real time that is `share` of the traffic."""
        watts = share * self.budget_w / self._network.routers
        joules = sum(self.prices_pj) * J_PER_PJ
        return power_units(
            watts=watts, flit_joules=joules, flit_hz=NS_PER_S / self.cycle_ns, link_units=LINK_UNITS
        )

    def adapter_budget_pj(self, share: float) -> int:
        """The energy budget of each adapter for best effort that is `share` of the traffic, pJ."""
        return int(share * self.budget_pj * WINDOW_CYCLES / len(self._network.nodes))

    def herd(self) -> dict[str, Any]:
        """Fields of routers with PowerHerd: credits are pJ."""
        network = self._network
        router, link = self.prices_pj
        between = {port for _, port in network.neighbours}
        budget = int(self.budget_pj * WINDOW_CYCLES / network.routers)
        return {
            "ports": network.router.ports,
            "power_budget": budget,
            "power_weights": tuple(router + link * (port in between) for port in range(network.router.ports)),
            "power_window_cycles": WINDOW_CYCLES,
            "power_share": budget // SHARE_PART,
        }

    def system(self, scheme: str) -> AdapterNetworkConfig:
        """The network of a scheme. Raises ConfigError."""
        if scheme == "power":
            return self._counted(power_control=True)
        if scheme == "power_herd":
            return self._counted(**self.herd())
        return self.plain_system

    def mix(self, scheme: str, *, load: float, real_time_share: float, size: Size, sample_cycles: int) -> Mix:
        """The traffic of a point, and the controls on it. Raises ConfigError."""
        warmup, window = TRAFFIC_CYCLES[size]
        controlled = scheme == "power"
        # VLs by the traffic's ratio; each class that is there has one at least.
        lanes = min(max(round(real_time_share * DATA_VLS - 0.25), 1), DATA_VLS - (real_time_share < 1))
        held = controlled and real_time_share < 1
        return Mix(
            load=load,
            real_time_share=real_time_share,
            real_time="on_off",
            stream_units=STREAM_UNITS,
            on_cycles=2_000,
            off_cycles=2_000,
            packet_flits=PACKET_FLITS,
            admission=controlled and real_time_share > 0,
            admission_config=AdmissionConfig(
                link_units=LINK_UNITS,
                real_time_vls=tuple(range(lanes)),
                answer_cycles=1_000_000,
                refresh_cycles=1 << 40,
                lease_cycles=5 << 40,
            ),
            power_units=self.power_units(real_time_share) if controlled else None,
            credits="global" if scheme in ("congestion", "power") else "none",
            credit_count=self.credits,
            warmup_cycles=warmup,
            window_cycles=window,
            interval_cycles=sample_cycles,
            setup=tuple(
                tuple(
                    adapter_words(
                        self._network,
                        published_energy(),
                        node=node,
                        budget_pj=self.adapter_budget_pj(1 - real_time_share),
                        hold_cycles=WINDOW_CYCLES,
                        classes=1 << CLASSES.index(BEST_EFFORT),
                        packet_flits=PACKET_FLITS,
                    )
                )
                for node in range(len(self._network.nodes))
            )
            if held
            else (),
        )
