"""Clocks of a host's bus: of PCI by its specification, of one host as it was measured, and of an SBus.

The order of phases is that of the PCI Local Bus Specification, revision 2.1 (1995), and so are the least clocks of
those that have a least. The clocks that a host bridge, an arbiter and a memory add are an assumption about machines of
that time, measured on none. Each parameter says which it is, with the section of the specification.
"""

from __future__ import annotations

from typing import Self

from lanikai.hdl.config import Config, NicConfig
from pydantic import Field, model_validator

__all__ = ["PciTiming"]

TARGET_INITIAL_LATENCY_CYCLES = 16
"""A target completes the first data phase within 16 clocks of FRAME#, or retries (PCI 2.1, 3.5.1.1)."""
MOST_WAIT_CYCLES = 60
"""Most wait states that the model counts."""
DRAM_ROW_NS = 60
"""A row access of the host's memory, nanoseconds: assumption, as `read_wait_cycles` says."""
BRIDGE_READ_CYCLES = 6
"""Clocks of the bridge before and after that."""
CACHE_LINE_BYTES = 32
"""A cache line of the Pentium Pro, bytes."""
LINE_READ_WAIT_CYCLES, LINE_WRITE_WAIT_CYCLES = 8, 10
"""Wait states of its bridge before a line is read, and before it is written, as `PciTiming.of_cache_lines` says."""
SBUS_HZ = 25_000_000
"""Highest clock of an SBus (IEEE 1496-1993), that of Ultra 1 workstations."""
SBUS_BURST_BYTES = 64
"""Longest burst of a 32-bit SBus (IEEE 1496-1993)."""
SBUS_OVERHEAD_CLOCKS = 6
"""SBus clocks of a burst beside its words: arbitration, translation, the slave's first acknowledgement, and release.

Assumption: those of SBus cards of that time. Sun's sheet of the SCSI host adapter DSBE/S (800-7176) has 72.7 MB/s at
most at 25 MHz. That is 64 bytes in 22 clocks, 16 of which move a word."""
SBUS_MEMORY_NS = 320
"""A coherent access to memory by the SBus bridge of an Ultra 1, nanoseconds. Assumption: some 250 ns, a cache miss of
such a machine, and two SBus clocks to pass between the clocks of memory and bus."""
SBUS_IDLE_CLOCKS = 4
"""SBus clocks of these 6 between the last word of a transaction and the address of the next one: acknowledgement and
release, arbitration, translation."""


class PciTiming(Config):
    """Clocks of a PCI bus. The width is the NIC's `bus_bits`, the frequency its `clock_hz`."""

    arbitration_cycles: int = Field(
        2,
        ge=1,
        le=16,
        description="clocks from REQ# to the address phase on an idle bus. Assumption: the arbiter registers REQ# "
        "and answers with GNT# a clock later; the specification leaves the arbiter's time open (3.4)",
    )
    read_turnaround_cycles: int = Field(
        1,
        ge=1,
        le=4,
        description="clocks between address and data of a read. Specification: one at least, as AD changes its "
        "driver (3.3.1)",
    )
    read_wait_cycles: int = Field(
        8,
        ge=0,
        le=MOST_WAIT_CYCLES,
        description="wait states of the host bridge before the first word read from memory. Assumption: a row "
        "access of 60 ns DRAM (2 clocks at 33 MHz) and 6 for the bridge's decoding, synchronisation and "
        "memory arbitration; the specification only bounds it (3.5.1.1)",
    )
    write_wait_cycles: int = Field(
        2,
        ge=0,
        le=MOST_WAIT_CYCLES,
        description="wait states of the host bridge before it takes the first word written. Assumption: DEVSEL# "
        "of medium speed, one of those that the specification allows (3.6.1), and a clock for the posting "
        "buffer, which then takes a word a clock",
    )
    idle_cycles: int = Field(
        1,
        ge=1,
        le=16,
        description="idle clocks between transactions. Specification: one at least, but for fast back-to-back "
        "transactions, which this bus has not (3.4.2)",
    )
    burst_words: int = Field(
        256,
        ge=1,
        le=1024,
        description="words after which the bridge disconnects; the rest of the burst is a new transaction. "
        "Assumption: the longest AXI4 burst, so that by default only the NIC's own burst length cuts transfers; "
        "the specification sets no length",
    )
    target_latency_cycles: int = Field(
        TARGET_INITIAL_LATENCY_CYCLES,
        ge=TARGET_INITIAL_LATENCY_CYCLES,
        le=MOST_WAIT_CYCLES + 4,
        description="clocks from the address phase within which memory gives the first word. Specification: 16 at most "
        "(3.5.1.1); an SBus allows 255 (IEEE 1496)",
    )
    retry_cycles: int = Field(
        TARGET_INITIAL_LATENCY_CYCLES,
        ge=2,
        le=TARGET_INITIAL_LATENCY_CYCLES,
        description="clocks from the address phase within which the NIC answers programmed I/O, or retries "
        "and completes the access as a delayed transaction (3.3.3.3). Specification: 16 at most (3.5.1.1); "
        "assumption: the NIC uses all of them",
    )
    retry_idle_cycles: int = Field(
        2,
        ge=2,
        le=256,
        description="clocks for which a retried master leaves the bus to others. Specification: REQ# is "
        "deasserted for two at least (3.3.3.2.2); assumption: no longer",
    )

    @classmethod
    def at(cls, clock_hz: int, **changes: int) -> PciTiming:
        """The defaults, which are for 33 MHz, on a bus of `clock_hz`.

        A parameter that is a time becomes more clocks on a faster bus (the DRAM's row access). One that is a number of
        clocks stays (the protocol, the bridge's pipeline).
        """
        row_cycles = -(-DRAM_ROW_NS * clock_hz // 1_000_000_000)
        return cls(**{"read_wait_cycles": row_cycles + BRIDGE_READ_CYCLES} | changes)

    @classmethod
    def of_cache_lines(cls, nic: NicConfig, **changes: int) -> PciTiming:
        """The bus of dual Pentium Pros, the hosts of nagar-thesis-2001 5.4, with this card.

        The thesis measures host DMA (5.4.1.1, table 5.1): data of 16 KB take 96 us more than data of 4 KB, down and up
        alike. That is 128 MB/s of the 528 that a 64-bit bus at 66 MHz has. Bridges of that time ended a burst at the
        processor's cache line. With this model's clocks that explains it:

        - `burst_words`: a line of 32 bytes (the Pentium Pro's), so 4 words of 64 bits. Assumption, fitted to nothing.
        - `read_wait_cycles`: 8. A line down takes 16 clocks, one of them as the card's SRAM takes the first word: 132
          MB/s. Fitted to the 4 B and 4 KB columns of data down, 32 us apart (SVIA).
        - `write_wait_cycles`: 10, as the bridge writes a line to memory before it takes the next. A line up takes 16
          clocks, 132 MB/s. Fitted to the same columns of data up, 31 us apart.
        """
        words = {"burst_words": CACHE_LINE_BYTES * 8 // nic.bus_bits}
        waits = {"read_wait_cycles": LINE_READ_WAIT_CYCLES, "write_wait_cycles": LINE_WRITE_WAIT_CYCLES}
        return cls.at(nic.clock_hz, **(words | waits | changes))

    @classmethod
    def of_sbus(cls, nic: NicConfig, *, streaming: bool = False, **changes: int) -> PciTiming:
        """The SBus of an Ultra 1, the hosts of chun-1998 3.4, counted in cycles of this card.

        A burst of 64 bytes takes 22 SBus clocks of 25 MHz, and with consistent buffers an access to memory besides.
        Streaming buffers hide that: the bridge reads ahead, and takes what is written before memory has it. So:

        - streaming: 22 clocks, 72.7 MB/s.
        - consistent: 30 clocks, 53.3 MB/s.

        A word of this model takes a cycle of the card's 37.5 MHz. The rest of the words' time is in the wait states, so
        that a whole burst takes its time. One of them is the cycle in which the card's SRAM takes the first word read.
        A word of the host's processor is a transaction of its own, of 7 SBus clocks: 4 between transactions, address,
        the card's answer. Nothing here is fitted to a measurement of chun-1998.
        """
        words = SBUS_BURST_BYTES * 8 // nic.bus_bits
        memory = 0 if streaming else -(-SBUS_MEMORY_NS * SBUS_HZ // 1_000_000_000)
        burst = _sbus_cycles(words * nic.bus_bits // 32 + SBUS_OVERHEAD_CLOCKS + memory, nic)
        idle = _sbus_cycles(SBUS_IDLE_CLOCKS, nic)
        return cls(
            **{
                "arbitration_cycles": idle,
                "burst_words": words,
                # Address, turnaround, the card's first word.
                "read_wait_cycles": burst - words - idle - 3,
                # Address.
                "write_wait_cycles": burst - words - idle - 1,
                "idle_cycles": idle,
                "target_latency_cycles": MOST_WAIT_CYCLES + 4,
            }
            | changes
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        latency = 1 + self.read_turnaround_cycles + self.read_wait_cycles + 1
        most = self.target_latency_cycles
        allows = "PCI allows" if most == TARGET_INITIAL_LATENCY_CYCLES else "target_latency_cycles is"
        if latency > most:
            raise ValueError(
                f"read_wait_cycles = {self.read_wait_cycles}: the first word would come in clock {latency}, "
                f"{allows} {most}"
            )
        if self.write_wait_cycles > most:
            raise ValueError(f"write_wait_cycles = {self.write_wait_cycles}: {allows} {most}")
        return self


def _sbus_cycles(clocks: int, nic: NicConfig) -> int:
    """Cycles of the card in `clocks` of an SBus, to the nearest."""
    return round(clocks * nic.clock_hz / SBUS_HZ)
