"""A cluster of nodes under one strategy, and the jobs that run on all of them."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import Any

from ..cpu.event_time import EventTime
from ..cpu.host import Host
from ..cpu.machine import MACHINES, Machine
from ..cpu.process import HostProcess
from ..cpu.timekeeper import Rank as Order
from .config import CoschedConfig
from .node import Node
from .programs.program import Program
from .rank import Rank
from .strategy import Strategy

__all__ = ["CoschedCluster", "Job", "communication_part"]

START_SPREAD_US = 10_000
"""Processes start within so much of one another. Assumption: a launcher that starts them one by one."""


class Job:
    """Job `number` of a cluster: `iterations` of a program, by a process on every node.

    - `processes`: those that have started, by rank.
    - `ended_at`: the cycle in which its last process ended, or None.
    """

    def __init__(self, cluster: CoschedCluster, number: int, program: Program, iterations: int) -> None:
        self.cluster = cluster
        self.number = number
        self.program = program
        self.iterations = iterations
        self.processes: dict[int, HostProcess] = {}
        self.ended_at: int | None = None
        self._endpoints = [node.open() for node in cluster.nodes]
        self._left = len(cluster.nodes)

    def begin(self, rank: int) -> None:
        """Start the process of a rank."""
        node = self.cluster.nodes[rank]
        process = node.host.start(
            lambda process: self._main(process, rank), name=f"job {self.number} rank {rank}", job=self.number
        )
        self.processes[rank] = process
        process.on_end = lambda: self._ended(rank)

    def _main(self, process: HostProcess, rank: int) -> Coroutine[Any, Any, None]:
        mine = Rank(process, rank, self._endpoints)
        chance = Random(f"{self.cluster.seed} {self.number} {rank}")

        async def main() -> None:
            for iteration in range(self.iterations):
                await self.program.iteration(mine, iteration, chance)
            await self.program.finish(mine)

        return main()

    def _ended(self, rank: int) -> None:
        self.cluster.nodes[rank].close(self._endpoints[rank])
        self._left -= 1
        if not self._left:
            self.ended_at = self.cluster.time.cycle
            self.cluster.strategy.job_ended(self.number)


class CoschedCluster:
    """`nodes` hosts of a `machine` under `strategy`, on one time. `record`: hosts keep what ran when.

    The hosts' ticks, seconds and boosts do not agree: each begins at a random place of its own.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        seed: int,
        nodes: int = 8,
        config: CoschedConfig | None = None,
        machine: Machine = MACHINES["ultra1"],
        record: bool = False,
        host_class: type[Host] = Host,
    ) -> None:
        self.config = CoschedConfig() if config is None else config
        self.strategy = strategy
        self.seed = seed
        self.jobs: list[Job] = []
        self._chance = Random(seed)
        self.time = EventTime(machine.hz)
        self.nodes = []
        for number in range(nodes):
            host = host_class(
                self.time,
                machine,
                strategy.scheduler(self._chance.randrange(machine.hz)),
                node=number,
                tick_phase=self._chance.randrange(machine.hz // 1000),
                record=record,
            )
            self.nodes.append(Node(host, strategy, self.config))

    def add(self, program: Program, iterations: int, *, spread_us: int = START_SPREAD_US) -> Job:
        """A job that starts when the cluster runs: its processes within `spread_us` (at least 1)."""
        job = Job(self, len(self.jobs), program, iterations)
        self.jobs.append(job)
        for rank, node in enumerate(self.nodes):
            at = self._chance.randrange(node.host.microseconds(spread_us))
            self.time.call_at(at, Order.OUTSIDE + rank, job.begin, rank)
        return job

    def run(self, limit_seconds: float) -> bool:
        """Run until all jobs have ended, or for so long. Returns whether they have."""
        for node in self.nodes:
            period = node.host.microseconds(self.config.boost_period_us)
            self.strategy.start(node, self._chance.randrange(period))
        limit = self.time.cycle + round(limit_seconds * self.time.hz)
        return self.time.run(lambda: all(job.ended_at is not None for job in self.jobs), limit=limit)

    def seconds(self, cycles: int) -> float:
        """Seconds of so many cycles."""
        return cycles / self.time.hz


def communication_part(
    program: Program, *, seconds: float, seed: int, strategy: Strategy
) -> tuple[float, float]:
    """The part of its time that a program does not compute, alone on 8 nodes, and the seconds that it takes.

    It has as many iterations as compute for about `seconds`.
    """
    cluster = CoschedCluster(strategy, seed=seed)
    iterations = max(1, round(seconds * cluster.time.hz / program.iteration_cycles))
    job = cluster.add(program, iterations)
    if not cluster.run(100 * seconds + 10):
        raise RuntimeError(f"the program has not ended after {100 * seconds + 10:g} s")
    processes = job.processes.values()
    # Those that start first wait for the last one: that is the launcher's time.
    began = max(one.started_at for one in processes)
    times = [(one.ended_at or 0) - began for one in processes]
    return 1 - sum(one.worked for one in processes) / sum(times), cluster.seconds(max(times))
