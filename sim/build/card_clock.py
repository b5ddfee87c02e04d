"""The clock of a card that rests, as the native part of a simulation has to know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from lanikai.hdl.config import NicConfig

__all__ = ["CardClock"]


@dataclass(frozen=True, kw_only=True)
class CardClock:
    """The clock of a block that rests though it counts cycles (`native/timekeeper.h`). The block has the ports of
    `NicSignature` for a simulator that passes over cycles.

    - `num`, `den`, `bits`: a tick of its clock, of `bits`, is `num` / `den` cycles.
    - `reach_ticks`: most ticks passed over at once.
    - `round_cycles`: cycles from one look of a scan to the next, a power of 2; 1 without a scan that takes its time.
    - `horizon_cycles`: the block does not rest from then on.
    """

    num: int
    den: int
    bits: int
    reach_ticks: int
    round_cycles: int
    horizon_cycles: int

    @classmethod
    def of(cls, nic: NicConfig) -> Self:
        """The clock of a card `nic`."""
        return cls(
            num=nic.rtc_cycles_num,
            den=nic.rtc_cycles_den,
            bits=nic.rtc_bits,
            reach_ticks=nic.max_idt_ticks,
            # Whole rounds of a tree's scan, so that it stands where it would have.
            round_cycles=nic.rate_scan_cycles if nic.rate_tree else 1,
            # Until then no NDT can have fallen so far behind that the rate control unit moves it by itself.
            horizon_cycles=int(nic.max_lag_ticks * nic.tick_cycles),
        )
