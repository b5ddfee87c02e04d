"""The coroutines of `faults`, inside the simulation: one for the network, one for the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.fault_link import FaultSetup
from lanikai.hdl.traffic.ports import NODE
from lanikai.hdl.traffic.setup import ClassSetup

from ...host.errors import GmError
from ...systems import fault_ports
from .faults import CROSSING, FLOWS

if TYPE_CHECKING:
    from ...host.gm.port import GmPort
    from ...systems.cluster import Cluster
    from ...systems.traffic_network import Measured, TrafficNetwork

__all__ = ["measure"]

STALL = 160
"""Cycles of 256 in which those sinks give no credit back: they take 0.375 flits a cycle, and are sent 0.3."""
IN_FLIGHT = 4
"""Messages of a flow on their way; its receiver has as many buffers."""


async def measure(system: Any, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    run = _network if spec["system"] == "network" else _cluster
    return await run(system, spec)


def _set(system: Any, spec: Mapping[str, Any], ahead_cycles: int) -> None:
    """Set the fault up. Its start is counted from `ahead_cycles` after the present cycle on."""
    fault = dict(spec["fault"])
    fault["start"] += system.clock.cycle + ahead_cycles
    fault_ports.set_fault(0, FaultSetup(**fault, seed=system.random.getrandbits(31) + 1))


def _arrived(measured: Measured) -> dict[tuple[int, int], tuple[int, int]]:
    """Packets offered and delivered of each flow, by source and class."""
    return {
        (source, number): (
            measured.counts[source][number].offered_packets,
            measured.counts[target][number].latency_packets,
        )
        for number, table in enumerate(FLOWS)
        for source, target in enumerate(table)
    }


async def _network(system: TrafficNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A window with the fault, and one after it."""
    await system.start_nodes()
    # Receivers of the flows that cross are slow, so that buffers on their way fill up and credits matter.
    slow = NODE["SINK"].pack(stall=STALL)
    await system.write([((FLOWS[number][source], NODE["SINK"].offset), slow) for source, number in CROSSING])
    await system.set_classes([ClassSetup(**setup) for setup in spec["classes"]])
    _set(system, spec, system.config.traffic.clear_cycles)
    window, limit = spec["window_cycles"], spec["drain_cycles"]
    measured = await system.measure(warmup_cycles=0, window_cycles=window, limit_cycles=limit, faults=True)
    errors = await system.errors()
    guards, counts = fault_ports.guard_counts(), fault_ports.fault_counts(0)
    dropped = system.dropped
    fault_ports.set_fault(0, FaultSetup())
    after = await system.measure(
        warmup_cycles=0, window_cycles=spec["after_cycles"], limit_cycles=limit, faults=True
    )
    flows, later = _arrived(measured), _arrived(after)
    crossing = [flows[flow] for flow in CROSSING]
    others = [counts for flow, counts in flows.items() if flow not in CROSSING]
    receivers = {
        (FLOWS[number][source], number) for source, number in flows if (source, number) not in CROSSING
    }
    return {
        "offered": sum(offered for offered, _ in crossing),
        "delivered": sum(delivered for _, delivered in crossing),
        "others_offered": sum(offered for offered, _ in others),
        "others_delivered": sum(delivered for _, delivered in others),
        "others_rate": sum(measured.counts[node][number].accepted_flits for node, number in receivers)
        / window,
        "wrong": None,
        # An error of order speaks of packets before it.
        "seen": dropped + sum(n for one in errors for kind, n in one.items() if kind != "order"),
        "seen_behind": sum(n for one in errors[:2] for kind, n in one.items() if kind != "order"),
        "card_begun_anew": None,
        "dropped_packets": dropped,
        "after_offered": sum(offered for offered, _ in later.values()),
        "after_delivered": sum(delivered for _, delivered in later.values()),
        **guards,
        **counts,
    }


class _Flow:
    """Messages from `out` to `into` of the next node, each compared as it comes; those that failed are counted."""

    def __init__(
        self, cluster: Cluster, out: GmPort, into: GmPort, node: int, spec: Mapping[str, Any]
    ) -> None:
        self.clock, self.out, self.into, self.node = cluster.clock, out, into, node
        self.size, self.left = spec["message_bytes"], spec["messages"]
        self.texts = [cluster.random.randbytes(self.size) for _ in range(self.left)]
        self.offered = self.delivered = self.wrong = self.failed = 0
        self.began = self.ended = 0
        self.done = self.clock.flag()

    async def receive(self) -> None:
        """Take messages for ever. A message that was lost leaves a gap: what comes is looked up among all."""
        for _ in range(IN_FLIGHT):
            await self.into.provide_receive_buffer(await self.into.dma_malloc(self.size))
        known = {text: number for number, text in enumerate(self.texts)}
        while True:
            message = await self.into.receive()
            text = message.read()
            number = known.pop(text, None)
            self.wrong += number is None
            self.delivered += number is not None
            self.ended = self.clock.cycle
            await self.into.provide_receive_buffer(message.buffer)

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, a few at a time, and wait until each has arrived or failed."""
        self.began = self.clock.cycle
        buffers = [await self.out.dma_malloc(self.size) for _ in range(IN_FLIGHT)]
        handles: list[Any] = []

        async def end(handle: Any) -> None:
            try:
                await handle.wait()
            except GmError:
                self.failed += 1

        for number, text in enumerate(messages):
            if number >= IN_FLIGHT:
                await end(handles[number - IN_FLIGHT])
            buffer = buffers[number % IN_FLIGHT]
            buffer.write(text)
            self.offered += 1
            handles.append(await self.out.send(buffer, self.size, node=self.node, port=0))
        for handle in handles[-IN_FLIGHT:]:
            await end(handle)
        for buffer in buffers:
            await self.out.dma_free(buffer)

    async def run(self, messages: Sequence[bytes]) -> None:
        """`send`, and then tell it by `done`."""
        await self.send(messages)
        self.done.set()


async def _cluster(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Two flows, one across the link that fails; then a few messages more of both."""
    from ..measure.gm_hosts import start_gm

    programs: list[Any] = []
    hosts = start_gm(cluster, started=programs.append)
    ports = [await host.open_port(0) for host in hosts]
    # The last of the texts are for the link when it is sound again.
    more = {**spec, "messages": spec["messages"] + IN_FLIGHT}
    flows = [_Flow(cluster, ports[i], ports[i + 1], i + 1, more) for i in (0, 2)]
    for flow in flows:
        cluster.clock.spawn(flow.receive(), f"receiver of {flow.node}")
    _set(cluster, spec, 0)
    for flow in flows:
        cluster.clock.spawn(flow.run(flow.texts[: spec["messages"]]), f"sender to {flow.node}")
    for flow in flows:
        await flow.done.wait()
    fault_ports.set_fault(0, FaultSetup())
    crossing, other = flows
    rate = other.delivered * other.size / (other.ended - other.began)
    before = [(flow.offered, flow.delivered, flow.failed) for flow in flows]
    for flow in flows:
        await flow.send(flow.texts[spec["messages"] :])
    counts = fault_ports.fault_counts(0)
    processor = programs[0].processor
    async with processor.step("recv_rearm"):
        link = await processor.read("LINK")
    return {
        "offered": before[0][0],
        "delivered": before[0][1],
        "others_offered": before[1][0],
        "others_delivered": before[1][1],
        "others_rate": rate,
        "wrong": crossing.wrong + other.wrong,
        "seen": before[0][2],
        "seen_behind": None,
        "card_begun_anew": link["begun_anew"],
        "dropped_packets": cluster.dropped,
        "after_offered": sum(flow.offered for flow in flows) - sum(one[0] for one in before),
        "after_delivered": sum(flow.delivered for flow in flows) - sum(one[1] for one in before),
        **fault_ports.guard_counts(),
        **counts,
    }
