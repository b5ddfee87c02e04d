"""collectives: incast, all-reduce (ring, recursive doubling) and all-to-all, over a network's messages or over MPI.

Every node has as many random numbers. The operation moves and adds them, and what each node has at the end is compared
with what numpy makes of all inputs. Over a network a host answers within a few cycles; its messages name the numbers
that they carry, and the nodes check every bit of every flit. Over MPI the numbers themselves are in the messages.

**The bound** is what the link of the busiest node needs: its flits, a cycle each, over a network. Over MPI it is the
bytes of the numbers alone, at the link's rate, as headers and credits are of GM's making.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from lanikai.hdl.config import ConfigError
from pydantic import Field, model_validator

from ...names import unknown
from ...units import microseconds
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from .algorithms import OPERATIONS, Port, Values, expected
from .network_setup import NetworkSetup, lanes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster
    from ...systems.message_network import MessageNetwork

__all__ = ["Collectives", "CollectivesParameters"]

ELEMENTS = {"quick": 256, "full": 8192}


class CollectivesParameters(NetworkSetup):
    """Parameters of collectives."""

    operations: list[str] = Field(
        list(OPERATIONS),
        min_length=1,
        max_length=len(OPERATIONS),
        description="operations, a point each",
        json_schema_extra={"range": f"list of some of {', '.join(OPERATIONS)}"},
    )
    over: Literal["network", "mpi"] = Field(
        "network", description="messages of a network's hosts, or MPI on the cluster of 4 nodes"
    )
    elements: int = Field(
        0, ge=0, le=1 << 20, description="numbers of 8 bytes that each node has; 0: those of the size"
    )
    packet_flits: int = Field(40, ge=2, le=1023, description="longest packet, header included, flits")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.operations:
            if name not in OPERATIONS:
                raise ConfigError(str(unknown("operation", name, OPERATIONS)))
        if len(set(self.operations)) < len(self.operations):
            raise ValueError(f"operations = {self.operations}: one is named twice")
        header = self.message_network().traffic.link.header_flits
        if self.packet_flits <= header:
            raise ConfigError(f"packet_flits = {self.packet_flits}: more than the header's {header}")
        if self.over == "mpi" and (
            idle := [
                name
                for name in (*NetworkSetup.model_fields, "packet_flits")
                if getattr(self, name) != type(self).model_fields[name].default
            ]
        ):
            raise ConfigError(f"{idle[0]}: is not used with over = mpi: leave it out")
        return self


class Collectives(Experiment):
    """Collective operations."""

    name = "collectives"
    asks = "How long do incast, all-reduce and all-to-all take, and how far is that from the busiest link's time?"
    source = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, 2005"
    entry = "lanikai.sim.experiments.workloads.collectives:measure"
    Parameters = CollectivesParameters
    by_flow = ("node_*",)
    element = "node"

    def points(self, parameters: CollectivesParameters, size: Size) -> list[Point]:
        """A point for each operation. Raises ConfigError for fewer numbers than nodes."""
        elements = parameters.elements or ELEMENTS[size]
        nodes = parameters.message_network().traffic.nodes if parameters.over == "network" else 4
        if elements < nodes:
            raise ConfigError(f"elements = {elements}: at least {nodes}, a number for each node")
        if elements % nodes and "all_to_all" in parameters.operations:
            raise ConfigError(
                f"elements = {elements}: a multiple of {nodes} nodes, as all_to_all gives each as many"
            )
        used = {} if parameters.over == "mpi" else parameters.model_dump(mode="json")
        return [
            Point(
                label=operation,
                parameters={
                    **{key: value for key, value in used.items() if key != "operations"},
                    "over": parameters.over,
                    "operation": operation,
                    "elements": elements,
                },
                spec={
                    "operation": operation,
                    "over": parameters.over,
                    "elements": elements,
                    "packet_flits": parameters.packet_flits,
                },
                workload="numbers",
            )
            for operation in parameters.operations
        ]

    def system(self, parameters: CollectivesParameters, point: Point) -> Any:
        """The network with a host at each node, or the cluster that MPI's other experiments have."""
        if parameters.over == "network":
            return parameters.message_network()
        from ..measure.gm_hosts import gm_cluster

        return gm_cluster()

    def results(
        self, parameters: CollectivesParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Time of the operation, its bound, and how many numbers are wrong. Flits are counted over a network alone."""
        cycles, bound, hz = measured["cycles"], measured["bound_cycles"], measured["clock_hz"]
        return {
            "completion_cycles": cycles,
            "completion_us": microseconds(cycles, hz) if hz else None,
            "bound_cycles": bound,
            "bound_share": bound / cycles,
            "wrong_values": measured["wrong_values"],
            "checked_values": measured["checked_values"],
            "node_cycles": measured["node_cycles"],
            "node_sent_flits": measured["node_sent_flits"],
            "node_received_flits": measured["node_received_flits"],
            "node_sent_bytes": measured["node_sent_bytes"],
            "node_received_bytes": measured["node_received_bytes"],
        }

    def claims(self, parameters: CollectivesParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """All numbers are right, and no operation beats its busiest link."""
        found = [one.results for one in outcomes]
        return [
            Claim.every(
                "every number at every node is right",
                (one["wrong_values"] == 0 < one["checked_values"] for one in found),
            ),
            Claim.every(
                "no operation takes less time than the link of its busiest node needs",
                (one["completion_cycles"] >= one["bound_cycles"] > 0 for one in found),
            ),
        ]

    def plot(self, parameters: CollectivesParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw the time of each operation, and its bound."""
        axes = figure.add_subplot()
        names = [one.point.label.replace("_", " ") for one in outcomes]
        axes.bar(names, [one.results["completion_cycles"] for one in outcomes], label="time")
        bounds = [one.results["bound_cycles"] for one in outcomes]
        what = "flits" if parameters.over == "network" else "numbers"
        axes.bar(names, bounds, 0.5, label=f"{what} on the busiest link")
        axes.set_ylabel("cycles")
        axes.legend()
        where = parameters.network if parameters.over == "network" else "MPI on 4 nodes"
        elements = outcomes[0].point.parameters["elements"]
        axes.set_title(f"{elements} numbers of 8 bytes a node, {where}")


async def measure(system: MessageNetwork | Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    if spec["over"] == "network":
        return await _over_network(system, spec)  # type: ignore[arg-type]
    return await _over_mpi(system, spec)  # type: ignore[arg-type]


def _inputs(seed: int, nodes: int, elements: int) -> list[Values]:
    draw = np.random.default_rng(seed)
    return [draw.integers(-(1 << 40), 1 << 40, elements) for _ in range(nodes)]


def _judged(operation: str, inputs: list[Values], outputs: Sequence[Values]) -> dict[str, int]:
    """How many numbers were compared, and how many are wrong. One that is missing is wrong."""
    wrong = checked = 0
    for rank, found in enumerate(outputs):
        wanted = expected(operation, rank, inputs)
        checked += len(wanted)
        wrong += int((found != wanted).sum()) if len(found) == len(wanted) else len(wanted)
    return {"wrong_values": wrong, "checked_values": checked}


async def _over_network(network: MessageNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    from .ports import NetworkPort, Wire

    await network.start()
    wire, nodes = Wire(), len(network.hosts)
    ports = [
        NetworkPort(
            host,
            network,
            wire,
            packet_flits=spec["packet_flits"],
            vls=lanes(network.config.network.router, 1),
        )
        for host in network.hosts
    ]
    inputs = _inputs(network.seed, nodes, spec["elements"])
    outputs: list[Values] = [np.empty(0, np.int64)] * nodes
    ends = [0] * nodes
    done, left = network.clock.flag(), nodes
    began = network.now

    async def run(port: Port) -> None:
        nonlocal left
        outputs[port.rank] = await OPERATIONS[spec["operation"]](port, inputs[port.rank])
        ends[port.rank] = network.now - began
        left -= 1
        network.progress(1 - left / nodes, f"{nodes - left} of {nodes} nodes")
        if not left:
            done.set()

    for port in ports:
        network.clock.spawn(run(port), f"node {port.rank}")
    await done.wait()
    await network.settle()
    sent, received = [port.sent_flits for port in ports], [port.received_flits for port in ports]
    return {
        "cycles": max(ends),
        "bound_cycles": max(sent + received),
        "clock_hz": None,
        "node_cycles": ends,
        "node_sent_flits": sent,
        "node_received_flits": received,
        "node_sent_bytes": [port.sent_bytes for port in ports],
        "node_received_bytes": [port.received_bytes for port in ports],
        **_judged(spec["operation"], inputs, outputs),
    }


async def _over_mpi(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    from ...host.mpi.world import run_ranks
    from ..measure.hosts import open_programs, start_hosts
    from .ports import MpiPort

    hosts = start_hosts(cluster, "mpi")
    worlds = await open_programs(cluster, "mpi", hosts)
    ports = [MpiPort(world) for world in worlds]
    inputs = _inputs(cluster.seed, len(worlds), spec["elements"])
    ends = [0] * len(worlds)
    begins = [0] * len(worlds)

    async def main(world: Any) -> Values:
        await world.Barrier()
        begins[world.rank] = cluster.clock.cycle
        found = await OPERATIONS[spec["operation"]](ports[world.rank], inputs[world.rank])
        ends[world.rank] = cluster.clock.cycle
        return found

    outputs = await run_ranks(cluster.clock, worlds, main)
    sent, received = [port.sent_bytes for port in ports], [port.received_bytes for port in ports]
    link = cluster.config.nic.link
    return {
        "cycles": max(ends) - min(begins),
        "bound_cycles": ceil(max(sent + received) / (link.flit_bytes * link.rate)),
        "clock_hz": cluster.config.nic.clock_hz,
        "node_cycles": [end - min(begins) for end in ends],
        "node_sent_flits": [None] * len(worlds),
        "node_received_flits": [None] * len(worlds),
        "node_sent_bytes": sent,
        "node_received_bytes": received,
        **_judged(spec["operation"], inputs, outputs),
    }
