"""Programs of coscheduling: their part of time in communication, and the messages of a job."""

from __future__ import annotations

import pytest
from lanikai.sim.host.cosched.cluster import CoschedCluster, communication_part
from lanikai.sim.host.cosched.programs import PROGRAMS, PUBLISHED_PART
from lanikai.sim.host.cosched.programs.ping_pong import PingPong
from lanikai.sim.host.cosched.programs.program import Program
from lanikai.sim.host.cosched.strategies import STRATEGIES

WITHIN = 0.05
"""Relative, of the published part of time in communication. Parts are published in whole or half percents."""
SECONDS = {"life-lo": 12.0, "ep": 3.0}
"""Time of a program here, where it has long iterations; else 0.6 s."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_alone_communicates_for_the_published_part_of_its_time(name) -> None:
    part, _ = communication_part(
        PROGRAMS[name], seconds=SECONDS.get(name, 0.6), seed=3, strategy=STRATEGIES["local"]()
    )
    if name == "ep":
        assert 0 < part < PUBLISHED_PART[name]
    else:
        assert abs(part / PUBLISHED_PART[name] - 1) <= WITHIN, part


def elapsed(program: Program, rounds: int) -> float:
    cluster = CoschedCluster(STRATEGIES["local"](), seed=1, nodes=2)
    job = cluster.add(program, rounds)
    assert cluster.run(60.0)
    return cluster.seconds((job.ended_at or 0) - max(one.started_at for one in job.processes.values()))


def test_the_network_has_the_published_latency_and_bandwidth() -> None:
    """32 us one way, 26.2 MB/s for long messages (6.1)."""
    one_way = elapsed(PingPong(), 100) / 200
    assert 31.9e-6 < one_way < 33e-6

    class Stream(PingPong):
        async def iteration(self, rank, number, chance):
            if rank.rank == 0:
                await rank.Send(bytes(self.length), 1)
            else:
                await rank.Recv(0)

    rate = 100 * 65536 / elapsed(Stream(65536), 100) / 1e6
    # The first messages have arrived when the receiver starts.
    assert abs(rate / 26.2 - 1) < 0.03


class Sums(Program):
    """Every rank checks sums, and that messages of a pair and a tag keep their order."""

    iteration_cycles = 1000

    def __init__(self) -> None:
        self.checked = 0

    async def iteration(self, rank, number, chance):
        assert await rank.Allreduce(float(rank.rank + number)) == 28.0 + 8 * number
        for tag in (1, 2):
            await rank.Send(bytes([number, tag]), (rank.rank + 1) % 8, tag)
        await rank.compute(chance.randrange(2_000_000))
        await rank.Barrier()
        for tag in (2, 1):
            assert await rank.Recv((rank.rank - 1) % 8, tag) == bytes([number, tag])
        self.checked += 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_messages_are_right_under_every_strategy(strategy) -> None:
    cluster = CoschedCluster(STRATEGIES[strategy](), seed=5)
    programs = [Sums(), Sums()]
    for program in programs:
        cluster.add(program, 6)
    assert cluster.run(100.0)
    assert [program.checked for program in programs] == [48, 48]
    assert not any(node.endpoints for node in cluster.nodes)
    # What was computed is what was asked for, whatever ran when.
    assert all(one.used >= one.worked > 0 for job in cluster.jobs for one in job.processes.values())


def test_the_same_seed_gives_the_same_run() -> None:
    ends = []
    for seed in (1, 1, 2):
        cluster = CoschedCluster(STRATEGIES["dcs_sb"](), seed=seed)
        for _ in range(2):
            cluster.add(PROGRAMS["life-hi"], 20)
        assert cluster.run(100.0)
        ends.append([job.ended_at for job in cluster.jobs])
    assert ends[0] == ends[1] != ends[2]
