"""Elections, and the copies of the ledger that every node keeps. With them no promise is lost when a master ends, or
any managers but most of them.

It is the rule of majorities:

- A candidate's ballot is larger than all that it has seen.
- A node promises to obey a ballot if it has promised no larger one, and says which version of the ledger it has.
- With the promises of more than half of the nodes the candidate is master. It takes the newest version among theirs,
  and brings every node to it.
- A change is in force when more than half of the nodes have it.

Any two majorities have a node in common. So every later master knows what was in force, and a master that was replaced
unnoticed can put nothing in force any more. A change that failed may be at some nodes only, and come into force with
the next master. So its caller's manager tells the master what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from lanikai.firmware.ports import Scheduler

from .record import NodeRecord
from .rpc import Calls, SilentError
from .together import together
from .versions import NO_BALLOT, Ballot, Entry, Replica, Version
from .wire import (
    ENTRIES,
    Answer,
    Change,
    Envelope,
    Kind,
    Status,
    Update,
    pack_ballot,
    pack_entries,
    pack_version,
    unpack_ballot,
    unpack_entries,
    unpack_version,
)

__all__ = ["Copies", "Voter"]

ELECTIONS = 2
"""Attempts: the second with a ballot larger than those that beat the first."""


class Voter:
    """A node's part: promises and copies, in its `record`. `deposed` is called when another node's ballot is
    promised."""

    def __init__(self, node: int, record: NodeRecord, deposed: Callable[[], None]) -> None:
        self._node, self._record, self._deposed = node, record, deposed

    def commands(self, ballot: Ballot) -> bool:
        """Whether a master may command here. A new one is promised obedience by the way."""
        if not self._promise(ballot):
            return False
        self._record.leader = ballot.node
        return True

    def _promise(self, ballot: Ballot) -> bool:
        if ballot < self._record.promised or ballot == NO_BALLOT:
            return False
        if ballot > self._record.promised:
            self._record.promised = ballot
            if ballot.node != self._node:
                self._deposed()
        return True

    def refusal(self) -> Answer:
        """The answer to one who does not command here: who does."""
        leader = self._record.leader
        return Answer(
            status=Status.NO_MASTER,
            vote=0 if leader is None else leader + 1,
            more=pack_ballot(self._record.promised),
        )

    def serve(self, call: Envelope, incarnation: int) -> Answer:
        """Serve `VOTE`, `FETCH` and `CHANGE`. Raises ValueError."""
        replica = self._record.replica
        if call.kind is Kind.CHANGE:
            change = Change.unpack(call.body)
            return self._change(change) if self.commands(change.ballot) else self.refusal()
        ballot, rest = unpack_ballot(call.body, more=int(call.kind is Kind.FETCH))
        if not self._promise(ballot):
            return self.refusal()
        if call.kind is Kind.FETCH:
            return Answer(status=Status.OK, more=pack_entries(replica.entries()[rest[0] : rest[0] + ENTRIES]))
        entries = len(replica.premium) + len(replica.best_effort)
        more = pack_version(replica.version, entries)
        return Answer(status=Status.OK, vote=ballot.node + 1, rate=incarnation, more=more)

    def _change(self, change: Change) -> Answer:
        replica = self._record.replica
        if replica.version == change.version:
            return Answer(status=Status.OK)  # it is here already
        if not change.reset and replica.version != change.base:
            return Answer(status=Status.BEHIND)
        version, staged = replica.staged
        if not change.at:
            version, staged = change.version, []
        if version != change.version or len(staged) != change.at:
            return Answer(status=Status.BEHIND)
        staged = [*staged, *change.entries]
        replica.staged = version, staged
        if len(staged) >= change.total:
            if change.reset:
                replica.premium.clear()
                replica.best_effort.clear()
            replica.apply(staged)
            replica.version = change.version
            replica.staged = Version(NO_BALLOT, 0), []
        return Answer(status=Status.OK)


class Copies:
    """A candidate's, then a master's part, on node `node` of `nodes`.

    - `leading`: whether it is the master as far as it knows.
    - `content`: the ledger as it was last put in force, or is being put.
    """

    def __init__(
        self, scheduler: Scheduler, *, node: int, nodes: Sequence[int], calls: Calls, record: NodeRecord
    ) -> None:
        self._scheduler = scheduler
        self._node, self._nodes, self._calls, self._record = node, nodes, calls, record
        self.leading = False
        self.ballot = NO_BALLOT
        self.content = Replica()
        self._voters: set[int] = set()
        self._seen = NO_BALLOT
        self._having: dict[int, Version] = {}
        self._change: tuple[Version, list[Entry]] = self.content.version, []
        self._bringing: set[int] = set()
        self._again: set[int] = set()
        self._progress = scheduler.flag()

    @property
    def voters(self) -> set[int]:
        """The nodes that have promised to obey, or obeyed."""
        return self._voters | {node for node, its in self._having.items() if its.ballot == self.ballot}

    def depose(self) -> None:
        """Note that another one is master."""
        self.leading = False

    async def elect(self) -> bool:
        """Become the master, if most nodes have it so."""
        for _ in range(ELECTIONS):
            count = max(self._record.promised.term, self._seen.term) + 1
            ballot = self.ballot = Ballot(count, self._node)
            self._voters = set()
            found: list[tuple[Version, int, int]] = []
            beaten = False

            async def ask(
                node: int, ballot: Ballot = ballot, found: list[tuple[Version, int, int]] = found
            ) -> None:
                nonlocal beaten
                answer = await self._call(node, Kind.VOTE, pack_ballot(ballot))
                if answer is None:
                    return
                if answer.status is Status.OK:
                    self._calls.met(node, answer.rate)
                    self._voters.add(node)
                    found.append((*unpack_version(answer.more), node))
                elif answer.status is Status.NO_MASTER:
                    beaten = True
                    self._seen = max(self._seen, unpack_ballot(answer.more)[0])

            await together(self._scheduler, (ask(node) for node in self._nodes), "master.job")
            if self._most(self._voters):
                # Among equally new copies take one's own, which need not be fetched.
                version, entries, node = max(found, key=lambda one: (one[0], one[2] == self._node))
                return await self._adopt(version, entries, node)
            if not beaten:
                break
        return False

    async def _adopt(self, version: Version, entries: int, node: int) -> bool:
        """Take a voter's copy over, and bring all to it."""
        if node == self._node:
            self.content = self._record.replica.copy()
        else:
            fetched: list[Entry] = []
            while len(fetched) < entries:
                answer = await self._call(node, Kind.FETCH, pack_ballot(self.ballot, len(fetched)))
                if answer is None or answer.status is not Status.OK or not answer.more:
                    return False
                fetched += unpack_entries(answer.more)
            self.content = Replica(version)
            self.content.apply(fetched)
        self.leading = True
        self._having = {}
        return await self.commit([])

    async def commit(self, entries: Sequence[Entry]) -> bool:
        """Put a change in force. If this fails, whether it will come into force is open: this is no longer the
        master."""
        if not self.leading:
            return False
        base = self.content.version
        index = base.step + 1 if base.ballot == self.ballot else 1
        version = Version(self.ballot, index)
        self._change = base, list(entries)
        self.content.apply(entries)
        self.content.version = version
        for node in self._nodes:
            self._again.add(node)
            if node not in self._bringing:
                self._bringing.add(node)
                self._scheduler.spawn(self._bring(node), f"master.copy[{node}]")
        while True:
            self._progress.clear()
            having = {node for node, its in self._having.items() if its >= version}
            if self._most(having) or not self.leading or not self._bringing - having:
                break
            await self._progress.wait()
        self.leading = self.leading and self._most(having)
        return self.leading

    async def confirm(self) -> bool:
        """Whether most nodes obey still: each is asked after this was called. If not, this is no longer the master."""
        ballot, obeying, asked = self.ballot, set[int](), 0
        told = self._scheduler.flag()

        async def ask(node: int) -> None:
            nonlocal asked
            answer = await self._call(node, Kind.UPDATE, Update(ballot=ballot, shares=[]).pack())
            if answer is not None and answer.status is Status.OK:
                obeying.add(node)
            elif answer is not None and answer.status is Status.NO_MASTER and ballot == self.ballot:
                self.depose()
            asked += 1
            told.set()

        for node in self._nodes if self.leading else ():
            self._scheduler.spawn(ask(node), f"master.confirm[{node}]")
        while self.leading and ballot == self.ballot and not self._most(obeying):
            if asked == len(self._nodes):
                self.depose()
                break
            await told.wait()
            told.clear()
        return self.leading and ballot == self.ballot

    async def _bring(self, node: int) -> None:
        """Bring a node to the newest version: one attempt for each change, and no queue of them where none answers."""
        while node in self._again and self.leading:
            self._again.discard(node)
            version = await self._copy(node)
            if version is not None:
                self._having[node] = version
            self._progress.set()
        self._bringing.discard(node)
        self._progress.set()

    async def _copy(self, node: int) -> Version | None:
        """Bring a node to the newest version, by the change or with all of the ledger. Returns the version that it has
        then."""
        version, (base, entries) = self.content.version, self._change
        status: Status | None = Status.BEHIND
        if self._having.get(node, base) == base:
            status = await self._send_all(node, version, base, entries, reset=False)
        if status is Status.BEHIND:
            version, everything = self.content.version, self.content.entries()
            status = await self._send_all(node, version, base, everything, reset=True)
        return version if status is Status.OK else None

    async def _send_all(
        self, node: int, version: Version, base: Version, entries: Sequence[Entry], *, reset: bool
    ) -> Status | None:
        for change in self._changes(version, base, entries, reset=reset):
            status = await self._send(node, change)
            if status is not Status.OK:
                return status
        return Status.OK

    @staticmethod
    def _changes(
        version: Version, base: Version, entries: Sequence[Entry], *, reset: bool
    ) -> Iterator[Change]:
        for at in range(0, len(entries) or 1, ENTRIES):
            yield Change(
                ballot=version.ballot,
                index=version.step,
                base=base,
                reset=reset,
                at=at,
                total=len(entries),
                entries=entries[at : at + ENTRIES],
            )

    async def _send(self, node: int, change: Change) -> Status | None:
        answer = await self._call(node, Kind.CHANGE, change.pack())
        if answer is None:
            return None
        if answer.status is Status.NO_MASTER and change.ballot == self.ballot:
            self._seen = max(self._seen, unpack_ballot(answer.more)[0])
            self.depose()
        return answer.status

    async def _call(self, node: int, kind: Kind, body: bytes) -> Answer | None:
        try:
            return await self._calls.call(node, kind, body)
        except SilentError:
            return None

    def _most(self, nodes: Iterable[int]) -> bool:
        return 2 * len(set(nodes)) > len(self._nodes)
