"""The connection queue, which has the packet that goes out next (gulati-thesis-2001 4.1, figure 4.2).

It is a circular queue of connections, which are remote nodes with tokens. Each has a circular queue of sub-ports
(flows), each with a queue of send tokens. After a packet the head connection and its head sub-port go to the end.
"""

from __future__ import annotations

from typing import Literal

from .state import Connection, Flow

__all__ = ["ConnectionQueue"]


class ConnectionQueue:
    """`discipline`: rotate after each "packet" or after each "message" (thesis 2.2, figure 2.3)."""

    def __init__(self, discipline: Literal["packet", "message"] = "packet") -> None:
        self._discipline = discipline
        self._circle: list[Connection] = []
        self._last: Connection | None = None
        self._unfinished: Flow | None = None

    def __len__(self) -> int:
        """Connections in the queue."""
        return len(self._circle)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._circle

    def add(self, connection: Connection) -> None:
        """Enter a connection, unless it is in already: its turn comes just before the last served one's next."""
        if connection not in self._circle:
            place = len(self._circle) if self._last is None else self._circle.index(self._last)
            self._circle.insert(place, connection)

    def remove(self, connection: Connection) -> None:
        """Take out a connection that has no tokens left."""
        place = self._circle.index(connection)
        if connection is self._last:
            self._last = self._circle[place - 1] if len(self._circle) > 1 else None
        del self._circle[place]

    def head(self) -> Flow | None:
        """The flow whose turn it is: the first valid one from the connection behind the last served one."""
        if self._unfinished is not None and self._unfinished.valid:
            return self._unfinished
        start = 0 if self._last is None else self._circle.index(self._last) + 1
        for connection in self._circle[start:] + self._circle[:start]:
            for flow in connection.flows:
                if flow.valid:
                    return flow
        return None

    def turn_to(self, connection: Connection) -> int:
        """Turn the queue until `connection` has been served last; return how many entries came to the head on the way.

        `connection` counts among them unless it was the last served one, whose state is still at hand. The number is 0
        if the queue has but one entry.
        """
        place = self._circle.index(connection)
        last = place if self._last is None else self._circle.index(self._last)
        self._last = connection
        return (place - last) % len(self._circle) or len(self._circle) - 1

    def rotate(self, flow: Flow, message_ended: bool) -> None:
        """A packet of `flow` has been taken, or its messages begin again (`message_ended` then).

        Its sub-port goes to the end of its connection's queue.
        """
        if self._discipline == "message" and not message_ended:
            self._unfinished = flow
            return
        if self._unfinished is flow or (self._unfinished is not None and not self._unfinished.valid):
            self._unfinished = None
        flow.connection.flows.remove(flow)
        flow.connection.flows.append(flow)
