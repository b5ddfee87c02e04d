"""A node's card as a model of times: messages go out one after the other, and arrivals may interrupt the host."""

from __future__ import annotations

from collections import deque

from ..cpu.process import HostProcess
from ..cpu.timekeeper import Rank
from .endpoint import Endpoint, Message, NodeGround

__all__ = ["Card"]


class Card:
    """The card of `node`.

    - `registered`: endpoints whose processes want to be woken by the next message.
    - `interrupts`: raised so far.
    - `log`: cycle and node of sending, and of arrival, of messages sent in the cycles `logged`.

    A message leaves when those before it have left, each for its bytes at the card's bandwidth. Its time on the way is
    the same for all. So messages from one node to another keep their order.
    """

    def __init__(self, node: NodeGround) -> None:
        self.node = node
        self.registered: set[Endpoint] = set()
        self.interrupts = 0
        self.logged = range(0)
        self.log: list[tuple[int, int, int, int]] = []
        self._free_at = 0
        self._period = 0
        self._runs: HostProcess | None = None
        self._at_asking: HostProcess | None = None
        self._ways: deque[tuple[Endpoint, Message]] = deque()

    # -- out ----------------------------------------------------------------------------------------------------------

    def send(self, to: Endpoint, message: Message) -> None:
        """Send a message whose descriptor has been written."""
        node = self.node
        time, out = node.host.time, node.out_cycles(len(message.data))
        self._free_at = max(time.cycle, self._free_at) + out
        self._ways.append((to, message))
        arrives = self._free_at + node.way_cycles
        if time.cycle in self.logged:
            self.log.append((time.cycle, node.host.node, arrives, to.node.host.node))
        time.call_at(arrives, Rank.OUTSIDE + node.host.node, self._arrive, 0)

    def _arrive(self, _: int) -> None:
        to, message = self._ways.popleft()
        to.node.card.receive(to, message)

    # -- in -----------------------------------------------------------------------------------------------------------

    def receive(self, endpoint: Endpoint, message: Message) -> None:
        """Write a message into host memory, and look a little later whether to interrupt the host."""
        endpoint.take_in(message)
        if self.node.strategy.card_looks:
            time = self.node.host.time
            at = time.cycle + self.node.check_cycles
            time.call_at(at, Rank.CARD + self.node.host.node, lambda _: self.look(endpoint), 0)

    def look(self, endpoint: Endpoint) -> None:
        """Decide, after a message has arrived, whether to interrupt the host."""
        wake = endpoint in self.registered
        if wake or self.node.strategy.arrival.interrupts(self.node, endpoint):
            self.registered.discard(endpoint)
            self.interrupts += 1
            self.node.host.interrupt(
                lambda: self.node.strategy.interrupted(self.node, endpoint, wake=wake),
                cycles=self.node.config.handler_cycles,
            )

    def estimate(self) -> HostProcess | None:
        """The process that ran when the card asked last, which it does once a period."""
        period = self.node.host.time.cycle // self.node.estimate_cycles
        return self._at_asking if period == self._period else self._runs

    def ran(self, process: HostProcess) -> None:
        """Note that the host runs a process now."""
        period = self.node.host.time.cycle // self.node.estimate_cycles
        if period != self._period:
            self._period, self._at_asking = period, self._runs
        self._runs = process
