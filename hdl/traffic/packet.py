"""The synthetic packet of the traffic sources: every bit of it can be checked by the sink.

It has the place of a real packet's route and destination (`hdl/packet.py`), so that any router forwards it:

- The header's first 56 bits are the real ones: kind (DATA), service level, route.
- `check` (8 bits) is the XOR of bits 0-7 and of the eight bytes of bits 64-127. It is inverted in part
  (`CHECK_SEED`), so that a header of zeros is wrong too. It finds every change of one bit. The route is not in it, as
  routers consume it.
- The upper 64 bits are the packet's identity, `IDENTITY`.

Flit i after the header holds `body_word(key, i, tail)`. i is counted from the head of the packet, and `key` is the XOR
of the identity's two words. So a sink knows every bit that must come. A changed, lost, doubled or foreign flit
therefore differs, and so does one whose tail flag is wrong.

A packet of `header_flits` flits is the header alone, with `only` set. Nothing shorter exists, since a sink could not
tell whose it is. On a 128-bit link that is a packet of one flit.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Cat, Value, unsigned
from amaranth.lib import data

from ..config import LinkConfig
from ..packet import HEADER_LAYOUT

__all__ = [
    "BORN_BITS",
    "IDENTITY",
    "IDENTITY_OFFSET",
    "Identity",
    "body",
    "body_word",
    "check_byte",
    "check_of",
    "key_of",
    "synthetic_words",
]

BORN_BITS = 27
"""Width of the time of birth in a packet, for latencies up to 134 million cycles; a longer one is told modulo 2^27."""
SEQUENCE_BITS = 8

IDENTITY_OFFSET = HEADER_LAYOUT["destination"].offset
CHECK_OFFSET = HEADER_LAYOUT["bandwidth"].offset

IDENTITY = data.StructLayout(
    {
        "destination": unsigned(10),
        "source": unsigned(10),
        "vl": unsigned(4),
        "traffic_class": unsigned(2),
        "tagged": 1,
        "frame_end": 1,
        "only": 1,
        "born": unsigned(BORN_BITS),
        "sequence": unsigned(SEQUENCE_BITS),
    }
)
"""Bits 64-127 of the header; field docs are in `Identity`."""
assert IDENTITY.size == 64 and IDENTITY_OFFSET == 64 and HEADER_LAYOUT["bandwidth"].width == 8
assert IDENTITY["source"].offset + IDENTITY_OFFSET == HEADER_LAYOUT["source"].offset

CHECK_SEED = 0x5A
BODY_STEP = 0x9E3779B9
"""Difference of the words of successive flits.

It is odd, so that the words of 2^32 successive flits all differ. It is 2^32 / golden ratio, so that many bits change.
"""
TAIL_MARK = 0x35A5_3C0F
"""Bits XORed into the words of a tail, so that the flag and the contents must agree."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The identity of a packet, as plain numbers.

    - `destination`, `source`: node numbers.
    - `vl`: the VL on which its source sent it.
    - `traffic_class`: its class.
    - `tagged`: it was born inside the measurement window.
    - `frame_end`: it is the last packet of a frame.
    - `only`: the header is the whole packet.
    - `born`: cycle of its birth, modulo 2^27.
    - `sequence`: its number among the packets of its source, destination and `vl`, modulo 2^8.
    """

    destination: int = 0
    source: int = 0
    vl: int = 0
    traffic_class: int = 0
    tagged: int = 0
    frame_end: int = 0
    only: int = 0
    born: int = 0
    sequence: int = 0

    def pack(self) -> int:
        """The 64 bits."""
        return sum(getattr(self, name) << field.offset for name, field in IDENTITY)


def check_of(low: int, identity: int) -> int:
    """The check byte of a header with `low` (kind and service level) in bits 0-7."""
    check = low ^ CHECK_SEED
    for shift in range(0, 64, 8):
        check ^= identity >> shift & 0xFF
    return check


def key_of(identity: int) -> int:
    """The key from which the words after the header are derived, 32 bits."""
    return identity >> 32 ^ identity & 0xFFFFFFFF


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & 0xFFFFFFFF


def body_word(key: int, index: int, tail: bool, config: LinkConfig) -> int:
    """Flit `index` (0 is the head) of a packet, after the header."""
    word = (key + index * BODY_STEP & 0xFFFFFFFF) ^ (TAIL_MARK if tail else 0)
    lanes = [word, word ^ 0xFFFFFFFF, _rotate(word, 8), _rotate(word, 16) ^ 0xFFFFFFFF]
    return sum(lane << 32 * i for i, lane in enumerate(lanes[: config.flit_bits // 32]))


def synthetic_words(
    identity: Identity, *, flits: int, config: LinkConfig, service_level: int = 0, route: int = 0
) -> list[int]:
    """The flits' data of a whole packet. `identity.only` must say whether it is the header alone."""
    low = service_level << HEADER_LAYOUT["service_level"].offset
    upper = identity.pack()
    header = low | route << HEADER_LAYOUT["route"].offset | check_of(low, upper) << CHECK_OFFSET | upper << 64
    step, mask = config.flit_bits, (1 << config.flit_bits) - 1
    words = [header >> i * step & mask for i in range(config.header_flits)]
    key = key_of(upper)
    return words + [body_word(key, i, i == flits - 1, config) for i in range(config.header_flits, flits)]


def check_byte(low: Value, identity: Value) -> Value:
    """`check_of` in RTL."""
    check = low ^ CHECK_SEED
    for shift in range(0, 64, 8):
        check = check ^ identity[shift : shift + 8]
    return check[:8]


def body(key: Value, index: Value, tail: Value, config: LinkConfig) -> Value:
    """`body_word` in RTL, `flit_bits` wide."""
    word = (key + index * BODY_STEP)[:32] ^ (tail.replicate(32) & TAIL_MARK)
    lanes = [word, ~word, word.rotate_left(8), ~word.rotate_left(16)]
    return Cat(*lanes[: config.flit_bits // 32])
