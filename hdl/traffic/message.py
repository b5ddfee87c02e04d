"""Messages that a host posts and is told of one by one: what a command and an event hold.

A message is one packet of the synthetic kind (`packet.py`), its tag in the place of the time of birth. So its contents
follow from source, destination, VL, tag and number, and the receiving node checks every bit of every flit.
"""

from __future__ import annotations

from amaranth import unsigned
from amaranth.lib import data

from .checker import ERRORS
from .packet import BORN_BITS

__all__ = ["COMMAND", "EVENT", "NOW_BITS", "TAG_BITS"]

NOW_BITS = 32
"""Width of the time that nodes share, cycles modulo 2^32."""
TAG_BITS = BORN_BITS
"""Width of a message's tag."""

COMMAND = data.StructLayout(
    {
        "destination": unsigned(10),
        "vl": unsigned(4),
        "flits": unsigned(10),
        "service_level": unsigned(4),
        "tag": unsigned(TAG_BITS),
        "not_before": unsigned(NOW_BITS),
    }
)
"""Send a message: to node `destination` on `vl`, `flits` long (the header's flits at least, the configuration's
`max_packet_flits` at most), once the time is `not_before`: modulo 2^32, and less than 2^31 cycles ahead or behind."""

EVENT = data.StructLayout(
    {
        "node": unsigned(10),
        "source": unsigned(10),
        "vl": unsigned(4),
        "flits": unsigned(10),
        "tag": unsigned(TAG_BITS),
        "errors": ERRORS,
        "whole": 1,
        "arrived": unsigned(NOW_BITS),
    }
)
"""Node `node` has received the last flit of a message (`whole`) of `flits` flits that `source` sent on `vl`, every bit
as it should be, or has found `errors` in a flit (then the rest says little). `arrived`: the cycle in which that flit
was on the node's link."""
