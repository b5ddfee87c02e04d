"""The ledger as all nodes know it: elections, versions, entries, copies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .flows import FlowId

__all__ = ["NO_BALLOT", "Ballot", "Entry", "Replica", "Version"]


class Ballot(NamedTuple):
    """A master's claim: election number `term`, `node` the candidate. The larger one wins."""

    term: int
    node: int


NO_BALLOT = Ballot(0, 0)


class Version(NamedTuple):
    """Version of the ledger: change number `step` of the master with `ballot`."""

    ballot: Ballot
    step: int


NO_VERSION = Version(NO_BALLOT, 0)


class Entry(NamedTuple):
    """Holding of a flow: `rate` bytes a second, or best-effort `weight`; neither: nothing any more."""

    flow: FlowId
    rate: int
    weight: int


@dataclass
class Replica:
    """A copy of the ledger: `premium` rates and `best_effort` weights, as of `version`. A change that comes in several
    messages waits in `staged`."""

    version: Version = NO_VERSION
    premium: dict[FlowId, int] = field(default_factory=dict)
    best_effort: dict[FlowId, int] = field(default_factory=dict)
    staged: tuple[Version, list[Entry]] = field(default_factory=lambda: (NO_VERSION, []))

    def entries(self) -> list[Entry]:
        """All of the ledger, as entries."""
        return [
            *(Entry(flow, rate, 0) for flow, rate in self.premium.items()),
            *(Entry(flow, 0, weight) for flow, weight in self.best_effort.items()),
        ]

    def apply(self, entries: Iterable[Entry]) -> None:
        """Change the copy by `entries`."""
        for flow, rate, weight in entries:
            self.premium.pop(flow, None)
            self.best_effort.pop(flow, None)
            if rate:
                self.premium[flow] = rate
            elif weight:
                self.best_effort[flow] = weight

    def copy(self) -> Replica:
        """Another one with the same content; what was staged is not taken over."""
        return Replica(self.version, dict(self.premium), dict(self.best_effort))
