"""Mutants of what traces, flows, collective operations and schedules stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mutant import mutant

__all__: list[str] = []


@mutant
def an_arrival_is_not_noted(spec: Mapping[str, Any]) -> None:
    """The first packet of a trace arrives, and its cycle is forgotten."""
    from lanikai.sim.experiments.workloads.play import Player

    right = Player._delivered

    def delivered(self: Any, place: int, cycle: int) -> None:
        right(self, place, cycle)
        self.arrived[0] = -1

    Player._delivered = delivered


@mutant
def departures_are_noted_late(spec: Mapping[str, Any]) -> None:
    """A head is said to leave a cycle after it did."""
    from lanikai.sim.systems.message_network import MessageHost

    right = MessageHost.departures

    def departures(self: Any) -> list[tuple[int, int]]:
        return [(vl, cycle + 1) for vl, cycle in right(self)]

    MessageHost.departures = departures


@mutant
def arrivals_are_noted_early(spec: Mapping[str, Any]) -> None:
    """A packet is said to arrive 20 cycles before it does."""
    from lanikai.sim.experiments.workloads.play import Player

    right = Player._delivered

    def delivered(self: Any, place: int, cycle: int) -> None:
        right(self, place, cycle - 20)

    Player._delivered = delivered


@mutant
def loads_are_turned_around(spec: Mapping[str, Any]) -> None:
    """Flows come as for 0.7 less the load that was asked for."""
    from lanikai.sim.experiments.workloads import flows

    right = flows.make_flows

    def make_flows(parameters: Any, sizes: Any, nodes: int, load: float, draw: Any) -> Any:
        return right(parameters, sizes, nodes, 0.7 - load, draw)

    flows.make_flows = make_flows


@mutant
def a_number_changes_on_the_wire(spec: Mapping[str, Any]) -> None:
    """A byte of every message of a collective operation is another one when it arrives."""
    from lanikai.sim.experiments.workloads.ports import Wire

    right = Wire.take

    def take(self: Any, source: int, tag: int) -> Any:
        values = right(self, source, tag).copy()
        values[0] += 1
        return values

    Wire.take = take


@mutant
def flits_are_counted_twice(spec: Mapping[str, Any]) -> None:
    """A node counts each flit that it sends twice."""
    from lanikai.sim.experiments.workloads.ports import NetworkPort

    right = NetworkPort.send

    async def send(self: Any, to: int, values: Any) -> None:
        before = self.sent_flits
        await right(self, to, values)
        self.sent_flits += self.sent_flits - before

    NetworkPort.send = send


@mutant
def a_number_changes_in_mpi(spec: Mapping[str, Any]) -> None:
    """The first number of every message of a collective operation is another one when it is sent."""
    from lanikai.sim.experiments.workloads.ports import MpiPort

    right = MpiPort.send

    async def send(self: Any, to: int, values: Any) -> None:
        changed = values.copy()
        changed[0] += 1
        await right(self, to, changed)

    MpiPort.send = send


@mutant
def bytes_in_mpi_are_counted_hundredfold(spec: Mapping[str, Any]) -> None:
    """A rank counts each byte that it sends 100 times."""
    from lanikai.sim.experiments.workloads.ports import MpiPort

    right = MpiPort.send

    async def send(self: Any, to: int, values: Any) -> None:
        await right(self, to, values)
        self.sent_bytes += 99 * values.nbytes

    MpiPort.send = send


@mutant
def the_last_messages_are_left_out(spec: Mapping[str, Any]) -> None:
    """Ranks of a schedule end before their last send and receive."""
    from lanikai.sim.host.mpi import goal

    right = goal.play_goal

    async def play_goal(world: Any, operations: Any, **settings: Any) -> Any:
        return await right(world, operations[:-2], **settings)

    goal.play_goal = play_goal


@mutant
def computing_takes_no_time(spec: Mapping[str, Any]) -> None:
    """Ranks of a schedule go on at once where they should compute."""
    from lanikai.sim.host.mpi import goal

    right = goal.play_goal

    async def play_goal(world: Any, operations: Any, **settings: Any) -> Any:
        return await right(world, operations, **{**settings, "calc_scale": 0})

    goal.play_goal = play_goal
