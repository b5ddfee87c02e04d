"""Mutants of what `faults` stands on: faults that do not end, and ends that are careless of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mutant import mutant

__all__: list[str] = []


@mutant
def a_fault_never_ends(spec: Mapping[str, Any]) -> None:
    """The link stays as it is, whatever it is told."""
    from lanikai.hdl.fault_link import FaultKind
    from lanikai.sim.systems import fault_ports

    right = fault_ports.set_fault

    def set_fault(number: int, setup: Any) -> None:
        if setup.kind is not FaultKind.NONE:
            right(number, setup.replace(length=0))

    fault_ports.set_fault = set_fault


@mutant
def a_sound_link_errs(spec: Mapping[str, Any]) -> None:
    """Bits are wrong where no fault was asked for."""
    if not spec["fault"]["kind"]:
        spec["fault"].update(kind=1, rate=1 << 26, length=0)


@mutant
def a_sink_elsewhere_stands_still(spec: Mapping[str, Any]) -> None:
    """Beside a fault, a node that has nothing to do with it gives no credit back."""
    from lanikai.hdl.traffic.ports import NODE
    from lanikai.sim.systems.traffic_network import TrafficNetwork

    right = TrafficNetwork.start_nodes

    async def start_nodes(self: Any) -> None:
        await right(self)
        if spec["fault"]["kind"]:
            await self.write([((3, NODE["SINK"].offset), NODE["SINK"].pack(hold=1))])

    TrafficNetwork.start_nodes = start_nodes


@mutant
def packets_with_a_wrong_bit_are_good(spec: Mapping[str, Any]) -> None:
    """Sinks take packets with a wrong bit for good ones."""
    from dataclasses import replace

    from lanikai.hdl.traffic.ports import NODE
    from lanikai.sim.systems.traffic_network import TrafficNetwork

    right = TrafficNetwork._counts

    async def counts(self: Any, node: int, number: int) -> Any:
        found = await right(self, node, number)
        (wrong,) = await self.read([(node, NODE["INTEGRITY_ERRORS"].offset)])
        return replace(found, latency_packets=found.latency_packets + wrong)

    TrafficNetwork._counts = counts


@mutant
def errors_are_not_counted(spec: Mapping[str, Any]) -> None:
    """No sink counts an error."""
    from lanikai.sim.systems.traffic_network import TrafficNetwork

    right = TrafficNetwork.errors

    async def errors(self: Any) -> Any:
        return [dict.fromkeys(one, 0) for one in await right(self)]

    TrafficNetwork.errors = errors


@mutant
def a_byte_is_changed_in_memory(spec: Mapping[str, Any]) -> None:
    """Every message that is read has a wrong byte."""
    from lanikai.sim.host.gm.message import Received

    right = Received.read

    def read(self: Any) -> bytes:
        text = right(self)
        return bytes([text[0] ^ 1]) + text[1:]

    Received.read = read


@mutant
def every_fifth_message_is_forgotten(spec: Mapping[str, Any]) -> None:
    """The library gives every fifth message's buffer back, and tells nobody."""
    from lanikai.sim.host.gm.port import GmPort

    right = GmPort.receive

    async def receive(self: Any) -> Any:
        self.taken = getattr(self, "taken", 0) + 1
        if self.taken % 5 == 0:
            await self.provide_receive_buffer((await right(self)).buffer)
        return await right(self)

    GmPort.receive = receive
