"""The master: decides on requests, one after the other, and keeps every node told of its best-effort flows' shares.

At no time is more given than there is, since a change is made in this order:

1. Best-effort flows that get slower are slowed down, and their managers have said so. If one of these managers does not
   answer, the change is not made.
2. Most nodes have a copy of the change (`copies`). With that it is in force.
3. Its caller is told.
4. Flows that get faster are told.

Every node has a master, and one of them leads. A manager that is asked in the master's stead looks whether the master
is alive; if not, it has itself elected. It takes over what was promised. The shares of best-effort flows are not known
then: the flows count with the peak of a flow until their nodes have been told what they may have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress

from lanikai.firmware.lock import Lock
from lanikai.firmware.ports import Scheduler

from ..bandwidth.pace import Pace
from .copies import Copies
from .flows import MAX_WEIGHT, FlowId
from .ledger import Ledger
from .record import ALL_PORTS
from .rpc import Calls, SilentError
from .sharing import Policy, carried
from .together import together
from .versions import NO_BALLOT, Entry
from .wire import (
    ENTRIES,
    UPDATE_FLOWS,
    Answer,
    Envelope,
    Kind,
    Request,
    Stand,
    Status,
    Update,
    pack_entries,
)

__all__ = ["Master"]

Shares = dict[FlowId, int]
NO_MAJORITY = -1
"""Stands for most nodes, where the number of a node that does not answer is returned."""


class Master:
    """The master's part on node `node`.

    - `ledger`: who holds what.
    - `policy`: how best-effort flows share.
    - `pace`, `longest_idt_ticks`: the cards' pace and longest IDT.
    - `lease_cycles`: the time of a node's lease (`lease`).
    - `copies`: elections and copies.
    - `leader`: the node that is held to be the master's.
    - `calls`: calls to the other managers.
    - `decide`: lets the time of a decision pass.
    - `retry_cycles`: rest before a node that did not answer is told again that flows of its may be faster.
    - `shares`: bytes a second of every best-effort flow.
    - `ended`: set it to have nobody told any more.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        node: int,
        ledger: Ledger,
        policy: Policy,
        pace: Pace,
        longest_idt_ticks: int,
        lease_cycles: int,
        copies: Copies,
        leader: Callable[[], int],
        calls: Calls,
        decide: Callable[[], Awaitable[None]],
        retry_cycles: int,
    ) -> None:
        self._scheduler = scheduler
        self._node = node
        self.ledger = ledger
        self.shares: Shares = {}
        self._policy, self._pace, self._longest = policy, pace, longest_idt_ticks
        self._copies, self._leader = copies, leader
        self._calls, self._decide, self._retry_cycles = calls, decide, retry_cycles
        self.ended = False
        self._nodes = range(ledger.capacity.nodes)
        # The most that each flow may have, by all that its manager has been told, whether it answered or not.
        self._possible: Shares = {}
        self._lock = Lock(scheduler.flag)
        self._told: dict[int, Lock] = {node: Lock(scheduler.flag) for node in self._nodes}
        self._versions = dict.fromkeys(self._nodes, 0)
        self._acknowledged = dict.fromkeys(self._nodes, 0)
        self._telling: set[int] = set()
        self._looking = False
        # Leases: when this came into office, when nodes were last answered, nodes that are just losing what they hold.
        self._lease_cycles = lease_cycles
        self._in_office_since = 0
        self._renewed: dict[int, int] = {}
        self._losing: set[int] = set()
        # Nodes that GM here has found dead, and that have not called since.
        self._dead: set[int] = set()
        self._asked = self._confirmed = 0
        self._confirming = Lock(scheduler.flag)

    @property
    def leading(self) -> bool:
        """Whether it is the master, as far as it knows."""
        return self._copies.leading and not self.ended

    @property
    def votes(self) -> frozenset[int]:
        """The nodes that have voted for it."""
        return frozenset(self._copies.voters)

    async def start(self) -> None:
        """Be elected, if there is no other master."""
        async with self._lock:
            await self._lead()

    async def serve(self, call: Envelope) -> Answer:
        """Serve a call. Raises ValueError for a call that is none of the master's.

        Two kinds of calls are not served: one that came before this was master, and one that waited over the end of its
        office. The caller may have given such a call up, and told another master so. It is answered that the call may
        come again.
        """
        self._dead.discard(call.sender)
        ballot = self._copies.ballot if self.leading else NO_BALLOT
        async with self._lock:
            leads = await self._lead()
            if not leads or ballot != self._copies.ballot:
                leader = self._leader()
                vote = leader + 1 if leads or leader != self._node else 0
                return Answer(status=Status.NO_MASTER, vote=vote, place=len(self._copies.voters))
            await self._decide()
            if call.kind is Kind.REQUEST:
                return self._answered(call, await self._request(Request.unpack(call.sender, call.body)))
            if call.kind is Kind.STAND:
                stand = Stand.unpack(call.sender, call.body)
                return self._answered(call, await self._stand(stand.flow, stand.weight))
            if call.kind is Kind.PORT_CLOSED and len(call.body) == 1:
                port = None if call.body[0] == ALL_PORTS else call.body[0]
                return await self._take_back(self.ledger.held(call.sender, port))
            raise ValueError(f"a call of kind {call.kind!r}, {len(call.body)} bytes")

    async def renew(self, call: Envelope) -> Answer:
        """Answer a node that renews its lease. Raises ValueError."""
        self._dead.discard(call.sender)
        if len(call.body) != 1:
            raise ValueError(f"a body of {len(call.body)} bytes: 1 is right")
        if not self.leading:
            async with self._lock:
                await self._lead()
        obeyed = await self._confirm()
        while obeyed and call.sender in self._losing:
            async with self._lock:
                pass
            obeyed = await self._confirm()
        if not obeyed:
            leader = self._leader()
            vote = leader + 1 if leader != self._node else 0
            return Answer(status=Status.NO_MASTER, vote=vote, place=len(self._copies.voters))
        held = self.ledger.held(call.sender) if call.body[0] else []
        entries = [
            Entry(flow, self.ledger.premium.get(flow, 0), self.ledger.best_effort.get(flow, 0))
            for flow in held[:ENTRIES]
        ]
        return self._answered(call, Answer(status=Status.OK, more=pack_entries(entries)))

    def _answered(self, call: Envelope, answer: Answer) -> Answer:
        """The answer itself. A node's lease begins anew with it, if it is a good one."""
        if answer.status is Status.OK:
            self._renewed[call.sender] = self._scheduler.cycle
        return answer

    async def _confirm(self) -> bool:
        """Whether most nodes obey, by what they say after this was called. One round serves all who ask meanwhile."""
        self._asked += 1
        mine = self._asked
        async with self._confirming:
            if self._confirmed < mine:
                began = self._asked
                if await self._copies.confirm():
                    self._confirmed = began
            return self._confirmed >= mine and self.leading

    async def node_died(self, node: int) -> None:
        """Note that a node is dead, or cut off: what its flows held is free once its lease has ended.

        The node keeps it if it comes back before. GM tells of a dead node once, so a later master has to know it, too.
        """
        self._dead.add(node)
        while self.leading and node in self._dead:
            seen = self._renewed.get(node, 0)
            left = max(self._in_office_since, seen) + self._lease_cycles - self._scheduler.cycle
            if left > 0:
                await self._scheduler.sleep(left)
                if self._renewed.get(node, 0) != seen:
                    return
                continue
            async with self._lock:
                left = self._in_office_since + self._lease_cycles - self._scheduler.cycle
                if self._renewed.get(node, 0) != seen:
                    return
                if self.leading and left <= 0:
                    self._losing.add(node)
                    try:
                        await self._take_back(self.ledger.held(node))
                    finally:
                        self._losing.discard(node)
                    # One that it did not have copied by most nodes is the next master's.
                    if self.leading:
                        self._dead.discard(node)
                    return

    async def _look_after(self) -> None:
        """Call the nodes that hold something: by these calls GM tells which are dead. This is done once every
        `retry_cycles` at most."""
        if self._looking:
            return
        self._looking = True
        for node in {flow.source for flow in self.ledger.premium} - {self._node}:
            with suppress(SilentError):
                await self._calls.call(node, Kind.PING)
        await self._scheduler.sleep(self._retry_cycles)
        self._looking = False

    async def restarted(self, node: int) -> None:
        """Note that a node has been started anew: it knows of no flow."""
        async with self._lock:
            if self.leading:
                await self._take_back(self.ledger.held(node))

    async def _lead(self) -> bool:
        """Whether this is the master, after an election if there is none."""
        if self.leading:
            return True
        if self.ended:
            return False
        leader = self._leader()
        if leader != self._node:
            try:
                if (await self._calls.call(leader, Kind.PING)).status is Status.OK:
                    return False
            except SilentError:
                pass
        if not await self._copies.elect():
            return False
        self._in_office_since = self._scheduler.cycle
        self._take_office()
        for node in self._dead:
            self._scheduler.spawn(self.node_died(node), f"master.node_died[{node}]")
        return True

    def _take_office(self) -> None:
        """Go on with what is promised. Every best-effort flow may have the peak until its node has been told."""
        ledger, content = Ledger(self.ledger.capacity), self._copies.content
        for flow, rate in content.premium.items():
            ledger.admit(flow, rate)
        for flow, weight in content.best_effort.items():
            ledger.stand(flow, weight)
        self.ledger = ledger
        self.shares = self._policy(ledger)
        self._possible = dict.fromkeys(self.shares, ledger.capacity.node.peak)
        for node in self._nodes:
            self._versions[node] += bool(self._of(node, self.shares))
        self._tell_later()

    async def _request(self, request: Request) -> Answer:
        flow, rate = request.flow, request.rate
        self._check(flow, request.weight)
        if not 1 <= rate <= self._pace.peak:
            raise ValueError(f"{rate} bytes a second: 1 to {self._pace.peak}")
        # Bandwidth that the flow holds and its node does not know of was granted in an answer that never arrived.
        before = self.ledger.copy()
        before.stand(flow, request.weight)
        refusal = before.check(flow, rate)
        if refusal is not None:
            if await self._change(before, force=True) == NO_MAJORITY:
                return self._lost()
            # The bandwidth that is lacking may be held by a node that is dead.
            self._scheduler.spawn(self._look_after(), "master.look_after")
            return Answer(
                status=Status.REFUSED,
                where=refusal.where,
                place=refusal.place,
                port=refusal.port,
                rate=refusal.left,
            )
        after = before.copy()
        after.admit(flow, rate)
        silent = await self._change(after)
        if silent is not None and silent != NO_MAJORITY:
            back = await self._change(before, force=True)
            silent = back if back == NO_MAJORITY else silent
        if silent is not None:
            return self._not_done(silent)
        return Answer(status=Status.OK, rate=rate, idt_ticks=self._pace.premium_idt(rate))

    def _not_done(self, silent: int) -> Answer:
        return self._lost() if silent == NO_MAJORITY else Answer(status=Status.SILENT, place=silent)

    def _lost(self) -> Answer:
        """The answer when most nodes do not obey, or do not answer: the change may come into force with the next
        master, or not."""
        return Answer(status=Status.LOST, place=len(self._copies.voters))

    async def _stand(self, flow: FlowId, weight: int) -> Answer:
        self._check(flow, weight)
        if weight and self.ledger.best_effort.get(flow) == weight and not await self._confirm():
            return self._lost()  # nothing is put in force that would have shown it
        after = self.ledger.copy()
        after.stand(flow, weight)
        silent = await self._change(after, joined=flow if weight else None, force=not weight)
        return Answer(status=Status.OK) if silent is None else self._not_done(silent)

    async def _take_back(self, flows: Iterable[FlowId]) -> Answer:
        after = self.ledger.copy()
        for flow in flows:
            after.stand(flow, 0)
        silent = await self._change(after, force=True)
        return Answer(status=Status.OK) if silent is None else self._not_done(silent)

    def _check(self, flow: FlowId, weight: int) -> None:
        if flow.target not in self._nodes or flow.target == flow.source or flow.priority > 1:
            raise ValueError(f"no such flow: {flow}")
        if weight > MAX_WEIGHT:
            raise ValueError(f"weight = {weight}: at most {MAX_WEIGHT}")

    async def _change(
        self, after: Ledger, *, joined: FlowId | None = None, force: bool = False
    ) -> int | None:
        """Put `after` in force. Returns None when it is.

        Else it returns the node whose manager does not answer, and all is as before. That manager should have slowed
        flows down, or told a flow that has `joined` its share.

        The change is made nevertheless with `force`, or if all is carried with the flows of silent nodes as fast as
        they may be. No flow gets faster by such a change.

        It returns `NO_MAJORITY` if most nodes do not have the change. Then this is no longer the master, and nothing
        here counts any more.
        """
        before, old, new = self.ledger, self.shares, self._policy(after)
        kept = {flow: min(rate, new[flow]) for flow, rate in old.items() if flow in new}
        self._share(kept)
        slower = {flow.source for flow, rate in kept.items() if self._possible.get(flow, 0) > rate}
        silent, shares = await self._tell(slower), new
        if not self.leading:
            return NO_MAJORITY
        made = silent is None or force
        if silent is not None:
            shares = kept if joined is None else {joined: new[joined], **kept}
            most = {flow: max(rate, self._possible.get(flow, 0)) for flow, rate in shares.items()}
            made = made or carried(after, most)
        if made:
            if not await self._commit(before, after):
                return NO_MAJORITY
            self.ledger = after
            self._share(shares)
            silent = None
            if joined is not None:
                if joined in before.premium:
                    # It goes on as fast as it was until it is told.
                    self._possible[joined] = before.premium[joined]
                # Told also if its share is what it was: its node paid no heed to it when a join had been given up.
                self._versions[joined.source] += 1
                silent = await self._tell({joined.source})
            made = silent is None
            if not made and joined in before.premium:
                self._tell_later()  # it holds no reservation any more, whatever comes
                return silent
            if not made and not await self._commit(after, before):
                return NO_MAJORITY
        if not made:
            self.ledger = before
            self._share(old)
        self._tell_later()
        return None if made else silent

    async def _commit(self, before: Ledger, after: Ledger) -> bool:
        """Have most nodes know the difference."""
        flows = {*before.premium, *before.best_effort, *after.premium, *after.best_effort}
        changed = [
            Entry(flow, after.premium.get(flow, 0), after.best_effort.get(flow, 0))
            for flow in flows
            if before.premium.get(flow) != after.premium.get(flow)
            or before.best_effort.get(flow) != after.best_effort.get(flow)
        ]
        return not changed or await self._copies.commit(sorted(changed))

    def _share(self, shares: Shares) -> None:
        """Note what best-effort flows have now, and which nodes have to be told."""
        for node in self._nodes:
            if self._of(node, shares) != self._of(node, self.shares):
                self._versions[node] += 1
        self.shares = shares
        self._possible = {flow: rate for flow, rate in self._possible.items() if flow in shares}

    @staticmethod
    def _of(node: int, shares: Shares) -> Shares:
        return {flow: rate for flow, rate in shares.items() if flow.source == node}

    async def _tell(self, nodes: Iterable[int]) -> int | None:
        """Tell nodes what their flows have now. Returns None, or a node that does not answer."""
        nodes = sorted(nodes)
        told = await together(self._scheduler, (self._tell_one(node) for node in nodes), "master.job")
        return next((node for node, done in zip(nodes, told, strict=True) if not done), None)

    def _tell_later(self) -> None:
        """Tell every node that does not know, without waiting."""
        for node in self._nodes:
            if self._acknowledged[node] < self._versions[node] and node not in self._telling:
                self._telling.add(node)
                self._scheduler.spawn(self._tell_quietly(node), f"master.tell[{node}]")

    async def _tell_quietly(self, node: int) -> None:
        """Tell a node until it knows: flows that may be faster and are not told would stay slow, or parked, for
        ever."""
        while not await self._tell_one(node) and self.leading:
            await self._scheduler.sleep(self._retry_cycles)
        self._telling.discard(node)

    async def _tell_one(self, node: int) -> bool:
        """Tell a node, if it does not know. Returns whether it knows now."""
        async with self._told[node]:
            if self._acknowledged[node] == self._versions[node]:
                return True
            if not self.leading:
                return False
            version, shares = self._versions[node], self._of(node, self.shares)
            for flow, rate in shares.items():
                self._possible[flow] = max(rate, self._possible.get(flow, 0))
            try:
                for update in self._updates(shares):
                    answer = await self._calls.call(node, Kind.UPDATE, update.pack())
                    if answer.status is Status.NO_MASTER:
                        self._copies.depose()
                    if answer.status is not Status.OK:
                        return False
            except SilentError:
                return False
            self._acknowledged[node] = version
            self._possible |= {flow: rate for flow, rate in shares.items() if flow in self.shares}
            return True

    def _updates(self, shares: Shares) -> Iterator[Update]:
        """The updates for `shares`, as many flows in a message as it holds.

        Their order does not matter: the caller takes care that no flow gets faster before others are slower.
        """
        told = [
            (flow, rate, self._pace.best_effort_idt(rate, longest=self._longest))
            for flow, rate in shares.items()
        ]
        return (
            Update(ballot=self._copies.ballot, shares=told[at : at + UPDATE_FLOWS])
            for at in range(0, len(told) or 1, UPDATE_FLOWS)
        )
