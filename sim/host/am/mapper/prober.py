"""The protocol by which the mapper looks at a network: probes with a route, answered by the host where they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .words import Word, WordFormat

__all__ = ["Probe", "Prober"]


@dataclass(frozen=True)
class Probe:
    """A question: which host does the way `word` end at?

    - `word`: the ports from the mapper's own switch on.
    - `back`: the ports from the switch before the host back to the mapper: the way of the answer.
    """

    word: Word
    back: Word


class Prober(Protocol):
    """Sends probes and waits for their answers.

    - `format`: the form of routes.
    - `node`: the mapper's own node.
    """

    @property
    def format(self) -> WordFormat: ...

    @property
    def node(self) -> int: ...

    async def ask(self, probes: Sequence[Probe]) -> list[int | None]:
        """The host at the end of each probe's way, None where none has answered in time. All are asked together.

        An answer is certain: a host has taken the packet with exactly its hops used up. Silence may also mean that a
        packet was lost. It ends after a bounded time.
        """
        ...
