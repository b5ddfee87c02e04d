"""The host's end of a board's serial line: requests sent, replies checked, lost ones asked for again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from lanikai.hdl.board.config import MOST_LABEL_BYTES
from lanikai.hdl.board.frames import (
    BOARD,
    BOARD_NODE,
    CRC,
    MOST_WORDS,
    PROTOCOL,
    REFUSED,
    Status,
    pack_request,
)

from ..errors import LanikaiError, MissingTool, UserError
from ..extras import install_command

__all__ = ["BoardLine", "Bytes", "LineError", "open_port"]

TRIES = 3
"""Times that a request is sent. Each may come twice: to read or write a register again does no harm."""
REPLY_SECONDS = 1.0
"""Longest wait for the next byte of a reply: far above the delays of adapters, and of a simulated board."""
PAUSE_SECONDS = 0.1
"""Silence before a request is sent again: above `GAP_SECONDS`, so that a board has dropped what it has of it."""


class LineError(LanikaiError):
    """The line or the board behind it does not do what it should."""


class Bytes(Protocol):
    """A serial port: what is used of pyserial's `Serial`."""

    def write(self, data: bytes) -> Any:
        """Send bytes."""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer when the time is over."""

    def reset_input_buffer(self) -> None:
        """Forget what has come."""

    def close(self) -> None:
        """Close it."""


def open_port(port: str, baud: int) -> Bytes:
    """The serial port `port`. Raises MissingTool without pyserial, UserError for what is no port,
    LineError for one that cannot be opened."""
    try:
        import serial
    except ModuleNotFoundError:
        raise MissingTool("pyserial", install_command()) from None
    if not Path(port).is_char_device():
        raise UserError(f"{port!r} is no serial port: name the board's, such as /dev/ttyUSB0")
    try:
        opened: Bytes = serial.Serial(
            port, baud, timeout=REPLY_SECONDS, write_timeout=REPLY_SECONDS, exclusive=True
        )
    except (serial.SerialException, ValueError, OSError) as error:
        why = getattr(error, "strerror", None) or str(error).rpartition(": ")[2] or "unknown reason"
        raise LineError(f"serial port {port!r} cannot be opened: {why}") from None
    return opened


class BoardLine:
    """A board at a serial port. Raises LineError from every method where the board does not answer as it should."""

    def __init__(self, port: Bytes, name: str) -> None:
        self._port, self._name = port, name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._port.close()

    def write(self, node: int, address: int, word: int) -> None:
        """Write a word."""
        self._request(pack_request(write=True, node=node, address=address, value=word), words=0)

    def read(self, node: int, address: int, words: int = 1) -> list[int]:
        """Words from `address` on."""
        found: list[int] = []
        for first in range(0, words, MOST_WORDS):
            count = min(MOST_WORDS, words - first)
            request = pack_request(write=False, node=node, address=address + 4 * first, value=count)
            found += self._request(request, words=count)
        return found

    def read_all(self, places: Sequence[tuple[int, int]]) -> list[int]:
        """The words at (node, address) places, in their order; those that follow each other in one request."""
        found: list[int] = []
        while len(found) < len(places):
            node, address = places[len(found)]
            count = 1
            while len(found) + count < len(places) and places[len(found) + count] == (
                node,
                address + 4 * count,
            ):
                count += 1
            found += self.read(node, address, count)
        return found

    def identity(self) -> int:
        """The identity of the design. Raises LineError for a board that speaks another protocol."""
        protocol, identity = self.read(BOARD_NODE, BOARD["PROTOCOL"].offset, 2)
        if protocol != PROTOCOL:
            raise LineError(
                f"{self._name}: the board has protocol {protocol:#x}, not {PROTOCOL:#x}: build it anew"
            )
        return identity

    def label(self) -> str:
        """The text by which the design says what it is. Raises LineError for a board that speaks another protocol."""
        self.identity()
        (count,) = self.read(BOARD_NODE, BOARD["LABEL_BYTES"].offset)
        words = self.read(BOARD_NODE, BOARD["LABEL"].offset, -(-min(count, MOST_LABEL_BYTES) // 4))
        text = b"".join(word.to_bytes(4, "little") for word in words)
        return text[:count].decode("ascii", "replace")

    def restart(self) -> None:
        """Reset everything but the line."""
        self.write(BOARD_NODE, BOARD["RESTART"].offset, 1)

    def _request(self, request: bytes, *, words: int) -> list[int]:
        problem = ""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_SECONDS)
                self._port.reset_input_buffer()
            try:
                self._port.write(request)
                reply = self._reply(4 * words)
            except OSError as error:  # pyserial's too: the adapter was pulled out, say
                raise LineError(f"{self._name}: {error}") from None
            if not reply:
                problem = "no answer: is the board programmed, and the rate right?"
            elif len(reply) < 4 or CRC.compute(reply[:-2]) != int.from_bytes(reply[-2:], "big"):
                problem = f"a broken reply of {len(reply)} bytes"
            elif reply[-3] == Status.NO_ANSWER:
                node, address = int.from_bytes(request[1:3], "little"), int.from_bytes(request[3:6], "little")
                raise LineError(f"{self._name}: nothing answers at node {node}, address {address:#x}")
            elif reply[0] != request[0] | 0x20:
                problem = f"refused with status {reply[-3]}"
            else:
                return [int.from_bytes(reply[i : i + 4], "little") for i in range(1, 1 + 4 * words, 4)]
        raise LineError(f"{self._name}: {problem} ({TRIES} tries)")

    def _reply(self, data_bytes: int) -> bytes:
        """The bytes of a reply; fewer when none comes any more."""
        found = self._port.read(1)
        if not found:
            return b""
        whole = 4 + (0 if found[0] == REFUSED else data_bytes)
        # A read ends with its time, whatever has come by then: a slow line gives a long reply in pieces.
        while len(found) < whole and (piece := self._port.read(whole - len(found))):
            found += piece
        return found
