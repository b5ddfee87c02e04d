"""Configuration of the network interface card."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from .base import Config
from .link import HEADER_BITS, LinkConfig

__all__ = ["REGISTER_FLOWS", "SCAN_CYCLES", "NicConfig", "least_stamp_bits"]

REGISTER_FLOWS = 16
"""Most flows of a rate control unit of registers, whose area grows with them."""
SCAN_CYCLES = 16
"""Least cycles from one flow to the next of a tree's scan: longer than a command takes."""

MOST_CHARGED_BYTES = 16384
"""Most bytes that a flow can be charged for a packet: RATE_DISPATCH has 14 bits for them, and 0 is an MTU."""
MOST_VL_FLITS = 1024
"""Most flits that a VL buffer holds, as in a router (`RouterConfig.output_buffer_flits`)."""


def least_stamp_bits(flows: int) -> int:
    """The least bits of a clock by which `flows` flows are stamped.

    A scan of the stamper, `SCAN_CYCLES` a flow, must be over within a quarter of its range.
    """
    return max(6, (SCAN_CYCLES * (flows + 1)).bit_length() + 2)


class NicConfig(Config):
    """The LANai-style network interface card (gulati-thesis-2001 4.1, nagar-thesis-2001 4.2, 5.2)."""

    link: LinkConfig = Field(
        default_factory=lambda: LinkConfig(restart=True),
        description="the network link; either end may be reset alone, unless `restart` is False",
    )
    clock_hz: int = Field(
        33_000_000, ge=1, description="frequency of the NIC clock (and of the host bus), Hz"
    )
    bus_bits: Literal[32, 64] = Field(32, description="data width of the AXI4 master (DMA), bits")
    burst_beats: int = Field(64, ge=1, le=256, description="longest AXI4 burst, beats")
    dma_alignment_bytes: Literal[1, 4] = Field(
        4, description="alignment of host DMA at both ends, bytes; 1 costs wider shifters"
    )
    host_dma_bursts: int = Field(
        2, ge=1, le=4, description="AXI4 bursts of the host DMA engine under way at once"
    )
    host_dma_queue_entries: int = Field(
        0, ge=0, le=64, description="entries of the descriptor queue of the host DMA engine; 0: no queue"
    )
    host_dma_queue_order: Literal["arrival", "timestamp"] = Field(
        "arrival", description="order of the host DMA engine's queue; timestamp: the smallest stamp first"
    )
    send_queue_entries: int = Field(
        0, ge=0, le=64, description="entries of the descriptor queue of the send engine; 0: no queue"
    )
    send_queue_order: Literal["arrival", "timestamp"] = Field(
        "arrival", description="order of the send engine's queue; timestamp: the smallest stamp first"
    )
    stamp_flows: int = Field(
        0,
        ge=0,
        le=1024,
        description="flows for which the card itself stamps what is put into queues in order of stamps (VirtualClock); "
        "0: none, stamps are the program's",
    )
    receive_queue_entries: int = Field(
        0,
        ge=0,
        le=2,
        description="buffers queued for the receive engine, behind the one that it fills; 0: no queue. At most 2, as "
        "each takes SRAM for a whole packet (nagar-thesis-2001 4.3.7)",
    )
    receive_wait_cycles: int = Field(
        0,
        ge=0,
        lt=1 << 32,
        description="cycles that a packet waits until a buffer is armed; then all are thrown away until one is, so "
        "that a card whose program has stopped holds up nobody. 0: for ever, and all that send to it stand, too",
    )
    pipelined: bool = Field(
        False,
        description="registers in the card's long paths: twice the clock of an FPGA, for a cycle or two of latency "
        "(docs/synthesis.md says where)",
    )
    sram_bytes: int = Field(262144, ge=1024, le=1 << 20, description="SRAM, bytes")
    channels: int = Field(8, ge=1, le=1024, description="doorbell channels, a 4096-byte page each")
    doorbell: Literal["polled", "queue"] = Field(
        "polled", description="a word a channel that firmware looks at, or one hardware queue"
    )
    doorbell_queue_entries: int = Field(
        16, ge=2, le=4096, description="entries of the hardware doorbell queue"
    )
    doorbell_priorities: int = Field(
        1, ge=1, le=8, description="priorities of the hardware doorbell queue: a queue each"
    )
    receive_doorbells: Literal["none", "merged", "separate"] = Field(
        "none",
        description="a receive doorbell beside each channel's send doorbell: in the same queue, or in one of its own",
    )
    owners: int = Field(
        0,
        ge=0,
        le=1024,
        description="owners: a page of the host's window each, and what belongs to others is refused; 0: a page a "
        "channel, and no checks",
    )
    shadow_windows: bool = Field(
        False, description="a window of each owner's page onto bytes of the SRAM, for descriptors"
    )
    completion_queues: int = Field(
        0, ge=0, le=64, description="completion queues in host memory that the card writes; 0: none"
    )
    completion_batch: Literal[1, 2, 4, 8] = Field(
        4, description="entries of a completion queue that may be collected to be written together"
    )
    regions: int = Field(
        0,
        ge=0,
        le=256,
        description="memory regions whose tags and owners the card checks; 0: none, no translation",
    )
    translation_entries: Literal[4, 8, 16, 32, 64, 128, 256] = Field(
        32, description="page table entries that the card caches"
    )
    processors: Literal[1, 2] = Field(
        1,
        description="processors of the card: one, or one to send and one to receive (nagar-thesis-2001 4.3.10)",
    )
    vl_packets: int = Field(
        0,
        ge=0,
        le=16,
        description="packet buffers of each VL at the port, where a VL arbiter shares out the link; at least 2; 0: "
        "none, packets go one after the other, whatever their VL",
    )
    vl_arbiter: str = Field(
        "round_robin",
        description="with vl_packets: of the link; name in `lanikai.hdl.vl_arbiter.registry.VL_ARBITERS`",
    )
    vl_table_entries: int = Field(
        64, ge=1, le=64, description="with vl_packets: entries of each VL arbitration table"
    )
    flows: int = Field(16, ge=1, le=1024, description="flows of the rate control unit")
    rate_structure: Literal["auto", "registers", "tree"] = Field(
        "auto",
        description="how the rate control unit decides: registers (up to 16 flows, in a cycle), a tree in memory "
        "(smaller, in a few cycles); auto: registers up to 16 flows, a tree above",
    )
    rate_discipline: Literal["idt", "virtual_clock"] = Field(
        "idt",
        description="the rate control unit's order: IDT/NDT, which holds a flow back until its time, or VirtualClock, "
        "which only orders",
    )
    rate_charge: Literal["packets", "bytes"] = Field(
        "packets",
        description="what a dispatched packet may be charged with: an IDT, whatever its bytes, or also the part of it "
        "that its bytes are of charge_unit_bytes, as firmware says packet by packet; bytes costs a multiplier",
    )
    rtc_bits: int = Field(32, ge=8, le=32, description="width of the real-time clock, bits")
    rtc_cycles_num: int = Field(33, ge=1, le=65535, description="NIC cycles of an RTC tick: numerator")
    rtc_cycles_den: int = Field(2, ge=1, le=65535, description="NIC cycles of an RTC tick: denominator")
    mtu_bytes: int = Field(4096, ge=8, le=32768, description="longest payload of a packet, bytes")
    input_buffer_flits: int = Field(10, ge=2, le=1024, description="receive buffer of each VL, flits")
    blocks: tuple[str, ...] = Field(
        (),
        description="further blocks, which no other field asks for; names in `lanikai.hdl.nic.blocks.NIC_BLOCKS`",
    )

    @field_validator("link")
    @classmethod
    def _may_be_reset_alone(cls, link: LinkConfig) -> LinkConfig:
        return link.replace(restart=True) if link.restart is None else link

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.bus_bits > self.link.flit_bits:
            raise ValueError(
                f"bus_bits = {self.bus_bits}: at most link.flit_bits = {self.link.flit_bits} "
                "(the SRAM's word)"
            )
        if self.sram_bytes & (self.sram_bytes - 1):
            raise ValueError(f"sram_bytes = {self.sram_bytes}: a power of two")
        if self.mtu_bytes % self.link.flit_bytes:
            raise ValueError(
                f"mtu_bytes = {self.mtu_bytes}: a multiple of the flit's {self.link.flit_bytes} bytes"
            )
        for name in ("shadow_windows", "completion_queues", "regions"):
            if getattr(self, name) and not self.owners:
                raise ValueError(f"{name} = {getattr(self, name)}: needs owners, 1 at least")
        if self.doorbell == "polled":
            for name, value, only in (
                ("doorbell_priorities", self.doorbell_priorities, 1),
                ("receive_doorbells", self.receive_doorbells, "merged"),
            ):
                if value not in (only, "none"):
                    raise ValueError(
                        f"{name} = {value}: needs doorbell = queue; with polled words it is {only} at most"
                    )
        if self.processors == 2 and not self.host_dma_queue_entries:
            raise ValueError(
                "processors = 2: needs host_dma_queue_entries, 1 at least: each processor has a queue"
            )
        if self.stamp_flows:
            self._check_stamps()
        if self.vl_packets:
            self._check_vl_port()
        if self.rtc_cycles_den > self.rtc_cycles_num:
            raise ValueError(
                f"rtc_cycles_num/rtc_cycles_den = {self.rtc_cycles_num}/{self.rtc_cycles_den}: "
                "a tick is at least one cycle"
            )
        if self.rate_charge == "bytes" and self.rate_discipline == "virtual_clock":
            raise ValueError(
                "rate_charge = 'bytes': needs rate_discipline = 'idt': VirtualClock stamps a packet before its "
                "bytes are known"
            )
        if self.rate_charge == "bytes" and self.mtu_bytes > MOST_CHARGED_BYTES:
            raise ValueError(
                f"mtu_bytes = {self.mtu_bytes}: at most {MOST_CHARGED_BYTES} with rate_charge = 'bytes'"
            )
        if self.rate_structure == "registers" and self.flows > REGISTER_FLOWS:
            raise ValueError(
                f"flows = {self.flows}: at most {REGISTER_FLOWS} with rate_structure = 'registers'"
            )
        least = max(8, (SCAN_CYCLES * (self.flows + 2) - 1).bit_length() + 3)
        if self.rate_tree and self.rtc_bits < least:
            raise ValueError(
                f"rtc_bits = {self.rtc_bits}: at least {least} for a tree of {self.flows} flows "
                "(the scan comes to each in time)"
            )
        return self

    def _check_stamps(self) -> None:
        """Raises ValueError for stamps of the card that no queue asks for, or for which its clock is too short."""
        what = f"stamp_flows = {self.stamp_flows}"
        if not (self.stamps_host_dma or self.stamps_send):
            raise ValueError(
                f"{what}: needs host_dma_queue_order or send_queue_order = 'timestamp', and entries"
            )
        if self.processors == 2:
            raise ValueError(f"{what}: with processors = 2 each program stamps; 0")
        least = least_stamp_bits(self.stamp_flows)
        if self.rtc_bits < least:
            raise ValueError(
                f"rtc_bits = {self.rtc_bits}: at least {least} for stamps of {self.stamp_flows} flows "
                "(the scan comes to each in time)"
            )

    def _check_vl_port(self) -> None:
        """Raises ValueError for packet buffers that do not go with the rest."""
        what = f"vl_packets = {self.vl_packets}"
        if self.vl_packets == 1:
            raise ValueError(f"{what}: 2 at least, or 0 for none")
        if self.send_queue_entries < 2:
            raise ValueError(f"{what}: needs send_queue_entries, 2 at least: each VL has a queue")
        if self.send_queue_order != "arrival":
            raise ValueError(f"{what}: needs send_queue_order = 'arrival': the order in each VL")
        if self.input_buffer_flits < self.packet_flits:
            raise ValueError(
                f"{what}: needs input_buffer_flits, {self.packet_flits} at least: the longest packet, CRC included"
            )
        if self.vl_buffer_flits > MOST_VL_FLITS:
            raise ValueError(
                f"{what}: {self.vl_buffer_flits} flits a VL, with packets of {self.packet_flits}: "
                f"at most {MOST_VL_FLITS}"
            )

    @cached_property
    def stamps_host_dma(self) -> bool:
        """Whether the card stamps host DMAs."""
        ordered = self.host_dma_queue_entries > 0 and self.host_dma_queue_order == "timestamp"
        return self.stamp_flows > 0 and ordered

    @cached_property
    def stamps_send(self) -> bool:
        """Whether the card stamps packets."""
        return self.stamp_flows > 0 and self.send_queue_entries > 0 and self.send_queue_order == "timestamp"

    @cached_property
    def word_bytes(self) -> int:
        """Bytes of an SRAM word: a flit, so that the link DMA engines move a flit an access."""
        return self.link.flit_bytes

    @cached_property
    def sram_words(self) -> int:
        """Words of the SRAM."""
        return self.sram_bytes // self.word_bytes

    @cached_property
    def tick_cycles(self) -> Fraction:
        """NIC cycles of an RTC tick, exactly."""
        return Fraction(self.rtc_cycles_num, self.rtc_cycles_den)

    @cached_property
    def tick_seconds(self) -> Fraction:
        """Length of an RTC tick in seconds, exactly."""
        return self.tick_cycles / self.clock_hz

    @cached_property
    def packet_bytes(self) -> int:
        """SRAM bytes of the longest packet: header and payload, the payload in whole words."""
        return HEADER_BITS // 8 + -(-self.mtu_bytes // self.word_bytes) * self.word_bytes

    @cached_property
    def packet_flits(self) -> int:
        """Flits of the longest packet on the link: header, payload and CRC."""
        return self.packet_bytes // self.word_bytes + 1

    @cached_property
    def vl_buffer_flits(self) -> int:
        """Flits that the port buffers for each VL towards the link: `vl_packets` of the longest packets."""
        return self.vl_packets * self.packet_flits

    @cached_property
    def max_idt_ticks(self) -> int:
        """Largest inter-packet dispatch time: a quarter of the clock's range, so that NDT + IDT compares right."""
        return (1 << (self.rtc_bits - 2)) - 1

    @cached_property
    def charge_unit_bytes(self) -> int:
        """Bytes for which an IDT stands where bytes are charged.

        They are the least power of two that is not below the MTU, and so the MTU itself where this is one.
        """
        return 1 << (self.mtu_bytes - 1).bit_length()

    @cached_property
    def rate_fraction_bits(self) -> int:
        """Bits of an NDT below a tick: where bytes are charged, as many as it takes for no charge to be rounded."""
        return self.charge_unit_bytes.bit_length() - 1 if self.rate_charge == "bytes" else 0

    @cached_property
    def rate_tree(self) -> bool:
        """Whether the rate control unit is a tree in memory, and not registers."""
        if self.rate_structure == "auto":
            return self.flows > REGISTER_FLOWS
        return self.rate_structure == "tree"

    @cached_property
    def max_lag_ticks(self) -> int:
        """The most ticks that the rate control unit keeps an NDT behind the RTC.

        Any two NDTs must stay less than half the clock's range apart to compare right. The furthest ahead is
        `max_idt_ticks`, a quarter of the range less one. So the furthest behind is a quarter, less the ticks that pass
        until the unit's scan comes to a flow again. A tick is at least a cycle.

        - Registers are scanned in `flows` cycles; twice that is left, to be clear.
        - For a tree half of the quarter is left: an eighth of the range needs no comparison but three bits.
        """
        if self.rate_tree:
            return 1 << (self.rtc_bits - 3)
        return self.max_idt_ticks + 1 - 2 * self.flows

    @cached_property
    def rate_scan_cycles(self) -> int:
        """Cycles after which a tree's scan comes to the next flow.

        They are a power of two, from `SCAN_CYCLES` to 256 as the clock's range allows.
        """
        allowed = max(SCAN_CYCLES, (1 << (self.rtc_bits - 3)) // (self.flows + 2))
        return min(256, 1 << (allowed.bit_length() - 1))
