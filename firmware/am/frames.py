"""Endpoints into frames and out of them: load, quiesce, unload, and the end of a process (chun-1998 3.2, 4.4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..accesses import Reading
from .card.engines import Move
from .endpoints import Frame, FrameState, Slot
from .state import AmState
from .words import RECORD_BYTES, RECORD_WORDS, Command, CommandStatus, EndpointRecord

__all__ = ["PIECE_BYTES", "Paging"]

PIECE_BYTES = 1024
"""Bytes of a page that move at once. A message waits for one such piece at most: about 20 us on an SBus."""

Answer = Callable[[CommandStatus], None]


class Ending(Protocol):
    """Ends what the transport has of an endpoint (`Sender`)."""

    def quiesce(self, frame: Frame) -> None:
        """Have each message of an endpoint come to its end: nothing of it is tried again but to end it."""

    def resume(self, frame: Frame) -> None:
        """The endpoint, which is quiet, may send again once it has been loaded."""

    def missed(self, endpoint: int) -> bool:
        """Whether packets for an endpoint were refused as it was absent."""

    def loaded(self, endpoint: int) -> None:
        """Have those who sent them send them again, as it is there, or no more."""


class Faults(Protocol):
    """Tells the driver of faults (`Notices`)."""

    def fault(self, endpoint: int) -> None:
        """A packet has come for an endpoint that is not resident."""

    def forget_fault(self, endpoint: int) -> None:
        """The next fault of an endpoint is a new one."""


class Paging:
    """Loads and unloads. Pages move in pieces, and messages of other endpoints in between.

    An unload has three parts, each of which ends:

    1. Quiesce. Nothing new of the endpoint goes out or comes in. A packet without an answer is taken back with a VOID
       of the same number. So its number gets its fate as soon as the other card answers. If that is silent the message
       comes back after `VirtualNetworkConfig.tries` scans. Data under way to or from the host arrive.
    2. The page goes back to the host, then the record.
    3. The frame is empty, and the driver has its answer.
    """

    def __init__(self, state: AmState, ending: Ending, faults: Faults) -> None:
        self.state, self._ending, self._faults = state, ending, faults
        state.look = self.look
        self._leaving: dict[int, list[Answer]] = {}

    def create(self, endpoint: int) -> CommandStatus:
        """An endpoint exists, in host memory."""
        if endpoint >= self.state.config.endpoints_max:
            return CommandStatus.BAD_COMMAND
        self.state.known.add(endpoint)
        return CommandStatus.OK

    def load(self, command: Command, answer: Answer) -> None:
        """Load an endpoint into a frame; `answer` is called when it is there, or cannot be."""
        state, config = self.state, self.state.config
        frame = state.frames.get(command.frame)
        bad = command.endpoint >= config.endpoints_max or command.page % 8 or command.record % 8
        if frame is None or bad:
            answer(CommandStatus.BAD_COMMAND)
            return
        if frame.state is not FrameState.EMPTY or command.endpoint in state.resident:
            answer(CommandStatus.IN_USE)
            return
        frame.loading(command.endpoint, command.page, command.record)
        state.resident[command.endpoint] = frame
        state.known.add(command.endpoint)
        self._move(frame, False, lambda error: self._loaded(frame, error, answer))

    def _loaded(self, frame: Frame, error: bool, answer: Answer) -> None:
        """Page and record are in the SRAM, or the bus has failed."""
        if error:
            self._empty(frame)
            answer(CommandStatus.HOST_BUS)
            return
        words = self.state.script.load(self.state.layout.record(frame.number), RECORD_WORDS)
        # A word that was rung before belongs to the endpoint that was here.
        self._doorbell(frame)
        self.state.then(lambda: self._ready(frame, [word.get() for word in words], answer))

    def _ready(self, frame: Frame, words: list[int], answer: Answer) -> None:
        record = EndpointRecord.unpack(words)
        record.endpoint = frame.record.endpoint
        killed = frame.killed
        frame.loaded(record)
        self._faults.forget_fault(record.endpoint)
        self.state.places.renew(record.endpoint, self.state.now_ticks)
        self.state.advance()
        answer(CommandStatus.OK)
        if killed:
            self._quiesce(frame)
        else:
            self.state.turns.add(frame.number)
            self._ending.loaded(record.endpoint)

    def unload(self, number: int, answer: Answer) -> None:
        """Unload a frame; `answer` is called when page and record are back in host memory."""
        frame = self.state.frames.get(number)
        if frame is None:
            answer(CommandStatus.BAD_COMMAND)
        elif frame.state is FrameState.EMPTY:
            answer(CommandStatus.EMPTY)
        elif frame.state is not FrameState.RESIDENT:
            answer(CommandStatus.IN_USE)
        else:
            self._leaving[number] = [answer]
            self._quiesce(frame)

    def kill(self, endpoint: int, answer: Answer) -> None:
        """An endpoint's process is gone; `answer` is called when nothing of it is left in the card."""
        self.state.known.discard(endpoint)
        self.state.places.end(endpoint)
        self._faults.forget_fault(endpoint)
        frame = self.state.resident.get(endpoint)
        if frame is None:
            self._ending.loaded(endpoint)
            answer(CommandStatus.OK)
            return
        frame.killed = True
        self._leaving.setdefault(frame.number, []).append(answer)
        if frame.state is FrameState.RESIDENT:
            self._quiesce(frame)

    def _quiesce(self, frame: Frame) -> None:
        """Stop an endpoint. The last doorbell word of its process counts."""
        frame.state = FrameState.STOPPING
        self.state.turns.remove(frame.number)
        self.state.script.pay("quiesce")
        word = self._doorbell(frame)

        def heard() -> None:
            if word["valid"] and not frame.killed:
                frame.rung(word["value"])
            frame.state = FrameState.QUIESCING
            self._ending.quiesce(frame)
            self.look(frame)

        self.state.then(heard)

    def look(self, frame: Frame) -> None:
        """Something of an endpoint has ended: go on with its unload, if nothing is left under way."""
        if frame.state is not FrameState.QUIESCING or frame.moving:
            return
        under_way = any(Slot.UNDER_WAY in queue.slots for queue in frame.sends)
        if (under_way and not frame.killed) or any(queue.under_way for queue in frame.receives):
            return
        self._ending.resume(frame)
        if frame.killed:
            self._gone(frame, False)
            return
        frame.state = FrameState.UNLOADING
        record = self.state.layout.record(frame.number)
        self.state.script.store(record, frame.written_back().pack())
        self._move(frame, True, lambda error: self._gone(frame, error))

    def _gone(self, frame: Frame, error: bool) -> None:
        """Nothing of an endpoint is left in its frame."""
        number, endpoint = frame.number, frame.record.endpoint
        self._empty(frame)
        self.state.advance()
        for answer in self._leaving.pop(number, []):
            answer(CommandStatus.HOST_BUS if error else CommandStatus.OK)
        if frame.killed:
            self._ending.loaded(endpoint)
        elif self._ending.missed(endpoint):
            # Packets that came while it left were refused, and do not come again before it is there.
            self._faults.fault(endpoint)

    def _empty(self, frame: Frame) -> None:
        del self.state.resident[frame.record.endpoint]
        frame.state = FrameState.EMPTY
        if not frame.killed:
            # A packet that came meanwhile comes again, and is a new fault.
            self._faults.forget_fault(frame.record.endpoint)

    def _doorbell(self, frame: Frame) -> Reading:
        """Read the frame's doorbell word in the next pass, which takes it away."""
        accesses = self.state.script.room(2)
        accesses.write("DOORBELL_SELECT", channel=frame.number)
        return accesses.read("DOORBELL_WORD")

    def _move(self, frame: Frame, to_host: bool, ended: Callable[[bool], None]) -> None:
        """Move page and record in pieces, in this order; `ended(error)` is called when all have been moved."""
        layout, size = self.state.layout, self.state.config.page_bytes
        parts = [
            (frame.host_page + at, frame.page + at, min(PIECE_BYTES, size - at))
            for at in range(0, size, PIECE_BYTES)
        ]
        parts.append((frame.host_record, layout.record(frame.number), RECORD_BYTES))
        left, failed = len(parts), False

        def done(error: bool) -> None:
            nonlocal left, failed
            left, failed = left - 1, failed or error
            self.state.script.pay("page_piece")
            if not left:
                ended(failed)

        for host, sram, length in parts:
            self.state.host_dma.pieces.append(
                Move(host=host, sram=sram, bytes=length, to_host=to_host, done=done)
            )
