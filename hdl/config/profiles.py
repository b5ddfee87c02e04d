"""Configuration of the RTL: one frozen, validated model a part, each fact declared once.

A value that follows from others is a cached property, so RTL, build files, firmware and tests all read the same
number. Unknown keys are refused, and a bad value is named with its range before any RTL is made. The parts stand in
files of their own. All their names are here, and the named presets:

- `tiny`: smallest legal sizes, for tests.
- `lanai4`, `lanai7` and `iba`: the profiles.
- `via5`: the card of nagar-thesis-2001 5.2, for VIA.
- `lanai41`: the card and the switches of chun-1998 3.4, for virtual networks.
- the others: routers of single papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from .base import Config, ConfigError
from .hca import HcaConfig
from .link import LinkConfig
from .nic import NicConfig
from .router import RouterConfig

__all__ = ["Aim", "aim", "preset", "preset_names"]

P = TypeVar("P", bound="Config")

# Links of cards, whose every end may be reset alone (docs/nic.md).
_TINY_LINK = LinkConfig(flit_bits=32, vls=2, restart=True, hop_bits=3)
# 1.28 Gbit/s (nagar-thesis-2001 3.1) over 64-bit flits at 33 MHz: 1280 / (33 * 64) = 20/33 flits a cycle.
_LANAI4_LINK = LinkConfig(flit_bits=64, vls=1, rate_num=20, rate_den=33, restart=True)
# The same Myrinet at 66 MHz: 1280 / (66 * 64) = 10/33 flits a cycle.
_LANAI7_LINK = _LANAI4_LINK.replace(rate_num=10)
# 16 VLs of 128-bit flits (yum-2006 6.1) at 1.6 Gbit/s, on the card's 66 MHz: 1600 / (66 * 128) = 25/132 flits a
# cycle. (`yum2006` is the router on the link's own clock, a flit a cycle, as that paper counts time.)
_IBA_LINK = LinkConfig(flit_bits=128, vls=16, rate_num=25, rate_den=132, restart=True, hop_bits=3)
# 1.28 Gbit/s (chun-1998 3.4: 160 MB/s) over 64-bit flits at 37.5 MHz: 1280 / (64 * 37.5) = 8/15 flits a cycle. Its
# switches have 8 ports. A hop has 4 bits, so that a route can end with a port that is not there: else a packet whose
# hops are used up inside of the network goes by ports 0, perhaps for ever. VL 1 is the mapper's, whose probes may take
# ways that could deadlock with those of messages (docs/am.md).
_LANAI41_LINK = LinkConfig(flit_bits=64, vls=2, rate_num=8, rate_den=15, restart=True)

_YUM2006 = RouterConfig(link=LinkConfig(flit_bits=128, vls=16, hop_bits=3), ports=5)

# nagar-thesis-2001 says:
# - 64-bit 66 MHz PCI (4.3.1, 5.3).
# - Doorbells are merged in a hardware queue (5.2.1).
# - The DMA engines have hardware queues (4.3.7, 5.2.2): "a large number of entries" for host and send, 2 for receive.
# - 508 VIs are declared (4.3.1), a channel each.
# Half-microsecond ticks are as in [rtc] of published.toml. Assumptions, as no document says:
# - The card runs at the bus's 66 MHz.
# - SRAM and MTU are those of `lanai4`.
# - The doorbell queue holds a send and a receive doorbell of each of the 60 VIs that are active at most (4.3.3).
# - "A large number" is 32 entries.
# The card of chapter 5 has no queues at the network's engines (5.2.3): `via5`.
_LANAI7 = NicConfig(
    link=_LANAI7_LINK,
    clock_hz=66_000_000,
    bus_bits=64,
    channels=512,
    doorbell="queue",
    doorbell_queue_entries=128,
    host_dma_queue_entries=32,
    send_queue_entries=32,
    receive_queue_entries=2,
    rtc_cycles_num=33,
    rtc_cycles_den=1,
    # A tenth of the registers' logic at three times their clock; a decision takes 7 cycles (docs/rate-control.md).
    rate_structure="tree",
    # 100 MHz on an FPGA instead of half of it (docs/synthesis.md). No document says more of this card's timing than
    # its clock.
    pipelined=True,
)

# The LANai 7 of nagar-thesis-2001 5.2, with what VIA needs of this card:
# - Network engines without queues (5.2.3), a hardware queue at the host DMA engine (5.2.2, 5.3.2).
# - Send and receive doorbells merged in one queue (5.2.1).
# - Table 5.1 has data down, sent and up one after the other, as wholes up to 16 KB. So a packet takes 16 KB and VIA's
#   header, and the SRAM several of them: 1 MB, as later cards have (6.2.1).
# - The thesis' cards keep page tables in SRAM (5.2.2); here they are in host memory, and the card caches 256 entries.
# - Assumptions: 16 processes, the driver's among them, 16 completion queues and 128 regions.
_VIA5 = _LANAI7.replace(
    send_queue_entries=0,
    receive_queue_entries=0,
    receive_doorbells="merged",
    sram_bytes=1 << 20,
    mtu_bytes=16384 + 64,
    owners=16,
    shadow_windows=True,
    completion_queues=16,
    regions=128,
    translation_entries=256,
)

# The LANai 4.1 of chun-1998:
# - 37.5 MHz, 256 KB SRAM, one host DMA engine, independent send and receive engines, none with a queue (3.4).
# - The SBus has 32 bits; its longest burst, 64 bytes, is 16 words (`PciTiming.of_sbus`).
# - Packets of up to 8 KB (4.2), and 128 bytes for the headers of messages.
# - A doorbell page for the driver and for each of 7 endpoint frames, polled.
# - Assumptions: half-microsecond ticks and a millisecond until packets that nobody takes are thrown away, as `lanai4`.
_LANAI41 = NicConfig(
    link=_LANAI41_LINK,
    clock_hz=37_500_000,
    burst_beats=16,
    channels=8,
    rtc_cycles_num=75,
    rtc_cycles_den=4,
    mtu_bytes=8192 + 128,
    receive_wait_cycles=37_500,
)

_PRESETS: dict[type[Config], dict[str, Config]] = {
    LinkConfig: {
        "tiny": _TINY_LINK,
        "lanai4": _LANAI4_LINK,
        "lanai7": _LANAI7_LINK,
        "iba": _IBA_LINK,
        "lanai41": _LANAI41_LINK,
    },
    RouterConfig: {
        "tiny": RouterConfig(link=_TINY_LINK, ports=3, input_buffer_flits=2, output_buffer_flits=2),
        # Buffers of 10 flits: [router] of published.toml (yum-2006 6.1).
        "lanai4": RouterConfig(link=_LANAI4_LINK, ports=4),
        # The router of yum-2006 3.1 and 6.1, as a mesh needs it, and the same with the switch allocator that accepts
        # most: 0.92 instead of 0.90 flits a port and cycle of uniform traffic (docs/network-load.md).
        "yum2006": _YUM2006,
        # Its throughput is for a clock that is low: `wavefront` runs at 15 MHz with 5 ports, 4 VLs and 64 bits, where
        # `separable` runs at 25 MHz (ECP5, seed 1, commit 1ee8a59). With 16 VLs and 128 bits it has not been placed.
        # So it has no `Aim`.
        "high_throughput": _YUM2006.replace(allocator="wavefront"),
        "lanai7": RouterConfig(link=_LANAI7_LINK, ports=4),
        "iba": _YUM2006.replace(link=_IBA_LINK),
        "via5": RouterConfig(link=_LANAI7_LINK, ports=4),
        "lanai41": RouterConfig(link=_LANAI41_LINK, ports=8),
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
        # GM sends again what is thrown away: 1 ms, several times what its program takes to arm a buffer.
        "lanai4": NicConfig(link=_LANAI4_LINK, receive_wait_cycles=33_000),
        "lanai7": _LANAI7,
        # The card of yum-2006 as far as this one goes:
        # - its link and lanes
        # - packets of 40 flits (6.1: a header, 38 of payload, a CRC)
        # - VL buffers at its port with weighted round robin (3.2)
        # - one processor ("a RISC processor", 3.4)
        # - the host's side of `lanai7`, as that paper says nothing of it
        # Assumption: buffers of two packets a VL each way, so that one goes while the next one comes.
        "iba": _LANAI7.replace(
            link=_IBA_LINK,
            mtu_bytes=38 * 16,
            channels=64,
            vl_packets=2,
            vl_arbiter="table_fast",
            input_buffer_flits=2 * 40,
        ),
        "via5": _VIA5,
        "lanai41": _LANAI41,
    },
    HcaConfig: {
        "tiny": HcaConfig(
            link=LinkConfig(flit_bits=128, vls=2, hop_bits=3),
            queue_pairs=4,
            completion_queues=2,
            regions=4,
            translation_entries=4,
            owners=3,
            classes=2,
            class_queue_entries=4,
            packet_flits=6,
            vl_table_entries=4,
            burst_beats=4,
        ),
        # 16 VLs, packets of 40 flits (yum-2006 6.1), a queue a traffic class: control, real-time, best effort (3.2,
        # 6.2). 1024 messages: more than the 600 credits of its best-effort traffic (7.2). The other sizes are
        # assumptions: a queue pair and a completion queue for each of 64 nodes and more.
        "yum2006": HcaConfig(queue_pairs=256, completion_queues=64, regions=64),
    },
}


@dataclass(frozen=True, kw_only=True)
class Aim:
    """Bounds for a preset on an FPGA (docs/synthesis.md): at least `fmax_mhz`; at most `lut4` LUT4s, None for any."""

    fmax_mhz: int
    lut4: int | None = None


_AIMS: dict[type[Config], dict[str, Aim]] = {
    NicConfig: {
        "lanai7": Aim(fmax_mhz=100, lut4=6000),
        # Its area is reported and has no bound.
        "iba": Aim(fmax_mhz=100),
    },
    HcaConfig: {
        # That of the card and the router of its sizes. The document's link brings a flit in 80 ns (1.6 Gbit/s over 128
        # bits), for which 12.5 MHz are enough. Its area is reported and has no bound.
        "yum2006": Aim(fmax_mhz=100),
    },
}


def aim(config: Config) -> Aim | None:
    """The aim of the preset that `config` is; None for one that has no aim, and for any other configuration."""
    part = type(config)
    found = (bounds for name, bounds in _AIMS.get(part, {}).items() if config == _PRESETS[part][name])
    return next(found, None)


def preset_names(part: type[Config]) -> list[str]:
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
