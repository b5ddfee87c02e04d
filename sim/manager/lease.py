"""A node's lease: what its flows hold counts only as long as a master has confirmed it lately.

A node that is cut off from the others goes on sending, and a master that finds it dead gives others what it held. So
the node asks the master again and again (`RENEW`). Its flows rest once `lease_ticks`, less an eighth, have passed since
it sent the last call that was answered. A master frees what a dead node holds `lease_ticks` after it has answered that
node, or came into office, at the earliest.

The master answers once most nodes have said, after the call has come, that they obey it. A later master is elected by
most nodes, too. One of them did both, and first obeyed the earlier master. So the call was sent before the later master
came into office. The lease ends before that one frees anything, however long the earlier one holds itself to be master.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lanikai.firmware.ports import Scheduler

from .line import MasterLine
from .record import NodeRecord
from .rpc import SilentError
from .versions import Entry
from .wire import Kind, Status, unpack_entries

__all__ = ["RENEWALS", "Lease"]

RENEWALS = 4
"""Calls in the time of a lease."""
MARGIN = 8
"""The node's flows rest so much of the lease before its end: to set a card takes time."""


class Lease:
    """The lease of node `node` with this `record`, for `cycles`.

    - `line` leads to the master.
    - `ended` says that the manager has ended.
    - `rest` sets the card's flows to `record.resting`.
    - `resume` is called when a master may be there again.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        node: int,
        record: NodeRecord,
        line: MasterLine,
        cycles: int,
        ended: Callable[[], bool],
        rest: Callable[[], Awaitable[None]],
        resume: Callable[[], Awaitable[None]],
    ) -> None:
        self._scheduler, self._node, self._record, self._line = scheduler, node, record, line
        self._cycles, self._ended, self._rest, self._resume = cycles, ended, rest, resume
        self._granted = scheduler.flag()

    @property
    def over(self) -> bool:
        """Whether flows that hold something have to rest."""
        return self._record.holds and self._scheduler.cycle >= self._end

    @property
    def _end(self) -> int:
        return self._record.renewed + self._cycles - self._cycles // MARGIN

    def start(self) -> None:
        """Watch over the lease, from now on."""
        if self._record.holds:
            self._granted.set()
        self._scheduler.spawn(self._watch(), f"manager[{self._node}].lease")
        self._scheduler.spawn(self._renew_again(), f"manager[{self._node}].renew")

    def granted(self, sent: int) -> None:
        """A call that was sent in cycle `sent` was granted: most nodes obeyed the master after that."""
        self._record.renewed = max(self._record.renewed, sent)
        self._granted.set()

    async def renew(self, *, tell: bool) -> list[Entry] | None:
        """Ask the master. Returns what the node holds by the master's ledger, if the master is to `tell`; None without
        an answer."""
        sent = self._scheduler.cycle
        try:
            answer = await self._line.call(Kind.RENEW, bytes([tell]))
        except SilentError:
            return None
        if answer.status is not Status.OK or self._ended():
            return None
        self._record.renewed = max(self._record.renewed, sent)
        return None if self.over else unpack_entries(answer.more)

    async def _watch(self) -> None:
        """Have the flows rest in time."""
        while not self._ended():
            await self._granted.wait()
            if not self._record.holds:
                self._granted.clear()
            elif self._record.resting or not self.over:
                left = self._end - self._scheduler.cycle
                await self._scheduler.sleep(left if left > 0 else self._cycles // MARGIN)
            else:
                self._record.resting = True
                await self._rest()

    async def _renew_again(self) -> None:
        while not self._ended():
            await self._granted.wait()
            await self._scheduler.sleep(max(1, self._cycles // RENEWALS))
            if self._record.holds and not self._ended():
                await (self._resume() if self._record.resting else self.renew(tell=False))
