"""The agent of a router: answers probes, keeps the ledger and the leases, and says which registers change.

Plain Python without a clock. Whoever runs it (`agent.py`) hands it packets, reports and the time, and sends what it
returns. So it runs the same on a simulated router and on a plain one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from lanikai.hdl.packet import Kind

from .config import DATA_VLS, MAX_UNITS, AdmissionConfig
from .ledger import Reason, RouterLedger
from .messages import Connection, Control
from .places import RouterPlace

__all__ = ["Record", "Release", "RouterAdmission", "Send"]


class Send(NamedTuple):
    """A control packet to be sent, and its route field."""

    control: Control
    route: int


class Release(NamedTuple):
    """A report of the router's: the last packet of a connection has passed (`ReleaseReports`)."""

    source: int
    destination: int
    flow: int
    bandwidth: int
    in_port: int
    out_port: int


@dataclass(slots=True)
class Record:
    """A connection that is reserved here, until cycle `expires` unless it is refreshed."""

    incarnation: int
    in_port: int
    out_port: int
    vl: int
    units: int
    peak: int
    expires: int


class _Over(NamedTuple):
    """A name whose incarnations up to this one are refused until a cycle, and why."""

    incarnation: int
    until: int
    reason: Reason


_NEVER = _Over(-1, 0, Reason.NONE)


class RouterAdmission:
    """The state of one agent: records of connections by name, and the ledger that is their sum.

    Rules beyond yum-2006 4.1, each against a fault that the document does not treat:

    - A probe of a connection that is reserved already takes nothing again. It renews the lease, and goes on. So probes
      can be sent again, and a refresh is a probe. It also reserves again where an agent has begun anew, if there is
      room.
    - What is not refreshed for `lease_cycles` is given back.
    - A later incarnation takes the place of an earlier one. A probe of one that has been released is refused.
    - What was refused once is refused again. So nothing is reserved behind a refusal by a probe that comes late.
    - A release that finds nothing goes on.

    A release stops where its next router is the one that refused, or at the destination's router, and is answered from
    there.
    """

    def __init__(self, config: AdmissionConfig, place: RouterPlace, *, power: int | None = None) -> None:
        self._config, self.place = config, place
        self.ledger = RouterLedger(config, place.ports, power=power)
        self.records: dict[Connection, Record] = {}
        self._over: dict[Connection, _Over] = {}
        self._deadline: int | None = None
        self._changed: set[tuple[int, bool]] = set()

    @property
    def deadline(self) -> int | None:
        """No lease ends before this cycle; None if there is none."""
        return self._deadline

    def changed(self) -> Iterator[tuple[int, bool]]:
        """Ports whose sums have changed since the last call: (port, whether it is its input's)."""
        changed, self._changed = self._changed, set()
        yield from sorted(changed)

    def packet(self, now: int, control: Control) -> list[Send]:
        """A control packet has come to the agent. Returns what to send: nothing for one that makes no sense."""
        place = self.place
        if not (
            max(control.source, control.destination) < place.nodes
            and control.in_port < place.ports
            and control.vl < DATA_VLS
            and 1 <= control.units <= MAX_UNITS
            and control.units <= control.peak
        ):
            return []
        if control.kind is Kind.PROBE:
            return self._probe(now, control)
        if control.kind is Kind.RELEASE:
            return self._release(now, control)
        return []

    def report(self, now: int, release: Release) -> None:
        """The last data packet of a connection has passed: give its path back."""
        name = Connection(release.source, release.destination, release.flow)
        record = self.records.get(name)
        if (
            record is not None
            and (record.in_port, record.out_port) == (release.in_port, release.out_port)
            and min(record.units, MAX_UNITS) == release.bandwidth
        ):
            self._give_back(name)
            self._close(now, name, record.incarnation)

    def time(self, now: int) -> None:
        """Give back what has not been refreshed in time."""
        if self._deadline is None or now < self._deadline:
            return
        for name in [name for name, record in self.records.items() if record.expires <= now]:
            self._give_back(name)
        for name in [name for name, over in self._over.items() if over.until <= now]:
            del self._over[name]
        ends = [record.expires for record in self.records.values()]
        ends += [over.until for over in self._over.values()]
        self._deadline = min(ends, default=None)

    def _probe(self, now: int, control: Control) -> list[Send]:
        name = control.connection
        record = self.records.get(name)
        over = self._over.get(name, _NEVER)
        if control.incarnation == over.incarnation:
            return [self._refuse(control, over.reason)]
        if control.incarnation < max(over.incarnation, record.incarnation if record else 0):
            return [self._refuse(control, Reason.OVER)]
        if record is not None and control.incarnation > record.incarnation:
            self._give_back(name)
            record = None
        hop = self.place.hop(control.in_port, control.vl, control.destination)
        if record is None:
            reason = self.ledger.refusal(in_port=control.in_port, out_port=hop.out_port, units=control.units)
            if reason is not Reason.NONE:
                self._close(now, name, control.incarnation, reason)
                return [self._refuse(control, reason)]
            record = Record(
                incarnation=control.incarnation,
                in_port=control.in_port,
                out_port=hop.out_port,
                vl=control.vl,
                units=control.units,
                peak=control.peak,
                expires=0,
            )
            self.records[name] = record
            self._change(record, 1)
        record.expires = now + self._config.lease_cycles
        self._wake_by(record.expires)
        onward = Send(
            replace(control, in_port=max(hop.in_port, 0), vl=hop.vl), self.place.route_to(control.destination)
        )
        if hop.router >= 0 or control.ask_host:
            return [onward]
        return [Send(control.answer(Kind.ACK), self.place.route_to(control.source))]

    def _release(self, now: int, control: Control) -> list[Send]:
        name = control.connection
        record = self.records.get(name)
        hop = self.place.hop(control.in_port, control.vl, control.destination)
        if record is not None and record.incarnation <= control.incarnation:
            self._give_back(name)
        self._close(now, name, control.incarnation)
        if hop.router < 0 or hop.router == control.router:
            return [Send(control.answer(Kind.ACK), self.place.route_to(control.source))]
        onward = replace(control, in_port=hop.in_port, vl=hop.vl)
        return [Send(onward, self.place.route_to(control.destination))]

    def _refuse(self, control: Control, reason: Reason) -> Send:
        answer = control.answer(Kind.NACK, router=self.place.number, reason=reason)
        return Send(answer, self.place.route_to(control.source))

    def _give_back(self, name: Connection) -> None:
        self._change(self.records.pop(name), -1)

    def _close(self, now: int, name: Connection, incarnation: int, reason: Reason = Reason.OVER) -> None:
        """Refuse probes of this incarnation and earlier ones, as long as one of them may still be on its way."""
        over = _Over(incarnation, now + self._config.lease_cycles, reason)
        if incarnation >= self._over.get(name, _NEVER).incarnation:
            self._over[name] = over
        self._wake_by(over.until)

    def _wake_by(self, cycle: int) -> None:
        self._deadline = cycle if self._deadline is None else min(self._deadline, cycle)

    def _change(self, record: Record, sign: int) -> None:
        change = self.ledger.add if sign > 0 else self.ledger.remove
        change(
            in_port=record.in_port,
            out_port=record.out_port,
            vl=record.vl,
            units=record.units,
            peak=record.peak,
        )
        self._changed |= {(record.out_port, False), (record.in_port, True)}
