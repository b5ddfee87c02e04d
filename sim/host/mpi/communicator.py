"""Communicators: a group of ranks that exchange messages which no other communicator's calls see (MPI 1.1, 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from . import collectives
from .attributes import NOT_COPIED, TAG_UB, Keyval
from .envelope import MAX_LENGTH, MAX_TAG
from .errors import AttributeKeyError, CommunicatorError, LengthError, RankError, TagError
from .matching import ANY_SOURCE, ANY_TAG, Wanted
from .ops import SUM, Operation
from .process import Process
from .request import Request, Status, bytes_of

__all__ = ["PROC_NULL", "UNDEFINED", "Communicator"]

PROC_NULL = -2
"""A rank that is nobody: a send to it, or a receive from it, is done at once. For the edges of grids."""
UNDEFINED = -3
"""The colour of a rank that `split` is to leave out."""


class Communicator:
    """`group`: the ranks of the world that are its ranks 0, 1, ...; `rank`: this one's; `process`: what it runs in;
    `context` and `context + 1`: the numbers of its messages and of its collective operations.

    Buffers are bytes, bytearrays or numpy arrays. All calls are coroutines of the rank's one thread. All raise
    RankBusyError, CommunicatorError once it is freed, and, before anything is sent, RankError, TagError, LengthError,
    BufferKindError for arguments that cannot be; TransportError if a message is lost.
    """

    def __init__(self, process: Process, group: Sequence[int], context: int, name: str) -> None:
        self.process = process
        self.group = tuple(group)
        self.rank = self.group.index(process.transport.rank)
        self.context = context
        self.name = name
        self._freed = False
        self._attributes: dict[Keyval, Any] = {TAG_UB: MAX_TAG}

    @property
    def size(self) -> int:
        """Its number of ranks."""
        return len(self.group)

    def __repr__(self) -> str:
        return f"<{self.name}: rank {self.rank} of {self.size}>"

    # -- messages ------------------------------------------------------------------------------------------------

    async def send(self, buffer: Any, destination: int, tag: int = 0, *, length: int | None = None) -> None:
        """Send `length` bytes (all, by default) of a buffer; returns when it is the caller's again. A message longer
        than `MpiConfig.eager_bytes` waits for its receive."""
        async with self._call("send"):
            await self._wait(await self._isend(buffer, destination, tag, length, "send"))

    async def isend(
        self, buffer: Any, destination: int, tag: int = 0, *, length: int | None = None
    ) -> Request:
        """Begin to send; the bytes must not change before the request is done."""
        async with self._call("isend"):
            return await self._isend(buffer, destination, tag, length, "isend")

    async def receive(
        self, buffer: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, *, length: int | None = None
    ) -> Status:
        """Receive a message of at most `length` bytes (the buffer's, by default); its source, tag and length. Raises
        TruncationError if it is longer."""
        async with self._call("receive"):
            return await self._wait(await self._irecv(buffer, source, tag, length, "receive"))

    async def irecv(
        self, buffer: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, *, length: int | None = None
    ) -> Request:
        """Begin to receive; the buffer is not the caller's before the request is done."""
        async with self._call("irecv"):
            return await self._irecv(buffer, source, tag, length, "irecv")

    async def sendrecv(
        self,
        send_buffer: Any,
        destination: int,
        receive_buffer: Any,
        source: int = ANY_SOURCE,
        *,
        send_tag: int = 0,
        receive_tag: int = ANY_TAG,
    ) -> Status:
        """Send and receive at once, so that ranks in a ring do not wait for one another; the status of the receive."""
        async with self._call("sendrecv"):
            self._check_target(destination, send_tag, "sendrecv")
            receive = await self._irecv(receive_buffer, source, receive_tag, None, "sendrecv")
            send = await self._isend(send_buffer, destination, send_tag, None, "sendrecv")
            await self._wait(send)
            return await self._wait(receive)

    async def wait(self, request: Request) -> Status:
        """Return when a request is done; its status. Raises what it failed with, RequestError."""
        async with self._call("wait"):
            return await self._wait(self.process.check_owner(request, "wait"))

    async def wait_all(self, requests: Sequence[Request]) -> list[Status]:
        """Return when all are done; their statuses. Raises what the first of those that failed failed with."""
        async with self._call("wait_all"):
            for request in requests:
                self.process.check_owner(request, "wait_all")
            for request in requests:
                await self.process.wait_done(request)
            return [request.result() for request in requests]

    async def test(self, request: Request) -> Status | None:
        """The status of a request if it is done, else None; does not wait. Raises what it failed with."""
        async with self._call("test"):
            self.process.check_owner(request, "test")
            return request.result() if await self.process.test(request) else None

    async def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status:
        """Wait for a message and leave it: its source, tag and length."""
        async with self._call("probe"):
            self._check_source(source, tag, "probe")
            wanted = Wanted(self.context, source, tag)
            return await self.process.probe(wanted, self._describe("probe", "from", source, tag))

    # -- collective operations -----------------------------------------------------------------------------------

    async def barrier(self) -> None:
        """Return when all ranks have called it."""
        async with self._call("barrier"):
            await collectives.barrier(self)

    async def broadcast(self, buffer: Any, root: int = 0) -> None:
        """The bytes of rank `root`'s buffer go into everybody's, which must be as long."""
        async with self._call("broadcast"):
            self._check_rank(root, "broadcast", "root")
            await collectives.broadcast(self, buffer, root)

    async def allreduce(
        self, values: np.ndarray[Any, Any] | Sequence[float], operation: Operation = SUM
    ) -> np.ndarray[Any, Any]:
        """Everybody's values (of the same shape and type) combined element by element: the same result, to the bit,
        at every rank."""
        async with self._call("allreduce"):
            return await collectives.allreduce(self, np.array(values), operation)

    async def allgather(self, values: np.ndarray[Any, Any] | Sequence[float]) -> np.ndarray[Any, Any]:
        """Everybody's values (of the same shape and type), by rank."""
        async with self._call("allgather"):
            return await collectives.allgather(self, np.array(values))

    # -- communicators -------------------------------------------------------------------------------------------

    async def dup(self) -> Communicator:
        """A communicator of the same ranks, whose messages do not mix with this one's. All ranks call it. Attributes
        are copied as their keys say."""
        async with self._call("dup"):
            context = await self._new_context()
            copy = Communicator(self.process, self.group, context, f"{self.name}.dup")
        for keyval, value in list(self._attributes.items()):
            copied = await keyval.copy(self, value)
            if copied is not NOT_COPIED:
                copy._attributes[keyval] = copied
        return copy

    async def split(self, color: int, key: int = 0) -> Communicator | None:
        """A communicator for the ranks that give the same `color` (0 or more), in the order of their `key`, then of
        their rank here. All ranks call it; one that gives UNDEFINED gets None. It has no attributes of this one."""
        async with self._call("split"):
            if color < 0 and color != UNDEFINED:
                raise CommunicatorError(f"split of {self.name}: color = {color}: 0 or more, or UNDEFINED")
            context = await self._new_context()
            everybody = await collectives.allgather(self, np.array([color, key], np.int64))
        if color == UNDEFINED:
            return None
        chosen = sorted(
            (int(their_key), rank)
            for rank, (their_color, their_key) in enumerate(everybody)
            if their_color == color
        )
        group = [self.group[rank] for _, rank in chosen]
        return Communicator(self.process, group, context, f"{self.name}.split[{color}]")

    async def free(self) -> None:
        """Delete its attributes; it cannot be used any more."""
        async with self._call("free"):
            pass
        for keyval in list(self._attributes):
            await keyval.delete(self, self._attributes.pop(keyval))
        self._freed = True

    async def _new_context(self) -> int:
        """A pair of context numbers that no rank of this communicator has used."""
        mine = np.array([self.process.next_context], np.int64)
        context = int((await collectives.allgather(self, mine)).max())
        self.process.next_context = context + 2
        return context

    # -- attributes ----------------------------------------------------------------------------------------------

    async def set_attribute(self, keyval: Keyval, value: Any) -> None:
        """Set an attribute, once its key has found the value possible; one that it had there is deleted first. With
        the key `qos.QOS` it asks for bandwidth, and returns when the manager has answered. Raises AttributeKeyError."""
        self._check_usable("set_attribute")
        if keyval is TAG_UB:
            raise AttributeKeyError(f"set_attribute on {self.name}: TAG_UB is not to be set")
        keyval.check(self, value)
        if keyval in self._attributes:
            await self.delete_attribute(keyval)
        self._attributes[keyval] = await keyval.store(self, value)

    def get_attribute(self, keyval: Keyval) -> Any:
        """Its value. Of a QoS key: whether the request was granted (`qos.QosAnswer`). Raises AttributeKeyError if it is
        not set."""
        self._check_usable("get_attribute")
        if keyval not in self._attributes:
            raise AttributeKeyError(f"{self.name} has no attribute {keyval.name}: set it first")
        return self._attributes[keyval]

    async def delete_attribute(self, keyval: Keyval) -> None:
        """Delete an attribute. With a QoS key its bandwidth goes back. Raises AttributeKeyError if it is not set."""
        value = self.get_attribute(keyval)
        if keyval is TAG_UB:
            raise AttributeKeyError(f"delete_attribute on {self.name}: TAG_UB is not to be deleted")
        await keyval.delete(self, value)
        del self._attributes[keyval]

    # -- for the modules of this package: without a call's checks and costs -----------------------------------------

    @asynccontextmanager
    async def _call(self, name: str) -> AsyncIterator[None]:
        self._check_usable(name)
        with self.process.inside(f"{name} on {self.name}"):
            await self.process.transport.spend(self.process.costs.call_ns)
            yield

    async def _isend(
        self, buffer: Any, destination: int, tag: int, length: int | None, call: str, collective: bool = False
    ) -> Request:
        what = self._check_target(destination, tag, call)
        data = bytes_of(buffer, length, what)
        if len(data) > MAX_LENGTH:
            raise LengthError(f"{what}: {len(data)} bytes: at most {MAX_LENGTH}")
        if destination == PROC_NULL:
            return self._nothing(what)
        return await self.process.isend(
            self.group[destination], self.context + collective, self.rank, tag, data, what
        )

    async def _irecv(
        self, buffer: Any, source: int, tag: int, length: int | None, call: str, collective: bool = False
    ) -> Request:
        what = self._check_source(source, tag, call)
        data = bytes_of(buffer, length, what, writable=True)
        if source == PROC_NULL:
            return self._nothing(what)
        return await self.process.irecv(Wanted(self.context + collective, source, tag), data, what)

    async def _wait(self, request: Request) -> Status:
        return await self.process.wait(request)

    def _nothing(self, what: str) -> Request:
        request = Request(self.process, what)
        request.complete(Status(PROC_NULL, ANY_TAG, 0))
        return request

    def _check_usable(self, call: str) -> None:
        if self._freed:
            raise CommunicatorError(f"{call} on {self.name}: the communicator has been freed")

    def _check_rank(self, rank: int, call: str, what: str) -> None:
        if not 0 <= rank < self.size:
            raise RankError(f"{call} on {self.name}: {what} = {rank}: ranks are 0 to {self.size - 1}")

    def _check_target(self, destination: int, tag: int, call: str) -> str:
        if destination != PROC_NULL:
            self._check_rank(destination, call, "destination")
        if not 0 <= tag <= MAX_TAG:
            raise TagError(f"{call} on {self.name}: tag = {tag}: 0 to {MAX_TAG}")
        return self._describe(call, "to", destination, tag)

    def _check_source(self, source: int, tag: int, call: str) -> str:
        if source not in (PROC_NULL, ANY_SOURCE):
            self._check_rank(source, call, "source")
        if not 0 <= tag <= MAX_TAG and tag != ANY_TAG:
            raise TagError(f"{call} on {self.name}: tag = {tag}: 0 to {MAX_TAG}, or ANY_TAG")
        return self._describe(call, "from", source, tag)

    def _describe(self, call: str, way: str, rank: int, tag: int) -> str:
        who = "any rank" if rank == ANY_SOURCE else f"rank {rank}"
        return f"{call} {way} {who}, {'any tag' if tag == ANY_TAG else f'tag {tag}'}, on {self.name}"
