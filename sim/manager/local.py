"""The manager of a node (gulati-thesis-2001 4.3). It takes its programs' calls to the master, sets the IDTs of its
flows, and gives back what a closed port held."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from lanikai.firmware.lock import Lock

from ..bandwidth.errors import (
    AlreadyHeldError,
    BadRequestError,
    BandwidthError,
    ManagerSilentError,
    MasterConflictError,
    NotHeldError,
)
from ..bandwidth.pace import Pace
from ..bandwidth.sizes import check_size
from ..errors import UserError
from ..host.errors import ClosedPortError
from ..host.gm.library import Gm
from ..units import MB
from .asked import mean_and_factor, rate_of, refusal
from .config import ManagerConfig
from .copies import Voter
from .flows import MAX_WEIGHT, BestEffort, FlowId, Grant
from .lease import Lease
from .line import MasterLine
from .record import ALL_PORTS, NodeRecord, in_office
from .rpc import Calls, SilentError
from .wire import Answer, Envelope, Kind, Request, Stand, Status, Update

__all__ = ["NodeManager"]


class NodeManager:
    """The manager of the node of `gm`: a `LocalManager`.

    - `calls`: its calls to the other managers.
    - `pace`: the pace of the cards.
    - `record`: its own record, or the one that it takes over.
    - `voter`: its part in elections and copies.

    Its record of what its flows hold decides what a program may release. News that no master
    could be told stays noted, and is told as soon as a master answers.
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
        self._joining: int | None = None
        self._line = MasterLine(calls, nodes=nodes, leader=lambda: self.leader, ended=lambda: self.ended)
        self.ended = False
        self._lease = Lease(
            gm.bus,
            node=gm.node,
            record=record,
            line=self._line,
            cycles=int(config.lease_ticks * gm.nic.tick_cycles),
            ended=lambda: self.ended,
            rest=self._apply_all,
            resume=self._resume_in_turn,
        )

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
        self._record.resting |= self._lease.over
        await self._apply_all()
        self._lease.start()
        self._gm.bus.spawn(self._tell(), f"manager[{self.node}].tell")
        if ALL_PORTS in self._untold_ports:
            self._gm.bus.spawn(self._introduce(), f"manager[{self.node}].introduce")
        else:
            self._untold.set()

    async def request(
        self,
        flow: FlowId,
        mb_per_s: float,
        *,
        message_bytes: int | Sequence[int] | None = None,
        burst_bytes: int | None = None,
    ) -> Grant:
        """`BandwidthClient.request`."""
        mean, factor = mean_and_factor(message_bytes, self._pace)
        check_size("burst_bytes", burst_bytes)
        longest = self._gm.nic.max_idt_ticks
        rate = rate_of(mb_per_s, mean, pace=self._pace, longest=longest)
        counted = self._pace.counted(rate, mean)
        self._check(flow)
        async with self._turn(flow):
            if flow in self._premium:
                held = self._premium[flow].mb_per_s
                raise AlreadyHeldError(f"the {flow} holds {held:g} MB/s already: release them first")
            request, sent = Request(flow=flow, weight=self._weight(flow), rate=counted), self._gm.bus.cycle
            # Whatever becomes of the request, and of this manager: a best-effort flow is no faster meanwhile than
            # either standing lets it be.
            if flow in self._best_effort:
                # Nor than by an earlier request of which the end is not known yet.
                before = self._record.capped.get(flow, 0)
                self._record.capped[flow] = max(before, self._pace.premium_idt(counted))
                await self._apply(flow)
            try:
                answer = await self._ask(flow, Kind.REQUEST, request.pack())
            except BandwidthError:  # an answer that says that nothing was done
                if flow not in self._untold_flows:
                    await self._uncap(flow)
                raise
            if answer.status is Status.REFUSED:
                await self._uncap(flow)
                if flow in self._record.kept:
                    del self._record.kept[flow]
                    await self._set_idt(flow, 0)
                raise refusal(flow, mb_per_s, mean, answer, pace=self._pace)
            grant = Grant(
                flow=flow,
                mb_per_s=mb_per_s,
                idt_ticks=self._pace.flow_idt(answer.idt_ticks, round(rate * factor), mean, longest=longest),
                serial=self._next_serial(),
                message_bytes=mean,
                burst_bytes=burst_bytes,
                latency_us=None if burst_bytes is None else self.latency_us(rate, burst_bytes),
            )
            self._lease.granted(sent)
            self._record.lost.pop(flow, None)
            self._record.kept.pop(flow, None)
            await self._set_idt(flow, grant.idt_ticks, mean)
            if self.ended:
                raise SilentError(self.node)  # whoever takes over gives it back
            self._gm.port(flow.source_port)
            self._record.capped.pop(flow, None)
            self._best_effort.pop(flow, None)
            self._shares.pop(flow, None)
            self._premium[flow] = grant
            self._lease.granted(sent)
            return grant

    def latency_us(self, rate: int, burst_bytes: int) -> float:
        """The bound on latency that a grant of so many bytes a second has for such a burst."""
        return self._pace.latency_us(rate, burst_bytes, self._gm.nic.flows)

    async def release(self, grant: Grant, *, best_effort: bool = False) -> BestEffort | None:
        """`BandwidthClient.release`."""
        flow = grant.flow
        async with self._turn(flow):
            if self._premium.get(flow) != grant:
                await self._forget_lost(flow)
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
                return self._joined(flow, 1, grant.message_bytes)
            await self._set_idt(flow, 0)
            return None

    async def join(self, flow: FlowId, weight: int = 1, *, message_bytes: int | None = None) -> BestEffort:
        """`BandwidthClient.join`."""
        check_size("message_bytes", message_bytes)
        if type(weight) is not int or not 1 <= weight <= MAX_WEIGHT:
            raise BadRequestError(f"weight = {weight!r}: a whole number, 1 to {MAX_WEIGHT}")
        self._check(flow)
        async with self._turn(flow):
            for held in (self._premium, self._best_effort):
                if flow in held:
                    what = "is premium" if held is self._premium else "is best-effort"
                    raise AlreadyHeldError(f"the {flow} {what} already")
            self._joining, sent = message_bytes, self._gm.bus.cycle
            await self._stand(flow, weight)
            member = self._joined(flow, weight, message_bytes)
            self._record.kept.pop(flow, None)
            self._lease.granted(sent)
            if flow in self._record.lost:
                del self._record.lost[flow]
                await self._apply(flow)
            return member

    async def leave(self, best_effort: BestEffort) -> None:
        """`BandwidthClient.leave`."""
        flow = best_effort.flow
        async with self._turn(flow):
            if self._best_effort.get(flow) != best_effort:
                await self._forget_lost(flow)
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
        if flow not in self._best_effort or share is None:
            return None
        return self._pace.uncounted(share, self._best_effort[flow].message_bytes) / MB

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
                # The flow may have gone, or become premium. One that is being given back becomes best-effort.
                if flow in self._best_effort or flow == self._record.calling:
                    self._shares[flow] = share
                    await self._command_idt(flow, self._share_idt(flow), self._message_bytes(flow))
        return Answer(status=Status.OK) if self._voter.commands(update.ballot) else self._voter.refusal()

    def _message_bytes(self, flow: FlowId) -> int | None:
        """The message size of the standing that the flow has, or is about to have."""
        held = self._premium.get(flow) or self._best_effort.get(flow)
        return self._joining if held is None else held.message_bytes

    def _idt(self, flow: FlowId) -> int:
        """The IDT that the record says."""
        return self._premium[flow].idt_ticks if flow in self._premium else self._share_idt(flow)

    def _share_idt(self, flow: FlowId) -> int:
        """The IDT of a flow's share, if it has one."""
        pace, longest, size = self._pace, self._gm.nic.max_idt_ticks, self._message_bytes(flow)
        share = self._shares.get(flow)
        ticks = 0 if share is None else pace.best_effort_idt(share, longest=longest)
        ticks = max(ticks, self._record.capped.get(flow, 0))
        if not ticks:
            return 0
        return pace.flow_idt(ticks, pace.uncounted(pace.packet_rate(ticks), size), size, longest=longest)

    async def _uncap(self, flow: FlowId) -> None:
        """Let the flow have its share again: it knows that it has no reservation."""
        if self._record.capped.pop(flow, None) is not None:
            await self._apply(flow)

    async def _apply(self, flow: FlowId) -> None:
        """Set the card to the flow's IDT."""
        async with self._idts:
            await self._command_idt(flow, self._idt(flow), self._message_bytes(flow))

    async def _apply_all(self) -> None:
        """Set the card to all of the record."""
        for flow in [*self._premium, *self._best_effort]:
            await self._apply(flow)
        for flow in [*self._record.kept] if self._record.resting else ():
            await self._set_idt(flow, self._gm.nic.max_idt_ticks)

    async def _resume_in_turn(self) -> None:
        """Do as `_resume`, between programs' calls."""
        async with self._lock:
            if self._record.resting:
                with suppress(SilentError):
                    await self._resume()

    async def _resume(self) -> None:
        """End the rest of a lease that is over: what the master has not taken back goes on. Raises SilentError."""
        entries = await self._lease.renew(tell=True)
        if entries is None:
            raise SilentError(self.leader)
        rates = {flow: rate for flow, rate, _ in entries}
        for flow in [*self._premium, *self._best_effort]:
            grant = self._premium.get(flow)
            if flow not in rates or (grant is not None and rates[flow] != self._counted(grant)):
                self._record.lose(flow)
        self._record.resting = False
        await self._apply_all()

    def _counted(self, grant: Grant) -> int:
        """The bytes a second that the master counts of a grant."""
        longest, size = self._gm.nic.max_idt_ticks, grant.message_bytes
        return self._pace.counted(rate_of(grant.mb_per_s, size, pace=self._pace, longest=longest), size)

    async def _forget_lost(self, flow: FlowId) -> None:
        """Let the flow go unregulated: its program knows that it has lost its standing."""
        if flow in self._record.lost:
            del self._record.lost[flow]
            await self._set_idt(flow, 0)

    def _next_serial(self) -> int:
        self._record.serial += 1
        return self._record.serial

    def _check(self, flow: FlowId) -> None:
        """Check that there can be such a flow. Raises BadRequestError, and what `GmPort.set_idt` raises."""
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
            if self._record.resting:
                try:
                    await self._resume()
                except SilentError as error:
                    raise ManagerSilentError(
                        f"the master, on node {error.node}, does not answer: node {self.node} is cut off, and what its "
                        "flows hold rests"
                    ) from None
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
        """Ask the master. Raises ManagerSilentError, MasterConflictError and ClosedPortError. Raises SilentError
        without an answer, when the master may or may not have done it."""
        answer = await self._line.call(kind, body)
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

    def _no_answer(self, flow: FlowId, error: SilentError) -> ManagerSilentError:
        """The error when the master does not answer a call that asks for something."""
        self._record.untell(flow)
        return ManagerSilentError(f"the master, on node {error.node}, does not answer: nothing is granted")

    def _given_up(self, flow: FlowId, master: int) -> ManagerSilentError:
        """The error when the master does not answer a call that gives something back. The flow has no standing, and
        keeps its IDT, since the master may still count on it."""
        self._shares.pop(flow, None)
        self._record.kept[flow] = None
        self._record.untell(flow)
        return ManagerSilentError(
            f"the master, on node {master}, does not answer: the flow has no standing any more, and the master "
            "is told when it answers"
        )

    def _weight(self, flow: FlowId) -> int:
        return self._best_effort[flow].weight if flow in self._best_effort else 0

    def _joined(self, flow: FlowId, weight: int, message_bytes: int | None) -> BestEffort:
        serial = self._next_serial()
        member = BestEffort(flow=flow, weight=weight, serial=serial, message_bytes=message_bytes)
        self._best_effort[flow] = member
        return member

    async def _set_idt(self, flow: FlowId, ticks: int, message_bytes: int | None = None) -> None:
        async with self._idts:
            await self._command_idt(flow, ticks, message_bytes)

    async def _command_idt(self, flow: FlowId, ticks: int, message_bytes: int | None) -> None:
        if self.ended or not in_office(self._gm, self._record):
            return  # another one sets the card
        held = flow in self._premium or flow in self._best_effort
        if flow in self._record.lost or ((ticks or held) and (self._record.resting or self._lease.over)):
            ticks = self._gm.nic.max_idt_ticks
        least = self._pace.least_bytes(message_bytes)
        more = {} if least is None else {"least_bytes": least}
        try:
            port = self._gm.port(flow.source_port)
            await port.set_idt(
                node=flow.target, port=flow.target_port, priority=flow.priority, ticks=ticks, **more
            )
        except ClosedPortError:
            pass  # it has no flows any more

    async def _introduce(self) -> None:
        """Have the master told, after a rest, that this node was started anew, unless its first call has said so."""
        await self._gm.bus.sleep(int(self._config.retry_ticks * self._gm.nic.tick_cycles))
        self._untold.set()

    async def _tell(self) -> None:
        """Tell the master all that it has to know, for as long as it takes."""
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
        """Tell the master the next one of these; inside the lock."""
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
            self._record.kept.pop(flow, None)
            await self._apply(flow)

    async def _tell_port(self, port: int) -> None:
        """Tell the master that a port was closed. Raises SilentError, MasterConflictError."""
        answer = await self._line.call(Kind.PORT_CLOSED, bytes([port]))
        if answer.status is Status.NO_MASTER:
            raise self._conflict(answer)
        self._untold_ports.pop(port, None)

    def _conflict(self, answer: Answer) -> MasterConflictError:
        return MasterConflictError(
            f"the manager of node {self.leader} may not grant: it is not the one master that most nodes "
            f"vote for ({answer.place} of {self._nodes} have)"
        )
