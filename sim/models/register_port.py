"""A register port inside a simulation: accesses of a router's agent or an adapter's driver, for coroutines."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from lanikai.hdl.registers import Register

from ..inside import native_api
from ..inside.clock import Clock, EventFlag
from ..inside.words import Fields

__all__ = ["RegisterPort"]

_REQUEST, _RESPONSE = Fields(PROCESSOR_REQUEST), Fields(PROCESSOR_RESPONSE)


class RegisterPort:
    """The `registers`, by name, at a port (`ProcessorSignature`).

    `prefix` and `scope` name the port: its signals are `{prefix}request` and `{prefix}response` in that scope.
    Coroutines that want it at once have an access each in the order in which they came. An access takes a cycle, or as
    long as what it starts.
    """

    def __init__(
        self, clock: Clock, registers: Mapping[str, Register], *, prefix: str, scope: str = "TOP"
    ) -> None:
        self._clock, self._registers = clock, registers
        self._request = native_api.signal(f"{prefix}request", scope)
        self._response = native_api.signal(f"{prefix}response", scope)
        self._taken = False
        self._line: deque[EventFlag] = deque()

    @property
    def pending(self) -> bool:
        """Whether the port says that there is something to read (`event`)."""
        return bool(_RESPONSE.get(self._response.get(), "event"))

    async def access(self, address: int, value: int | None = None) -> int:
        """Write a word, or read one."""
        if self._taken:
            turn = self._clock.flag()
            self._line.append(turn)
            await turn.wait()
        self._taken = True
        try:
            return await self._access(address, value)
        finally:
            # The next one has it at once: nobody who comes later goes ahead.
            if self._line:
                self._line.popleft().set()
            else:
                self._taken = False

    async def _access(self, address: int, value: int | None) -> int:
        await self._clock.drive_phase()
        write = value is not None
        self._request.set(_REQUEST.pack(valid=1, write=write, address=address, data=value or 0))
        while True:
            await self._clock.sample_phase()
            ready = _RESPONSE.get(self._response.get(), "ready")
            await self._clock.drive_phase()
            if ready:
                break
        self._request.set(0)
        return _RESPONSE.get(self._response.get(), "data")

    async def write(self, name: str, **fields: int) -> None:
        """Write a register. Raises ValueError for a bad field."""
        register = self._registers[name]
        await self.access(register.offset, register.pack(**fields))

    async def read(self, name: str) -> dict[str, int]:
        """Read the fields of a register."""
        register = self._registers[name]
        return register.unpack(await self.access(register.offset))
