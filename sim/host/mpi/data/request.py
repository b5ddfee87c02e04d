"""Requests of communication that has begun, under mpi4py's names.

A call that finds a request done takes it: from then on it is a null request, done with an empty status, as in mpi4py.
A persistent one (`Prequest`) is inactive instead, until it is started again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ..errors import ArgumentError, RequestError
from ..transport import Transport
from .status import UNDEFINED, Status, check_status

__all__ = ["Prequest", "Progress", "Request"]


class Progress(Protocol):
    """The MPI process of a rank, for its requests; `process.Process` says what each attribute and call is."""

    transport: Transport

    def call(self, name: str) -> AbstractAsyncContextManager[None]:
        """Be inside a call of the rank."""

    def cancel(self, request: Request) -> None:
        """End a request for which nothing has happened yet."""

    async def wait_done(self, request: Request) -> None:
        """Go on until a request is done."""

    async def test(self, done: Callable[[], bool]) -> bool:
        """Serve everything that can be served without waiting. Returns whether it is done."""

    async def until(self, done: Callable[[], bool], what: str) -> None:
        """Go on until it is done."""


class Request:
    """Communication that has begun.

    - `done`: its buffer is the caller's again.
    - `status`: then the status of the message.
    - `error`: the error that it failed with, instead.
    - `process`: the rank that it belongs to.
    - `description`: its call, peer and tag.

    For the modules of this package:

    - `finish`: called when it is done.
    - `value`: gives the value that `wait` returns.
    - `received`: the memory of a receive without a buffer.
    - `told`: the signature and the number of elements that the message came with.
    """

    def __init__(self, process: Progress, description: str) -> None:
        self.process = process
        self.description = description
        self.done = False
        self.error: Exception | None = None
        self.status = Status()
        self.finish: Callable[[], None] | None = None
        self.value: Callable[[], Any] | None = None
        self.received: bytearray | None = None
        self.told = (0, 0)
        self.is_null = False

    def complete(self, status: Status, error: Exception | None = None) -> None:
        """Note that it has ended."""
        self.status, self.error, self.done = status, error, True
        if self.finish is not None:
            self.finish()

    def result(self) -> Status:
        """The status of a request that is done. Raises the error that it failed with."""
        if self.error is not None:
            raise self.error
        return self.status

    def take(self, status: Status | None = None) -> Any:
        """Take a request that is done: fill `status` in, and return the value of `wait`. It is null afterwards. Raises
        the error that it failed with."""
        if self.is_null:
            if status is not None:
                status.fill(Status())
            return None
        found, value, error = self.status, self.value, self.error
        self.status, self.error, self.value = Status(), None, None
        self._retire()
        if status is not None:
            status.fill(found)
        if error is not None:
            raise error
        return None if value is None or found.cancelled else value()

    def _retire(self) -> None:
        self.is_null = True

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for: it is done, or null."""
        return self.done or self.is_null

    # -- one request -----------------------------------------------------------------------------------------------

    async def Wait(self, status: Status | None = None) -> bool:
        """Return True when it is done. Raises the error that it failed with."""
        await self._wait("Wait", status)
        return True

    async def Test(self, status: Status | None = None) -> bool:
        """Whether it is done; does not wait. Raises the error that it failed with."""
        return (await self._test("Test", status))[0]

    async def wait(self, status: Status | None = None) -> Any:
        """Return when it is done: the object that was received, None for any other. Raises the error that it failed
        with."""
        return await self._wait("wait", status)

    async def test(self, status: Status | None = None) -> tuple[bool, Any]:
        """Whether it is done, and the value that `wait` returns."""
        return await self._test("test", status)

    async def Get_status(self, status: Status | None = None) -> bool:
        """Whether it is done; it stays as it is."""
        async with self.process.call("Get_status"):
            check_status(status, "Get_status")
            done = await self.process.test(lambda: self.over)
            if done and status is not None:
                status.fill(Status() if self.is_null else self.status)
            return done

    async def Cancel(self) -> None:
        """Cancel it if no message has been found for it or, for a send, if nothing has left yet.

        It is done then, its status `Is_cancelled`; else it goes on.
        """
        async with self.process.call("Cancel"):
            if not self.done:
                self.process.cancel(self)

    async def Free(self) -> None:
        """Forget it. Communication that has begun goes on."""
        async with self.process.call("Free"):
            self._retire()

    async def _wait(self, call: str, status: Status | None) -> Any:
        async with self.process.call(call):
            check_status(status, call)
            await self.process.wait_done(self)
            return self.take(status)

    async def _test(self, call: str, status: Status | None) -> tuple[bool, Any]:
        async with self.process.call(call):
            check_status(status, call)
            done = await self.process.test(lambda: self.over)
            return done, self.take(status) if done else None

    # -- several ---------------------------------------------------------------------------------------------------

    @classmethod
    async def Waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Return True when all are done. Raises the error of the first of those that failed."""
        await _all("Waitall", requests, statuses, wait=True)
        return True

    @classmethod
    async def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Whether all are done; takes all or none."""
        return await _all("Testall", requests, statuses, wait=False) is not None

    @classmethod
    async def Waitany(cls, requests: Sequence[Request], status: Status | None = None) -> int:
        """Return when one is done: its place; UNDEFINED if all are null."""
        return (await _any("Waitany", requests, status, wait=True))[0]

    @classmethod
    async def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """The place of one that is done, and True; (UNDEFINED, False) if none is."""
        place, flag, _ = await _any("Testany", requests, status, wait=False)
        return place, flag

    @classmethod
    async def Waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Return when at least one is done: the places of all that are; None if all are null."""
        return (await _some("Waitsome", requests, statuses, wait=True))[0]

    @classmethod
    async def Testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """The places of all that are done; None if all are null."""
        return (await _some("Testsome", requests, statuses, wait=False))[0]

    @classmethod
    async def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[Any]:
        """Return when all are done: the value that `wait` returns for each."""
        found = await _all("waitall", requests, statuses, wait=True)
        assert found is not None
        return found

    @classmethod
    async def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Whether all are done, and then the value that `wait` returns for each."""
        found = await _all("testall", requests, statuses, wait=False)
        return found is not None, found

    @classmethod
    async def waitany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, Any]:
        """Return when one is done: its place, and the value that `wait` returns."""
        place, _, value = await _any("waitany", requests, status, wait=True)
        return place, value

    @classmethod
    async def testany(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool, Any]:
        """Do as `Testany`. Returns also the value that `wait` returns."""
        return await _any("testany", requests, status, wait=False)

    @classmethod
    async def waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Do as `Waitsome`. Returns also the value that `wait` returns for each."""
        return await _some("waitsome", requests, statuses, wait=True)

    @classmethod
    async def testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Do as `Testsome`. Returns also the value that `wait` returns for each."""
        return await _some("testsome", requests, statuses, wait=False)


class Prequest(Request):
    """Persistent communication: every `Start` begins what `begin` begins; in between it is inactive."""

    def __init__(self, process: Progress, description: str, begin: Callable[[], Awaitable[Request]]) -> None:
        super().__init__(process, description)
        self._begin = begin
        self._active: Request | None = None
        self._retire()

    def _retire(self) -> None:
        self.is_null, self.done, self._active = True, True, None

    async def Start(self) -> None:
        """Begin it. Raises RequestError if it has begun and is not done."""
        async with self.process.call("Start"):
            await self._start("Start")

    @classmethod
    async def Startall(cls, requests: Sequence[Prequest]) -> None:
        """Begin all of them, in their order."""
        for request in requests:
            if not isinstance(request, Prequest):
                raise RequestError(f"Startall: {type(request).__name__} is no persistent request")
        process = _process("Startall", requests)
        if process is None:
            return
        async with process.call("Startall"):
            for request in requests:
                await request._start("Startall")

    async def _start(self, call: str) -> None:
        if not self.is_null:
            raise RequestError(f"{call}: {self.description} has begun already: wait for it first")
        self.is_null = self.done = False
        inner = await self._begin()
        if inner.done:
            self._ended(inner)
        else:
            self._active = inner
            before = inner.finish

            def finish() -> None:
                if before is not None:
                    before()
                self._ended(inner)

            inner.finish = finish

    def _ended(self, inner: Request) -> None:
        self.complete(inner.status, inner.error)

    async def Cancel(self) -> None:
        """Do as `Request.Cancel` for communication that has begun."""
        async with self.process.call("Cancel"):
            if self._active is not None and not self._active.done:
                self.process.cancel(self._active)


def _process(call: str, requests: Sequence[Request]) -> Progress | None:
    """The rank of some requests; None without any. Raises RequestError."""
    process = None
    if not isinstance(requests, Iterable):
        raise RequestError(f"{call}: {type(requests).__name__} is no list of requests")
    for request in requests:
        if not isinstance(request, Request):
            raise RequestError(
                f"{call}: {type(request).__name__} is no request; Isend, Irecv and others return them"
            )
        if process is not None and request.process is not process:
            raise RequestError(
                f"{call} on rank {process.transport.rank} of the world: the request is another rank's"
            )
        process = request.process
    return process


def _statuses(statuses: list[Status] | None, count: int) -> list[Status]:
    """`count` statuses. The first of them are those of the caller's list, which is made as long."""
    found = [] if statuses is None else statuses
    if not isinstance(found, list) or not all(isinstance(one, Status) for one in found):
        raise ArgumentError(f"statuses = {statuses!r}: a list of Status, or None")
    found.extend(Status() for _ in range(count - len(found)))
    return found


async def _all(
    call: str, requests: Sequence[Request], statuses: list[Status] | None, *, wait: bool
) -> list[Any] | None:
    process = _process(call, requests)
    _statuses(statuses, 0)
    if process is None:
        return []
    async with process.call(call):
        if wait:
            for request in requests:
                await process.wait_done(request)
        elif not await process.test(lambda: all(request.over for request in requests)):
            return None
        values, first = [], None
        for request, status in zip(requests, _statuses(statuses, len(requests)), strict=False):
            try:
                values.append(request.take(status))
            except Exception as error:
                first = first or error
        if first is not None:
            raise first
        return values


async def _any(
    call: str, requests: Sequence[Request], status: Status | None, *, wait: bool
) -> tuple[int, bool, Any]:
    check_status(status, call)
    process = _process(call, requests)
    if process is None:
        return UNDEFINED, True, None
    async with process.call(call):
        if all(request.is_null for request in requests):
            return UNDEFINED, True, None
        if not await _one_done(process, call, requests, wait):
            return UNDEFINED, False, None
        place = next(place for place, one in enumerate(requests) if one.done and not one.is_null)
        return place, True, requests[place].take(status)


async def _some(
    call: str, requests: Sequence[Request], statuses: list[Status] | None, *, wait: bool
) -> tuple[list[int] | None, list[Any] | None]:
    process = _process(call, requests)
    _statuses(statuses, 0)
    if process is None:
        return None, None
    async with process.call(call):
        if all(request.is_null for request in requests):
            return None, None
        await _one_done(process, call, requests, wait)
        places = [place for place, one in enumerate(requests) if one.done and not one.is_null]
        found = _statuses(statuses, len(places))
        return places, [requests[place].take(status) for place, status in zip(places, found, strict=False)]


async def _one_done(process: Progress, call: str, requests: Sequence[Request], wait: bool) -> bool:
    def ready() -> bool:
        return any(request.done and not request.is_null for request in requests)

    if wait:
        pending = [request.description for request in requests if not request.is_null]
        await process.until(ready, f"{call} of {pending[0]}" + (", ..." if len(pending) > 1 else ""))
        return True
    return await process.test(ready)
