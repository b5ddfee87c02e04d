"""A host's side of admission: asks for connections, refreshes them, releases them. Plain Python without a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from lanikai.hdl.config import ConfigError
from lanikai.hdl.packet import Kind

from .config import MAX_UNITS, AdmissionConfig
from .ledger import Reason, RouterLedger
from .messages import NO_ROUTER, Connection, Control
from .places import HostPlace
from .router import Send
from .tables import Tables

__all__ = ["HostAdmission", "Request", "State"]


class State(Enum):
    """The state of a request."""

    ASKING = auto()
    """A probe is on its way."""
    OPEN = auto()
    """The path is reserved: data may be sent."""
    REFUSED = auto()
    """An adapter or a router has too little left."""
    SILENT = auto()
    """No probe was answered."""
    LOST = auto()
    """It was open, and its path is no longer known to be reserved."""
    CLOSED = auto()
    """The host has closed it."""


@dataclass(kw_only=True, slots=True)
class Request:
    """A request for a connection, and what became of it.

    - `name`, `units`, `peak`, `vl`: as in `Control`.
    - `state`: its `State`.
    - `reason`, `router`: why and by whom it was refused or is lost; `router` is `NO_ROUTER` for the own adapter.
    - `releasing`: a release is on its way. `released`: its end was answered, so nothing is reserved on its path.
    """

    name: Connection
    units: int
    peak: int
    vl: int
    incarnation: int
    state: State = State.ASKING
    reason: Reason = Reason.NONE
    router: int = NO_ROUTER
    releasing: bool = False
    released: bool = False
    holds: bool = field(default=False, repr=False)
    attempt: int = field(default=0, repr=False)
    tries: int = field(default=0, repr=False)
    unanswered: int = field(default=0, repr=False)
    due: int | None = field(default=None, repr=False)
    stops_at: int = field(default=NO_ROUTER, repr=False)

    @property
    def settled(self) -> bool:
        """Nothing will be sent for it any more."""
        return self.due is None and not self.releasing


class HostAdmission:
    """The admission of one node: its requests, and the ledger of its link into the network.

    The own link is checked first; what it has no room for is refused without a packet. A request that a router has
    refused is released as far as that router, if a single probe was sent for it. After more probes nobody knows how far
    the last of them came, so the release goes the whole way. The same holds for one that nobody answered.

    Attribute `changed`: the ledger has changed, and so have its `tables`; whoever writes them clears it.

    - `power`: the adapter's budget in units, None for no bound.
    - `quiet_until`: no request is taken before this cycle. A host that begins anew knows none of its old names, whose
      last packets may still be on their way: it waits for a lease.
    """

    def __init__(
        self, config: AdmissionConfig, place: HostPlace, *, power: int | None = None, quiet_until: int = 0
    ) -> None:
        self._quiet_until = quiet_until
        self._config, self.place = config, place
        self.ledger = RouterLedger(config, 1, power=power)
        self._requests: dict[Connection, Request] = {}
        self._resting: dict[Connection, int] = {}
        self._last = -1
        self.changed = False

    @property
    def deadline(self) -> int | None:
        """The cycle in which `time` has something to do; None if there is none."""
        return min((r.due for r in self._requests.values() if r.due is not None), default=None)

    @property
    def tables(self) -> Tables:
        """The VL tables of the adapter's link (yum-2006 3.3)."""
        return self.ledger.tables(0, crossbar_input=False)

    def ask(
        self, now: int, *, destination: int, flow: int, units: int, peak: int, vl: int
    ) -> tuple[Request, list[Send]]:
        """Ask for a connection. Returns the request, whose `state` changes later, and what to send.

        Raises ConfigError for bad numbers, and for a name that is in use, or was within the last lease; nothing is held
        then. Else a late report of its last packet could be taken for one of the new connection.
        """
        name = Connection(self.place.number, destination, flow)
        if destination == self.place.number or not 0 <= destination < self.place.nodes:
            raise ConfigError(
                f"admission: destination = {destination}: another of the nodes 0 to {self.place.nodes - 1}"
            )
        if not 1 <= units <= MAX_UNITS:
            raise ConfigError(f"admission: units = {units}: 1 to {MAX_UNITS}")
        if not units <= peak < 1 << 16:
            raise ConfigError(f"admission: peak = {peak}: units ({units}) to 65535")
        if vl not in self._config.real_time_vls:
            raise ConfigError(f"admission: vl = {vl}: one of real_time_vls, {self._config.real_time_vls}")
        if now < self._quiet_until:
            raise ConfigError(
                f"admission: no request before cycle {self._quiet_until}: the host has begun anew"
            )
        if name in self._requests or self._resting.get(name, now) > now:
            raise ConfigError(
                f"admission: flow {flow} to node {destination} is in use, or was within the last lease: take another"
            )
        self._resting.pop(name, None)
        # A cycle may bring several requests; each has its own number.
        self._last = max(now, self._last + 1)
        request = Request(name=name, units=units, peak=peak, vl=vl, incarnation=self._last)
        request.reason = self.ledger.refusal(in_port=None, out_port=0, units=units)
        if request.reason is not Reason.NONE:
            request.state = State.REFUSED
            return request, []
        self._requests[name] = request
        self._hold(request, True)
        return request, [self._probe(now, request, ask_host=False)]

    def close(self, now: int, request: Request, *, sent_last: bool) -> list[Send]:
        """The host needs the connection no more. Returns what to send.

        `sent_last`: its last data packet is on its way, of kind RELEASE and with its bandwidth, and frees the path as
        it passes. Otherwise a release is sent.
        """
        if request.state not in (State.ASKING, State.OPEN):
            return []
        was_open = request.state is State.OPEN
        request.state = State.CLOSED
        if sent_last and was_open:
            self._hold(request, False)
            self._end(now, request)
            return []
        return self._start_release(now, request, NO_ROUTER)

    def packet(self, now: int, control: Control) -> list[Send]:
        """A control packet has come to the node. Returns what to send."""
        if control.kind is Kind.PROBE:
            if control.destination != self.place.number or not 0 <= control.source < self.place.nodes:
                return []
            return [Send(control.answer(Kind.ACK), self.place.route_to(control.source))]
        request = self._requests.get(control.connection)
        if request is None or control.incarnation != request.incarnation:
            return []
        if control.about is Kind.RELEASE:
            if request.releasing and control.kind is Kind.ACK:
                request.released = True
                self._end(now, request)
        elif control.about is Kind.PROBE and request.state in (State.ASKING, State.OPEN):
            if control.kind is Kind.ACK:
                # Refreshes are answered by the destination itself, and only they.
                if request.state is State.ASKING:
                    request.state = State.OPEN
                    request.due = now + self._config.refresh_cycles
                request.unanswered = 0
            elif control.kind is Kind.NACK and control.attempt == request.attempt:
                return self._refused(now, request, control)
        return []

    def time(self, now: int) -> list[Send]:
        """Do what is due: probes and releases again, refreshes. Returns what to send."""
        sends: list[Send] = []
        for request in [r for r in self._requests.values() if r.due is not None and r.due <= now]:
            sends += self._due(now, request)
        return sends

    def _due(self, now: int, request: Request) -> list[Send]:
        config = self._config
        if request.releasing:
            if request.tries < config.attempts:
                return [self._release(now, request)]
            self._end(now, request)  # leases give back the rest
            return []
        if request.state is State.ASKING:
            if request.tries < config.attempts:
                return [self._probe(now, request, ask_host=False)]
            request.state = State.SILENT
            return self._start_release(now, request, NO_ROUTER)
        if request.unanswered >= config.refresh_misses:
            request.state = State.LOST
            return self._start_release(now, request, NO_ROUTER)
        request.unanswered += 1
        send = self._probe(now, request, ask_host=True)
        request.due = now + config.refresh_cycles
        return [send]

    def _refused(self, now: int, request: Request, control: Control) -> list[Send]:
        first = request.state is State.ASKING and request.attempt == 1
        request.state = State.REFUSED if request.state is State.ASKING else State.LOST
        request.reason, request.router = control.reason, control.router
        if first and control.router == self.place.router:
            self._hold(request, False)
            self._end(now, request)
            return []
        return self._start_release(now, request, control.router if first else NO_ROUTER)

    def _start_release(self, now: int, request: Request, stops_at: int) -> list[Send]:
        self._hold(request, False)
        request.releasing, request.tries, request.stops_at = True, 0, stops_at
        return [self._release(now, request)]

    def _probe(self, now: int, request: Request, *, ask_host: bool) -> Send:
        return self._send(now, request, Kind.PROBE, ask_host=ask_host)

    def _release(self, now: int, request: Request) -> Send:
        return self._send(now, request, Kind.RELEASE)

    def _send(self, now: int, request: Request, kind: Kind, *, ask_host: bool = False) -> Send:
        request.tries += 1
        request.attempt = request.attempt + 1 & 0xFFFF
        request.due = now + self._config.answer_cycles
        control = Control(
            kind=kind,
            **request.name._asdict(),
            incarnation=request.incarnation,
            attempt=request.attempt,
            units=request.units,
            peak=request.peak,
            vl=request.vl,
            in_port=self.place.in_port,
            router=request.stops_at,
            ask_host=ask_host,
        )
        return Send(control, self.place.route_to(request.name.destination))

    def _hold(self, request: Request, holds: bool) -> None:
        if holds != request.holds:
            change = self.ledger.add if holds else self.ledger.remove
            change(in_port=None, out_port=0, vl=request.vl, units=request.units, peak=request.peak)
            request.holds, self.changed = holds, True

    def _end(self, now: int, request: Request) -> None:
        request.releasing, request.due = False, None
        self._requests.pop(request.name, None)
        self._resting[request.name] = now + self._config.lease_cycles
