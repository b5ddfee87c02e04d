"""The formats of packet traces: a new one is a reader and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lanikai.hdl.config import LinkConfig

from .errors import InputError
from .netrace import read_netrace
from .packet_trace import read_packet_lines, read_packet_parquet
from .packets import LONGEST_CYCLES, MOST_PACKETS, Packets, excerpt

__all__ = ["EXAMPLE", "NETRACE_EXAMPLE", "TRACE_FORMATS", "Excerpt", "read_trace"]

EXAMPLE = Path(__file__).parent / "examples" / "mesh2x2.trace"
"""A packet trace that comes with the package: 4 nodes, two classes."""
NETRACE_EXAMPLE = Path(__file__).parent / "examples" / "blackscholes.tra.bz2"
"""An excerpt of a Netrace trace that comes with the package."""


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """The part of a trace that is played: the packets from `first_cycle` on, of so many `cycles` (0: all), and `most`
    packets at most (0: all)."""

    first_cycle: int = 0
    cycles: int = 0
    most: int = 0

    def of(self, packets: Packets) -> Packets:
        """That part of `packets`."""
        return excerpt(packets, first_cycle=self.first_cycle, cycles=self.cycles, most=self.most)


_Reader = Callable[[Path, LinkConfig, Excerpt], Packets]


def _netrace(path: Path, link: LinkConfig, part: Excerpt) -> Packets:
    return read_netrace(
        path,
        flit_bits=link.flit_bits,
        header_flits=link.header_flits,
        first_cycle=part.first_cycle,
        cycles=part.cycles,
        most=part.most,
    )


TRACE_FORMATS: Mapping[str, _Reader] = {
    ".trace": lambda path, _, part: part.of(read_packet_lines(path)),
    ".txt": lambda path, _, part: part.of(read_packet_lines(path)),
    ".parquet": lambda path, _, part: part.of(read_packet_parquet(path)),
    ".tra": _netrace,
    ".bz2": _netrace,
}
"""The reader of each kind of file, by the end of its name."""


def read_trace(path: Path, link: LinkConfig, part: Excerpt) -> Packets:
    """The packets of a part of a trace, for links like `link`, by the end of the file's name. Raises InputError."""
    reader = TRACE_FORMATS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"trace {str(path)!r}: a name that ends with {', '.join(TRACE_FORMATS)}")
    packets = reader(path, link, part)
    if not len(packets):
        raise InputError(
            f"trace {str(path)!r} has no packet in the part that is to be played: set first_cycle or cycles"
        )
    if len(packets) > MOST_PACKETS:
        raise InputError(
            f"trace {str(path)!r} has {len(packets)} packets: at most {MOST_PACKETS}; set packets or cycles"
        )
    if packets.cycles > LONGEST_CYCLES:
        raise InputError(
            f"trace {str(path)!r}: a packet in cycle {packets.cycles - 1}: before {LONGEST_CYCLES}; set cycles"
        )
    return packets
