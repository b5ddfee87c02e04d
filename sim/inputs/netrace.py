"""Netrace 1.0 traces: packets of a chip's caches with the packets that they wait for (`*.tra.bz2`, or unpacked).

All numbers are little-endian. A header comes first, then notes, then the places of regions, then packets.

| header, 72 bytes | |
|---|---|
| magic `0x484A5455`, version 1.0 | 32 bits, float |
| benchmark | 30 characters |
| nodes, and a byte that is not used | 8 bits each |
| cycles, packets | 64 bits each |
| length of the notes, regions | 32 bits each |
| 8 bytes that are not used | |

| packet, 21 bytes and more | |
|---|---|
| cycle | 64 bits |
| number, address | 32 bits each |
| type, source, destination, kinds of the two nodes, dependants | 8 bits each |
| the numbers of packets that wait for this one | 32 bits each |

A region has 24 bytes: offset, cycles, packets, of 64 bits each.

Source: Hestness, Grot, Keckler, Netrace: dependency-driven trace-based network-on-chip simulation, 2010.
"""

from __future__ import annotations

import bz2
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from struct import Struct, unpack
from typing import IO, NamedTuple

import numpy as np

from .errors import InputError
from .packets import Packets

__all__ = ["MAGIC", "PACKET_BYTES", "read_netrace"]

MAGIC = 0x484A5455
_HEADER = Struct("<If30sBBQQII8s")
_REGION = Struct("<QQQ")
_PACKET = Struct("<QIIBBBBB")
_NUMBER = 4
CONTROL, LINE = 8, 72
PACKET_BYTES = {
    1: CONTROL,
    2: LINE,
    3: LINE,
    4: LINE,
    5: CONTROL,
    6: LINE,
    13: CONTROL,
    14: CONTROL,
    15: CONTROL,
    16: LINE,
    25: CONTROL,
    27: CONTROL,
    28: CONTROL,
    29: CONTROL,
    30: LINE,
}
"""Bytes of a packet of each type: a request or answer, or that with a cache line."""


def read_netrace(
    path: Path, *, flit_bits: int, header_flits: int, first_cycle: int = 0, cycles: int = 0, most: int = 0
) -> Packets:
    """The packets of a trace from `first_cycle` on, of so many `cycles` and `most` at most (0: all). Cycles are counted
    from `first_cycle`. The file is read no further than that.

    A packet has its bytes in flits, and the header's besides. Raises InputError: file, byte of the unpacked trace,
    what is there, what would be right.
    """
    rows: list[tuple[int, int, int, int]] = []
    numbers: dict[int, int] = {}
    dependants: list[tuple[int, ...]] = []
    left_out: Counter[int] = Counter()
    for packet in _packets(path):
        if cycles and packet.cycle >= first_cycle + cycles:
            break
        if packet.cycle < first_cycle:
            left_out.update(packet.dependants)
            continue
        if packet.number in numbers:
            raise _bad(
                path, packet.at + 8, f"packet {packet.number} for the second time", "numbers that differ"
            )
        numbers[packet.number] = len(rows)
        flits = header_flits + -(-PACKET_BYTES[packet.kind] * 8 // flit_bits)
        rows.append((packet.cycle - first_cycle, packet.source, packet.destination, flits))
        dependants.append(packet.dependants)
        if len(rows) == most:
            break
    waits: list[list[int]] = [[] for _ in rows]
    for place, later in enumerate(dependants):
        for number in later:
            if (found := numbers.get(number)) is not None:
                waits[found].append(place)
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return Packets(
        cycle=columns[0],
        source=columns[1],
        destination=columns[2],
        flits=columns[3],
        traffic_class=np.zeros(len(rows), np.int64),
        waits_for=tuple(map(tuple, waits)),
        unknown_dependencies=sum(left_out[number] for number in numbers),
    )


class _Packet(NamedTuple):
    """A packet, and the byte `at` which it begins."""

    at: int
    cycle: int
    number: int
    kind: int
    source: int
    destination: int
    dependants: tuple[int, ...]


def _packets(path: Path) -> Iterator[_Packet]:
    """The packets of a trace, in order. Raises InputError."""
    try:
        with bz2.open(path) if path.suffix == ".bz2" else path.open("rb") as stream:
            yield from _unpacked(path, stream)
    except OSError as fault:
        raise InputError(f"trace {str(path)!r} cannot be read: {fault.strerror or fault}") from None
    except EOFError:
        raise InputError(f"trace {str(path)!r} cannot be read: the compressed file ends too soon") from None


def _unpacked(path: Path, stream: IO[bytes] | bz2.BZ2File) -> Iterator[_Packet]:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise _bad(path, 0, f"{len(header)} bytes", f"a header of {_HEADER.size}")
    magic, version, _, nodes, _, _, count, notes, regions, _ = _HEADER.unpack(header)
    if magic != MAGIC:
        raise _bad(path, 0, f"magic {magic:#x}", f"{MAGIC:#x}, a Netrace trace")
    if version != 1.0:
        raise _bad(path, 4, f"version {version:g}", "1.0")
    at = _HEADER.size + notes + regions * _REGION.size
    if len(stream.read(at - _HEADER.size)) < at - _HEADER.size:
        raise _bad(path, _HEADER.size, "the end of the file", f"{notes} bytes of notes, {regions} regions")
    before = 0
    for done in range(count):
        fixed = stream.read(_PACKET.size)
        if len(fixed) < _PACKET.size:
            raise _bad(path, at, f"the end after {done} packets", f"the {count} packets that the header says")
        cycle, number, _, kind, source, destination, _, waiting = _PACKET.unpack(fixed)
        if kind not in PACKET_BYTES:
            raise _bad(path, at + 16, f"packet type {kind}", f"one of {', '.join(map(str, PACKET_BYTES))}")
        if max(source, destination) >= nodes:
            raise _bad(path, at + 17, f"node {max(source, destination)}", f"0 to {nodes - 1}")
        if cycle < before:
            raise _bad(path, at, f"cycle {cycle} after {before}", "packets in the order of their cycles")
        later = stream.read(_NUMBER * waiting)
        if len(later) < _NUMBER * waiting:
            raise _bad(
                path, at, f"the end within packet {number}", f"the {count} packets that the header says"
            )
        yield _Packet(at, cycle, number, kind, source, destination, unpack(f"<{waiting}I", later))
        before, at = cycle, at + _PACKET.size + len(later)


def _bad(path: Path, byte: int, found: str, right: str) -> InputError:
    return InputError(f"{path}: byte {byte}: {found}: {right}")
