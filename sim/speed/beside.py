"""A bench with a peer beside it: runs in turns, in one call, and how both compare."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..errors import UserError
from .cases import BenchCase
from .peer import Peer, PeerRun, Stretch, find_program, run_peer

__all__ = ["Beside", "BesideResult", "Side", "beside_table", "compared"]

PEER_WARMUP_CYCLES = 2000
"""Warm-up of a peer. Its short run is this and as many cycles more; the longer it is, the more is left out."""
PEER_LENGTH = 4
"""A peer's long run is longer than its short one by so many stretches of the case."""
Run = Callable[[int], dict[str, Any]]
"""A run of ours with a seed; what `points.network_rate` returns for one stretch."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two in one turn: `cycles_per_second` of processor time; `latency_cycles`, the mean of a packet;
    `accepted`, flits a node and cycle."""

    cycles_per_second: float
    latency_cycles: float
    accepted: float


@dataclass(frozen=True, kw_only=True)
class BesideResult:
    """A case, as a row of the report: a pair of sides for each turn, `seeds` in their order.

    - `cycles_per_second`, `peer_cycles_per_second`: medians.
    - `ratio`: ours over the peer's, the median of the turns' ratios; `spread`: largest less smallest over it.
    - the others: means of the turns.
    """

    case: str
    load: float | None
    seeds: Sequence[int]
    cycles_per_second: float
    peer_cycles_per_second: float
    ratio: float
    spread: float
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
        """A turn for each seed, and what our runs measured. Who is first changes from turn to turn.

        Raises SimulationError if either fails.
        """
        mine: list[dict[str, Any]] = []
        theirs: list[Side] = []
        for number, seed in enumerate(seeds):
            if number % 2:
                theirs.append(self._peer(case, seed))
            mine.append(ours(seed))
            if not number % 2:
                theirs.append(self._peer(case, seed))
        return compared(case, seeds, list(zip(map(_ours, mine), theirs, strict=True))), mine

    def _peer(self, case: BenchCase, seed: int) -> Side:
        """The peer's side: a long run less a short one, so that neither its start nor its warm-up counts."""

        def run(cycles: int) -> PeerRun:
            stretch = Stretch(warmup_cycles=PEER_WARMUP_CYCLES, cycles=cycles, seed=seed)
            return run_peer(self.peer, self.program, case, stretch)

        short, long = run(PEER_WARMUP_CYCLES), run(PEER_WARMUP_CYCLES + PEER_LENGTH * case.cycles)
        seconds = max(long.seconds - short.seconds, 1e-6)
        return Side(
            cycles_per_second=max(long.cycles - short.cycles, 0) / seconds,
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


def _ours(measured: Mapping[str, Any]) -> Side:
    return Side(
        cycles_per_second=statistics.median(pair[0] for pair in measured["samples"]),
        latency_cycles=measured["traffic"]["latency_cycles"],
        accepted=measured["traffic"]["accepted"],
    )


def compared(case: BenchCase, seeds: Sequence[int], turns: Sequence[tuple[Side, Side]]) -> BesideResult:
    """The row of a case from its turns, ours first in each."""
    ratios = [mine.cycles_per_second / max(theirs.cycles_per_second, 1e-9) for mine, theirs in turns]
    ratio = statistics.median(ratios)
    mine, theirs = [pair[0] for pair in turns], [pair[1] for pair in turns]
    return BesideResult(
        case=case.name,
        load=case.load,
        seeds=list(seeds),
        cycles_per_second=statistics.median(one.cycles_per_second for one in mine),
        peer_cycles_per_second=statistics.median(one.cycles_per_second for one in theirs),
        ratio=ratio,
        spread=(max(ratios) - min(ratios)) / ratio,
        latency_cycles=statistics.fmean(one.latency_cycles for one in mine),
        peer_latency_cycles=statistics.fmean(one.latency_cycles for one in theirs),
        accepted=statistics.fmean(one.accepted for one in mine),
        peer_accepted=statistics.fmean(one.accepted for one in theirs),
        turns=[{"ours": asdict(one), "peer": asdict(other)} for one, other in turns],
    )


def beside_table(name: str, results: Sequence[BesideResult]) -> Table:
    """Ours and the peer's, side by side, for reading."""
    table = Table(box=None, pad_edge=False, header_style="bold", title=f"beside {name}", title_justify="left")
    table.add_column("case", no_wrap=True)
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
