"""The coroutines' ports on simulated RTL: a router's agent port, and the control port of a host's adapter."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanikai.hdl.config import RouterConfig
from lanikai.hdl.nic.link_port.vl_port import port_config
from lanikai.hdl.packet import Kind
from lanikai.hdl.router.scheduler import has_tables

from ..host.hca.errors import HcaError
from ..inside.clock import Clock
from .messages import Control, payload_size, unpack_control, unpack_payload
from .router import Release
from .tables import Tables

if TYPE_CHECKING:
    from ..host.hca.control import ControlPort as AdapterControl
    from ..models.router_agent import RouterAgent

__all__ = ["INBOX_PACKETS", "SEND_CYCLES", "AdapterHostPort", "SimulatedRouterPort"]

INBOX_PACKETS = 256
"""Packets and reports that an agent keeps while it cannot send. More of them are lost, and sent again."""
SEND_CYCLES = 20_000
"""Wait of an agent for a control packet to leave. An answer that comes later is of no use: `answer_cycles`."""


class _Wakes:
    """A wait that ends at a cycle, or when it is woken."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._flag = clock, clock.flag()
        self._woken = False
        self.settled = False
        """The agent waits: everything that it had to write has been written."""

    @property
    def cycle(self) -> int:
        """Clock cycles since the start."""
        return self._clock.cycle

    def wake(self) -> None:
        """End the wait in `next`, or the next one if there is none."""
        self._woken = True
        self._flag.set()

    def _take_wake(self) -> bool:
        woken, self._woken = self._woken, False
        return woken


class SimulatedRouterPort(_Wakes):
    """`RouterPort` of a simulated router. It looks for packets and reports every `poll_cycles`.

    A router without VL tables keeps none.

    - `harmed`: control packets that came cut, or with a bad CRC.
    - `unsent`: control packets given up, as the one before had not left for `SEND_CYCLES`.
    - `dropped`: control packets and reports that came while it could not send and the inbox was full.

    An agent takes what comes also while it waits to send. Otherwise agents that have packets for each other could wait
    in a circle: each for its own to leave, which stand before the full port of the next.
    """

    def __init__(
        self, clock: Clock, agent: RouterAgent, router: RouterConfig, *, poll_cycles: int = 100
    ) -> None:
        super().__init__(clock)
        self._agent, self._router, self._poll_cycles = agent, router, poll_cycles
        self.harmed = self.unsent = self.dropped = 0
        self._inbox: deque[Control | Release] = deque()
        self._tables: dict[tuple[int, bool], Tables] = {}

    async def send(self, control: Control, route: int) -> None:
        """Send a control packet on the control VL, when the one before has left."""
        began = self.cycle
        while (await self._agent.read("SEND"))["busy"]:
            if self.cycle - began >= SEND_CYCLES:
                self.unsent += 1
                return
            if self._agent.pending and (event := await self._read()) is not None:
                if len(self._inbox) < INBOX_PACKETS:
                    self._inbox.append(event)
                else:
                    self.dropped += 1
        await self._agent.send(control.flits(route, self._router.link))

    async def next(self, until: int | None) -> Control | Release | None:
        """As in `ControlPort`."""
        if self._inbox:
            self.settled = False
            return self._inbox.popleft()
        while True:
            while self._agent.pending:
                self.settled = False
                event = await self._read()
                if event is not None:
                    return event
            now = self.cycle
            if self._take_wake() or (until is not None and until <= now):
                return None
            self.settled = True
            wait = self._poll_cycles if until is None else min(self._poll_cycles, until - now)
            await self._clock.sleep(wait)

    async def _read(self) -> Control | Release | None:
        path = await self._agent.read("RELEASE_PATH")
        report = await self._agent.read("RELEASE_REPORT")
        if report.pop("valid"):
            return Release(**report, **path)
        await self._agent.read("DROP_REPORT")
        flits: Sequence[int] = await self._agent.receive()
        control = unpack_control(flits, self._router.link)
        self.harmed += bool(flits) and control is None
        return control

    async def write_used(self, port: int, word: int) -> None:
        """Write USED_BANDWIDTH of a port."""
        await self._agent.write("SELECT", port=port)
        await self._agent.write("USED_BANDWIDTH", units=word)

    async def write_power(self, units: int) -> None:
        """Write POWER_BUDGET."""
        await self._agent.write("POWER_BUDGET", units=units)

    async def write_tables(self, port: int, tables: Tables, *, crossbar_input: bool) -> None:
        """Write VL tables, if the router has any."""
        if has_tables(self._router):
            before = self._tables.get((port, crossbar_input))
            await self._agent.write_tables(
                **tables._asdict(), port=port, crossbar=crossbar_input, before=before and before[:2]
            )
            self._tables[port, crossbar_input] = tables

    async def read_used(self, port: int) -> int:
        """USED_BANDWIDTH of a port. Only while nothing is under way: one coroutine may use the agent's port."""
        await self._agent.write("SELECT", port=port)
        return (await self._agent.read("USED_BANDWIDTH"))["units"]

    async def read_power(self) -> int:
        """POWER_BUDGET, likewise."""
        return (await self._agent.read("POWER_BUDGET"))["units"]


class AdapterHostPort(_Wakes):
    """`HostPort` of a node with an adapter, over the control port of its driver. `listen` runs beside it.

    An adapter without VL tables keeps none.

    - `tables`: those written last.
    - `unsent`: control packets for which there was no room for long. They are as good as lost.
    """

    def __init__(self, clock: Clock, control: AdapterControl) -> None:
        super().__init__(clock)
        self._control = control
        self._inbox: deque[Control] = deque()
        hca = control.driver.config
        self._size, self._has_tables = payload_size(hca.link), has_tables(port_config(hca.port))
        self.tables: Tables | None = None
        self.unsent = 0

    async def listen(self) -> None:
        """Take what comes to the adapter, for ever."""
        while True:
            packet = await self._control.receive()
            control = unpack_payload(packet.payload)
            # A header says once more what the payload says.
            if control is not None and control.kind == packet.kind:
                self._inbox.append(control)
                self._flag.set()

    async def send(self, control: Control, route: int) -> None:
        """Send a control packet. The adapter has its own table of routes."""
        to = control.source if control.kind in (Kind.ACK, Kind.NACK) else control.destination
        try:
            await self._control.send(control.kind, to, control.payload(self._size))
        except HcaError:
            self.unsent += 1

    async def next(self, until: int | None) -> Control | Release | None:
        """As in `ControlPort`."""
        while True:
            self.settled = False
            if self._inbox:
                return self._inbox.popleft()
            now = self.cycle
            if self._take_wake() or (until is not None and until <= now):
                return None
            self.settled = True
            self._flag.clear()
            if until is not None:
                self._clock.call_later(until - now, self._flag.set)
            await self._flag.wait()

    async def write_tables(self, tables: Tables) -> None:
        """Write the VL tables of the adapter's link, if it has any."""
        before, self.tables = self.tables, tables
        if self._has_tables:
            await self._control.driver.write_tables(**tables._asdict(), before=before and before[:2])
