"""A bench with a peer beside it: runs in turns, in one call, and how both compare."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..errors import UserError
from ..machine import ONE_THREAD, Threads
from .cases import BenchCase
from .peer import Peer, PeerRun, Stretch, find_program, run_peer

__all__ = ["Beside", "BesideResult", "Side", "beside_table", "compared", "wall_table"]

PEER_WARMUP_CYCLES = 2000
"""Warm-up of a peer. Its short run is this and as many cycles more; the longer it is, the more is left out."""
PEER_LENGTH = 4
"""A peer's long run is longer than its short one by so many stretches of the case."""
Run = Callable[[int, Threads], dict[str, Any]]
"""A run of ours with a seed on threads; what `points.network_rate` returns for one stretch."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two in one turn.

    - `cycles_per_second`: of processor time, on one thread.
    - `wall_cycles_per_second`: of wall-clock time, on as many `threads` as a run chooses by itself.
    - `latency_cycles`: the mean of a packet. `accepted`: flits a node and cycle.
    """

    cycles_per_second: float
    wall_cycles_per_second: float
    latency_cycles: float
    accepted: float
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class BesideResult:
    """A case, as a row of the report: a pair of sides for each turn, `seeds` in their order.

    - `cycles_per_second`, `peer_cycles_per_second`: medians, of processor time.
    - `ratio`: ours over the peer's, the median of the turns' ratios; `spread`: largest less smallest over it.
    - `wall_*`: the same of wall-clock time, ours on `threads`.
    - `load_average`: processes that wanted to run, of the whole machine, before the case: above 0.5 it was not at rest.
    - the others: means of the turns.
    """

    case: str
    load: float | None
    seeds: Sequence[int]
    cycles_per_second: float
    peer_cycles_per_second: float
    ratio: float
    spread: float
    threads: int
    wall_cycles_per_second: float
    wall_peer_cycles_per_second: float
    wall_ratio: float
    wall_spread: float
    load_average: float
    latency_cycles: float
    peer_latency_cycles: float
    accepted: float
    peer_accepted: float
    turns: Sequence[Mapping[str, Any]]


class Beside:
    """Ours and a peer on the same cases. Raises UserError for a program that is not there, or a case that the peer
    cannot run."""

    def __init__(self, peer: Peer, named: str | None, cases: Sequence[BenchCase]) -> None:
        self.peer = peer
        for case in cases:
            if why := peer.refuses(case):
                raise UserError(f"--beside {peer.name}: case {case.name}: {why}")
        self.program: Path = find_program(peer, named)

    def compare(
        self, case: BenchCase, seeds: Sequence[int], ours: Run
    ) -> tuple[BesideResult, list[dict[str, Any]]]:
        """A turn for each seed, and what our runs on one thread measured. Who is first changes from turn to turn.

        Raises SimulationError if either fails.
        """
        load = os.getloadavg()[0]
        threads = Threads.share(None, 1, 1)
        mine: list[dict[str, Any]] = []
        turns: list[tuple[Side, Side]] = []
        for number, seed in enumerate(seeds):
            # The peer stands between our two runs, so that each is its neighbour.
            if number % 2:
                quick, theirs, plain = ours(seed, threads), self._peer(case, seed), ours(seed, ONE_THREAD)
            else:
                plain, theirs, quick = ours(seed, ONE_THREAD), self._peer(case, seed), ours(seed, threads)
            mine.append(plain)
            turns.append((_ours(plain, quick), theirs))
        return compared(case, seeds, turns, load), mine

    def _peer(self, case: BenchCase, seed: int) -> Side:
        """The peer's side: a long run less a short one, so that neither its start nor its warm-up counts."""

        def run(cycles: int) -> PeerRun:
            stretch = Stretch(warmup_cycles=PEER_WARMUP_CYCLES, cycles=cycles, seed=seed)
            return run_peer(self.peer, self.program, case, stretch)

        short, long = run(PEER_WARMUP_CYCLES), run(PEER_WARMUP_CYCLES + PEER_LENGTH * case.cycles)
        cycles = max(long.cycles - short.cycles, 0)
        return Side(
            cycles_per_second=cycles / max(long.seconds - short.seconds, 1e-6),
            wall_cycles_per_second=cycles / max(long.wall_seconds - short.wall_seconds, 1e-6),
            latency_cycles=long.latency_cycles,
            accepted=long.accepted,
        )

    def as_json(self, results: Sequence[BesideResult]) -> dict[str, Any]:
        """The object under `beside` of the report."""
        return {
            "peer": self.peer.name,
            "program": str(self.program),
            "differences": list(self.peer.differences),
            "rows": [asdict(one) for one in results],
        }


def _ours(plain: Mapping[str, Any], quick: Mapping[str, Any]) -> Side:
    """Our side from a run on one thread, and one on the threads that a run chooses."""
    return Side(
        cycles_per_second=statistics.median(pair[0] for pair in plain["samples"]),
        wall_cycles_per_second=statistics.median(quick["wall"]),
        latency_cycles=plain["traffic"]["latency_cycles"],
        accepted=plain["traffic"]["accepted"],
        threads=quick["threads"],
    )


def compared(
    case: BenchCase, seeds: Sequence[int], turns: Sequence[tuple[Side, Side]], load_average: float
) -> BesideResult:
    """The row of a case from its turns, ours first in each."""
    mine, theirs = [pair[0] for pair in turns], [pair[1] for pair in turns]
    speed = _medians([(one.cycles_per_second, other.cycles_per_second) for one, other in turns])
    wall = _medians([(one.wall_cycles_per_second, other.wall_cycles_per_second) for one, other in turns])
    return BesideResult(
        case=case.name,
        load=case.load,
        seeds=list(seeds),
        cycles_per_second=speed[0],
        peer_cycles_per_second=speed[1],
        ratio=speed[2],
        spread=speed[3],
        threads=max(one.threads for one in mine),
        wall_cycles_per_second=wall[0],
        wall_peer_cycles_per_second=wall[1],
        wall_ratio=wall[2],
        wall_spread=wall[3],
        load_average=load_average,
        latency_cycles=statistics.fmean(one.latency_cycles for one in mine),
        peer_latency_cycles=statistics.fmean(one.latency_cycles for one in theirs),
        accepted=statistics.fmean(one.accepted for one in mine),
        peer_accepted=statistics.fmean(one.accepted for one in theirs),
        turns=[{"ours": asdict(one), "peer": asdict(other)} for one, other in turns],
    )


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
    """Medians of either side, the median of their ratios, and those ratios' spread over it."""
    ratios = [mine / max(theirs, 1e-9) for mine, theirs in pairs]
    ratio = statistics.median(ratios)
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        ratio,
        (max(ratios) - min(ratios)) / ratio,
    )


def beside_table(name: str, results: Sequence[BesideResult]) -> Table:
    """Ours and the peer's, side by side, for reading: speeds of processor time, ours on one thread."""
    table = _table(f"beside {name}, processor time")
    for heading in ("cycles/s", name, "ratio", "spread", "latency", name, "accepted", name):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results:
        table.add_row(
            one.case,
            f"{one.cycles_per_second:.0f}",
            f"{one.peer_cycles_per_second:.0f}",
            f"{one.ratio:.2f}",
            f"{one.spread:.0%}",
            f"{one.latency_cycles:.1f}",
            f"{one.peer_latency_cycles:.1f}",
            f"{one.accepted:.3f}",
            f"{one.peer_accepted:.3f}",
        )
    return table


def wall_table(name: str, results: Sequence[BesideResult]) -> Table:
    """Both by wall-clock time, for reading: ours on the threads that a run chooses."""
    table = _table(f"beside {name}, wall-clock time")
    for heading in ("threads", "cycles/s", name, "ratio", "spread", "load before"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results:
        table.add_row(
            one.case,
            str(one.threads),
            f"{one.wall_cycles_per_second:.0f}",
            f"{one.wall_peer_cycles_per_second:.0f}",
            f"{one.wall_ratio:.2f}",
            f"{one.wall_spread:.0%}",
            f"{one.load_average:.1f}",
        )
    return table


def _table(title: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column("case", no_wrap=True)
    return table
