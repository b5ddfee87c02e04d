"""The cases that `lanikai bench` measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanikai.hdl.config import HcaConfig, RouterConfig, preset
from lanikai.hdl.network import Network
from lanikai.hdl.traffic.setup import ClassSetup

from ..names import unknown

__all__ = ["BUFFER_FLITS", "CASES", "PACKET_FLITS", "VLS", "BenchCase", "find_cases"]

LOADS = (0.1, 0.3, 0.5, 0.7)
PACKET_FLITS = 40
VLS = 15
"""VLs that packets are spread over; VL 15 is management's."""
BUFFER_FLITS = 10
"""Flits of a VL's buffer, at inputs and outputs."""
CLUSTER = "gm-cluster"
"""Name of the case of the GM cluster; with a number, of one of so many nodes."""
CLUSTERS = (16, 64, 128)
"""Nodes of larger clusters."""
SWITCH_NODES = 8
"""Nodes on a switch of a larger cluster; one more switch joins all of those."""
HOSTS = "hosts-"
"""Beginning of a case's name before a network's: every message by a host in Python."""
ADAPTERS = "adapters-"
"""Beginning of a case's name before a network's: the same through host channel adapters."""
WARMUP_CYCLES = 5000


@dataclass(frozen=True, kw_only=True)
class BenchCase:
    """One model, at one load.

    - `model`: names the network or cluster. `hosts-mesh4x4` is the network `mesh4x4`, whose every message a coroutine
      in Python posts, and another receives. `adapters-mesh4x4` has a `yum2006` adapter at each node, whose messages'
      bytes are checked.
    - `load`: flits a node and cycle; None for a cluster at full rate.
    - `cycles`: length of a stretch.
    - `large`: it takes minutes, and is run when it is named or with all.
    """

    model: str
    load: float | None
    cycles: int
    large: bool = False

    @property
    def hosts(self) -> bool:
        """Whether messages are posted and received in Python."""
        return self.model.startswith(HOSTS)

    @property
    def adapters(self) -> bool:
        """Whether messages go through host channel adapters, in Python as well."""
        return self.model.startswith(ADAPTERS)

    @property
    def name(self) -> str:
        """The name of the case: `mesh4x4@0.3`."""
        return self.model if self.load is None else f"{self.model}@{self.load:g}"

    def system(self) -> Any:
        """The system that it runs on (`systems.base.SystemConfig`)."""
        if self.load is None:
            from ..experiments.measure.gm_hosts import gm_cluster

            config = gm_cluster()
            if not (nodes := self.model.removeprefix(CLUSTER)):
                return config.replace(skip_quiet=False)
            return config.on(_switches(int(nodes), config.router))
        from ..experiments.measure.named_networks import named_network

        if self.adapters:
            from ..systems.adapters.config import AdapterNetworkConfig

            network = named_network(self.model.removeprefix(ADAPTERS), preset(RouterConfig, "yum2006"))
            return AdapterNetworkConfig.on(network, preset(HcaConfig, "yum2006"))
        from ..systems.message_config import MessageNetworkConfig
        from ..systems.traffic_config import TrafficNetworkConfig

        base = preset(RouterConfig, "lanai4")
        # Nodes that make traffic are reset with their routers.
        link = base.link.replace(flit_bits=128, vls=16, rate_num=1, rate_den=1, restart=False)
        router = base.replace(link=link, input_buffer_flits=BUFFER_FLITS, output_buffer_flits=BUFFER_FLITS)
        network = named_network(self.model.removeprefix(HOSTS), router)
        if self.hosts:
            return MessageNetworkConfig(network=network, ring_slots=1024)
        return TrafficNetworkConfig(network=network)

    def job(self, runs: int) -> tuple[str, dict[str, Any]]:
        """Entry and spec of its run."""
        spec: dict[str, Any] = {"runs": runs, "cycles": self.cycles, "warmup_cycles": WARMUP_CYCLES}
        if self.load is None:
            # Of a large one, so that messages arrive in a short stretch.
            spec["message_bytes"] = 65536 if self.model == CLUSTER else 4096
            return "lanikai.sim.speed.points:cluster_rate", spec
        if self.adapters:
            spec |= {"load": self.load, "packet_flits": PACKET_FLITS, "vls": VLS}
            return "lanikai.sim.speed.adapter_points:adapters_rate", spec
        if self.hosts:
            spec |= {"load": self.load, "packet_flits": PACKET_FLITS, "vls": VLS}
            return "lanikai.sim.speed.host_points:hosts_rate", spec
        setup = ClassSetup(load=self.load, packet_flits=PACKET_FLITS, vl_count=VLS)
        spec["classes"] = [setup.model_dump(mode="json")]
        return "lanikai.sim.speed.points:network_rate", spec


def _switches(nodes: int, router: RouterConfig) -> Network:
    """Switches of `SWITCH_NODES` nodes each, all of them on one that has no node."""
    leaves = nodes // SWITCH_NODES
    return Network(
        routers=leaves + 1,
        nodes=[divmod(node, SWITCH_NODES) for node in range(nodes)],
        links=[((leaf, SWITCH_NODES), (leaves, leaf)) for leaf in range(leaves)],
        router=router.replace(ports=max(SWITCH_NODES + 1, leaves)),
        node_buffer_flits=router.input_buffer_flits,
    )


def _network(model: str, cycles: int) -> list[BenchCase]:
    return [BenchCase(model=model, load=load, cycles=cycles) for load in LOADS]


CASES: tuple[BenchCase, ...] = (
    *_network("mesh4x4", 20_000),
    *_network("mesh5x5", 12_000),
    *_network("mesh8x8", 5_000),
    *_network("router8", 40_000),
    *_network("hosts-mesh4x4", 20_000),
    *(BenchCase(model="adapters-mesh4x4", load=load, cycles=20_000) for load in LOADS[:3]),
    BenchCase(model=CLUSTER, load=None, cycles=100_000),
    BenchCase(model="mesh16x16", load=0.1, cycles=2_000),
    BenchCase(model="mesh32x32", load=0.1, cycles=500, large=True),
    *(
        BenchCase(model=f"{CLUSTER}{nodes}", load=None, cycles=640_000 // nodes, large=nodes > 16)
        for nodes in CLUSTERS
    ),
)
"""All cases; a stretch lasts about half a second, of a large one some seconds."""


def find_cases(names: list[str], *, full: bool = False) -> list[BenchCase]:
    """The cases that `names` name, each a case or a model. For no names, those that are not large; all with `full`.
    Raises UserError."""
    found = []
    for name in names:
        mine = [case for case in CASES if name in (case.name, case.model)]
        if not mine:
            valid = [*dict.fromkeys(case.model for case in CASES), f"{CASES[0].model}@LOAD"]
            raise unknown("case", name, valid)
        found += [case for case in mine if case not in found]
    return found or [case for case in CASES if full or not case.large]
