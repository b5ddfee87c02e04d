"""A strategy: how a process waits for a message, and what happens when one arrives.

A strategy is a file in `strategies/` with a subclass of `Strategy`, and a line in `STRATEGIES` there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ..cpu.process import State
from ..cpu.scheduler import HostScheduler
from ..cpu.time_sharing import TimeSharing
from .endpoint import Endpoint, NodeGround

__all__ = ["Arrival", "Strategy", "Waiting"]


class Waiting(ABC):
    """A way to wait for a message. `blocks`: its processes sleep, and cards have to wake them."""

    blocks: ClassVar[bool] = False

    @abstractmethod
    async def wait(self, endpoint: Endpoint) -> None:
        """Return when a message may have arrived at the endpoint. The endpoint's process calls it, inside a receive."""


class Arrival:
    """The things that happen when a message has arrived. `asks_who_runs`: the card asks the host every millisecond."""

    asks_who_runs: ClassVar[bool] = False

    def start(self, node: NodeGround, first: int) -> None:
        """Begin on a node. `first`: a cycle within the node's first boost period, for what it does periodically."""

    def interrupts(self, node: NodeGround, endpoint: Endpoint) -> bool:
        """Whether the card interrupts the host for a message, though nobody has asked for it."""
        return False

    def interrupted(self, node: NodeGround, endpoint: Endpoint) -> None:
        """Take the steps of the interrupt's handler, beside waking a process."""


class Strategy:
    """A strategy of one run: all nodes have the same object.

    - `title`: its name in the thesis.
    - `waiting`, `arrival`: its column and its row of table 6.1.
    """

    title: ClassVar[str]
    waiting: ClassVar[Waiting]
    arrival: ClassVar[Arrival]

    @property
    def card_looks(self) -> bool:
        """Whether cards do anything when a message has arrived."""
        return self.waiting.blocks or self.arrival.asks_who_runs

    def scheduler(self, raise_phase: int) -> HostScheduler:
        """The scheduler of a node: Solaris' time-sharing class. `raise_phase`: when its second begins, a cycle."""
        return TimeSharing(raise_phase=raise_phase)

    def start(self, node: NodeGround, first: int) -> None:
        """Begin on a node, as `Arrival.start`."""
        self.arrival.start(node, first)

    def interrupted(self, node: NodeGround, endpoint: Endpoint, *, wake: bool) -> None:
        """Handle an interrupt of the card. `wake`: a process had asked for it."""
        if wake:
            endpoint.semaphore.set()
        process = endpoint.process
        if process is not None and process.state is not State.ENDED:
            self.arrival.interrupted(node, endpoint)

    def job_ended(self, job: int) -> None:
        """Note that all processes of a job have ended."""
