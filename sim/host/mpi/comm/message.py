"""Messages that have been taken by a probe and are still to be received (MPI 3, 3.8.2)."""

from __future__ import annotations

from typing import Any

from ..data.pickled import as_object
from ..data.request import Request
from ..data.status import Status, check_status
from ..errors import RequestError
from ..matching import ANY_TAG, PROC_NULL
from ..process import Arrived
from .base import Comm, with_finish

__all__ = ["Message"]


class Message:
    """A message that `Mprobe` has taken, to be received once. A message from PROC_NULL is empty."""

    def __init__(self, comm: Comm, arrived: Arrived | None) -> None:
        self._comm, self._arrived = comm, arrived
        self._received = False
        self.status = Status(PROC_NULL, ANY_TAG, 0) if arrived is None else arrived.status

    async def Recv(self, buf: Any, status: Status | None = None) -> None:
        """Receive it. Raises TruncationError; RequestError if it has been received."""
        async with self._comm._call("Message.Recv"):
            check_status(status, f"Message.Recv on {self._comm.name}")
            await self._comm._finished(await self._begin("Message.Recv", buf), status)

    async def Irecv(self, buf: Any) -> Request:
        """Begin to receive it."""
        async with self._comm._call("Message.Irecv"):
            return await self._begin("Message.Irecv", buf)

    async def recv(self, status: Status | None = None) -> Any:
        """Receive the object that it is."""
        async with self._comm._call("Message.recv"):
            check_status(status, f"Message.recv on {self._comm.name}")
            return await self._comm._finished(await self._begin_object("Message.recv"), status)

    async def irecv(self) -> Request:
        """Begin to receive the object that it is."""
        async with self._comm._call("Message.irecv"):
            return await self._begin_object("Message.irecv")

    async def _begin(self, call: str, buf: Any) -> Request:
        what = self._describe(call)
        data = self._comm._incoming(buf, what)
        return with_finish(await self._receive(what, data.view), data)

    async def _begin_object(self, call: str) -> Request:
        return as_object(await self._receive(self._describe(call), None))

    def _describe(self, call: str) -> str:
        if self._received:
            raise RequestError(f"{call} on {self._comm.name}: the message has been received already")
        return self._comm._describe(call, "from", self.status.source, self.status.tag)

    async def _receive(self, what: str, view: memoryview | None) -> Request:
        self._received = True
        if self._arrived is None:
            return self._comm._nothing(what)
        return await self._comm.process.receive_message(self._arrived, view, what)
