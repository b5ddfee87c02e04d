"""Messages of buffers, under mpi4py's names and arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..data.arguments import whole
from ..data.buffers import data_of
from ..data.request import Prequest, Request
from ..data.status import Status
from ..errors import LengthError
from ..matching import ANY_SOURCE, ANY_TAG, PROC_NULL, Wanted
from .base import Comm
from .message import Message

__all__ = ["BSEND_OVERHEAD", "PointToPoint"]

BSEND_OVERHEAD = 0
"""Bytes of an attached buffer that a message needs beside its own."""


class PointToPoint(Comm):
    """Calls with a buffer, which `data.buffers` describes."""

    # -- sends -----------------------------------------------------------------------------------------------------

    async def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send; returns when the buffer is the caller's again. A message longer than `MpiConfig.eager_bytes` waits for
        its receive."""
        await self._send("Send", buf, dest, tag)

    async def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send; returns when a receive has been found for it."""
        await self._send("Ssend", buf, dest, tag)

    async def Rsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send to a receive that waits already; one that does not yet is no error here."""
        await self._send("Rsend", buf, dest, tag)

    async def Bsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send from a copy in the attached buffer; returns at once. Raises LengthError if that has no room."""
        await self._send("Bsend", buf, dest, tag)

    async def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send; the buffer must not change before the request is done."""
        return await self._begin("Isend", buf, dest, tag)

    async def Issend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin an `Ssend`."""
        return await self._begin("Issend", buf, dest, tag)

    async def Irsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin an `Rsend`."""
        return await self._begin("Irsend", buf, dest, tag)

    async def Ibsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin a `Bsend`."""
        return await self._begin("Ibsend", buf, dest, tag)

    async def Attach_buffer(self, buf: Any) -> None:
        """Give the rank memory for `Bsend`: a buffer, whose size alone counts, or a number of bytes. Raises LengthError
        if it has some already."""
        async with self._call("Attach_buffer"):
            what = f"Attach_buffer on {self.name}"
            size = len(data_of(buf, what).view) if hasattr(buf, "__len__") else whole(buf, what, LengthError)
            self.process.attach(size)

    async def Detach_buffer(self) -> int:
        """Wait until all buffered sends are out. Returns the size of the memory that was attached. Raises
        LengthError."""
        async with self._call("Detach_buffer"):
            return await self.process.detach()

    # -- receives --------------------------------------------------------------------------------------------------

    async def Recv(
        self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> None:
        """Receive a message of at most the buffer's length. Raises TruncationError if it is longer."""
        async with self._call("Recv"):
            self._check_status(status, "Recv")
            await self._finished(await self._start_recv("Recv", buf, source, tag), status)

    async def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Begin to receive; the buffer is not the caller's before the request is done."""
        async with self._call("Irecv"):
            return await self._start_recv("Irecv", buf, source, tag)

    async def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send and receive at once, so that ranks in a ring do not wait for one another."""
        async with self._call("Sendrecv"):
            self._check_status(status, "Sendrecv")
            to, number, what = self._check_target(dest, sendtag, "Sendrecv")
            data = self._outgoing(sendbuf, what)
            receive = await self._start_recv("Sendrecv", recvbuf, source, recvtag)
            send = await self._isend(data, to, number, what)
            await self._finished(send, None)
            await self._finished(receive, status)

    async def Sendrecv_replace(
        self,
        buf: Any,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """`Sendrecv` with one buffer, a copy of which is sent."""
        async with self._call("Sendrecv_replace"):
            self._check_status(status, "Sendrecv_replace")
            to, number, what = self._check_target(dest, sendtag, "Sendrecv_replace")
            data = self._incoming(buf, what)
            data.view = memoryview(bytes(data.view))
            receive = await self._start_recv("Sendrecv_replace", buf, source, recvtag)
            send = await self._isend(data, to, number, what)
            await self._finished(send, None)
            await self._finished(receive, status)

    # -- probes ----------------------------------------------------------------------------------------------------

    async def Probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> bool:
        """Wait for a message and leave it. Returns True. For PROC_NULL it returns at once."""
        return await self._probe("Probe", source, tag, status, wait=True, take=False) is not None

    async def Iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Whether there is a message; does not wait."""
        return await self._probe("Iprobe", source, tag, status, wait=False, take=False) is not None

    async def Mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Wait for a message and take it: no other receive gets it."""
        found = await self._probe("Mprobe", source, tag, status, wait=True, take=True)
        assert found is not None
        return found

    async def Improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Take a message if there is one, else None."""
        return await self._probe("Improbe", source, tag, status, wait=False, take=True)

    # -- persistent ------------------------------------------------------------------------------------------------

    async def Send_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A `Send` that `Start` begins, as often as it is called."""
        return await self._send_init("Send", buf, dest, tag)

    async def Ssend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """An `Ssend` that `Start` begins."""
        return await self._send_init("Ssend", buf, dest, tag)

    async def Rsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """An `Rsend` that `Start` begins."""
        return await self._send_init("Rsend", buf, dest, tag)

    async def Bsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A `Bsend` that `Start` begins."""
        return await self._send_init("Bsend", buf, dest, tag)

    async def Recv_init(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Prequest:
        """A `Recv` that `Start` begins."""
        call = "Recv_init"
        async with self._call(call):
            _, _, what = self._check_source(source, tag, call)
            self._incoming(buf, what)
            return Prequest(self.process, what, lambda: self._start_recv(call, buf, source, tag))

    # -- for the other calls ---------------------------------------------------------------------------------------

    async def _send(self, call: str, buf: Any, dest: Any, tag: Any) -> None:
        async with self._call(call):
            await self._finished(await self._start_send(call, buf, dest, tag), None)

    async def _begin(self, call: str, buf: Any, dest: Any, tag: Any) -> Request:
        async with self._call(call):
            return await self._start_send(call, buf, dest, tag)

    async def _send_init(self, mode: str, buf: Any, dest: Any, tag: Any) -> Prequest:
        call = f"{mode}_init"
        async with self._call(call):
            _, _, what = self._check_target(dest, tag, call)
            self._outgoing(buf, what)
            begin: Callable[[], Awaitable[Request]] = lambda: self._start_send(call, buf, dest, tag)  # noqa: E731
            return Prequest(self.process, what, begin)

    async def _start_send(self, call: str, buf: Any, dest: Any, tag: Any) -> Request:
        """Begin a send in the mode that the call's name tells."""
        to, number, what = self._check_target(dest, tag, call)
        data = self._outgoing(buf, what)
        mode = call.lower().removeprefix("i")[0]
        if mode == "b" and to != PROC_NULL:
            envelope = self._envelope(data, number, what)
            return await self.process.buffered(self.world_ranks[to], envelope, data.view, what)
        return await self._isend(
            data, to, number, what, synchronous=call.lower().removeprefix("i").startswith("ss")
        )

    async def _start_recv(self, call: str, buf: Any, source: Any, tag: Any) -> Request:
        rank, number, what = self._check_source(source, tag, call)
        return await self._irecv(self._incoming(buf, what), rank, number, what)

    async def _probe(
        self, call: str, source: Any, tag: Any, status: Status | None, *, wait: bool, take: bool
    ) -> Message | None:
        async with self._call(call):
            self._check_status(status, call)
            rank, number, what = self._check_source(source, tag, call)
            if rank == PROC_NULL:
                message = Message(self, None)
            else:
                wanted = Wanted(self.context, rank, number)
                found = await self.process.find(wanted, what, wait=wait, take=take)
                if found is None:
                    return None
                message = Message(self, found)
            if status is not None:
                status.fill(message.status)
            return message
