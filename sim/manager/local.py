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
from .copies import Voter
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
from .record import ALL_PORTS, NodeRecord, in_office
from .rpc import Calls, SilentError
from .wire import Answer, Envelope, Kind, Request, Stand, Status, Update

__all__ = ["NodeManager"]

TIMES_AGAIN = 3
"""Times that a call goes to a manager again that became master by it: another one may depose it meanwhile."""


class NodeManager:
    """The manager of the node of `gm`: a `LocalManager`. `calls`: to the other managers; `pace`: of the cards;
    `record`: its own, or the one that it takes over; `voter`: its part in elections and copies.

    Its record of what its flows hold decides what a program may release. What the master could not be told stays
    noted, and is told as soon as a master answers.
    """

    def __init__(
        self,
        gm: Gm,
        *,
        config: ManagerConfig,
        calls: Calls,
        pace: Pace,
        nodes: int,
        record: NodeRecord,
        voter: Voter,
    ) -> None:
        self._gm, self._config, self._calls, self._pace, self._nodes = gm, config, calls, pace, nodes
        self._record, self._voter = record, voter
        self._premium, self._best_effort, self._shares = record.premium, record.best_effort, record.shares
        self._lock = Lock(gm.bus.flag)
        self._idts = Lock(gm.bus.flag)
        self._untold_flows, self._untold_ports = record.untold_flows, record.untold_ports
        self._untold = gm.bus.flag()
        self.ended = False

    @property
    def node(self) -> int:
        """Its node's number."""
        return self._gm.node

    @property
    def leader(self) -> int:
        """The node whose manager is held to be the master."""
        return self._config.master if self._record.leader is None else self._record.leader

    async def start(self) -> None:
        """Set the card to what the record says; then watch over what the master does not know."""
        self._record.wake = self._untold.set
        for flow in [*self._premium, *self._best_effort]:
            await self._apply(flow)
        self._gm.bus.spawn(self._tell(), f"manager[{self.node}].tell")
        if ALL_PORTS in self._untold_ports:
            self._gm.bus.spawn(self._introduce(), f"manager[{self.node}].introduce")
        else:
            self._untold.set()

    async def request(self, flow: FlowId, mb_per_s: float) -> Grant:
        """`BandwidthClient.request`."""
        rate = self._rate(mb_per_s)
        self._check(flow)
        async with self._turn(flow):
            if flow in self._premium:
                held = self._premium[flow].mb_per_s
                raise AlreadyHeldError(f"the {flow} holds {held:g} MB/s already: release them first")
            request = Request(flow=flow, weight=self._weight(flow), rate=rate)
            # Whatever becomes of the request, and of this manager: a best-effort flow is no faster meanwhile than
            # either standing lets it be.
            if flow in self._best_effort:
                self._record.capped[flow] = self._pace.premium_idt(rate)
                await self._apply(flow)
            answer = await self._ask(flow, Kind.REQUEST, request.pack())
            if answer.status is Status.REFUSED and self._record.capped.pop(flow, None) is not None:
                await self._apply(flow)
            self._raise_refusal(flow, mb_per_s, answer)
            grant = Grant(
                flow=flow, mb_per_s=mb_per_s, idt_ticks=answer.idt_ticks, serial=self._next_serial()
            )
            await self._set_idt(flow, answer.idt_ticks)
            self._gm.port(flow.source_port)
            self._record.capped.pop(flow, None)
            self._best_effort.pop(flow, None)
            self._shares.pop(flow, None)
            self._premium[flow] = grant
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
                self._premium.pop(flow, None)
                raise self._given_up(flow, error.node) from None
            except ManagerSilentError:
                # It holds no reservation any more, and is not known to be best-effort.
                self._premium.pop(flow, None)
                raise self._given_up(flow, self.leader) from None
            self._premium.pop(flow, None)
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
                self._best_effort.pop(flow, None)
                raise self._given_up(flow, error.node) from None
            self._best_effort.pop(flow, None)
            self._shares.pop(flow, None)
            await self._set_idt(flow, 0)

    def rate(self, flow: FlowId) -> float | None:
        """`BandwidthClient.rate`."""
        if flow in self._premium:
            return self._premium[flow].mb_per_s
        share = self._shares.get(flow)
        return None if flow not in self._best_effort or share is None else share / MB

    async def serve(self, call: Envelope) -> Answer:
        """Serve a call of a master, or of a candidate. Raises ValueError for another one."""
        if call.kind in (Kind.VOTE, Kind.FETCH, Kind.CHANGE):
            return self._voter.serve(call, self._calls.incarnation)
        if call.kind is not Kind.UPDATE:
            raise ValueError(f"a call of kind {call.kind!r}")
        update = Update.unpack(self.node, call.body)
        for flow, share, _ in update.shares:
            async with self._idts:
                # A newer master may have been promised obedience while the others were set.
                if not self._voter.commands(update.ballot):
                    return self._voter.refusal()
                # The flow may have gone, or become premium.
                if flow in self._best_effort or (flow == self._record.calling and flow not in self._premium):
                    self._shares[flow] = share
                    await self._command_idt(flow, self._idt(flow))
                elif flow == self._record.calling:
                    # A reservation that is being given back.
                    self._shares[flow] = share
                    await self._command_idt(flow, self._share_idt(share))
        return Answer(status=Status.OK) if self._voter.commands(update.ballot) else self._voter.refusal()

    def _idt(self, flow: FlowId) -> int:
        """The IDT that the record says."""
        if flow in self._premium:
            return self._premium[flow].idt_ticks
        ticks = self._share_idt(self._shares[flow]) if flow in self._shares else 0
        return max(ticks, self._record.capped.get(flow, 0))

    def _share_idt(self, share: int) -> int:
        return self._pace.best_effort_idt(share, longest=self._gm.nic.max_idt_ticks)

    async def _apply(self, flow: FlowId) -> None:
        """Set the card to it."""
        async with self._idts:
            await self._command_idt(flow, self._idt(flow))

    def _next_serial(self) -> int:
        self._record.serial += 1
        return self._record.serial

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
            self._record.calling = flow
            try:
                for port in (ALL_PORTS, flow.source_port):
                    if port in self._untold_ports:
                        await self._tell_port(port)
                yield
            except SilentError as error:
                raise self._no_answer(flow, error) from None
            finally:
                self._record.calling = None

    async def _stand(self, flow: FlowId, weight: int) -> None:
        """Have the master change a flow's standing. Raises as `_ask`."""
        await self._ask(flow, Kind.STAND, Stand(flow=flow, weight=weight).pack())

    async def _ask(self, flow: FlowId, kind: Kind, body: bytes) -> Answer:
        """Ask the master. Raises ManagerSilentError, MasterConflictError, ClosedPortError; SilentError without an
        answer, when the master may or may not have done it."""
        answer = await self._call_master(kind, body)
        if self.ended:
            raise SilentError(self.node)
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
            self._record.port_closed(flow.source_port)
            raise
        return answer

    async def _call_master(self, kind: Kind, body: bytes) -> Answer:
        """Call the master; if it is silent, the others in turn, from the next node on: who is asked in its stead looks
        whether it is alive, and else becomes master. Raises SilentError if no master can be reached, or the call
        may have been served already by one who is alive."""
        first = target = self.leader
        asked: set[int] = set()
        silent: SilentError | None = None
        answer: Answer | None = None
        again = TIMES_AGAIN
        while True:
            asked.add(target)
            try:
                answer = await self._calls.call(target, kind, body)
            except SilentError as error:
                silent = error if silent is None else silent
            else:
                if answer.status is Status.LOST:
                    silent = SilentError(target) if silent is None else silent
                elif answer.status is not Status.NO_MASTER:
                    return answer
                named = answer.vote - 1
                if (named == target or answer.status is Status.LOST) and again:
                    again -= 1  # it is master since just now, or was until just now
                    continue
                if silent is not None and named == silent.node:
                    raise silent  # others reach it
                if 0 <= named < self._nodes and named not in asked:
                    target = named
                    continue
                if named < 0 and answer.status is Status.NO_MASTER:
                    break  # it has asked them all
            rest = [(first + step) % self._nodes for step in range(self._nodes)]
            rest = [node for node in rest if node not in asked]
            if self.ended or not rest:
                break
            target = rest[0]
        if silent is not None:
            raise silent  # it may have served the call
        assert answer is not None
        return answer

    def _no_answer(self, flow: FlowId, error: SilentError) -> ManagerSilentError:
        """The master does not answer a call that asks for something."""
        self._record.untell(flow)
        return ManagerSilentError(f"the master, on node {error.node}, does not answer: nothing is granted")

    def _given_up(self, flow: FlowId, master: int) -> ManagerSilentError:
        """The master does not answer a call that gives something back: the flow has no standing, and keeps its IDT,
        since the master may still count on it."""
        self._shares.pop(flow, None)
        self._record.untell(flow)
        return ManagerSilentError(
            f"the master, on node {master}, does not answer: the flow has no standing any more, and the master "
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
        member = BestEffort(flow=flow, weight=weight, serial=self._next_serial())
        self._best_effort[flow] = member
        return member

    async def _set_idt(self, flow: FlowId, ticks: int) -> None:
        async with self._idts:
            await self._command_idt(flow, ticks)

    async def _command_idt(self, flow: FlowId, ticks: int) -> None:
        if self.ended or not in_office(self._gm, self._record):
            return  # another one sets the card
        try:
            port = self._gm.port(flow.source_port)
            await port.set_idt(node=flow.target, port=flow.target_port, priority=flow.priority, ticks=ticks)
        except ClosedPortError:
            pass  # it has no flows any more

    async def _introduce(self) -> None:
        """A node that was started anew says so with its first call, or when it has rested once."""
        await self._gm.bus.sleep(int(self._config.retry_ticks * self._gm.nic.tick_cycles))
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
            self._record.calling = flow if flow in self._best_effort else None
            try:
                await self._stand(flow, self._weight(flow))
            finally:
                self._record.calling = None
            self._record.capped.pop(flow, None)
            await self._apply(flow)

    async def _tell_port(self, port: int) -> None:
        """Tell the master that a port was closed. Raises SilentError, MasterConflictError."""
        answer = await self._call_master(Kind.PORT_CLOSED, bytes([port]))
        if answer.status is Status.NO_MASTER:
            raise self._conflict(answer)
        self._untold_ports.pop(port, None)

    def _conflict(self, answer: Answer) -> MasterConflictError:
        return MasterConflictError(
            f"the manager of node {self.leader} may not grant: it is not the one master that most nodes "
            f"vote for ({answer.place} of {self._nodes} have)"
        )
