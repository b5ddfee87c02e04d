"""faults: a link of a network, or of a cluster, fails in each of the ways of `FaultKind`, while traffic flows.

The network is a chain of three routers with two nodes each. Every node sends to one node on VL 0, and to another one on
VL 1. The link from router 0 to router 1 fails. One flow of each VL crosses it; the ten others do not.

The cluster is four hosts on one router. Host 0 sends messages to host 1, and host 2 to host 3. The link from card 0 to
the router fails.

Links have the guard of `LinkConfig.guard_cycles`. Errors that come at a rate last for the whole window. The others are
there for `outage_cycles`. In the end the link is sound again, and all flows are looked at once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config, ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.fault_link import FaultKind
from lanikai.hdl.network import chain
from lanikai.hdl.traffic.setup import ClassSetup
from pydantic import Field, FiniteFloat, model_validator

from ...systems.traffic_config import TrafficNetworkConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from .faults_claims import judge
from .faults_plot import draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FLOWS", "Faults", "FaultsParameters"]

KINDS = {
    "none": FaultKind.NONE,
    "errors": FaultKind.ERRORS,
    "drops": FaultKind.DROPS,
    "lost_credits": FaultKind.LOST_CREDITS,
    "extra_credits": FaultKind.EXTRA_CREDITS,
    "stuck": FaultKind.STUCK,
    "dead": FaultKind.DEAD,
    "babble": FaultKind.BABBLE,
}
SYSTEMS = ("network", "cluster")
FLOWS = ((2, 0, 3, 4, 5, 1), (1, 5, 0, 2, 3, 4))
"""The destination of each node, for both classes. Nodes 0 and 1 are at router 0: 0 to 2 and 1 to 5 cross its link."""
CROSSING = ((0, 0), (1, 1))
"""Source and class of the flows that cross the link that fails."""
LINK = ((0, 2, "out"),)
"""The network's link that fails: in a chain with two nodes a router, port 2 leads to the next router."""
CARD_LINK = ((0, 0, "in"),)
"""The cluster's link that fails: from card 0, which is at port 0."""
PACKET_FLITS = 20
LOAD = 0.15
"""Flits a cycle and class of every node: the busiest link carries 0.3."""
FLITS = {"quick": 60_000, "full": 1_000_000}
AFTER_CYCLES = 20_000
"""Cycles of the network's second window, in which the link is sound again."""
CARD_GUARDS = 16
"""Guards of the cluster are so much slower: a packet has 514 flits there, and waits for those of other cards."""
CARD_OUTAGES = 5
"""Outages of the cluster are so much longer: the default is longer than its guard waits."""
MESSAGE_BYTES = 16384
FLIT_BYTES = 8


class FaultsParameters(Config):
    """Parameters of faults."""

    systems: str = Field(
        "network,cluster",
        description="systems in which a link fails",
        json_schema_extra={"range": f"one or more of {', '.join(SYSTEMS)}, separated by commas"},
    )
    kinds: str = Field(
        "none,errors,drops,lost_credits,extra_credits,stuck,dead,babble",
        description="kinds of faults; none is always there, to compare with",
        json_schema_extra={"range": f"one or more of {', '.join(KINDS)}, separated by commas"},
    )
    rate: FiniteFloat = Field(
        0.003, gt=0, lt=1, description="chance of a fault in the network: of each flit or credit, or in each cycle",
        json_schema_extra={"range": "above 0, below 1"},
    )  # fmt: skip
    cluster_rate: FiniteFloat = Field(
        0.0001, gt=0, lt=1, description="the same in the cluster, where a packet has 514 flits",
        json_schema_extra={"range": "above 0, below 1"},
    )  # fmt: skip
    babble: FiniteFloat = Field(
        0.5, gt=0, lt=1, description="flits a cycle of a babbling end", json_schema_extra={"range": "above 0, below 1"}
    )  # fmt: skip
    outage_cycles: int = Field(
        6000, ge=100, le=1_000_000, description="how long a link is stuck, dead or babbling, cycles"
    )
    guard_cycles: int = Field(
        512,
        ge=0,
        le=1 << 16,
        description=f"`LinkConfig.guard_cycles` of the network, a {CARD_GUARDS}th of the cluster's; 0: no guard",
    )
    flits: int = Field(0, ge=0, le=10**9, description="flits that a system carries; 0: those of the size")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, known in (("systems", SYSTEMS), ("kinds", tuple(KINDS))):
            for one in self._list(name):
                if one not in known:
                    raise ValueError(f"{name}: {one!r} is none of {', '.join(known)}")
            if len(set(self._list(name))) < len(self._list(name)):
                raise ValueError(f"{name} = {getattr(self, name)!r}: one is named twice")
        return self

    def _list(self, name: str) -> list[str]:
        return [one.strip() for one in getattr(self, name).split(",")]

    @cached_property
    def all_kinds(self) -> list[str]:
        """The names in `kinds`, after `none`."""
        return ["none", *(kind for kind in self._list("kinds") if kind != "none")]

    @cached_property
    def all_systems(self) -> list[str]:
        """The names in `systems`."""
        return self._list("systems")

    @cached_property
    def network(self) -> TrafficNetworkConfig:
        """The network."""
        link = LinkConfig(
            flit_bits=64,
            vls=2,
            restart=True,
            guard_cycles=self.guard_cycles,
            guard_packet_flits=2 * PACKET_FLITS,
        )
        network = chain(3, router=RouterConfig(link=link, ports=4), nodes=(2, 2, 2))
        return TrafficNetworkConfig(
            network=network, classes=2, composed=False, faults=LINK, watchdog_cycles=0
        )

    @cached_property
    def cluster(self) -> Any:
        """The cluster."""
        from ...systems.cluster import cluster_preset

        preset = cluster_preset("lanai4", nodes=4)
        link = preset.nic.link.replace(guard_cycles=CARD_GUARDS * self.guard_cycles)
        return preset.replace(
            router=preset.router.replace(link=link), nic=preset.nic.replace(link=link),
            composed=False, faults=CARD_LINK,
        )  # fmt: skip

    def setup(self, kind: str, system: str, *, window: int) -> dict[str, int]:
        """The fields of the `FaultSetup` of a point. `window`: cycles of the network's window; of the cluster, where
        the end of the last message ends the fault, about those of the run."""
        rate = self.babble if kind == "babble" else self.rate if system == "network" else self.cluster_rate
        start, length = 0, window if system == "network" else 0
        if KINDS[kind] in (FaultKind.STUCK, FaultKind.DEAD, FaultKind.BABBLE):
            times = 1 if system == "network" else CARD_OUTAGES
            start, length = window // 4, self.outage_cycles * times
        return {"kind": KINDS[kind], "rate": max(1, int(rate * 2**32)), "start": start, "length": length}


class Faults(Experiment):
    """A link that fails, in all ways, under traffic."""

    name = "faults"
    asks = "If a link fails, do all others go on, is nothing corrupt delivered as good, and is every loss counted?"
    source = "the project's own: docs/faults.md"
    entry = "lanikai.sim.experiments.faults.measure:measure"
    Parameters = FaultsParameters

    def points(self, parameters: FaultsParameters, size: Size) -> list[Point]:
        """A point for each system and kind of fault."""
        flits = parameters.flits or FLITS[size]
        window = int(flits / (2 * LOAD * len(FLOWS[0])))
        if "network" in parameters.all_systems and window < 4 * parameters.outage_cycles:
            raise ConfigError(
                f"flits = {flits}: a window of {window} cycles in the network; at least four times outage_cycles = "
                f"{parameters.outage_cycles}"
            )
        messages = max(4, flits // 2 * FLIT_BYTES // MESSAGE_BYTES)
        work: dict[str, dict[str, Any]] = {
            "network": {"window_cycles": window, "after_cycles": AFTER_CYCLES, "classes": self._classes()},
            "cluster": {"messages": messages, "message_bytes": MESSAGE_BYTES},
        }
        # A flow of GM alone sends 4096 bytes in 1584 cycles.
        windows = {"network": window, "cluster": int(messages * MESSAGE_BYTES * 1584 / 4096)}
        return [
            Point(
                label=f"{system}, {kind.replace('_', ' ')}",
                parameters={**parameters.model_dump(mode="json"), "system": system, "kind": kind},
                spec={
                    "system": system,
                    "fault": parameters.setup(kind, system, window=windows[system]),
                    "drain_cycles": 20_000 + 4 * parameters.guard_cycles,
                    **work[system],
                },
                workload=system,
            )
            for system in parameters.all_systems
            for kind in parameters.all_kinds
        ]

    @staticmethod
    def _classes() -> list[dict[str, Any]]:
        return [
            ClassSetup(
                load=LOAD, packet_flits=PACKET_FLITS, pattern="table", table=table, vl_first=vl
            ).model_dump(mode="json")
            for vl, table in enumerate(FLOWS)
        ]

    def system(self, parameters: FaultsParameters, point: Point) -> Any:
        """The network or the cluster."""
        return parameters.network if point.spec["system"] == "network" else parameters.cluster

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Results of a network are packets, those of a cluster messages.

        - `offered`, `delivered`: of the flows that cross the link; `others_offered`, `others_delivered`: of the others.
        - `wrong`: delivered with a byte that was not sent.
        - `seen`: errors at sinks, packets dropped by routers, failures that a program is told.
        - `seen_behind`: those of the errors that sinks at router 0 saw. What has crossed the link comes there only if
          it goes back.
        - `others_rate`: flits or bytes a cycle of the others while the fault may be there.
        - `after_offered`, `after_delivered`: of all flows when the link is sound again.
        - `dropped_packets`: packets that routers dropped. `begun_anew`, `refused`: counts of their guards.
        - `card_begun_anew`: the count of the guard of the card at the link (cluster).
        - The counts of the link that fails (`FAULT_COUNTS`).
        """
        return dict(measured)

    def claims(self, parameters: FaultsParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims of `judge`."""
        return judge(outcomes, vls=parameters.network.network.router.link.vls)

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Lost packets and messages of each point, beside what the others got."""
        draw(outcomes, figure)
