"""The processor port of one NIC inside a simulation: a mailbox in RTL, and its coroutine side.

The mailbox turns an access into one write by Python and, for most accesses, one wake-up. It holds the request until the
NIC takes it, drops it by itself, and keeps the data that was read.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from lanikai.firmware.accesses import AccessList
from lanikai.firmware.carry_out import carry_out
from lanikai.hdl.config import NicConfig
from lanikai.hdl.register_port import ProcessorSignature

from ..inside import native_api
from ..inside.clock import Clock, Clocked, EventFlag
from ..inside.lists import NativeLists
from ..inside.wakes import Wakes
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

    - `wakes`: the simulation's native events.
    - `command`, `answer`, `event`: the mailbox's ports.
    - `lists`: the main loop carries out lists of accesses; else Python does, access by access.
    - `step`: where a build with waves shows the firmware's step, in letters.
    """

    def __init__(
        self,
        clock: Clock,
        wakes: Wakes,
        *,
        command: native_api.Signal,
        answer: native_api.Signal,
        event: native_api.Signal,
        lists: bool,
        step: native_api.Signal | None = None,
    ) -> None:
        super().__init__(clock)
        self._wakes = wakes
        self._command, self._answer, self._event = command, answer, event
        self._change = wakes.change(event)
        self._step = step
        self._lists = NativeLists(command, answer, wakes.event(), clock.guarded) if lists else None
        self._list: AccessList | None = None

    @property
    def show_step(self) -> Callable[[str], None] | None:
        """The function that shows the firmware's present step, empty for none, if the build has waves."""
        return self._show_step if self._step is not None else None

    def _show_step(self, name: str) -> None:
        assert self._step is not None
        self._step.set(int.from_bytes(name.encode()[: STEP_BITS // 8], "big"))

    async def sleep(self, cycles: int) -> None:
        """Return `cycles` (at least 1) later."""
        over = EventFlag()
        self._wakes.call_later(cycles, over.set)
        await over.wait()

    async def write(self, address: int, data: int) -> None:
        """Write a 32-bit word at a byte address of the processor's map: 1 cycle, more if the SRAM is busy."""
        await self._access(address, data, write=1, cycles=1, ended="taken")

    async def read(self, address: int) -> int:
        """Read a 32-bit word: 2 cycles, more if the SRAM is busy."""
        return _ANSWER.get(await self._access(address, 0, write=0, cycles=2, ended="complete"), "data")

    async def _access(self, address: int, data: int, *, write: int, cycles: int, ended: str) -> int:
        """Start an access. Returns the answer after `cycles` or, if the NIC is busy, when `ended` says so."""
        toggle = _COMMAND.get(self._command.get(), "toggle") ^ 1
        self._command.set(_COMMAND.pack(toggle=toggle, write=write, address=address, data=data))
        await self.sleep(cycles)
        # The answer is made of registers: the same now as just before the next edge.
        while _ANSWER.get(answer := self._answer.get(), ended) != toggle:
            await self.sleep(1)
        return answer

    async def event(self) -> None:
        """Return in the first cycle in which the event is high; at once if it is."""
        while not self._event.get():
            await self._clock.change(self._change)

    def call_on_event(self, function: Callable[[], None]) -> None:
        """Call `function` once in the first cycle in which the event is high; at once if it is."""
        if self._event.get():
            function()
        else:
            self._clock.call_on_change(self._change, lambda: self.call_on_event(function))

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call `function` in this cycle, behind all that has been woken in it until now."""
        self._clock.call_soon(function)

    def start(self, accesses: AccessList, ended: Callable[[], None], *, lead_cycles: int = 0) -> None:
        """Carry out a list of accesses from the record on that it has reached, `lead_cycles` from now, and call
        `ended`."""
        accesses.check()
        if self._lists is not None:
            self._lists.start(accesses, ended, lead_cycles=lead_cycles, call_soon=self.call_soon)
            return
        self._list = accesses
        self._go_on(carry_out(self, accesses, lead_cycles), ended, self.call_soon)

    def interrupt(self) -> None:
        """Have the list under way, if there is one, end at its next mark."""
        if self._lists is not None:
            self._lists.interrupt()
        elif self._list is not None:
            self._list.interrupted = True

    def _go_on(
        self,
        accesses: Coroutine[Any, Any, None],
        ended: Callable[[], None],
        call: Callable[[Callable[[], None]], None],
    ) -> None:
        """Carry out a list by single accesses up to the next wait, and `call` what is to be called at its end."""
        try:
            wait = accesses.send(None)
        except StopIteration:
            self._list = None
            call(ended)
        else:
            # As a task waits for a trigger, but at once when it is called: no task comes in between.
            wait._register(self._clock.guarded(lambda: self._go_on(accesses, ended, _call)))


def _call(function: Callable[[], None]) -> None:
    function()
