"""One host inside a simulation: memory shared with the RTL, programmed I/O, watches (`sim/host/bus.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .clock import Clock, Clocked, EventFlag
from .fields import Fields
from .kernel import LOG_RANGES, Signal, attach_memory
from .pci import HOST_COMMAND, HOST_RESPONSE

__all__ = ["BusError", "SimulatedHost", "SimulatedWatch"]

_COMMAND, _RESPONSE = Fields(HOST_COMMAND), Fields(HOST_RESPONSE)


class BusError(RuntimeError):
    """The NIC refused programmed I/O; one line with the node, the access and its address."""


class SimulatedWatch:
    """`Watch` on `length` bytes of one host's memory from `start`."""

    def __init__(self, start: int, length: int) -> None:
        self.first_word = start // 4
        self.end_word = -(-(start + length) // 4)
        self._flag = EventFlag()

    async def wait(self) -> None:
        """Return once a DMA write burst into the range has ended since the last `wait`; at once if one
        has."""
        await self._flag.wait()
        self._flag.clear()

    def wake(self, first_word: int, end_word: int) -> None:
        """A burst has written the words from `first_word` to before `end_word`."""
        if first_word < self.end_word and end_word > self.first_word:
            self._flag.set()


class SimulatedHost(Clocked):
    """`HostBus` of node `node`.

    `command`, `response`: the host's mailbox (`HOST_COMMAND`, `HOST_RESPONSE`); `done`, `write_event`: cocotb
    handles of the one-bit signals that change when programmed I/O or a watched DMA write has ended.
    """

    def __init__(
        self,
        node: int,
        clock: Clock,
        *,
        memory_bytes: int,
        command: Signal,
        response: Signal,
        done: Any,
        write_event: Any,
    ) -> None:
        self._node = node
        super().__init__(clock)
        self._command, self._response, self._done = command, response, done
        self._write_event = write_event
        self._memory = np.zeros(memory_bytes, np.uint8)
        self._watched = np.zeros(memory_bytes // 4, np.uint8)
        self._log = np.zeros(1 + 2 * LOG_RANGES, np.uint32)
        attach_memory(node, self._memory, self._watched, self._log)
        self._watches: list[SimulatedWatch] = []
        self._toggle = 0
        self._busy = False
        self._turn = EventFlag()

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

    async def _access(self, address: int, data: int, *, write: int) -> int:
        if address % 4:
            raise ValueError(f"address {address:#x}: a multiple of 4")
        while self._busy:
            self._turn.clear()
            await self._turn.wait()
        self._busy = True
        try:
            await self._clock.drive_phase()
            toggle = self._toggle ^ 1
            self._command.set(_COMMAND.pack(toggle=toggle, write=write, address=address, data=data))
            self._toggle = toggle
            await self._clock.change(self._done)
            answer = self._response.get()
        finally:
            self._busy = False
            self._turn.set()
        if _RESPONSE.get(answer, "error"):
            what = "write to" if write else "read of"
            raise BusError(f"node {self._node}: the NIC refused a {what} {address:#x}")
        return _RESPONSE.get(answer, "data")

    def watch(self, start: int, length: int) -> SimulatedWatch:
        """A watch on `length` bytes of memory from `start`. Raises ValueError if they are not memory."""
        if start < 0 or length < 1 or start + length > self._memory.size:
            raise ValueError(
                f"watch on {length} bytes from {start:#x}: the memory has {self._memory.size} bytes"
            )
        watch = SimulatedWatch(start, length)
        self._watched[watch.first_word : watch.end_word] = 1
        if not self._watches:
            self._clock.spawn(self._serve_watches(), f"host{self._node}.watches")
        self._watches.append(watch)
        return watch

    async def _serve_watches(self) -> None:
        while True:
            await self._clock.change(self._write_event)
            used = int(self._log[0])
            ranges = self._log[1 : 1 + 2 * used].tolist()
            self._log[0] = 0
            for first, end in zip(ranges[::2], ranges[1::2], strict=True):
                for watch in self._watches:
                    watch.wake(first, end)
