"""Configuration of the RTL: one frozen, validated model a part, each fact declared once.

A value that follows from others is a cached property, so RTL, build files, firmware and tests all read
the same number. Unknown keys are refused, and a bad value is named with its range before any RTL is made.
The parts stand in files of their own; here are all their names, and the named presets: `tiny` (smallest
legal sizes, for tests) and `lanai4`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .link_config import HEADER_BITS, ROUTE_BITS, WORD_ROUTE_BITS, LinkConfig
from .nic_config import NicConfig
from .part import ConfigError, Part, one_line
from .router_config import SERVICE_LEVELS, RouterConfig

__all__ = [
    "HEADER_BITS",
    "ROUTE_BITS",
    "SERVICE_LEVELS",
    "WORD_ROUTE_BITS",
    "ConfigError",
    "LinkConfig",
    "NicConfig",
    "Part",
    "RouterConfig",
    "one_line",
    "preset",
    "preset_names",
]

P = TypeVar("P", bound="Part")

_TINY_LINK = LinkConfig(flit_bits=32, vls=2, hop_bits=3)
# 1.28 Gbit/s (nagar-thesis-2001 3.1) over 64-bit flits at 33 MHz: 1280 / (33 * 64) = 20/33 flits a cycle.
_LANAI4_LINK = LinkConfig(flit_bits=64, vls=1, rate_num=20, rate_den=33)

_YUM2006 = RouterConfig(link=LinkConfig(flit_bits=128, vls=16, hop_bits=3), ports=5)

_PRESETS: dict[type[Part], dict[str, Part]] = {
    LinkConfig: {"tiny": _TINY_LINK, "lanai4": _LANAI4_LINK},
    RouterConfig: {
        "tiny": RouterConfig(link=_TINY_LINK, ports=3, input_buffer_flits=2, output_buffer_flits=2),
        # Buffers of 10 flits: [router] of published.toml (yum-2006 6.1).
        "lanai4": RouterConfig(link=_LANAI4_LINK, ports=4),
        # The router of yum-2006 3.1 and 6.1, as a mesh needs it, and the same with the switch allocator that accepts
        # most: 0.93 instead of 0.66 flits a port and cycle of uniform traffic (docs/network-load.md).
        "yum2006": _YUM2006,
        "high_throughput": _YUM2006.replace(allocator="wavefront"),
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
