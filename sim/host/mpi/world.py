"""The world: ranks placed on nodes, started, run and ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lanikai.firmware.ports import Scheduler

from ...errors import UserError
from ..gm.library import Gm
from .collectives import movement
from .collectives.exchange import Exchange, check_taken
from .comm.intracomm import Intracomm
from .config import MpiConfig, MpiCosts
from .deadlock import Detector
from .errors import AbortError, DeadlockError, MpiError, RankFailedError
from .gm_transport import GmTransport, Place, open_transports
from .process import Process
from .transport import Transport

__all__ = ["finalize", "idt_between", "make_worlds", "run_ranks", "start_mpi"]


def make_worlds(
    transports: Sequence[Transport], *, config: MpiConfig | None = None, costs: MpiCosts | None = None
) -> list[Intracomm]:
    """The communicator `world` of every rank, by rank."""
    worlds, detector = [], Detector()
    for transport in transports:
        process = Process(transport, config=config, costs=costs)
        process.next_context = 2
        process.detector = detector
        detector.processes.append(process)
        worlds.append(Intracomm(process, range(transport.size), 0, "world"))
    return worlds


async def start_mpi(
    hosts: Sequence[Gm],
    nodes: Sequence[int] | None = None,
    *,
    first_port: int = 0,
    config: MpiConfig | None = None,
    costs: MpiCosts | None = None,
) -> list[Intracomm]:
    """Start a rank for every entry of `nodes` (one on each host, by default) on that node. Returns the communicator
    `world` of every rank.

    Each rank has a GM port of its own, from `first_port`. Raises ConfigError, GmErrors.
    """
    nodes = [gm.node for gm in hosts] if nodes is None else list(nodes)
    places = [Place(node, first_port + nodes[:rank].count(node)) for rank, node in enumerate(nodes)]
    config = MpiConfig.for_gm(hosts[0].gm, hosts[0].nic) if config is None else config
    transports = await open_transports(hosts, places, config)
    return make_worlds(transports, config=config, costs=costs)


async def idt_between(world: Intracomm, rank: int, ticks: int) -> None:
    """Set the IDT of the fragments from `world`'s rank to another one, ticks. Raises as `GmPort.set_idt`.

    An experiment does so that stands in for the bandwidth manager.
    """
    transport = world.process.transport
    assert isinstance(transport, GmTransport)
    await transport.set_idt(rank, ticks)


async def run_ranks(
    scheduler: Scheduler,
    worlds: Sequence[Intracomm],
    main: Callable[[Intracomm], Awaitable[Any]],
    *,
    ending: bool = True,
) -> list[Any]:
    """Run `main(world)` as every rank side by side. Returns the value of each. `ending`: finalize each rank after it.

    It ends at once, with one line, if a rank raises an exception (RankFailedError, AbortError) or if all wait for one
    another (DeadlockError). The other ranks then stay where they are.
    """
    results: list[Any] = [None] * len(worlds)
    left = len(worlds)
    failure: tuple[int, Exception] | None = None
    done = scheduler.flag()

    async def run(rank: int) -> None:
        nonlocal left, failure
        process = worlds[rank].process
        process.ended = False
        try:
            results[rank] = await main(worlds[rank])
            if ending:
                await finalize(worlds[rank])
            process.ended = True
            process.detector.look()
        except Exception as error:
            failure = failure or (rank, error)
            done.set()
        left -= 1
        if not left:
            done.set()

    for rank in range(len(worlds)):
        scheduler.spawn(run(rank), f"rank {rank}")
    if worlds:
        await done.wait()
    if failure is not None:
        told = _told(worlds[failure[0]].process, failure[1])
        # An error that is its own cause would be a circle.
        raise told from (None if told is failure[1] else failure[1])
    return results


def _told(process: Process, error: Exception) -> MpiError:
    """The line that a failure of a rank ends the program with."""
    if isinstance(error, DeadlockError | AbortError):
        return error
    what = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    waiting = "".join(f"; {line}" for line in process.detector.lines())
    return RankFailedError(
        f"rank {process.transport.rank} of the world failed: {' '.join(what.split())}{waiting}"
    )


async def finalize(world: Intracomm) -> None:
    """End MPI on a rank, as MPI_Finalize; all ranks call it. The rank's port is closed.

    After the first barrier every rank has all its messages, after the second nobody sends any more. In the second no
    credit is returned, or one might find its port closed. There is a credit for its messages: before it every buffer
    was given back but fewer than a quarter of a peer's.
    """
    async with world._call("Finalize"):
        process = world.process
        await movement.barrier(Exchange(world, "Finalize"))
        await process.drain()
        process.end_credits()
        await movement.barrier(Exchange(world, "Finalize"))
        await process.drain()
        await process.serve()
        check_taken(world)
        await process.transport.close()
        world._freed = True
