"""The loop: what each pass carries out and looks at."""

from __future__ import annotations

from dataclasses import dataclass

from .. import registers
from ..accesses import AccessList, Reading
from ..notice import PortEvent
from .card.engines import EVENTS
from .intake import Intake
from .layout import HEADER_BYTES
from .receiver import Receiver
from .sender import Sender
from .state import AmState
from .wire import AM_HEADER_BYTES, ANSWER_BYTES, MOST_WORDS

__all__ = ["Loop"]

_RECEIVE, _SEND, _HOST_DMA, _TIMER, _DOORBELL = (
    registers.pack("ISR", **{name: 1}) for name in ("receive", "send", "host_dma", "timer", "doorbell")
)
_ALL = EVENTS | _DOORBELL
_KIND_MASK, _DATA = 15, 0
"""Bits of a packet's first word that are its kind."""
_FIRST_WORDS = (HEADER_BYTES + ANSWER_BYTES) // 4
_REST_WORDS = (AM_HEADER_BYTES - ANSWER_BYTES) // 4 + MOST_WORDS


@dataclass(frozen=True)
class _Look:
    """The list with which a pass ends, and its readings. `then_armed`: whether it arms a buffer once more."""

    accesses: AccessList
    now: Reading
    status: Reading
    error: Reading | None
    packet: list[Reading]
    then_armed: bool


class Loop:
    """The loop of the program. A pass takes a bounded time:

    1. It carries out what the pass before has decided, at the steps' costs.
    2. It looks at RTC and ISR, and clears the events that it has seen. If a packet has come it gives the receive engine
       another buffer, and reads header and words.
    3. It calls what waited for the accesses, then serves the events.
    4. It decides: engines that are free get their next work, and one endpoint may make an attempt to send.

    If that gives nothing to do, it sleeps until an event.
    """

    def __init__(self, state: AmState, intake: Intake, sender: Sender, receiver: Receiver) -> None:
        self.state, self.intake, self.sender, self.receiver = state, intake, sender, receiver
        self._event = PortEvent(state.processor.port)
        self._doorbell = False

    async def run(self) -> None:
        """Serve for ever."""
        state = self.state
        state.receive.start(state.script)
        state.script.write("IMR", mask=_ALL)
        await state.script.run("dispatch", AccessList())
        while True:
            looks = 0 if self._doorbell or state.looking else self.sender.loiter()
            self._decide(attempt=not looks)
            if looks:
                await self._loiter(looks)
            await self._pass(sleep=not looks)

    async def _pass(self, *, sleep: bool) -> None:
        state = self.state
        look = self._write_look()
        event = self._event if sleep and not state.looking else None
        await state.script.run("dispatch", look.accesses, after=event)
        state.now_ticks = look.now.get()
        state.carried_out()
        status = look.status.get()
        if status & _HOST_DMA:
            state.script.pay("host_dma_done")
            state.host_dma.ended(look.error is not None and bool(look.error["error"]))
        if status & _SEND:
            state.send.ended()
        if status & _TIMER:
            self.sender.timer()
        if status & _RECEIVE:
            self._received(look)
        self._doorbell = bool(status & _DOORBELL)

    def _write_look(self) -> _Look:
        """Look at the events, and take in the packet that has come, if one has."""
        state = self.state
        accesses = AccessList()
        now, status = accesses.read("RTC"), accesses.read("ISR")
        accesses.skip_if(status, mask=EVENTS, value=0, records=1)
        accesses.copy(status, "ISR", mask=EVENTS)
        error = accesses.read("HOST_DMA_STATUS") if state.host_dma.busy else None
        packet: list[Reading] = []
        armed, free = state.receive.armed, state.receive.free
        if armed is not None:
            accesses.stop_if(status, mask=_RECEIVE, value=0)
            if free:
                accesses.write("RECEIVE_ADDRESS", address=free[0])
                accesses.write("RECEIVE_CONTROL", bytes=state.nic.mtu_bytes)
            packet = accesses.load(armed, _FIRST_WORDS)
            accesses.stop_if(packet[0], mask=_KIND_MASK, value=_DATA, differs=True)
            packet += accesses.load(armed + 4 * _FIRST_WORDS, _REST_WORDS)
        return _Look(accesses, now, status, error, packet, bool(free))

    def _received(self, look: _Look) -> None:
        receive = self.state.receive
        buffer = receive.armed
        assert buffer is not None
        receive.armed = receive.free.popleft() if look.then_armed else None
        words = [reading.get() for reading in look.packet if reading.word is not None]
        self.receiver.take(buffer, words)

    async def _loiter(self, looks: int) -> None:
        """Look whether the process whose turn it is posts more, before the turn goes to another endpoint."""
        state = self.state
        accesses = AccessList()
        seen = []
        for _ in range(looks):
            state.processor.pay(accesses, loiter_look=1)
            seen.append(accesses.read("ISR"))
            accesses.stop_if(seen[-1], mask=_ALL, value=0, differs=True)
        await state.script.run("dispatch", accesses)
        state.turns.looked(sum(reading.word is not None for reading in seen))

    def _decide(self, *, attempt: bool) -> None:
        """Decide on the accesses of the next pass."""
        state = self.state
        if self._doorbell:
            self.intake.look()
        self.sender.work(attempt=attempt)
        state.receive.start(state.script)
        state.send.start(state.script)
        state.host_dma.start(state.script)
