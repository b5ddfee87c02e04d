"""Messages of Python objects, pickled: mpi4py's calls in lower case.

An object is as long as its pickle; its receive needs no buffer. Pickling takes no time of its own: the layer's copies
of the bytes do.
"""

from __future__ import annotations

from typing import Any

from ..data.pickled import as_object, packed
from ..data.request import Request
from ..data.status import Status
from ..matching import ANY_SOURCE, ANY_TAG, PROC_NULL
from .message import Message
from .point_to_point import PointToPoint

__all__ = ["Objects"]


class Objects(PointToPoint):
    """Calls with an object."""

    async def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object; a long one waits for its receive."""
        await self._send_object("send", obj, dest, tag)

    async def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object; returns when a receive has been found for it."""
        await self._send_object("ssend", obj, dest, tag)

    async def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object from the attached buffer; returns at once."""
        await self._send_object("bsend", obj, dest, tag)

    async def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send an object, as it is now."""
        return await self._begin_object("isend", obj, dest, tag)

    async def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin an `ssend`."""
        return await self._begin_object("issend", obj, dest, tag)

    async def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin a `bsend`."""
        return await self._begin_object("ibsend", obj, dest, tag)

    async def recv(
        self,
        buf: Any = None,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Receive an object. Returns the one that was sent; None from PROC_NULL. `buf`: memory for its pickle; as much
        as it needs, by default."""
        async with self._call("recv"):
            self._check_status(status, "recv")
            return await self._finished(await self._start_object_recv("recv", buf, source, tag), status)

    async def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Begin to receive an object, which the request's `wait` returns."""
        async with self._call("irecv"):
            return await self._start_object_recv("irecv", buf, source, tag)

    async def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Send an object and receive one at once."""
        async with self._call("sendrecv"):
            self._check_status(status, "sendrecv")
            to, number, what = self._check_target(dest, sendtag, "sendrecv")
            data = packed(sendobj, what)
            receive = await self._start_object_recv("sendrecv", recvbuf, source, recvtag)
            send = await self._isend(data, to, number, what)
            await self._finished(send, None)
            return await self._finished(receive, status)

    async def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> bool:
        """`Probe`."""
        return await self._probe("probe", source, tag, status, wait=True, take=False) is not None

    async def iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """`Iprobe`."""
        return await self._probe("iprobe", source, tag, status, wait=False, take=False) is not None

    async def mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """`Mprobe`, of an object."""
        found = await self._probe("mprobe", source, tag, status, wait=True, take=True)
        assert found is not None
        return found

    async def improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """`Improbe`, of an object."""
        return await self._probe("improbe", source, tag, status, wait=False, take=True)

    async def _send_object(self, call: str, obj: Any, dest: Any, tag: Any) -> None:
        async with self._call(call):
            await self._finished(await self._start_object_send(call, obj, dest, tag), None)

    async def _begin_object(self, call: str, obj: Any, dest: Any, tag: Any) -> Request:
        async with self._call(call):
            return await self._start_object_send(call, obj, dest, tag)

    async def _start_object_send(self, call: str, obj: Any, dest: Any, tag: Any) -> Request:
        _, _, what = self._check_target(dest, tag, call)
        return await self._start_send(call, packed(obj, what).view, dest, tag)

    async def _start_object_recv(self, call: str, buf: Any, source: Any, tag: Any) -> Request:
        rank, number, what = self._check_source(source, tag, call)
        data = None if buf is None or rank == PROC_NULL else self._incoming(buf, what)
        return as_object(await self._irecv(data, rank, number, what), data)
