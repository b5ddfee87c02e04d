"""The costs of host software: parameters of the machines at both ends."""

from __future__ import annotations

from fractions import Fraction

from lanikai.hdl.config import Config, NicConfig
from pydantic import Field

__all__ = ["HostConfig", "KitConfig", "cycles"]


class HostConfig(Config):
    """A host with a 300 MHz Pentium II (gulati-thesis-2001 5.1).

    The documents give no break-up of GM's host overhead, only that GM has "low CPU overhead" (4.1). The times are
    instruction counts at one instruction a cycle. The library's path of a call is of the order of a hundred
    instructions. Writes into the NIC's window take their time on the simulated bus, beside these.
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
        return cycles(nanoseconds, nic)


class KitConfig(Config):
    """The costs of the host kit's calls, on the machine of `HostConfig`, a 300 MHz Pentium II.

    No document has these numbers. Work in the process is counted in instructions, one a cycle, as in `HostConfig`. The
    costs of entering the kernel are an assumption, of the order of those of systems of that time:

    - a system call: 1 us;
    - an interrupt with its handler: 5 us;
    - a switch to another process: 5 us.

    nagar-thesis-2001 only calls registering memory "a costly system call" (4.1.2). Accesses to the card take their time
    on the simulated bus, beside these.
    """

    post_ns: int = Field(
        200,
        ge=0,
        description="posting a descriptor: is there room, two words and a status; about 60 instructions",
    )
    look_ns: int = Field(
        20,
        ge=0,
        description="a look at a completion queue, or at a status word, that finds nothing new: in the cache, compare",
    )
    miss_ns: int = Field(
        150,
        ge=0,
        description="the first look at what the card has written: the line comes from memory, as `HostConfig.poll_ns`",
    )
    entry_ns: int = Field(
        100, ge=0, description="taking an entry out of a completion queue; about 30 instructions"
    )
    system_call_ns: int = Field(1_000, ge=0, description="into the kernel and back. Assumption")
    interrupt_ns: int = Field(
        5_000, ge=0, description="an interrupt and its handler, without its accesses to the card. Assumption"
    )
    wake_ns: int = Field(
        5_000, ge=0, description="from a process' being woken to its running again: a switch. Assumption"
    )
    register_ns: int = Field(
        5_000,
        ge=0,
        description="registering or deregistering memory, beside the system call and the pages: bookkeeping, a word "
        "with the card. Assumption, that of `HostConfig.command_ns`",
    )
    register_page_ns: int = Field(
        500,
        ge=0,
        description="a page of it: find it, pin it, write its entry of the page table; about 150 instructions",
    )
    deregister_page_ns: int = Field(200, ge=0, description="a page: unpin it; about 60 instructions")


def cycles(nanoseconds: int, nic: NicConfig) -> int:
    """NIC clock cycles of a time, rounded up; 0 stays 0."""
    exact = Fraction(nanoseconds * nic.clock_hz, 1_000_000_000)
    return -(-exact.numerator // exact.denominator)
