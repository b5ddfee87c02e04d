"""One point of cosched: a workload under a strategy, or a ping-pong; and what is kept of who ran when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import SimulationError
from ...host.cosched.cluster import CoschedCluster, Job
from ...host.cosched.programs import PROGRAMS, PUBLISHED_PART
from ...host.cosched.programs.ping_pong import PingPong
from ...host.cosched.strategies import STRATEGIES
from ...host.cpu.host import Turn
from ...systems.no_model import PlainSystem
from .workloads import ALONE_SECONDS

__all__ = ["run_point", "shares_over_time"]

MOST_SLOWDOWNS = 1000
"""A workload that takes so many times the ideal is given up."""
PROBES = 40
"""Probes of a node's use over the time of a workload, as in figures 6.3 and 6.4."""
WINDOW_MS = 60
"""The timeline's window, which begins at half of the ideal completion time."""
LATENCY_ROUNDS = 200


async def run_point(system: PlainSystem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point, as `spec["kind"]` says."""
    return _latency(system, spec) if spec["kind"] == "latency" else _workload(system, spec)


def _latency(system: PlainSystem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The mean one-way latency of empty messages between two nodes, with nothing else on them."""
    cluster = CoschedCluster(STRATEGIES[spec["strategy"]](), seed=system.seed, nodes=2)
    job = cluster.add(PingPong(), LATENCY_ROUNDS)
    _run(cluster, 60.0)
    began = max(one.started_at for one in job.processes.values())
    system.cycles = cluster.time.cycle
    return {"latency_us": 1e6 * cluster.seconds((job.ended_at or 0) - began) / (2 * LATENCY_ROUNDS)}


def _workload(system: PlainSystem, spec: Mapping[str, Any]) -> dict[str, Any]:
    scale, names = spec["scale"], spec["programs"]
    cluster = CoschedCluster(STRATEGIES[spec["strategy"]](), seed=system.seed, record=True)
    jobs = []
    for name in names:
        program = PROGRAMS[name]
        seconds = ALONE_SECONDS * scale * (1 - PUBLISHED_PART[name])
        jobs.append(cluster.add(program, max(1, round(seconds * cluster.time.hz / program.iteration_cycles))))
    ideal = ALONE_SECONDS * scale * len(jobs)
    begin = round(ideal / 2 * cluster.time.hz)
    until = begin + WINDOW_MS * cluster.time.hz // 1000
    if spec["series"]:
        for node in cluster.nodes:
            node.card.logged = range(begin, until)
    _run(cluster, MOST_SLOWDOWNS * ideal)
    system.cycles = end = cluster.time.cycle
    turns = [node.host.turns or [] for node in cluster.nodes]
    first = min(job.ended_at or end for job in jobs)
    shares = _shares([turn for one in turns for turn in one], jobs, 0, first)
    found: dict[str, Any] = {
        "completion_s": cluster.seconds(end) / scale,
        "job_completion_s": [cluster.seconds(job.ended_at or end) / scale for job in jobs],
        "job_share": shares,
        "interrupts": sum(node.card.interrupts for node in cluster.nodes),
        "switches": sum(len(one) for one in turns),
    }
    if spec["series"]:
        found["series"] = {
            "probe_s": cluster.seconds(end) / scale / PROBES,
            "shares": shares_over_time(turns[0], jobs, end, PROBES),
            "timeline": [_timeline(one, begin, until, cluster.time.hz) for one in turns],
            "messages": [
                [_ms(sent, begin, cluster), source, _ms(arrived, begin, cluster), to]
                for node in cluster.nodes
                for sent, source, arrived, to in node.card.log
            ],
        }
    return found


def _ms(cycle: int, begin: int, cluster: CoschedCluster) -> float:
    return 1000 * cluster.seconds(cycle - begin)


def _run(cluster: CoschedCluster, limit_seconds: float) -> None:
    if not cluster.run(limit_seconds):
        raise SimulationError(f"the jobs have not ended after {limit_seconds:g} s of simulated time")


def _shares(turns: Sequence[Turn], jobs: Sequence[Job], begin: int, end: int) -> list[float]:
    """The part of the time from `begin` to `end` that each job's processes had the processor, of what all jobs had."""
    used = [0] * len(jobs)
    for start, stop, process in turns:
        used[process.job] += max(0, min(stop, end) - max(start, begin))
    whole = sum(used)
    return [one / whole if whole else 0.0 for one in used]


def shares_over_time(turns: Sequence[Turn], jobs: Sequence[Job], end: int, probes: int) -> list[list[float]]:
    """The part of each of `probes` equal intervals until `end` that a node's processor had each job's process: a list
    for each job."""
    width = end / probes
    found = [[0.0] * probes for _ in jobs]
    for start, stop, process in turns:
        for probe in range(int(start / width), min(probes - 1, int(stop / width)) + 1):
            part = min(stop, (probe + 1) * width) - max(start, probe * width)
            found[process.job][probe] += max(0.0, part) / width
    return found


def _timeline(turns: Sequence[Turn], begin: int, end: int, hz: int) -> list[list[float]]:
    """Stretches within a window: from, until (ms from its begin), and the job."""
    return [
        [1000 * (max(start, begin) - begin) / hz, 1000 * (min(stop, end) - begin) / hz, process.job]
        for start, stop, process in turns
        if stop > begin and start < end
    ]
