"""The coroutines of admission: one at each router, one at each node, each over a port that it is given."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from .host import HostAdmission, Request
from .messages import Control
from .router import Release, RouterAdmission, Send
from .tables import Tables

__all__ = ["ControlPort", "HostAgent", "HostPort", "RouterPort", "serve_router"]


class ControlPort(Protocol):
    """The way from a coroutine to its control packets."""

    @property
    def cycle(self) -> int:
        """Clock cycles since the start."""

    def send(self, control: Control, route: int) -> Awaitable[None]:
        """To be awaited: sends a control packet with this route field."""

    def next(self, until: int | None) -> Awaitable[Control | Release | None]:
        """To be awaited: the next control packet that came unharmed, the next release report, or None.

        It is None in cycle `until`, and after `wake`.
        """

    def wake(self) -> None:
        """End the wait in `next`, or the next one if there is none."""


class HostPort(ControlPort, Protocol):
    """The way from a node's coroutine to its packets, and to the tables of its adapter."""

    def write_tables(self, tables: Tables) -> Awaitable[None]:
        """To be awaited: writes the VL tables of the adapter's link."""


class RouterPort(ControlPort, Protocol):
    """The way from a router's coroutine to its packets, reports and registers."""

    def write_used(self, port: int, word: int) -> Awaitable[None]:
        """To be awaited: writes USED_BANDWIDTH of a port."""

    def write_power(self, units: int) -> Awaitable[None]:
        """To be awaited: writes POWER_BUDGET."""

    def write_tables(self, port: int, tables: Tables, *, crossbar_input: bool) -> Awaitable[None]:
        """To be awaited: writes the VL tables of a port's link and crossbar output, or of its crossbar input."""


async def serve_router(admission: RouterAdmission, port: RouterPort) -> None:
    """The agent of a router, for ever.

    It first clears the registers: an agent that begins anew knows no connection. Then it answers what comes. Used
    bandwidth and power are written before an answer leaves. VL tables are written when nothing waits, as such a write
    may wait for the end of a frame.
    """
    ledger = admission.ledger
    stale = {(number, side) for number in range(ledger.ports) for side in (False, True)}
    for number in range(ledger.ports):
        await port.write_used(number, ledger.used_word(number))
    await port.write_power(ledger.power_left)
    while True:
        now = port.cycle
        event = await port.next(now if stale else admission.deadline)
        sends: list[Send] = []
        if isinstance(event, Release):
            admission.report(port.cycle, event)
        elif event is not None:
            sends = admission.packet(port.cycle, event)
        elif stale:
            number, side = min(stale)
            stale.remove((number, side))
            tables = ledger.tables(number, crossbar_input=side)
            await port.write_tables(number, tables, crossbar_input=side)
        admission.time(port.cycle)
        changed = set(admission.changed())
        for number in sorted({number for number, _ in changed}):
            await port.write_used(number, ledger.used_word(number))
        if changed:
            await port.write_power(ledger.power_left)
        stale |= changed
        for control, route in sends:
            await port.send(control, route)


class HostAgent:
    """The admission of a node, for other coroutines: `open` and `close` at any time, `serve` beside them.

    The adapter's link has the weighted arbiter of a router's (yum-2006 3.2). So its VL tables are written from the
    node's own ledger, at every set-up and release.
    """

    def __init__(self, admission: HostAdmission, port: HostPort) -> None:
        self.admission, self._port = admission, port
        self._sends: list[Send] = []

    def open(self, *, destination: int, flow: int, units: int, peak: int, vl: int) -> Request:
        """Ask for a connection (`HostAdmission.ask`). Its `state` changes when the answer comes."""
        request, sends = self.admission.ask(
            self._port.cycle, destination=destination, flow=flow, units=units, peak=peak, vl=vl
        )
        self._later(sends)
        return request

    def close(self, request: Request, *, sent_last: bool) -> None:
        """Close a connection (`HostAdmission.close`)."""
        self._later(self.admission.close(self._port.cycle, request, sent_last=sent_last))

    async def serve(self) -> None:
        """Send and receive the node's control packets, and write the adapter's VL tables, for ever.

        The tables are first written at the start: an agent that begins anew knows no connection. They are written when
        nothing waits to be read or sent, as such a write may wait for the end of a frame.
        """
        admission, port = self.admission, self._port
        admission.changed = True
        while True:
            event = await port.next(port.cycle if admission.changed else admission.deadline)
            if event is not None and not isinstance(event, Release):
                self._sends += admission.packet(port.cycle, event)
            self._sends += admission.time(port.cycle)
            if event is None and admission.changed and not self._sends:
                # What changes while they are written has them written again.
                admission.changed = False
                await port.write_tables(admission.tables)
            while self._sends:
                control, route = self._sends.pop(0)
                await port.send(control, route)

    def _later(self, sends: list[Send]) -> None:
        self._sends += sends
        self._port.wake()
