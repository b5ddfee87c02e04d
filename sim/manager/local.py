"""The manager of a node: takes its programs' calls to the master, sets the IDTs of its flows, gives back what a closed
port held (gulati-thesis-2001 4.3)."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lanikai.firmware.lock import Lock

from ..errors import UserError
from ..host.errors import ClosedPortError
from ..host.gm import Gm
from ..units import MB
from .capacity import Pace
from .config import ManagerConfig
from .errors import (
    AlreadyHeldError,
    BadRequestError,
    BandwidthError,
    ManagerSilentError,
    MasterConflictError,
    NotHeldError,
    RefusedError,
)
from .flows import MAX_WEIGHT, BestEffort, FlowId, Grant
from .ledger import Where
from .rpc import Calls, SilentError
from .wire import Answer, Envelope, Kind, Request, Stand, Status, Update

__all__ = ["NodeManager"]


class NodeManager:
    """The manager of the node of `gm`: a `LocalManager`. `calls`: to the other managers; `pace`: of the cards.

    Its own record of what its flows hold decides what a program may release. What the master could not be told
    stays noted, and is told as soon as the master answers.
    """

    def __init__(self, gm: Gm, *, config: ManagerConfig, calls: Calls, pace: Pace, nodes: int) -> None:
        self._gm, self._config, self._calls, self._pace, self._nodes = gm, config, calls, pace, nodes
        self._premium: dict[FlowId, Grant] = {}
        self._best_effort: dict[FlowId, BestEffort] = {}
        self._shares: dict[FlowId, int] = {}
        self._serial = 0
        self._lock = Lock(gm.bus.flag)
        self._idts = Lock(gm.bus.flag)
        self._calling: FlowId | None = None
        self._untold_flows: dict[FlowId, None] = {}
        self._untold_ports: dict[int, None] = {}
        self._untold = gm.bus.flag()
        self._voted: tuple[int, int] | None = None
        self.ended = False

    @property
    def node(self) -> int:
        """Its node's number."""
        return self._gm.node

    def start(self) -> None:
        """Watch over ports and over what the master does not know."""
        self._gm.when_closed(self._port_closed)
        self._gm.bus.spawn(self._tell(), f"manager[{self.node}].tell")

    async def request(self, flow: FlowId, mb_per_s: float) -> Grant:
        """`BandwidthClient.request`."""
        rate = self._rate(mb_per_s)
        self._check(flow)
        async with self._turn(flow):
            if flow in self._premium:
                held = self._premium[flow].mb_per_s
                raise AlreadyHeldError(f"the {flow} holds {held:g} MB/s already: release them first")
            request = Request(flow=flow, weight=self._weight(flow), rate=rate)
            answer = await self._ask(flow, Kind.REQUEST, request.pack())
            self._raise_refusal(flow, mb_per_s, answer)
            self._serial += 1
            grant = Grant(flow=flow, mb_per_s=mb_per_s, idt_ticks=answer.idt_ticks, serial=self._serial)
            self._best_effort.pop(flow, None)
            self._shares.pop(flow, None)
            self._premium[flow] = grant
            await self._set_idt(flow, answer.idt_ticks)
            return grant

    async def release(self, grant: Grant, *, best_effort: bool = False) -> BestEffort | None:
        """`BandwidthClient.release`."""
        flow = grant.flow
        async with self._turn(flow):
            if self._premium.get(flow) != grant:
                raise NotHeldError(f"the {flow} does not hold this reservation (any more)")
            try:
                await self._stand(flow, int(best_effort))
            except SilentError as error:
                del self._premium[flow]
                raise self._given_up(flow, error) from None
            del self._premium[flow]
            if best_effort:
                return self._joined(flow, 1)
            await self._set_idt(flow, 0)
            return None

    async def join(self, flow: FlowId, weight: int = 1) -> BestEffort:
        """`BandwidthClient.join`."""
        if type(weight) is not int or not 1 <= weight <= MAX_WEIGHT:
            raise BadRequestError(f"weight = {weight!r}: a whole number, 1 to {MAX_WEIGHT}")
        self._check(flow)
        async with self._turn(flow):
            for held in (self._premium, self._best_effort):
                if flow in held:
                    what = "is premium" if held is self._premium else "is best-effort"
                    raise AlreadyHeldError(f"the {flow} {what} already")
            await self._stand(flow, weight)
            return self._joined(flow, weight)

    async def leave(self, best_effort: BestEffort) -> None:
        """`BandwidthClient.leave`."""
        flow = best_effort.flow
        async with self._turn(flow):
            if self._best_effort.get(flow) != best_effort:
                raise NotHeldError(f"the {flow} is not best-effort by this membership (any more)")
            try:
                await self._stand(flow, 0)
            except SilentError as error:
                del self._best_effort[flow]
                raise self._given_up(flow, error) from None
            del self._best_effort[flow]
            await self._set_idt(flow, 0)

    def rate(self, flow: FlowId) -> float | None:
        """`BandwidthClient.rate`."""
        if flow in self._premium:
            return self._premium[flow].mb_per_s
        share = self._shares.get(flow)
        return None if flow not in self._best_effort or share is None else share / MB

    async def serve(self, call: Envelope) -> Answer:
        """Serve a call of a master. Raises ValueError for another one."""
        if call.kind is Kind.VOTE:
            if self._voted is None and call.sender == self._config.master:
                self._voted = (call.sender, call.incarnation)
            return Answer(
                status=Status.OK if self._voted == (call.sender, call.incarnation) else Status.NO_MASTER,
                vote=0 if self._voted is None else self._voted[0] + 1,
                rate=self._calls.incarnation,
            )
        if call.kind is not Kind.UPDATE:
            return Answer(status=Status.NO_MASTER)  # for a master, which this manager is not
        if self._voted != (call.sender, call.incarnation):
            return Answer(status=Status.NO_MASTER)
        for flow, share, idt in Update.unpack(self.node, call.body).shares:
            async with self._idts:
                # It may have gone, or become premium, while the others were set.
                if flow in self._best_effort or flow == self._calling:
                    self._shares[flow] = share
                    await self._command_idt(flow, idt)
        return Answer(status=Status.OK)

    def _rate(self, mb_per_s: float) -> int:
        """A bandwidth in bytes a second. Raises BadRequestError."""
        pace, longest = self._pace, self._gm.nic.max_idt_ticks
        least = -(-pace.mtu_bytes * pace.ticks_per_s // longest)
        good = (
            isinstance(mb_per_s, int | float) and not isinstance(mb_per_s, bool) and math.isfinite(mb_per_s)
        )
        rate = round(mb_per_s * MB) if good else 0
        if not (mb_per_s if good else 0) > 0 or not least <= rate <= pace.peak:
            raise BadRequestError(
                f"a request of {mb_per_s!r} MB/s: above 0 (at least {least / MB:g}) and at most "
                f"{pace.peak / MB:.3f}, the peak of a flow"
            )
        return rate

    def _check(self, flow: FlowId) -> None:
        """A flow that can be. Raises BadRequestError, and what `GmPort.set_idt` raises."""
        if flow.target == flow.source:
            raise BadRequestError(f"the {flow} does not leave its node: it uses no bandwidth of the network")
        if not 0 <= flow.target < self._nodes:
            raise BadRequestError(f"there is no node {flow.target}: nodes are 0 to {self._nodes - 1}")
        self._gm.port(flow.source_port)
        self._gm.check_target(flow.source_port, flow.target, flow.target_port, flow.priority)

    @asynccontextmanager
    async def _turn(self, flow: FlowId) -> AsyncIterator[None]:
        """The turn of a program's call: calls follow one another. First the master is told what concerns its port.
        Raises ClosedPortError, ManagerSilentError, MasterConflictError."""
        async with self._lock:
            if self.ended:
                raise ManagerSilentError(f"the manager of node {self.node} has ended")
            await self._gm.spend(self._config.request_ns)
            self._gm.port(flow.source_port)
            self._calling = flow
            try:
                if flow.source_port in self._untold_ports:
                    await self._tell_port(flow.source_port)
                yield
            except SilentError as error:
                raise self._no_answer(flow, error) from None
            finally:
                self._calling = None

    async def _stand(self, flow: FlowId, weight: int) -> None:
        """Have the master change a flow's standing. Raises as `_ask`."""
        await self._ask(flow, Kind.STAND, Stand(flow=flow, weight=weight).pack())

    async def _ask(self, flow: FlowId, kind: Kind, body: bytes) -> Answer:
        """Ask the master. Raises ManagerSilentError, MasterConflictError, ClosedPortError; SilentError without an
        answer, when the master may or may not have done it."""
        answer = await self._calls.call(self._config.master, kind, body)
        if answer.status is Status.NO_MASTER:
            raise self._conflict(answer)
        if answer.status is Status.SILENT:
            raise ManagerSilentError(
                f"the manager of node {answer.place} does not answer: its best-effort flows cannot be slowed down"
            )
        if answer.status is Status.BAD:
            raise BandwidthError(f"the master did not understand the {kind.name.lower()} of the {flow}")
        self._untold_flows.pop(flow, None)
        try:
            self._gm.port(flow.source_port)
        except ClosedPortError:
            self._port_closed(flow.source_port)
            raise
        return answer

    def _no_answer(self, flow: FlowId, error: SilentError) -> ManagerSilentError:
        """The master does not answer a call that asks for something."""
        self._untell(flow)
        return ManagerSilentError(f"the master, on node {error.node}, does not answer: nothing is granted")

    def _given_up(self, flow: FlowId, error: SilentError) -> ManagerSilentError:
        """The master does not answer a call that gives something back: the flow has no standing, and keeps its IDT,
        since the master may still count on it."""
        self._shares.pop(flow, None)
        self._untell(flow)
        return ManagerSilentError(
            f"the master, on node {error.node}, does not answer: the flow has no standing any more, and the master "
            "is told when it answers"
        )

    def _raise_refusal(self, flow: FlowId, mb_per_s: float, answer: Answer) -> None:
        if answer.status is not Status.REFUSED:
            return
        where = {
            Where.SOURCE: f"node {answer.place}",
            Where.PORT: f"port {answer.port} of switch {answer.place}",
            Where.TARGET: f"node {answer.place}",
        }[Where(answer.where)]
        left = answer.rate / MB
        raise RefusedError(
            f"{mb_per_s:g} MB/s for the {flow} are refused: {where} has {left:g} MB/s left for it",
            where=where,
            left_mb_per_s=left,
        )

    def _weight(self, flow: FlowId) -> int:
        return self._best_effort[flow].weight if flow in self._best_effort else 0

    def _joined(self, flow: FlowId, weight: int) -> BestEffort:
        self._serial += 1
        member = self._best_effort[flow] = BestEffort(flow=flow, weight=weight, serial=self._serial)
        return member

    async def _set_idt(self, flow: FlowId, ticks: int) -> None:
        async with self._idts:
            await self._command_idt(flow, ticks)

    async def _command_idt(self, flow: FlowId, ticks: int) -> None:
        try:
            port = self._gm.port(flow.source_port)
            await port.set_idt(node=flow.target, port=flow.target_port, priority=flow.priority, ticks=ticks)
        except ClosedPortError:
            pass  # it has no flows any more

    def _port_closed(self, port: int) -> None:
        """A port is closed: its flows have no standing any more."""
        calling = self._calling is not None and self._calling.source_port == port
        for held in (self._premium, self._best_effort, self._shares, self._untold_flows):
            for flow in [flow for flow in held if flow.source_port == port]:
                del held[flow]  # type: ignore[attr-defined]
                calling = True
        if calling:
            self._untold_ports[port] = None
            self._untold.set()

    def _untell(self, flow: FlowId) -> None:
        """The master may have another idea of a flow than this manager."""
        self._untold_flows[flow] = None
        self._untold.set()

    async def _tell(self) -> None:
        """Tell the master what it has to know, for as long as it takes."""
        rest = int(self._config.retry_ticks * self._gm.nic.tick_cycles)
        while not self.ended:
            await self._untold.wait()
            self._untold.clear()
            while (self._untold_ports or self._untold_flows) and not self.ended:
                try:
                    async with self._lock:
                        await self._tell_next()
                except (SilentError, UserError):
                    await self._gm.bus.sleep(rest)

    async def _tell_next(self) -> None:
        """One of the things; inside the lock."""
        if self._untold_ports:
            await self._tell_port(next(iter(self._untold_ports)))
        elif self._untold_flows:
            flow = next(iter(self._untold_flows))
            await self._stand(flow, self._weight(flow))

    async def _tell_port(self, port: int) -> None:
        """Tell the master that a port was closed. Raises SilentError, MasterConflictError."""
        answer = await self._calls.call(self._config.master, Kind.PORT_CLOSED, bytes([port]))
        if answer.status is Status.NO_MASTER:
            raise self._conflict(answer)
        self._untold_ports.pop(port, None)

    def _conflict(self, answer: Answer) -> MasterConflictError:
        return MasterConflictError(
            f"the manager of node {self._config.master} may not grant: it is not the one master that most nodes "
            f"vote for ({answer.place} of {self._nodes} have)"
        )
