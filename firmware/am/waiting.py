"""Messages that wait for a channel to a card: one endpoint after the other, and none stopped by another.

Messages with the same source endpoint and destination endpoint are a flow. A flow is *refused* from a NACK until one of
its messages ends. A refused flow has one channel at most, and all refused ones together leave one channel to others
(if there are two). One that was refused because its destination is not resident is *absent*, too, until it is told that
the destination has come, or for a number of scans. It keeps a channel only while no other flow wants it, and asks for
none.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from .messages import Message

__all__ = ["Flow", "Waiting"]


@dataclass(eq=False)
class Flow:
    """The messages of a source endpoint to a destination endpoint: those that wait, and how many have a channel.

    `absent`: scans since it was refused because its destination is not resident; None if it was not.
    """

    source: int
    destination: int
    messages: deque[Message] = field(default_factory=deque)
    bound: int = 0
    refused: bool = False
    absent: int | None = None


class Waiting:
    """The messages that wait for one of `channels` channels to a card, which carry requests or replies.

    Turns go round the source endpoints, and for each source round its flows. `absent`: flows that are so.
    """

    def __init__(self, channels: int) -> None:
        self._refused_limit = max(1, channels - 1)
        self._flows: dict[tuple[int, int], Flow] = {}
        self._turns: deque[int] = deque()
        self._of: dict[int, deque[Flow]] = {}
        self.absent = 0

    def __len__(self) -> int:
        return sum(len(flow.messages) for flow in self._flows.values())

    def flow(self, message: Message) -> Flow:
        """The flow of a message, new if there is none."""
        key = message.header.source_endpoint, message.endpoint
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = Flow(*key)
            if flow.source not in self._of:
                self._of[flow.source] = deque()
                self._turns.append(flow.source)
            self._of[flow.source].append(flow)
        return flow

    def put(self, message: Message) -> None:
        """A message waits, behind the others of its flow."""
        self.flow(message).messages.append(message)

    def take(self) -> Message | None:
        """The next message, which now has a channel; None if none may have one."""
        for _ in range(len(self._turns)):
            flows = self._of[self._turns[0]]
            self._turns.rotate(-1)
            for _ in range(len(flows)):
                flow = flows[0]
                flows.rotate(-1)
                if flow.messages and self._may(flow):
                    flow.bound += 1
                    return flow.messages.popleft()
        return None

    def _may(self, flow: Flow) -> bool:
        """Whether a flow may have another channel."""
        if not flow.refused:
            return True
        if flow.absent is not None:
            return False
        held = sum(other.bound for other in self._flows.values() if other.refused)
        return flow.bound == 0 and held < self._refused_limit

    def refuse(self, message: Message, *, absent: bool) -> None:
        """The latest try of a message with a channel was refused. `absent`: its destination is not resident."""
        flow = self.flow(message)
        flow.refused = True
        self._mark(flow, 0 if absent else None)

    def come(self, destination: int) -> None:
        """A destination endpoint has come into a frame: its flows are refused no longer."""
        for flow in self._flows.values():
            if flow.destination == destination:
                flow.refused = False
                self._mark(flow, None)

    def age(self, most: int) -> None:
        """A scan: flows that have been absent for `most` scans are so no longer, and have turns as others refused."""
        for flow in self._flows.values():
            if flow.absent is not None:
                self._mark(flow, flow.absent + 1 if flow.absent + 1 < most else None)

    def _mark(self, flow: Flow, absent: int | None) -> None:
        self.absent += (absent is not None) - (flow.absent is not None)
        flow.absent = absent

    def release(self, message: Message, *, again: bool = False) -> None:
        """A message gives its channel up; `again`: it waits once more, before the others of its flow.

        Else it has ended, and its flow is refused no longer.
        """
        flow = self.flow(message)
        flow.bound -= 1
        if again:
            flow.messages.appendleft(message)
        else:
            flow.refused = False
            self._mark(flow, None)
            self._drop(flow)

    @property
    def pressing(self) -> bool:
        """Whether a message waits whose flow is not refused."""
        return any(flow.messages and not flow.refused for flow in self._flows.values())

    def wanted(self, message: Message) -> bool:
        """Whether a message of another flow could use the channel that this one has."""
        mine = self.flow(message)
        return any(
            flow is not mine
            and flow.messages
            and (not flow.refused or (flow.bound == 0 and flow.absent is None))
            for flow in self._flows.values()
        )

    def remove(self, source: int) -> list[Message]:
        """Take out all messages of an endpoint that wait, and return them."""
        found: list[Message] = []
        for flow in list(self._of.get(source, ())):
            found += flow.messages
            flow.messages.clear()
            self._drop(flow)
        return found

    def clear(self) -> list[Message]:
        """Take out all messages that wait, and return them."""
        return [message for source in list(self._turns) for message in self.remove(source)]

    def _drop(self, flow: Flow) -> None:
        """Forget a flow that has no messages."""
        if flow.messages or flow.bound:
            return
        self._mark(flow, None)
        del self._flows[flow.source, flow.destination]
        self._of[flow.source].remove(flow)
        if not self._of[flow.source]:
            del self._of[flow.source]
            self._turns.remove(flow.source)
