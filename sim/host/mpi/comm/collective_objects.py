"""Collective operations on Python objects, pickled: mpi4py's calls in lower case."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ..collectives import objects
from ..collectives.exchange import Exchange
from ..data.ops import SUM, Op
from ..errors import OperationError
from .collective_calls import Collectives

__all__ = ["ObjectCollectives"]


class ObjectCollectives(Collectives):
    """Calls that all ranks make, in the same order, each with an object."""

    async def barrier(self) -> None:
        """`Barrier`."""
        await self.Barrier()

    async def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object, at everybody."""
        return await self._with("bcast", root, lambda exchange, rank: objects.bcast(exchange, obj, rank))

    async def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Everybody's objects at the root, by rank; None elsewhere."""
        return await self._with(
            "gather", root, lambda exchange, rank: objects.gather(exchange, sendobj, rank)
        )

    async def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Object r of the root's sequence to rank r."""
        return await self._with(
            "scatter", root, lambda exchange, rank: objects.scatter(exchange, sendobj, rank)
        )

    async def allgather(self, sendobj: Any) -> list[Any]:
        """Everybody's objects at everybody, by rank."""
        return await self._with("allgather", 0, lambda exchange, _: objects.allgather(exchange, sendobj))

    async def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Object r of everybody's sequence to rank r, by the sender's rank."""
        return await self._with("alltoall", 0, lambda exchange, _: objects.alltoall(exchange, sendobj))

    async def reduce(self, sendobj: Any, op: Op = SUM, root: int = 0) -> Any:
        """Everybody's objects combined in the ranks' order, at the root; None elsewhere."""
        return await self._with(
            "reduce", root, lambda exchange, rank: objects.reduce(exchange, sendobj, op, rank), op
        )

    async def allreduce(self, sendobj: Any, op: Op = SUM) -> Any:
        """Everybody's objects combined in the ranks' order, at everybody."""

        async def work(exchange: Exchange, _: int) -> Any:
            return await objects.bcast(exchange, await objects.reduce(exchange, sendobj, op, 0), 0)

        return await self._with("allreduce", 0, work, op)

    async def scan(self, sendobj: Any, op: Op = SUM) -> Any:
        """The objects of ranks 0 to this one combined."""
        return await self._with(
            "scan", 0, lambda exchange, _: objects.scan(exchange, sendobj, op, inclusive=True), op
        )

    async def exscan(self, sendobj: Any, op: Op = SUM) -> Any:
        """The objects of the ranks below this one combined; None at rank 0."""
        return await self._with(
            "exscan", 0, lambda exchange, _: objects.scan(exchange, sendobj, op, inclusive=False), op
        )

    async def _with(
        self,
        call: str,
        root: Any,
        work: Callable[[Exchange, int], Coroutine[Any, Any, Any]],
        op: Any = SUM,
    ) -> Any:
        async with self._call(call):
            rank = self._check_rank(root, call, "root")
            if not isinstance(op, Op):
                raise OperationError(
                    f"{call} on {self.name}: op = {op!r}: MPI.SUM, MPI.MAX, ... or an Op.Create"
                )
            return await work(Exchange(self, call, op), rank)
