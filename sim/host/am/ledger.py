"""Requests that wait for their replies, and the credits of their destinations (chun-1998 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanikai.firmware.am.wire import MessageKind

__all__ = ["Destination", "EndpointName", "Ledger", "Outstanding"]

REFERENCES = 1 << 32
COUNTS = 1 << 16


@dataclass(frozen=True)
class EndpointName:
    """en_t: the name of an endpoint in the whole network. `number`: the endpoint's on its node."""

    node: int
    number: int


@dataclass(eq=False)
class Destination:
    """An endpoint to which requests go.

    - `tag`: of the last request to it.
    - `credits`: requests that may still be sent to it before a reply comes.
    - `waiting`: requests without an answer. `asked`: one of them is the library's question whether it is still there.
    - `heard_cycle`: when it last gave an answer, or was asked.
    - `lost`: the question has come back: it is not there.
    """

    name: EndpointName
    credits: int
    tag: int = 0
    waiting: int = 0
    asked: bool = False
    heard_cycle: int = 0
    lost: bool = False


@dataclass(eq=False)
class Outstanding:
    """A request without an answer, with its arguments. `count`: number of its send entry, modulo 2^16.

    `question`: it is the library's own, and has no credit.
    """

    destination: Destination
    handler: int
    kind: MessageKind = MessageKind.SHORT
    words: tuple[int, ...] = ()
    data: bytes | None = None
    offset: int = 0
    count: int = 0
    sent_cycle: int = 0
    question: bool = False


@dataclass(eq=False)
class Ledger:
    """The requests of one endpoint that wait for an answer, by their references.

    - `credits`: those of a new destination.
    - `settled`: requests whose credit is home, though no answer has come: their destination is gone. An answer that was
      on its way may still come.
    """

    credits: int
    destinations: dict[EndpointName, Destination] = field(default_factory=dict)
    open: dict[int, Outstanding] = field(default_factory=dict)
    settled: dict[int, Outstanding] = field(default_factory=dict)
    reference: int = 0

    def destination(self, name: EndpointName) -> Destination:
        """The destination of a name; all translations to it share its credits."""
        if name not in self.destinations:
            self.destinations[name] = Destination(name, self.credits)
        return self.destinations[name]

    def send(self, request: Outstanding, cycle: int) -> int:
        """Note a request that is about to be posted; returns its reference. Its destination must have a credit."""
        to = request.destination
        if not to.waiting:
            to.heard_cycle = cycle
        to.waiting += 1
        if request.question:
            to.asked, to.heard_cycle = True, cycle
        else:
            to.credits -= 1
        request.sent_cycle = cycle
        while (reference := self._next()) in self.open or reference in self.settled:
            pass
        self.open[reference] = request
        return reference

    def _next(self) -> int:
        self.reference = (self.reference + 1) % REFERENCES
        return self.reference

    def withdraw(self, reference: int) -> None:
        """Take back a request that has not been posted."""
        request = self.open.pop(reference, None)
        if request is not None:
            self._home(request)

    def answered(self, reference: int, name: EndpointName, cycle: int) -> Outstanding | None:
        """An answer with a reference has come from an endpoint. Returns its request; None if there is no such one."""
        for requests in (self.open, self.settled):
            request = requests.get(reference)
            if request is not None and request.destination.name == name:
                del requests[reference]
                request.destination.heard_cycle = cycle
                if requests is self.open:
                    request.destination.lost = False
                    self._home(request)
                return request
        return None

    def returned(self, reference: int) -> Outstanding | None:
        """A request of this reference has come back. Returns it; None if there is no such one."""
        request = self.open.pop(reference, None)
        if request is None:
            return self.settled.pop(reference, None)
        if request.question:
            request.destination.lost = True
        self._home(request)
        return request

    def _home(self, request: Outstanding) -> None:
        to = request.destination
        to.waiting -= 1
        if request.question:
            to.asked = False
        else:
            to.credits += 1

    @property
    def lost(self) -> bool:
        """Whether a destination that is gone still holds credits."""
        return any(to.lost and to.waiting for to in self.destinations.values())

    def settle(self, taken: int) -> int:
        """Bring credits home from destinations that are gone; returns how many.

        `taken`: send entries of requests that were free again before the last message that has been taken out of the
        reply queue. A request among them has arrived, as it has not come back. No answer to it will come, but one that
        is on its way.
        """
        found = [
            reference
            for reference, request in self.open.items()
            if request.destination.lost and 0 < (taken - request.count) % COUNTS < COUNTS // 2
        ]
        for reference in found:
            request = self.open.pop(reference)
            self._home(request)
            if not request.question:
                self.settled[reference] = request
        return len(found)

    def overdue(self, cycle: int, patience_cycles: int) -> list[Destination]:
        """Destinations that should be asked whether they are still there."""
        return [
            to
            for to in self.destinations.values()
            if to.waiting and not to.asked and not to.lost and cycle - to.heard_cycle >= patience_cycles
        ]
