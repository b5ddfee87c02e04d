"""Collective operations on buffers, under mpi4py's names and arguments; each also as a request.

Every rank's elements must be of the same type and number where MPI says so. A rank that gives others gets a
CollectiveError, and with it the program of all.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ..collectives import movement, reductions
from ..collectives.exchange import Exchange
from ..data.buffers import IN_PLACE, Data, Parts, data_of, parts_of
from ..data.ops import SUM, Op
from ..data.request import Request
from ..errors import BufferKindError, CollectiveError, OperationError
from .base import Comm

__all__ = ["Collectives"]

Work = Callable[[Exchange], Coroutine[Any, Any, None]]


class Collectives(Comm):
    """Calls that all ranks make, in the same order."""

    async def Barrier(self) -> None:
        """Return when all ranks have called it."""
        await self._run("Barrier", lambda what: movement.barrier)

    async def Ibarrier(self) -> Request:
        """Begin a `Barrier`."""
        return await self._start("Ibarrier", lambda what: movement.barrier)

    async def Bcast(self, buf: Any, root: int = 0) -> None:
        """Copy the elements of rank `root`'s buffer into everybody's."""
        await self._run("Bcast", lambda what: self._bcast(what, buf, root))

    async def Ibcast(self, buf: Any, root: int = 0) -> Request:
        """Begin a `Bcast`."""
        return await self._start("Ibcast", lambda what: self._bcast(what, buf, root))

    async def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Everybody's elements at the root, by rank. Elsewhere `recvbuf` is None."""
        await self._run("Gather", lambda what: self._gather(what, sendbuf, recvbuf, root))

    async def Igather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin a `Gather`."""
        return await self._start("Igather", lambda what: self._gather(what, sendbuf, recvbuf, root))

    async def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """`Gather` of parts of any length: `recvbuf` is `[data, counts, displacements, datatype]`."""
        await self._run("Gatherv", lambda what: self._gather(what, sendbuf, recvbuf, root))

    async def Igatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin a `Gatherv`."""
        return await self._start("Igatherv", lambda what: self._gather(what, sendbuf, recvbuf, root))

    async def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """A part of the root's elements to every rank. Elsewhere `sendbuf` is None."""
        await self._run("Scatter", lambda what: self._scatter(what, sendbuf, recvbuf, root))

    async def Iscatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin a `Scatter`."""
        return await self._start("Iscatter", lambda what: self._scatter(what, sendbuf, recvbuf, root))

    async def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """`Scatter` of parts of any length: `sendbuf` is `[data, counts, displacements, datatype]`."""
        await self._run("Scatterv", lambda what: self._scatter(what, sendbuf, recvbuf, root))

    async def Iscatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin a `Scatterv`."""
        return await self._start("Iscatterv", lambda what: self._scatter(what, sendbuf, recvbuf, root))

    async def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Everybody's elements at everybody, by rank."""
        await self._run("Allgather", lambda what: self._allgather(what, sendbuf, recvbuf))

    async def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin an `Allgather`."""
        return await self._start("Iallgather", lambda what: self._allgather(what, sendbuf, recvbuf))

    async def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """`Allgather` of parts of any length."""
        await self._run("Allgatherv", lambda what: self._allgather(what, sendbuf, recvbuf))

    async def Iallgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin an `Allgatherv`."""
        return await self._start("Iallgatherv", lambda what: self._allgather(what, sendbuf, recvbuf))

    async def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Part r of everybody's elements to rank r, by the sender's rank."""
        await self._run("Alltoall", lambda what: self._alltoall(what, sendbuf, recvbuf))

    async def Ialltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin an `Alltoall`."""
        return await self._start("Ialltoall", lambda what: self._alltoall(what, sendbuf, recvbuf))

    async def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """`Alltoall` of parts of any length."""
        await self._run("Alltoallv", lambda what: self._alltoall(what, sendbuf, recvbuf))

    async def Ialltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin an `Alltoallv`."""
        return await self._start("Ialltoallv", lambda what: self._alltoall(what, sendbuf, recvbuf))

    async def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        """Everybody's elements combined, at the root. Elsewhere `recvbuf` is None."""
        await self._run("Reduce", lambda what: self._reduce(what, sendbuf, recvbuf, op, root), op)

    async def Ireduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Request:
        """Begin a `Reduce`."""
        return await self._start("Ireduce", lambda what: self._reduce(what, sendbuf, recvbuf, op, root), op)

    async def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Everybody's elements combined: the same result, to the bit, at every rank."""
        await self._run("Allreduce", lambda what: self._allreduce(what, sendbuf, recvbuf, op), op)

    async def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin an `Allreduce`."""
        return await self._start("Iallreduce", lambda what: self._allreduce(what, sendbuf, recvbuf, op), op)

    async def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Everybody's elements combined, an equal part of the result at every rank."""
        await self._run(
            "Reduce_scatter_block", lambda what: self._reduce_scatter(what, sendbuf, recvbuf, None, op), op
        )

    async def Ireduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin a `Reduce_scatter_block`."""
        return await self._start(
            "Ireduce_scatter_block", lambda what: self._reduce_scatter(what, sendbuf, recvbuf, None, op), op
        )

    async def Reduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: Op = SUM
    ) -> None:
        """Everybody's elements combined, `recvcounts[r]` of the result at rank r; equal parts by default."""
        await self._run(
            "Reduce_scatter", lambda what: self._reduce_scatter(what, sendbuf, recvbuf, recvcounts, op), op
        )

    async def Ireduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: Op = SUM
    ) -> Request:
        """Begin a `Reduce_scatter`."""
        return await self._start(
            "Ireduce_scatter", lambda what: self._reduce_scatter(what, sendbuf, recvbuf, recvcounts, op), op
        )

    async def Scan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Rank r gets the elements of ranks 0 to r combined."""
        await self._run("Scan", lambda what: self._scan(what, sendbuf, recvbuf, op, True), op)

    async def Iscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin a `Scan`."""
        return await self._start("Iscan", lambda what: self._scan(what, sendbuf, recvbuf, op, True), op)

    async def Exscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Rank r gets the elements of ranks 0 to r - 1 combined; rank 0 nothing."""
        await self._run("Exscan", lambda what: self._scan(what, sendbuf, recvbuf, op, False), op)

    async def Iexscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin an `Exscan`."""
        return await self._start("Iexscan", lambda what: self._scan(what, sendbuf, recvbuf, op, False), op)

    # -- checks: each returns the work --------------------------------------------------------------------------------

    async def _run(self, call: str, work: Callable[[str], Work], op: Op | None = None) -> None:
        async with self._call(call):
            ready = work(call)
            await ready(Exchange(self, call, op))

    async def _start(self, call: str, work: Callable[[str], Work], op: Op | None = None) -> Request:
        async with self._call(call):
            ready = work(call)
            exchange = Exchange(self, call, op, blocking=False)
            return await self.process.begin(ready(exchange), exchange.what)

    def _bcast(self, call: str, buf: Any, root: Any) -> Work:
        rank = self._check_rank(root, call, "root")
        data = data_of(buf, f"{call} on {self.name}", writable=self.rank != rank)
        return lambda exchange: movement.bcast(exchange, data, rank)

    def _gather(self, call: str, sendbuf: Any, recvbuf: Any, root: Any) -> Work:
        rank = self._check_rank(root, call, "root")
        mine = self._own(call, "sendbuf", sendbuf, self.rank == rank)
        into = self._parts(call, recvbuf, writable=True) if self.rank == rank else None
        return lambda exchange: movement.gather(exchange, mine, into, rank)

    def _scatter(self, call: str, sendbuf: Any, recvbuf: Any, root: Any) -> Work:
        rank = self._check_rank(root, call, "root")
        mine = self._own(call, "recvbuf", recvbuf, self.rank == rank, writable=True)
        out = self._parts(call, sendbuf) if self.rank == rank else None
        return lambda exchange: movement.scatter(exchange, out, mine, rank)

    def _allgather(self, call: str, sendbuf: Any, recvbuf: Any) -> Work:
        mine = self._own(call, "sendbuf", sendbuf, True)
        parts = self._parts(call, recvbuf, writable=True)

        async def work(exchange: Exchange) -> None:
            if mine is not None:
                exchange.copy(mine, parts.part(self.rank))
            await movement.allgather(exchange, parts)

        return work

    def _alltoall(self, call: str, sendbuf: Any, recvbuf: Any) -> Work:
        into = self._parts(call, recvbuf, writable=True)
        if sendbuf is IN_PLACE:
            whole = into.data
            same = Data(memoryview(bytes(whole.view)), whole.dtype, whole.count)
            out = Parts(same, into.counts, into.displacements)
        else:
            out = self._parts(call, sendbuf)
        return lambda exchange: movement.alltoall(exchange, out, into)

    def _reduce(self, call: str, sendbuf: Any, recvbuf: Any, op: Any, root: Any) -> Work:
        rank = self._check_rank(root, call, "root")
        if self.rank != rank:
            mine = self._own(call, "sendbuf", sendbuf, False)
            assert mine is not None
            self._check_op(call, op, mine)

            async def give(exchange: Exchange) -> None:
                await reductions.reduce(exchange, mine.array, op, rank)

            return give
        return self._reduced(
            call, sendbuf, recvbuf, op, lambda exchange, array: reductions.reduce(exchange, array, op, rank)
        )

    def _allreduce(self, call: str, sendbuf: Any, recvbuf: Any, op: Any) -> Work:
        return self._reduced(
            call, sendbuf, recvbuf, op, lambda exchange, array: reductions.allreduce(exchange, array, op)
        )

    def _scan(self, call: str, sendbuf: Any, recvbuf: Any, op: Any, inclusive: bool) -> Work:
        return self._reduced(
            call,
            sendbuf,
            recvbuf,
            op,
            lambda exchange, array: reductions.scan(exchange, array, op, inclusive=inclusive),
        )

    def _reduced(
        self,
        call: str,
        sendbuf: Any,
        recvbuf: Any,
        op: Any,
        reduce: Callable[[Exchange, Any], Coroutine[Any, Any, Any]],
    ) -> Work:
        """Work whose result, if there is one, is as long as the elements that every rank gives."""
        what = f"{call} on {self.name}"
        into = data_of(recvbuf, what, writable=True)
        mine = self._own(call, "sendbuf", sendbuf, True) or into
        self._check_op(call, op, mine)
        if (mine.dtype, mine.count) != (into.dtype, into.count):
            raise CollectiveError(
                f"{what}: sendbuf has {mine.count} elements of {mine.dtype.name}, recvbuf {into.count} of "
                f"{into.dtype.name}"
            )

        async def work(exchange: Exchange) -> None:
            result = await reduce(exchange, mine.array)
            if result is not None:
                into.put(result)

        return work

    def _reduce_scatter(self, call: str, sendbuf: Any, recvbuf: Any, recvcounts: Any, op: Any) -> Work:
        what = f"{call} on {self.name}"
        into = data_of(recvbuf, what, writable=True)
        mine = self._own(call, "sendbuf", sendbuf, True) or into
        self._check_op(call, op, mine)
        whole = [mine, None] if recvcounts is None else [mine, list(recvcounts)]
        counts = parts_of([mine.view, whole[1], mine.dtype], self.size, what).counts
        if sum(counts) != mine.count:
            raise CollectiveError(f"{what}: recvcounts are {sum(counts)} elements, sendbuf has {mine.count}")
        count = counts[self.rank]
        if into.count < count or into.dtype != mine.dtype or (into.count != count and into is not mine):
            raise CollectiveError(
                f"{what}: recvbuf has {into.count} elements of {into.dtype.name}: {count} of {mine.dtype.name}"
            )

        async def work(exchange: Exchange) -> None:
            result = await reductions.reduce_scatter(exchange, mine.array, op, counts)
            into.view[: len(result) * into.dtype.itemsize] = result.tobytes()
            into.finish()

        return work

    def _own(
        self, call: str, name: str, buf: Any, may_be_in_place: bool, *, writable: bool = False
    ) -> Data | None:
        """A rank's own elements; None if they are in place."""
        if buf is IN_PLACE:
            if not may_be_in_place:
                raise BufferKindError(
                    f"{call} on {self.name}: {name} = IN_PLACE at a rank that is not the root"
                )
            return None
        return data_of(buf, f"{call} on {self.name}", writable=writable)

    def _parts(self, call: str, buf: Any, *, writable: bool = False) -> Parts:
        return parts_of(buf, self.size, f"{call} on {self.name}", writable=writable)

    def _check_op(self, call: str, op: Any, mine: Data) -> None:
        what = f"{call} on {self.name}"
        if not isinstance(op, Op):
            raise OperationError(f"{what}: op = {op!r}: MPI.SUM, MPI.MAX, ... or an Op.Create")
        op.check(mine.dtype, what)
