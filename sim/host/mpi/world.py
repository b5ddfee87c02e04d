"""The world: ranks placed on nodes, started, run and ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lanikai.firmware.ports import Scheduler

from ..gm import Gm
from . import collectives
from .communicator import Communicator
from .config import MpiConfig, MpiCosts
from .gm_transport import GmTransport, Place, open_transports
from .process import Process
from .transport import Transport

__all__ = ["finalize", "idt_between", "make_worlds", "run_ranks", "start_mpi"]


def make_worlds(
    transports: Sequence[Transport], *, config: MpiConfig | None = None, costs: MpiCosts | None = None
) -> list[Communicator]:
    """The communicator `world` of every rank, by rank."""
    worlds = []
    for transport in transports:
        process = Process(transport, config=config, costs=costs)
        process.next_context = 2
        worlds.append(Communicator(process, range(transport.size), 0, "world"))
    return worlds


async def start_mpi(
    hosts: Sequence[Gm],
    nodes: Sequence[int] | None = None,
    *,
    first_port: int = 0,
    config: MpiConfig | None = None,
    costs: MpiCosts | None = None,
) -> list[Communicator]:
    """Start a rank for every entry of `nodes` (one on each host, by default) on that node, each with a GM port of its
    own from `first_port`; the communicator `world` of every rank. Raises ConfigError, GmErrors."""
    nodes = [gm.node for gm in hosts] if nodes is None else list(nodes)
    places = [Place(node, first_port + nodes[:rank].count(node)) for rank, node in enumerate(nodes)]
    config = MpiConfig.for_gm(hosts[0].gm, hosts[0].nic) if config is None else config
    transports = await open_transports(hosts, places, config)
    return make_worlds(transports, config=config, costs=costs)


async def idt_between(world: Communicator, rank: int, ticks: int) -> None:
    """Set the IDT of the fragments from `world`'s rank to another one, ticks, as an experiment does that stands in for
    the bandwidth manager. Raises as `GmPort.set_idt`."""
    transport = world.process.transport
    assert isinstance(transport, GmTransport)
    await transport.set_idt(rank, ticks)


async def run_ranks(
    scheduler: Scheduler,
    worlds: Sequence[Communicator],
    main: Callable[[Communicator], Awaitable[Any]],
    *,
    ending: bool = True,
) -> list[Any]:
    """Run `main(world)` as every rank side by side; what each returned. `ending`: finalize each rank after it. An
    exception in a rank ends the simulation with it."""
    results: list[Any] = [None] * len(worlds)
    left = len(worlds)
    done = scheduler.flag()

    async def run(rank: int) -> None:
        nonlocal left
        results[rank] = await main(worlds[rank])
        if ending:
            await finalize(worlds[rank])
        left -= 1
        if not left:
            done.set()

    for rank in range(len(worlds)):
        scheduler.spawn(run(rank), f"rank {rank}")
    if worlds:
        await done.wait()
    return results


async def finalize(world: Communicator) -> None:
    """End MPI on a rank, as MPI_Finalize; all ranks call it. The rank's port is closed.

    After the first barrier every rank has all its messages, after the second nobody sends any more. In the second no
    credit is returned, or one might find its port closed; there is one for its messages, since before it every buffer
    was given back but fewer than a quarter of a peer's.
    """
    async with world._call("finalize"):
        process = world.process
        await collectives.barrier(world)
        await process.drain()
        process.end_credits()
        await collectives.barrier(world)
        await process.drain()
        await process.transport.close()
        world._freed = True
