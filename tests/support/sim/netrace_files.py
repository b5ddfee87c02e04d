"""Netrace files for tests: the packets that are given, as the format has them."""

from __future__ import annotations

import bz2
import struct
from collections.abc import Sequence
from pathlib import Path

from lanikai.sim.inputs.netrace import MAGIC

__all__ = ["netrace_bytes", "write_netrace"]


def netrace_bytes(
    packets: Sequence[tuple[int, int, int, int, int, Sequence[int]]],
    *,
    nodes: int,
    notes: bytes = b"for tests\0",
    magic: int = MAGIC,
    version: float = 1.0,
    count: int | None = None,
) -> bytes:
    """The unpacked file of packets: cycle, number, type, source, destination, numbers of those that wait for it."""
    cycles = packets[-1][0] if packets else 0
    count = len(packets) if count is None else count
    parts = [
        struct.pack("<If30sBBQQII8s", magic, version, b"test", nodes, 0, cycles, count, len(notes), 1, b""),
        notes,
        struct.pack("<QQQ", 0, cycles, count),
    ]
    for cycle, number, kind, source, destination, dependants in packets:
        parts.append(
            struct.pack("<QIIBBBBB", cycle, number, 0, kind, source, destination, 0, len(dependants))
        )
        parts.append(struct.pack(f"<{len(dependants)}I", *dependants))
    return b"".join(parts)


def write_netrace(path: Path, content: bytes) -> Path:
    """Write an unpacked file as `path`, packed if its name says so."""
    path.write_bytes(bz2.compress(content) if path.suffix == ".bz2" else content)
    return path
