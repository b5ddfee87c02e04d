"""The master: decides on requests, one after the other, and keeps every node told of its best-effort flows' shares.

A change is made in this order, so that at no time more is given than there is: best-effort flows that get slower are
slowed down, and their managers have said so; the change is in force, and its caller is told; flows that get faster
are told. If a manager whose flows have to get slower does not answer, the change is not made.

It grants nothing before most of the nodes have voted for it. Each votes for one manager only, the one that it is
configured for, so that of two managers that were both started as master at most one grants.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from lanikai.firmware.lock import Lock
from lanikai.firmware.ports import Scheduler

from .capacity import Pace
from .flows import MAX_WEIGHT, FlowId
from .ledger import Ledger
from .rpc import Calls, SilentError
from .sharing import Policy, carried
from .wire import Answer, Envelope, Kind, Request, Stand, Status, Update

__all__ = ["Master"]

Shares = dict[FlowId, int]


class Master:
    """The master on node `node`. `ledger`: who holds what (it begins empty); `policy`: how best-effort flows share;
    `pace`, `longest_idt_ticks`: of the cards; `calls`: to the other managers; `decide` lets the time of a decision
    pass; `retry_cycles`: rest before a node that did not answer is told again that flows of its may be faster.

    `shares`: bytes a second of every best-effort flow. `ended`: set it to have nobody told any more.
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
        calls: Calls,
        decide: Callable[[], Awaitable[None]],
        retry_cycles: int,
    ) -> None:
        self._scheduler = scheduler
        self._node = node
        self.ledger = ledger
        self.shares: Shares = {}
        self._policy, self._pace, self._longest = policy, pace, longest_idt_ticks
        self._calls, self._decide, self._retry_cycles = calls, decide, retry_cycles
        self.ended = False
        self._nodes = range(ledger.capacity.nodes)
        # What each flow may have at most by what its manager has been told, whether it answered or not.
        self._possible: Shares = {}
        self._votes: set[int] = set()
        self._lock = Lock(scheduler.flag)
        self._told: dict[int, Lock] = {node: Lock(scheduler.flag) for node in self._nodes}
        self._versions = dict.fromkeys(self._nodes, 0)
        self._acknowledged = dict.fromkeys(self._nodes, 0)
        self._telling: set[int] = set()

    @property
    def votes(self) -> frozenset[int]:
        """The nodes that have voted for it."""
        return frozenset(self._votes)

    async def start(self) -> None:
        """Ask for votes."""
        async with self._lock:
            await self._elect()

    async def serve(self, call: Envelope) -> Answer:
        """Serve a call. Raises ValueError for one that is none of the master's."""
        async with self._lock:
            if not await self._elect():
                return Answer(status=Status.NO_MASTER, place=len(self._votes))
            await self._decide()
            if call.kind is Kind.REQUEST:
                return await self._request(Request.unpack(call.sender, call.body))
            if call.kind is Kind.STAND:
                stand = Stand.unpack(call.sender, call.body)
                return await self._stand(stand.flow, stand.weight)
            if call.kind is Kind.PORT_CLOSED and len(call.body) == 1:
                return await self._take_back(self.ledger.held(call.sender, call.body[0]))
            raise ValueError(f"a call of kind {call.kind!r}, {len(call.body)} bytes")

    async def restarted(self, node: int) -> None:
        """The manager of a node has been started again: it knows of no flow, and has not voted."""
        async with self._lock:
            self._votes.discard(node)
            await self._take_back(self.ledger.held(node))

    async def _elect(self) -> bool:
        """Whether most nodes have voted for this master; those that have not are asked if it matters."""
        if not self._elected():
            missing = [node for node in self._nodes if node not in self._votes]
            await self._gather(self._ask_vote(node) for node in missing)
        return self._elected()

    def _elected(self) -> bool:
        return 2 * len(self._votes) > len(self._nodes)

    async def _ask_vote(self, node: int) -> None:
        try:
            answer = await self._calls.call(node, Kind.VOTE)
        except SilentError:
            return
        if answer.status is Status.OK and answer.vote == self._node + 1:
            self._calls.met(node, answer.rate)
            self._votes.add(node)

    async def _request(self, request: Request) -> Answer:
        flow, rate = request.flow, request.rate
        self._check(flow, request.weight)
        if not 1 <= rate <= self._pace.peak:
            raise ValueError(f"{rate} bytes a second: 1 to {self._pace.peak}")
        # What the flow holds beyond what its node knows of was granted in an answer that never arrived.
        before = self.ledger.copy()
        before.stand(flow, request.weight)
        refusal = before.check(flow, rate)
        if refusal is not None:
            await self._change(before, force=True)
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
        if silent is not None:
            await self._change(before, force=True)
            return Answer(status=Status.SILENT, place=silent)
        return Answer(status=Status.OK, rate=rate, idt_ticks=self._pace.premium_idt(rate))

    async def _stand(self, flow: FlowId, weight: int) -> Answer:
        self._check(flow, weight)
        after = self.ledger.copy()
        after.stand(flow, weight)
        silent = await self._change(after, joined=flow if weight else None, force=not weight)
        return Answer(status=Status.OK) if silent is None else Answer(status=Status.SILENT, place=silent)

    async def _take_back(self, flows: Iterable[FlowId]) -> Answer:
        after = self.ledger.copy()
        for flow in flows:
            after.stand(flow, 0)
        await self._change(after, force=True)
        return Answer(status=Status.OK)

    def _check(self, flow: FlowId, weight: int) -> None:
        if flow.target not in self._nodes or flow.target == flow.source or flow.priority > 1:
            raise ValueError(f"no such flow: {flow}")
        if weight > MAX_WEIGHT:
            raise ValueError(f"weight = {weight}: at most {MAX_WEIGHT}")

    async def _change(
        self, after: Ledger, *, joined: FlowId | None = None, force: bool = False
    ) -> int | None:
        """Put `after` in force. None, or the node whose manager should have slowed flows down, or told a flow that
        has `joined` its share, and does not answer; then all is as before. With `force`, or if all is carried
        with the flows of silent nodes as fast as they may be, the change is made nevertheless, but no flow gets
        faster by it."""
        before, old, new = self.ledger, self.shares, self._policy(after)
        kept = {flow: min(rate, new[flow]) for flow, rate in old.items() if flow in new}
        self._share(kept)
        slower = {flow.source for flow, rate in kept.items() if self._possible.get(flow, 0) > rate}
        silent, shares = await self._tell(slower), new
        made = silent is None or force
        if silent is not None:
            shares = kept if joined is None else {joined: new[joined], **kept}
            most = {flow: max(rate, self._possible.get(flow, 0)) for flow, rate in shares.items()}
            made = made or carried(after, most)
        if made:
            self.ledger = after
            self._share(shares)
            silent = None
            if joined is not None:
                # Told also if its share is what it was: its node paid no heed to it when a join had been given up.
                self._versions[joined.source] += 1
                silent = await self._tell({joined.source})
            made = silent is None
        if not made:
            self.ledger = before
            self._share(old)
        self._tell_later()
        return None if made else silent

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
        """Tell nodes what their flows have now; None, or one that does not answer."""
        nodes = sorted(nodes)
        told = await self._gather(self._tell_one(node) for node in nodes)
        return next((node for node, done in zip(nodes, told, strict=True) if not done), None)

    def _tell_later(self) -> None:
        """Tell every node that does not know, without waiting."""
        for node in self._nodes:
            if self._acknowledged[node] < self._versions[node] and node not in self._telling:
                self._telling.add(node)
                self._scheduler.spawn(self._tell_quietly(node), f"master.tell[{node}]")

    async def _tell_quietly(self, node: int) -> None:
        """Until it knows: flows that may be faster and are not told would stay slow, or parked, for ever."""
        while not await self._tell_one(node) and not self.ended:
            await self._scheduler.sleep(self._retry_cycles)
        self._telling.discard(node)

    async def _tell_one(self, node: int) -> bool:
        """Tell a node, if it does not know; whether it knows now."""
        async with self._told[node]:
            if self._acknowledged[node] == self._versions[node]:
                return True
            if not await self._has_vote(node):
                return False
            version, shares = self._versions[node], self._of(node, self.shares)
            for flow, rate in shares.items():
                self._possible[flow] = max(rate, self._possible.get(flow, 0))
            try:
                answer = await self._calls.call(node, Kind.UPDATE, self._update(shares))
            except SilentError:
                return False
            if answer.status is not Status.OK:
                return False
            self._acknowledged[node] = version
            self._possible |= {flow: rate for flow, rate in shares.items() if flow in self.shares}
            return True

    async def _has_vote(self, node: int) -> bool:
        """Whether a node has voted. A node obeys none but the master that it has voted for, and most may have voted
        without it: its vote was lost, or it has been started again."""
        if node not in self._votes:
            await self._ask_vote(node)
        return node in self._votes

    def _update(self, shares: Shares) -> bytes:
        return Update(
            shares=[
                (flow, rate, self._pace.best_effort_idt(rate, longest=self._longest))
                for flow, rate in shares.items()
            ]
        ).pack()

    async def _gather(self, jobs: Iterable[Awaitable[bool | None]]) -> list[bool | None]:
        """Run jobs side by side; their results."""
        waiting = list(jobs)
        results: list[bool | None] = [None] * len(waiting)
        left = len(waiting)
        done = self._scheduler.flag()

        async def one(place: int, job: Awaitable[bool | None]) -> None:
            nonlocal left
            results[place] = await job
            left -= 1
            if not left:
                done.set()

        for place, job in enumerate(waiting):
            self._scheduler.spawn(one(place, job), f"master.job[{place}]")
        if waiting:
            await done.wait()
        return results
