"""Facts about the place at the end of a way, each shown by hosts where ways end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .words import Word

__all__ = ["Fact", "Leads", "Not", "longest"]


@dataclass(frozen=True)
class Leads:
    """From here the way `word` ends at host `host`."""

    word: Word
    host: int

    def behind(self, port: int) -> Leads:
        """The fact about a switch of which this is true where its port leads to."""
        return Leads((port, *self.word), self.host)

    @property
    def hops(self) -> int:
        """Ports of the way."""
        return len(self.word)


@dataclass(frozen=True)
class Not:
    """Not all of `facts` are true here."""

    facts: tuple[Fact, ...]

    def behind(self, port: int) -> Not:
        """As `Leads.behind`."""
        return Not(tuple(fact.behind(port) for fact in self.facts))

    @property
    def hops(self) -> int:
        """Ports of the longest way."""
        return longest(self.facts)


Fact = Leads | Not


def longest(facts: Sequence[Fact]) -> int:
    """Ports of the longest way of facts, 0 for none."""
    return max((fact.hops for fact in facts), default=0)
