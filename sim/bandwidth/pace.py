"""Rates as inter-packet dispatch times (gulati-thesis-2001 3.3.1), and how sizes of messages change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanikai.hdl.config import NicConfig

from ..published import table

__all__ = ["Pace"]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Rates as inter-packet dispatch times: a packet of `mtu_bytes` each IDT. An IDT is in ticks, of which there are
    `ticks_per_s`.

    - `peak_ticks`: the time T between packets of a lone flow.
    - `by_bytes`: an IDT is the time of `unit_bytes`, not of a packet (`GmConfig.charge`).

    **Sizes of messages.** Messages of m bytes on average have at most m / MTU + 1 packets each on average, since only a
    message's last packet is short. This holds however their sizes are spread. So a packet has at least p = m MTU / (m +
    MTU) bytes on average. A packet counts as a full one for admission, as it takes a card at most as long: B bytes a
    second count as B MTU / p.

    Where bytes are charged, a packet of less than p / 4 is charged for so many. So a program whose messages are shorter
    than it said has at most four times the packets a second that it counts with. That charge adds less than 1% for the
    frames of a whole film. It adds 3% for a part of a film that begins with many short ones (`charge_factor`).
    """

    mtu_bytes: int
    ticks_per_s: int
    peak_ticks: int
    by_bytes: bool = False
    unit_bytes: int = 0

    @classmethod
    def of(cls, nic: NicConfig, *, by_bytes: bool = False) -> Pace:
        """The pace of a card, with the thesis' T (5.3); `by_bytes`: its program charges bytes."""
        ticks_per_s = nic.clock_hz * nic.rtc_cycles_den // nic.rtc_cycles_num
        return cls(
            mtu_bytes=nic.mtu_bytes,
            ticks_per_s=ticks_per_s,
            peak_ticks=table("rtc")["peak_interval_ticks"],
            by_bytes=by_bytes,
            unit_bytes=nic.charge_unit_bytes,
        )

    @property
    def peak(self) -> int:
        """B_max: the most that a lone flow achieves."""
        return self.mtu_bytes * self.ticks_per_s // self.peak_ticks

    def premium_idt(self, rate: int) -> int:
        """IDT = T * B_max / B_req (3.3.1), in whole ticks.

        It is rounded down, so that a flow never gets less than it asked for. The surplus is less than 1 part in T.
        """
        return max(self.peak_ticks, self.mtu_bytes * self.ticks_per_s // rate)

    def best_effort_idt(self, rate: int, *, longest: int) -> int:
        """The IDT for the share of a best-effort flow: rounded up, so that the flow never takes more.

        - For the peak (to the rounding of `sharing`) it is 0: the flow is not regulated.
        - For a share of nothing it is `longest`, the longest IDT that the card knows.
        """
        if rate + 256 > self.peak:
            return 0
        return min(longest, -(-self.mtu_bytes * self.ticks_per_s // rate)) if rate else longest

    def packet_rate(self, idt_ticks: int) -> int:
        """Bytes a second of full packets, one each IDT."""
        return self.mtu_bytes * self.ticks_per_s // idt_ticks

    def packet_bytes(self, message_bytes: int | None) -> int:
        """p: the bytes that a packet of such messages has at least on average. It is the MTU if no size is given."""
        if message_bytes is None:
            return self.mtu_bytes
        return max(1, message_bytes * self.mtu_bytes // (message_bytes + self.mtu_bytes))

    def counted(self, rate: int, message_bytes: int | None) -> int:
        """The bandwidth, in full packets, that bytes a second in such messages count as."""
        return -(-rate * self.mtu_bytes // self.packet_bytes(message_bytes))

    def uncounted(self, rate: int, message_bytes: int | None) -> int:
        """The bytes a second in such messages that count as `rate`, or a byte less."""
        return rate * self.packet_bytes(message_bytes) // self.mtu_bytes

    def flow_idt(self, packets_idt: int, rate: int, message_bytes: int | None, *, longest: int) -> int:
        """The IDT of a flow whose packets may come every `packets_idt` and whose bytes a second are `rate`.

        It is `packets_idt`, or where bytes are charged the time of `unit_bytes`. 0 and the longest stay what they are.
        """
        if not self.by_bytes or message_bytes is None or packets_idt in (0, longest) or not rate:
            return packets_idt
        return min(longest, max(1, self.unit_bytes * self.ticks_per_s // rate))

    def least_bytes(self, message_bytes: int | None) -> int | None:
        """The fewest bytes that a packet of the flow is charged for; None where packets are charged."""
        if not self.by_bytes:
            return None
        return self.mtu_bytes if message_bytes is None else max(1, self.packet_bytes(message_bytes) // 4)

    def charge_factor(self, sizes: Sequence[int]) -> float:
        """Bytes charged for each byte of messages of these `sizes`, of which there is at least one.

        It is more than 1 where packets have fewer bytes than they are charged for, and 1 where packets are charged.
        """
        least = self.least_bytes(sum(sizes) // len(sizes))
        if least is None:
            return 1.0
        ends = [size % self.mtu_bytes for size in sizes]
        return 1 + sum(least - end for end in ends if 0 < end < least) / sum(sizes)

    def latency_us(self, rate: int, burst_bytes: int, flows: int) -> float:
        """The time within which a message has arrived, from the call to its last byte. It is the sum of:

        - the burst at `rate`;
        - a packet of every other flow of the card at each end (T each, `flows` that a card knows);
        - a packet of the flow's own.
        """
        ticks = (2 * flows + 2) * self.peak_ticks
        return 1e6 * (burst_bytes / rate + ticks / self.ticks_per_s)
