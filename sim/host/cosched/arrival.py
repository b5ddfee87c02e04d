"""The things that can happen when a message has arrived (nagar-thesis-2001 table 6.1, rows)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

from ..cpu.process import State
from ..cpu.time_sharing import TimeSharing
from .endpoint import Endpoint, NodeGround
from .strategy import Arrival

__all__ = ["InterruptAndBoost", "LatestFirst", "NoReschedule", "PeriodicBoost", "RoundRobinBoost", "boost"]


def boost(node: NodeGround, endpoint: Endpoint) -> None:
    """Raise an endpoint's process to the highest level."""
    assert endpoint.process is not None
    cast(TimeSharing, node.host.scheduler).boost(endpoint.process)


class NoReschedule(Arrival):
    """Nothing is rescheduled."""


class InterruptAndBoost(Arrival):
    """The card interrupts unless it believes that the receiver runs; the handler boosts it unless it does (6.1.3).

    The card believes what it was told last, up to a millisecond ago.
    """

    asks_who_runs = True

    def interrupts(self, node: NodeGround, endpoint: Endpoint) -> bool:
        """Whether the receiver is not the process that the card believes to run."""
        return node.card.estimate() is not endpoint.process

    def interrupted(self, node: NodeGround, endpoint: Endpoint) -> None:
        """Boost the receiver if there really is a mismatch."""
        assert endpoint.process is not None
        if endpoint.process.state is not State.RUNNING:
            boost(node, endpoint)


class PeriodicBoost(Arrival, ABC):
    """The kernel looks at the endpoints every 10 ms, and boosts one of them (6.1.5). Nothing is interrupted."""

    def start(self, node: NodeGround, first: int) -> None:
        """Begin on a node."""

        def due() -> None:
            chosen = self.choose(node)
            if chosen is not None:
                if chosen.process is not None and chosen.process.state is State.BLOCKED:
                    chosen.semaphore.set()
                boost(node, chosen)

        cycles = node.config.boost_cycles * len(node.endpoints)
        node.host.every(node.config.boost_period_us, due, cycles=cycles, first=first)

    @abstractmethod
    def choose(self, node: NodeGround) -> Endpoint | None:
        """The endpoint whose process is boosted; None: nobody's."""


class RoundRobinBoost(PeriodicBoost):
    """Boost the first process with a pending message, the endpoints in turn. Sleeping ones go first (6.1.6)."""

    def choose(self, node: NodeGround) -> Endpoint | None:
        """The first after the one that was boosted last."""
        # Endpoints are in turn: one that has been boosted goes to the end.
        pending = [one for one in node.endpoints if one.pending and one.process is not None]
        asleep = [one for one in pending if one.process is not None and one.process.state is State.BLOCKED]
        chosen = next(iter(asleep or pending), None)
        if chosen is not None:
            place = node.endpoints.index(chosen)
            node.endpoints[:] = [*node.endpoints[place + 1 :], *node.endpoints[: place + 1]]
        return chosen


class LatestFirst(PeriodicBoost):
    """Boost the process with the latest pending message."""

    def choose(self, node: NodeGround) -> Endpoint | None:
        """The endpoint at which a message arrived last that is pending."""
        pending = [one for one in node.endpoints if one.pending and one.process is not None]
        return max(pending, key=lambda one: one.last_arrival, default=None)
