"""One host inside a simulation: memory shared with the RTL, programmed I/O, watches (`sim/host/bus.py`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..host.bus import BusError
from ..inside.clock import Clock, Clocked, EventFlag
from ..inside.native_api import LOG_RANGES, Signal, attach_memory
from ..inside.wakes import NativeEvent
from ..inside.words import Fields
from .pci_host import HOST_COMMAND, HOST_RESPONSE

__all__ = ["BusError", "SimulatedHost", "SimulatedWatch"]

_COMMAND, _RESPONSE = Fields(HOST_COMMAND), Fields(HOST_RESPONSE)


class SimulatedWatch:
    """`Watch` on `length` bytes of one host's memory from `start`; one coroutine at a time waits on it."""

    def __init__(self, clock: Clock, start: int, length: int) -> None:
        self.first_word = start // 4
        self.end_word = -(-(start + length) // 4)
        self._clock = clock
        self._written = False  # since the last time that anybody looked
        self._waits = False
        self._look: Callable[[], int | None] | None = None
        self._after_cycles = 0
        self._flag = EventFlag()

    async def wait(self, look: Callable[[], int | None] | None = None, *, after_cycles: int = 0) -> None:
        """Return once a DMA write burst into the range has ended since the last `wait`; at once if one has.

        With `look`: call it `after_cycles` after that. If it gives None, wait on; else return so many cycles later.
        """
        self._look, self._after_cycles = look, after_cycles
        self._flag.clear()
        self._waits = True
        if self._written:
            self._serve()
        await self._flag.wait()

    def wake(self, first_word: int, end_word: int) -> None:
        """Note that a burst has written the words from `first_word` to before `end_word`."""
        if first_word < self.end_word and end_word > self.first_word:
            self._written = True
            if self._waits:
                self._serve()

    def touch(self) -> None:
        """Note that other software of this host has written into the range."""
        self.wake(self.first_word, self.end_word)

    def _serve(self) -> None:
        self._written = self._waits = False
        self._later(self._after_cycles, self._seen)

    def _seen(self) -> None:
        cycles = self._look() if self._look else 0
        if cycles is not None:
            self._later(cycles, self._flag.set)
            return
        self._waits = True
        if self._written:
            self._serve()

    def _later(self, cycles: int, function: Callable[[], None]) -> None:
        if cycles:
            self._clock.call_later(cycles, function)
        else:
            function()


class _Burst:
    """Words on their way into the NIC's window, or out of it.

    - `left`: (address, data) of those that are to go, the last one first; no data for a word to be read.
    - `words`: those that have been read.
    - `busy`: the bus was busy when their turn was to begin.
    - `ended`: a flag, set when one was `refused` or when all are done.
    """

    def __init__(self, accesses: Sequence[tuple[int, int | None]]) -> None:
        self.left = list(reversed(accesses))
        self.words: list[int] = []
        self.busy = False
        self.refused: int | None = None
        self.ended = EventFlag()


class SimulatedHost(Clocked):
    """`HostBus` of node `node`.

    - `command`, `response`: the host's mailbox (`HOST_COMMAND`, `HOST_RESPONSE`).
    - `done`, `write_event`: the changes (`Wakes.change`) of the one-bit signals that change when programmed I/O or a
      watched DMA write has ended.
    - `interrupt`: the NIC's interrupt line; `interrupt_change` is its change.
    """

    def __init__(
        self,
        node: int,
        clock: Clock,
        *,
        memory_bytes: int,
        command: Signal,
        response: Signal,
        done: NativeEvent,
        write_event: NativeEvent,
        interrupt: Signal,
        interrupt_change: NativeEvent,
    ) -> None:
        self._node = node
        super().__init__(clock)
        self._command, self._response, self._done = command, response, done
        self._write_event = write_event
        self._interrupt, self._interrupt_change = interrupt, interrupt_change
        self._memory = np.zeros(memory_bytes, np.uint8)
        self._watched = np.zeros(memory_bytes // 4, np.uint8)
        self._log = np.zeros(1 + 2 * LOG_RANGES, np.uint32)
        attach_memory(node, self._memory, self._watched, self._log)
        self._watches: list[SimulatedWatch] = []
        self._toggle = 0
        self._busy = False
        self._waiting: deque[EventFlag] = deque()

    @property
    def node(self) -> int:
        """The node's number."""
        return self._node

    @property
    def memory(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The host's memory, shared with the simulation."""
        return self._memory

    async def write(self, address: int, data: int) -> None:
        """Write a 32-bit word into the NIC's window; returns when the bus has taken it. Raises BusError if
        the NIC refused it, ValueError for an address or word that does not fit. Accesses of several
        coroutines take turns."""
        await self._access(address, data, write=1)

    async def read(self, address: int) -> int:
        """Read a 32-bit word of the NIC's window. Raises as `write` does."""
        return await self._access(address, 0, write=0)

    async def write_all(self, writes: Sequence[tuple[int, int]], *, after_cycles: int = 0) -> None:
        """Write words, (address, data) each, one after the other, once `after_cycles` are over. Raises as `write`
        does, after the first that is refused."""
        await self._carry_out(_Burst(writes), after_cycles)

    async def read_all(self, addresses: Sequence[int], *, after_cycles: int = 0) -> list[int]:
        """Read words, one after the other, once `after_cycles` are over. Raises as `write_all` does."""
        burst = _Burst([(address, None) for address in addresses])
        await self._carry_out(burst, after_cycles)
        return burst.words

    async def _carry_out(self, burst: _Burst, after_cycles: int) -> None:
        """Make the accesses of a burst once `after_cycles` are over."""
        writes = int(any(data is not None for _, data in burst.left))
        for address, _ in burst.left:
            self._check(address)
        if after_cycles:
            self._clock.call_later(after_cycles, lambda: self._begin(burst))
        else:
            await self._clock.drive_phase()
            self._begin(burst)
        await burst.ended.wait()
        if burst.busy:
            await self._my_turn()
            burst.ended.clear()
            self._next(burst)
            await burst.ended.wait()
        if burst.refused is not None:
            raise self._refused(burst.refused, write=writes)

    def _begin(self, burst: _Burst) -> None:
        """Start the words if nobody else has the bus: the drive phase in which they may start has come."""
        burst.busy = self._busy
        if self._busy:
            burst.ended.set()
            return
        self._busy = True
        self._next(burst)

    def _next(self, burst: _Burst) -> None:
        """Write or read the next word; the bus is the burst's. Give it back if none is left."""
        if not burst.left:
            self._release()
            burst.ended.set()
            return
        address, data = burst.left.pop()

        def done() -> None:
            answer = self._response.get()
            if _RESPONSE.get(answer, "error"):
                burst.refused = address
            else:
                if data is None:
                    burst.words.append(_RESPONSE.get(answer, "data"))
                self._next(burst)
                return
            self._release()
            burst.ended.set()

        self._start(address, data or 0, write=int(data is not None))
        self._clock.call_on_change(self._done, done)

    def _start(self, address: int, data: int, *, write: int) -> None:
        toggle = self._toggle ^ 1
        self._command.set(_COMMAND.pack(toggle=toggle, write=write, address=address, data=data))
        self._toggle = toggle

    def _release(self) -> None:
        """Hand the bus to the one that has waited longest, if any waits.

        A process that goes on at once cannot take it before those that wait. Else one that writes back to back would
        keep all others of its host from the card.
        """
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._busy = False

    async def _my_turn(self) -> None:
        """Return when the bus is the caller's, after those that have waited before."""
        if not self._busy:
            self._busy = True
            return
        turn = EventFlag()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:  # the task has been ended meanwhile
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._release()
            raise

    async def _access(self, address: int, data: int, *, write: int) -> int:
        self._check(address)
        await self._my_turn()
        try:
            await self._clock.drive_phase()
            self._start(address, data, write=write)
            await self._clock.change(self._done)
            answer = self._response.get()
        finally:
            self._release()
        if _RESPONSE.get(answer, "error"):
            raise self._refused(address, write=write)
        return _RESPONSE.get(answer, "data")

    @staticmethod
    def _check(address: int) -> None:
        if address % 4:
            raise ValueError(f"address {address:#x}: a multiple of 4")

    def _refused(self, address: int, *, write: int) -> BusError:
        what = "write to" if write else "read of"
        return BusError(f"node {self._node}: the NIC refused a {what} {address:#x}")

    async def interrupt(self) -> None:
        """Return in the first cycle in which the NIC's interrupt line is up; at once if it is."""
        while not self._interrupt.get():
            await self._clock.change(self._interrupt_change)

    def watch(self, start: int, length: int) -> SimulatedWatch:
        """A watch on `length` bytes of memory from `start`. Raises ValueError if they are not memory."""
        if start < 0 or length < 1 or start + length > self._memory.size:
            raise ValueError(
                f"watch on {length} bytes from {start:#x}: the memory has {self._memory.size} bytes"
            )
        watch = SimulatedWatch(self._clock, start, length)
        self._watched[watch.first_word : watch.end_word] = 1
        if not self._watches:
            self._clock.call_on_change(self._write_event, self._serve_watches)
        self._watches.append(watch)
        return watch

    def _serve_watches(self) -> None:
        """Tell whom it concerns that watched words were written."""
        self._clock.call_on_change(self._write_event, self._serve_watches)
        used = int(self._log[0])
        ranges = self._log[1 : 1 + 2 * used].tolist()
        self._log[0] = 0
        for first, end in zip(ranges[::2], ranges[1::2], strict=True):
            for watch in self._watches:
                watch.wake(first, end)
