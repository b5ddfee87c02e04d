"""An adapter's registers inside a simulation, for the coroutine of its driver."""

from __future__ import annotations

from pathlib import Path

from lanikai.hdl import hca
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from lanikai.hdl.registers import load

from ..inside import native_api
from ..inside.clock import Clock
from ..inside.words import Fields

__all__ = ["AdapterRegisters"]

HCA_REGISTERS = load(Path(hca.__file__).parent / "hca.rdl")
_REQUEST, _RESPONSE = Fields(PROCESSOR_REQUEST), Fields(PROCESSOR_RESPONSE)


class AdapterRegisters:
    """The registers of the adapter of the composed instance `instance`. One coroutine may use them at a time. An access
    takes a cycle, or as long as what it starts."""

    def __init__(self, clock: Clock, instance: str) -> None:
        self._clock = clock
        self._request = native_api.signal("driver_request", instance)
        self._response = native_api.signal("driver_response", instance)

    async def access(self, address: int, value: int | None = None) -> int:
        """Write a word, or read one."""
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
        """Write a register of `hca.rdl`. Raises ValueError for a bad field."""
        register = HCA_REGISTERS[name]
        await self.access(register.offset, register.pack(**fields))

    async def read(self, name: str) -> dict[str, int]:
        """Read the fields of a register."""
        register = HCA_REGISTERS[name]
        return register.unpack(await self.access(register.offset))
