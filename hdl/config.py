"""Configuration of the RTL: one frozen, validated model a part, each fact declared once.

A value that follows from others is a cached property, so RTL, build files, firmware and tests all read
the same number. Unknown keys are refused, and a bad value is named with its range before any RTL is made.
Named presets stand at the end: `tiny` (smallest legal sizes, for tests) and `lanai4`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

__all__ = [
    "ConfigError",
    "LinkConfig",
    "NicConfig",
    "Part",
    "RouterConfig",
    "preset",
    "preset_names",
]

P = TypeVar("P", bound="Part")

HEADER_BITS = 128
"""Width of the packet header on every link (`packet.HeaderLayout` has the fields)."""
WORD_ROUTE_BITS = 24
"""Route bits that fit the first 32 bits of the header."""
ROUTE_BITS = 48
"""Route bits in the whole header; a 32-bit link can use only the first 24, as a router sees one flit."""

SERVICE_LEVELS = 16
"""Service levels that the header can name."""


class ConfigError(ValueError):
    """A configuration that cannot be built. The message is one line: part, key, what is wrong, what is
    right."""


class Part(BaseModel):
    """Base of every configuration: frozen, keyword-only, unknown keys refused, errors of one line."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(one_line(error, type(self))) from None

    def replace(self, **changes: Any) -> Self:
        """A copy with `changes`, validated as a new one is. Raises ConfigError."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)


def one_line(error: ValidationError, part: type[BaseModel]) -> str:
    """The first fault of a pydantic error in one line; an unknown key is answered with the valid ones."""
    fault = error.errors()[0]
    key = ".".join(str(step) for step in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{part.__name__}: unknown key {key!r}; valid keys: {', '.join(part.model_fields)}"
    message = fault["msg"].removeprefix("Value error, ")
    if not key:
        return f"{part.__name__}: {message}"
    return f"{part.__name__}.{key} = {fault.get('input')!r}: {message}"


class LinkConfig(Part):
    """The wire: flit width, virtual lanes, speed. Router ports and NIC share one."""

    flit_bits: Literal[32, 64, 128] = Field(64, description="payload bits of a flit")
    vls: int = Field(1, ge=1, le=16, description="virtual lanes")
    rate_num: int = Field(1, ge=1, le=4096, description="link rate, flits a cycle: numerator")
    rate_den: int = Field(1, ge=1, le=4096, description="link rate, flits a cycle: denominator")
    delay_cycles: int = Field(
        0, ge=0, le=64, description="extra registers on the wire, each way; a hop is 5 + delay_cycles long"
    )
    hop_bits: int = Field(4, ge=1, le=8, description="bits of the source route that one hop consumes")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rate_num > self.rate_den:
            raise ValueError(
                f"rate_num/rate_den = {self.rate_num}/{self.rate_den}: "
                "a link carries at most one flit a cycle"
            )
        return self

    @cached_property
    def rate(self) -> Fraction:
        """Flits a cycle."""
        return Fraction(self.rate_num, self.rate_den)

    @cached_property
    def flit_bytes(self) -> int:
        """Payload bytes of a flit."""
        return self.flit_bits // 8

    @cached_property
    def vl_bits(self) -> int:
        """Width of a VL number, at least 1."""
        return max(1, (self.vls - 1).bit_length())

    @cached_property
    def header_flits(self) -> int:
        """Flits of the 128-bit header."""
        return HEADER_BITS // self.flit_bits

    @cached_property
    def max_hops(self) -> int:
        """Hops that a source route can hold: a router sees the first flit of the header alone."""
        return (WORD_ROUTE_BITS if self.flit_bits == 32 else ROUTE_BITS) // self.hop_bits


class RouterConfig(Part):
    """The five-stage wormhole router (yum-2006 3.1)."""

    link: LinkConfig = Field(default_factory=LinkConfig, description="every port's link")
    ports: int = Field(4, ge=2, le=64, description="ports")
    input_buffer_flits: int = Field(10, ge=2, le=1024, description="input buffer of each VL, flits")
    output_buffer_flits: int = Field(10, ge=2, le=1024, description="output buffer of each VL, flits")
    arbiter: str = Field("round_robin", description="name in `lanikai.hdl.arbiter.ARBITERS`")
    allocator: str = Field("separable", description="name in `lanikai.hdl.router.allocators.ALLOCATORS`")
    allocator_iterations: int = Field(3, ge=1, le=16, description="iterations of the allocator `islip`")
    vl_arbiter: str = Field(
        "round_robin",
        description="of the links, crossbar outputs and crossbar inputs: name in `lanikai.hdl.arbiter.VL_ARBITERS`",
    )
    vl_table_entries: int = Field(64, ge=1, le=64, description="entries of each VL arbitration table")
    vl_selection: Literal["same", "service_level", "any"] = Field(
        "same",
        description="output VL of a packet: its input VL; by its service level; any free one of its class",
    )
    vl_classes: tuple[int, ...] = Field(
        (), description="class of each data VL, numbered from 0, for `any` (empty: all in class 0)"
    )
    service_level_map: tuple[int, ...] = Field(
        (),
        description="for each of the 16 service levels after reset, its VL (`service_level`) or its class "
        "(`any`); empty: service level modulo the number of VLs or classes",
    )
    routing: str = Field("source", description="name in `lanikai.hdl.router.routing.ROUTING`")
    forwarding_entries: int = Field(
        64, ge=1, le=1024, description="nodes that the forwarding table of `table` routing has a row for"
    )
    management: bool = Field(
        False, description="port 0 is the management port: control packets to and from the router's agent"
    )
    management_flits: int = Field(
        32, ge=2, le=256, description="longest packet of the management port, flits"
    )
    activity_counters: bool = Field(False, description="count buffer, arbiter, crossbar and link activity")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.ports > 1 << self.link.hop_bits:
            raise ValueError(
                f"ports = {self.ports}: a hop of {self.link.hop_bits} bits names at most "
                f"{1 << self.link.hop_bits} ports; raise link.hop_bits"
            )
        if self.management and self.control_vl is None:
            raise ValueError(
                f"management = True: link.vls = {self.link.vls}: must be 16, since control packets have VL 15"
            )
        if self.vl_classes and len(self.vl_classes) != self.data_vls:
            raise ValueError(
                f"vl_classes has {len(self.vl_classes)} entries: one for each of the {self.data_vls} data VLs"
            )
        for vl, number in enumerate(self.vl_classes):
            if not 0 <= number < self.data_vls:
                raise ValueError(f"vl_classes[{vl}] = {number}: 0 to {self.data_vls - 1}")
        for number in range(max(self.vl_classes, default=0)):
            if number not in self.vl_classes:
                raise ValueError(f"vl_classes: class {number} has no VL")
        if self.service_level_map and len(self.service_level_map) != SERVICE_LEVELS:
            raise ValueError(
                f"service_level_map has {len(self.service_level_map)} entries: "
                f"one for each of {SERVICE_LEVELS}"
            )
        for level, group in enumerate(self.service_level_map):
            if self.vl_selection == "any":
                if not 0 <= group < len(self.vl_groups):
                    raise ValueError(f"service_level_map[{level}] = {group}: class {group} has no VL")
            elif group == self.control_vl:
                raise ValueError(
                    f"service_level_map[{level}] = {group}: VL {group} carries control packets alone"
                )
            elif not 0 <= group < self.data_vls:
                raise ValueError(f"service_level_map[{level}] = {group}: a data VL, 0 to {self.data_vls - 1}")
        return self

    @cached_property
    def control_vl(self) -> int | None:
        """The VL of control packets, alone on it and always first: 15 if there are 16, else None."""
        return 15 if self.link.vls == 16 else None

    @cached_property
    def data_vls(self) -> int:
        """VLs that data packets may have, numbered from 0."""
        return self.link.vls if self.control_vl is None else self.link.vls - 1

    @cached_property
    def vl_groups(self) -> tuple[tuple[int, ...], ...]:
        """VLs among which a packet's output VL is chosen, by the number that `service_level_map` has for it:
        one VL each, or with `any` those of a class. The control VL is in none."""
        if self.vl_selection != "any":
            return tuple((vl,) for vl in range(self.data_vls))
        classes = self.vl_classes or (0,) * self.data_vls
        return tuple(
            tuple(vl for vl, mine in enumerate(classes) if mine == number)
            for number in range(max(classes) + 1)
        )

    @cached_property
    def initial_service_level_map(self) -> tuple[int, ...]:
        """`service_level_map`, or what it is if left empty."""
        return self.service_level_map or tuple(sl % len(self.vl_groups) for sl in range(SERVICE_LEVELS))


class NicConfig(Part):
    """The LANai-style network interface card (gulati-thesis-2001 4.1, nagar-thesis-2001 4.2, 5.2)."""

    link: LinkConfig = Field(default_factory=LinkConfig, description="the network link")
    clock_hz: int = Field(
        33_000_000, ge=1, description="frequency of the NIC clock (and of the host bus), Hz"
    )
    bus_bits: Literal[32, 64] = Field(32, description="data width of the AXI4 master (DMA), bits")
    burst_beats: int = Field(64, ge=1, le=256, description="longest AXI4 burst, beats")
    sram_bytes: int = Field(262144, ge=1024, le=1 << 20, description="SRAM, bytes")
    channels: int = Field(8, ge=1, le=1024, description="doorbell channels, a 4096-byte page each")
    doorbell: Literal["polled", "queue"] = Field(
        "polled", description="a word a channel that firmware looks at, or one hardware queue"
    )
    doorbell_queue_entries: int = Field(
        16, ge=2, le=4096, description="entries of the hardware doorbell queue"
    )
    flows: int = Field(16, ge=1, le=16, description="flows of the rate control unit")
    rtc_bits: int = Field(32, ge=8, le=32, description="width of the real-time clock, bits")
    rtc_cycles_num: int = Field(33, ge=1, le=65535, description="NIC cycles of an RTC tick: numerator")
    rtc_cycles_den: int = Field(2, ge=1, le=65535, description="NIC cycles of an RTC tick: denominator")
    mtu_bytes: int = Field(4096, ge=8, le=16384, description="longest payload of a packet, bytes")
    input_buffer_flits: int = Field(10, ge=2, le=1024, description="receive buffer of each VL, flits")

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
        if self.rtc_cycles_den > self.rtc_cycles_num:
            raise ValueError(
                f"rtc_cycles_num/rtc_cycles_den = {self.rtc_cycles_num}/{self.rtc_cycles_den}: "
                "a tick is at least one cycle"
            )
        return self

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
    def max_idt_ticks(self) -> int:
        """Largest inter-packet dispatch time: a quarter of the clock's range, so that NDT + IDT compares
        right."""
        return (1 << (self.rtc_bits - 2)) - 1


_TINY_LINK = LinkConfig(flit_bits=32, vls=2, hop_bits=3)
# 1.28 Gbit/s (nagar-thesis-2001 3.1) over 64-bit flits at 33 MHz: 1280 / (33 * 64) = 20/33 flits a cycle.
_LANAI4_LINK = LinkConfig(flit_bits=64, vls=1, rate_num=20, rate_den=33)

_PRESETS: dict[type[Part], dict[str, Part]] = {
    LinkConfig: {"tiny": _TINY_LINK, "lanai4": _LANAI4_LINK},
    RouterConfig: {
        "tiny": RouterConfig(link=_TINY_LINK, ports=3, input_buffer_flits=2, output_buffer_flits=2),
        # Buffers of 10 flits: [router] of published.toml (yum-2006 6.1).
        "lanai4": RouterConfig(link=_LANAI4_LINK, ports=4),
    },
    NicConfig: {
        "tiny": NicConfig(
            link=_TINY_LINK,
            burst_beats=8,
            sram_bytes=8192,
            channels=4,
            doorbell="queue",
            doorbell_queue_entries=2,
            flows=4,
            rtc_bits=16,
            rtc_cycles_num=3,
            rtc_cycles_den=2,
            mtu_bytes=128,
            input_buffer_flits=2,
        ),
        # 33 MHz card and bus, 256 KB SRAM, 4096-byte MTU, half-microsecond ticks: [rtc] of published.toml.
        "lanai4": NicConfig(link=_LANAI4_LINK),
    },
}


def preset_names(part: type[Part]) -> list[str]:
    """Names of the presets of a configuration class."""
    return list(_PRESETS.get(part, {}))


def preset(part: type[P], name: str, **changes: Any) -> P:
    """The preset `name` of a configuration class, with `changes`. Raises ConfigError for an unknown name."""
    found = _PRESETS.get(part, {}).get(name)
    if not isinstance(found, part):
        raise ConfigError(
            f"{part.__name__}: unknown preset {name!r}; valid presets: {', '.join(preset_names(part))}"
        )
    return found.replace(**changes)
