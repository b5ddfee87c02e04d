"""The places that the program and the host agree on, in host memory and in the card's SRAM."""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "AREA_BYTES",
    "COMMAND",
    "DESTINATION",
    "HEADER_BYTES",
    "HOST_MEMORY_BYTES",
    "RESULT",
    "SOURCE",
    "SRAM_PACKET",
    "SRAM_RECEIVE",
    "SRAM_WORDS",
    "Result",
    "Window",
]

HOST_MEMORY_BYTES = 4096
HEADER_BYTES = 16
COMMAND = 0x000
"""In host memory: the header of the messages, how many they are, their bytes. A word each for the last two."""
RESULT = 0x040
"""In host memory: the words of `Result`, which the card writes at the end."""
SOURCE, DESTINATION = 0x400, 0x800
"""In host memory: where messages come from, and where they are received."""
AREA_BYTES = 1024
"""Size of each of the two. A message that would leave it begins at its start."""

SRAM_WORDS, SRAM_RECEIVE, SRAM_PACKET = 0x000, 0x040, 0x480
"""In SRAM: command and results; the received packet; the packet to send."""


class Result(IntEnum):
    """The words that the program leaves, by their places."""

    MESSAGES = 0
    """Messages received."""
    SPAN_CYCLES = 1
    """From the start of the first to the end of the last."""
    LEAST_CYCLES = 2
    """Shortest time of a message: from before it leaves host memory until it is there again."""
    MOST_CYCLES = 3
    SUM_CYCLES = 4
    WRONG_HEADERS = 5
    """Messages whose header came with another flow, length or sequence than it was sent with."""
    CRC_ERRORS = 6
    LENGTH_ERRORS = 7


class Window(IntEnum):
    """The node numbers of the request port."""

    HOST_MEMORY = 0
    HOST_REGISTERS = 1
    """`host.rdl`."""
    DOORBELLS = 2
    """Doorbell pages, which are written alone."""
