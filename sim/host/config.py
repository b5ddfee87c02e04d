"""What host software costs: parameters of the machines at both ends."""

from __future__ import annotations

from fractions import Fraction

from lanikai.hdl.config import NicConfig, Part
from pydantic import Field

__all__ = ["HostConfig"]


class HostConfig(Part):
    """A host with a 300 MHz Pentium II (gulati-thesis-2001 5.1).

    The documents give no break-up of GM's host overhead, only that GM has "low CPU overhead" (4.1). The times
    are instruction counts at one instruction a cycle: the library's path of a call is of the order of a
    hundred instructions. Writes into the NIC's window take their time on the simulated bus, beside these.
    """

    send_ns: int = Field(
        400, ge=0, description="a send call: checks, token, descriptor; about 120 instructions"
    )
    receive_buffer_ns: int = Field(300, ge=0, description="providing a receive buffer; about 90 instructions")
    event_ns: int = Field(300, ge=0, description="taking an event out of the ring; about 90 instructions")
    poll_ns: int = Field(
        150,
        ge=0,
        description="from an event's arrival in memory to its being seen by a poll loop: cache miss, compare",
    )
    command_ns: int = Field(
        5000, ge=0, description="a call through the driver: open, close, register; a system call"
    )

    def cycles(self, nanoseconds: int, nic: NicConfig) -> int:
        """NIC clock cycles of a time, rounded up; 0 stays 0."""
        exact = Fraction(nanoseconds * nic.clock_hz, 1_000_000_000)
        return -(-exact.numerator // exact.denominator)
