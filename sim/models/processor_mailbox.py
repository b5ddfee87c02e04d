"""The processor port of one NIC inside a simulation: a mailbox in RTL, and its coroutine side.

The mailbox turns an access into one write by Python and, for most accesses, one wake-up. It holds the request until the
NIC takes it, drops it by itself, and keeps the data that was read.
"""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.config import NicConfig
from lanikai.hdl.register_port import ProcessorSignature

from ..inside import native_api
from ..inside.clock import Clock, Clocked
from ..inside.wakes import NativeEvent
from ..inside.words import Fields

__all__ = [
    "PROCESSOR_ANSWER",
    "PROCESSOR_COMMAND",
    "ProcessorMailbox",
    "SimulatedProcessor",
    "processor_ends",
]

PROCESSOR_COMMAND = data.StructLayout({"toggle": 1, "write": 1, "address": 24, "data": 32})
"""An access of the NIC's processor: a change of `toggle` starts it, when the one before has ended."""
PROCESSOR_ANSWER = data.StructLayout({"taken": 1, "complete": 1, "data": 32})
"""Answer to an access. `taken` follows the command's toggle in the cycle after the NIC took the access. `complete`
follows a cycle later, when `data` is that of the last read."""


STEP_BITS = 8 * 24
"""Bits of a step's name in waves: 24 letters."""


def processor_ends(config: NicConfig) -> tuple[str, ...]:
    """The ends of the names of a card's processors in a cluster's design: nothing for the first, `_1` for a second
    one."""
    return ("", "_1")[: config.processors]


_COMMAND, _ANSWER = Fields(PROCESSOR_COMMAND), Fields(PROCESSOR_ANSWER)


class ProcessorMailbox(wiring.Component):
    """Holds an access on the NIC's processor port until it is taken.

    Members: `command` (in, `PROCESSOR_COMMAND`), `answer` (out, `PROCESSOR_ANSWER`), `pending` (out): the
    port's event; `processor` (out, `ProcessorSignature`). The request appears in the cycle in which `command`
    changes; no cycle is added. Reset: nothing requested.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "command": In(PROCESSOR_COMMAND),
                "answer": Out(PROCESSOR_ANSWER),
                "pending": Out(1),
                "processor": Out(ProcessorSignature()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response = self.processor.request, self.processor.response
        taken = Signal()
        read_taken = Signal()
        answer = self.answer
        m.d.comb += [
            request.valid.eq(self.command.toggle != answer.taken),
            request.write.eq(self.command.write),
            request.address.eq(self.command.address),
            request.data.eq(self.command.data),
            taken.eq(request.valid & response.ready),
            self.pending.eq(response.event),
        ]
        m.d.sync += read_taken.eq(taken & ~request.write)
        with m.If(taken):
            m.d.sync += answer.taken.eq(self.command.toggle)
        m.d.sync += answer.complete.eq(answer.taken)
        with m.If(read_taken):
            m.d.sync += answer.data.eq(response.data)
        return m


class SimulatedProcessor(Clocked):
    """`ProcessorPort` of one NIC.

    - `command`, `answer`, `event`: the mailbox's ports. `change` is the change of the last (`Wakes.change`).
    - `step`: where a build with waves shows the firmware's step, in letters.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        command: native_api.Signal,
        answer: native_api.Signal,
        event: native_api.Signal,
        change: NativeEvent,
        step: native_api.Signal | None = None,
    ) -> None:
        super().__init__(clock)
        self._command, self._answer, self._event, self._change = command, answer, event, change
        self._step = step
        self._toggle = 0

    def show_step(self, name: str) -> None:
        """Show the firmware's present step, empty for none, if the build has waves."""
        if self._step is not None:
            self._step.set(int.from_bytes(name.encode()[: STEP_BITS // 8], "big"))

    async def write(self, address: int, data: int) -> None:
        """Write a 32-bit word at a byte address of the processor's map: 1 cycle, more if the SRAM is busy."""
        await self._access(address, data, write=1, cycles=1, ended="taken")

    async def read(self, address: int) -> int:
        """Read a 32-bit word: 2 cycles, more if the SRAM is busy."""
        return _ANSWER.get(await self._access(address, 0, write=0, cycles=2, ended="complete"), "data")

    async def _access(self, address: int, data: int, *, write: int, cycles: int, ended: str) -> int:
        """Start an access. Returns the answer after `cycles` or, if the NIC is busy, when `ended` says so."""
        toggle = self._toggle ^ 1
        self._command.set(_COMMAND.pack(toggle=toggle, write=write, address=address, data=data))
        self._toggle = toggle
        await self._clock.sleep(cycles)
        # The answer is made of registers: the same now as just before the next edge.
        while _ANSWER.get(answer := self._answer.get(), ended) != toggle:
            await self._clock.sleep(1)
        return answer

    async def event(self) -> None:
        """Return in the first cycle in which the event is high; at once if it is."""
        while not self._event.get():
            await self._clock.change(self._change)
