"""The frames of the serial line: requests of a host, replies of a board."""

from __future__ import annotations

from pathlib import Path

from amaranth.lib.crc.catalog import CRC16_IBM_3740

from ..registers import load

__all__ = [
    "BOARD",
    "BOARD_NODE",
    "CRC",
    "MOST_WORDS",
    "PROTOCOL",
    "REFUSED",
    "REQUEST_BYTES",
    "Status",
    "pack_request",
]

BOARD = load(Path(__file__).parent / "board.rdl")
"""Registers of the design itself, at `BOARD_NODE`."""
BOARD_NODE = 1025
"""The first number that no node has, nor the measurement (`hdl/traffic/ports.py`)."""
PROTOCOL = 0x4C4E_0002
"""The letters LN, and the version of these frames."""
CRC = CRC16_IBM_3740(8)
"""CRC-16 with the polynomial 0x1021, starting from 0xffff; sent with its high byte first."""

REQUEST_BYTES = 12
"""Bytes of a request, numbers low byte first:

- 0: `R` (0x52) to read, `W` (0x57) to write.
- 1, 2: the node.
- 3 to 5: the address, in bytes.
- 6 to 9: the word to write, or how many words are to be read, from `address` on.
- 10, 11: the CRC of all before, high byte first.

A reply is the letter in lower case, the words that were read (4 bytes each, low byte first), a `Status`, and the CRC of
all before. To a request with a wrong CRC, or of another kind, the letter is `REFUSED`, and there is no word.
"""
MOST_WORDS = 255
REFUSED = ord("!")


class Status:
    """How a request ended."""

    DONE = 0
    NO_ANSWER = 1
    """Nothing answers at an address; its word is 0."""
    WRONG_CRC = 2
    UNKNOWN = 3
    """Neither a read nor a write, or no word to be read."""


def pack_request(*, write: bool, node: int, address: int, value: int) -> bytes:
    """A request; `value` is the word to write, or how many to read."""
    frame = bytes([ord("W" if write else "R")])
    frame += node.to_bytes(2, "little") + address.to_bytes(3, "little") + value.to_bytes(4, "little")
    return frame + CRC.compute(frame).to_bytes(2, "big")
