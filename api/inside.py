"""The run of host programs inside the simulator's process."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.sim.carried import pack
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.measure.hosts import open_programs, start_hosts
from lanikai.sim.inside.failures import remember_calls

from .host import Host

if TYPE_CHECKING:
    from lanikai.sim.systems.cluster import Cluster

__all__ = ["RUN_PROGRAMS", "run_programs"]

RUN_PROGRAMS = "lanikai.api.inside:run_programs"
"""The `entry` of a run of host programs."""


async def run_programs(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Start firmware and libraries, then the programs that the run brings along (`cluster.carried`). Returns when all
    have ended, with their values packed."""
    remember_calls()
    carried = cluster.carried
    programs: Sequence[tuple[int, Callable[[Host], Awaitable[Any]]]] = carried["programs"]
    interface = spec["interface"]
    places = [node for node, _ in programs]
    libraries = start_hosts(
        cluster, interface, config=carried["firmware_config"], costs=carried["host_costs"]
    )
    opened = await open_programs(cluster, interface, libraries, places)
    prepare = carried["prepare"]
    shared = await prepare(cluster, libraries) if prepare else None
    hosts = [
        Host(cluster, node, interface, library, number, shared)
        for number, (node, library) in enumerate(zip(places, opened, strict=True))
    ]
    started = cluster.clock.cycle
    if interface == "mpi":
        from lanikai.sim.host.mpi.world import run_ranks

        of_world = {id(world): index for index, world in enumerate(opened)}

        async def main(world: Any) -> Any:
            index = of_world[id(world)]
            return await _returned(programs[index][1], hosts[index])

        values = await run_ranks(cluster.clock, opened, main)
    else:
        values = await _side_by_side(cluster, [program for _, program in programs], hosts)
    ended = cluster.clock.cycle
    for host, value in zip(hosts, values, strict=True):
        try:
            pack(value)
        except UserError:
            kind = type(value).__name__
            raise UserError(
                f"the program of host {host.node} returns a value that cannot come back from the simulation: {kind}; "
                "return numbers, texts, lists, dictionaries or arrays"
            ) from None
    data = base64.b64encode(pack(values)).decode()
    return {"values": data, "program_cycles": ended - started}


async def _returned(program: Callable[[Host], Awaitable[Any]], host: Host) -> Any:
    """Run a program. Returns its value. Raises UserError if it ends the process, which is the simulator's."""
    try:
        return await program(host)
    except SystemExit as error:
        raise UserError(
            f"the program of host {host.node} called sys.exit({error.code!r}): it ends by `return`, or by an exception"
        ) from error


async def _side_by_side(
    cluster: Cluster, programs: Sequence[Callable[[Host], Awaitable[Any]]], hosts: Sequence[Host]
) -> list[Any]:
    """Run a program on each host. Returns the values; an exception in one ends the simulation."""
    values: list[Any] = [None] * len(hosts)
    left, ended = len(hosts), cluster.clock.flag()

    async def one(index: int) -> None:
        nonlocal left
        values[index] = await _returned(programs[index], hosts[index])
        left -= 1
        if not left:
            ended.set()

    for index, host in enumerate(hosts):
        cluster.clock.spawn(one(index), f"program of node {host.node}")
    await ended.wait()
    return values
