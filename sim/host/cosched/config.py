"""The numbers of the model: the network's times, and those of the strategies, each with its source."""

from __future__ import annotations

from lanikai.hdl.config import Config
from pydantic import Field

__all__ = ["CoschedConfig"]


class CoschedConfig(Config):
    """The platform of nagar-thesis-2001 chapter 6: MPI over user-level endpoints, and what strategies add.

    Published are the one-way latency, 32 us, and the peak bandwidth, 26.2 MB/s (6.1). Table 3.2, the anatomy of a
    message of 8 bytes on the same card, tells where the latency is spent. There the sender takes 6.5 us, card and wire
    11.5 us, and the receiver 1.5 us. That is 19.5 of the 32 us. The other 12.5 us are MPI's, and half is at each end.
    """

    send_ns: int = Field(
        12_750, ge=0, description="sender's processor: 6.5 us of table 3.2, half of MPI's rest"
    )
    card_ns: int = Field(11_500, ge=1, description="cards and wire: 18.0 less 6.5 us of table 3.2")
    receive_ns: int = Field(
        7_750, ge=0, description="receiver's processor: 1.5 us of table 3.2, half of MPI's rest"
    )
    mb_per_s: float = Field(26.2, gt=0, description="bandwidth of a card's way out (6.1)")
    spin_us: int = Field(275, ge=1, description="spin time: the ideal is around 250 to 300 us (6.1.2)")
    boost_period_us: int = Field(10_000, ge=1000, description="period of the periodic boost (6.1.5)")
    boost_cycles: int = Field(167, ge=0, description="looking at one endpoint in it. Assumption: 1 us")
    estimate_period_us: int = Field(1_000, ge=1, description="period at which a card asks who runs (6.1.3)")
    check_ns: int = Field(
        1_000,
        ge=0,
        description="the card looks whether to interrupt, after a message is in memory. Assumption",
    )
    estimate_ns: int = Field(
        1_000, ge=0, description="what asking who runs adds to a card's message on average. Assumption"
    )
    handler_cycles: int = Field(835, ge=0, description="work of an interrupt's handler. Assumption: 5 us")
    driver_cycles: int = Field(835, ge=0, description="work of the driver's ioctl. Assumption: 5 us")
    gang_slot_ms: int = Field(100, ge=1, description="time slot of the ideal gang scheduler. Assumption")
    fair_lead_ms: int = Field(
        50, ge=1, description="processor time that PBF lets a process be ahead of another one. Own choice"
    )
