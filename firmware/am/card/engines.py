"""The card's three engines as the program drives them: each has a queue in memory and is started again at each pass.

Host DMA, send and receive engine work side by side (chun-1998 3.4: "a single host DMA engine, and independent network
send and receive DMA engines"). Nothing here waits: what ends is found by the next look at ISR.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ...registers import pack
from .script import Script

__all__ = ["MOST_ANSWERS", "HostDma", "Move", "Outgoing", "ReceiveEngine", "SendEngine"]

MOST_ANSWERS = 2
"""Answers in a row while a packet waits: that to the request whose reply the packet is, and one refusal.

Measured with 91 clients of a server, of 1, 2 and 8: 37,250, 31,000 and 15,250 messages a second; without a bound the
replies hardly left. With 1 the gap of `am-logp` is 1.6 us shorter, 3.9 of it for reliability instead of 5.4 (chun-1998
5.1: 5.33).
"""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A host DMA: `bytes` between `host` and `sram`, all multiples of 4.

    - `to_host`: the direction.
    - `done(error)`: called when it has ended.
    - `words`: stored at `sram` as it begins, so that places for words to the host are shared.
    """

    host: int
    sram: int
    bytes: int
    to_host: bool
    done: Callable[[bool], None] = lambda error: None
    words: tuple[int, ...] = ()


class HostDma:
    """The host DMA engine. Moves of messages and pieces of pages take turns when both wait.

    So a message's move waits for those before it and at most one piece for each; and a piece for one move of a message.
    `busy`: whether a move is under way. `moves`, `pieces`: those that wait.
    """

    def __init__(self) -> None:
        self.moves: deque[Move] = deque()
        self.pieces: deque[Move] = deque()
        self._active: Move | None = None
        self._piece_last = False

    @property
    def busy(self) -> bool:
        """Whether the engine has a move."""
        return self._active is not None

    @property
    def pending(self) -> int:
        """Moves that have not ended."""
        return len(self.moves) + len(self.pieces) + self.busy

    def ended(self, error: bool) -> None:
        """The engine has ended its move."""
        move, self._active = self._active, None
        if move is not None:
            move.done(error)

    def start(self, script: Script) -> None:
        """Give the engine its next move, if it has none and one waits."""
        if self._active is not None or not (self.moves or self.pieces):
            return
        piece = bool(self.pieces) and not (self.moves and self._piece_last)
        self._piece_last = piece
        move = (self.pieces if piece else self.moves).popleft()
        self._active = move
        script.store(move.sram, move.words)
        script.pay("host_dma_start")
        script.write("HOST_DMA_HOST", address=move.host)
        script.write("HOST_DMA_SRAM", address=move.sram)
        script.write("HOST_DMA_CONTROL", bytes=move.bytes, to_host=move.to_host)


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """A packet at `address` of the SRAM, with `bytes` behind its header. `sent()` is called when it has gone.

    `vl`: its virtual lane.
    """

    address: int
    bytes: int
    sent: Callable[[], None]
    vl: int = 0


class SendEngine:
    """The send engine: answers first, then packets, each in the order of asking.

    An answer has no buffer of its own while it waits: `answer(script)` writes it when the engine is free, and returns
    it. After `MOST_ANSWERS` in a row a packet has its turn. So a card that has to refuse what hundreds of channels send
    has time for its own packets.
    """

    def __init__(self) -> None:
        self.packets: deque[Outgoing] = deque()
        self.answer: Callable[[Script], Outgoing | None] = lambda script: None
        self._active: Outgoing | None = None
        self._answers = 0

    @property
    def busy(self) -> bool:
        """Whether the engine has a packet."""
        return self._active is not None

    def ended(self) -> None:
        """The engine's packet has gone."""
        packet, self._active = self._active, None
        if packet is not None:
            packet.sent()

    def start(self, script: Script) -> None:
        """Give the engine the next answer or packet, if it has none and one waits."""
        if self._active is not None:
            return
        packet = None if self._answers == MOST_ANSWERS and self.packets else self.answer(script)
        self._answers = 0 if packet is None else min(self._answers + 1, MOST_ANSWERS)
        if packet is None and self.packets:
            packet = self.packets.popleft()
        if packet is not None:
            self._active = packet
            script.write("SEND_ADDRESS", address=packet.address)
            script.write("SEND_CONTROL", bytes=packet.bytes, vl=packet.vl)


class ReceiveEngine:
    """The receive engine and its buffers. `armed`: the buffer that takes the next packet. `free`: those that wait."""

    def __init__(self, buffers: list[int], mtu_bytes: int) -> None:
        self.free = deque(buffers)
        self.armed: int | None = None
        self._mtu_bytes = mtu_bytes

    def start(self, script: Script) -> None:
        """Arm a free buffer, if none is armed."""
        if self.armed is None and self.free:
            self.armed = self.free.popleft()
            script.write("RECEIVE_ADDRESS", address=self.armed)
            script.write("RECEIVE_CONTROL", bytes=self._mtu_bytes)


EVENTS = pack("ISR", host_dma=1, send=1, receive=1, timer=1)
"""Events that a look clears; a doorbell stays up until its word is read."""
