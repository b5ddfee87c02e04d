"""Messages that a host posts and is told of one by one: the layouts of a command and an event.

A message is one packet of the synthetic kind (`packet.py`), with its tag in the place of the time of birth. So its
contents follow from source, destination, VL, tag and number, and the receiving node checks every bit of every flit.
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
"""A command to send a message.

- `destination`, `vl`: the node that it goes to, and the VL.
- `flits`: its length, from the header's flits to the configuration's `max_packet_flits`.
- `not_before`: the time from which on it is sent, modulo 2^32, less than 2^31 cycles ahead or behind.
- `tag`: its tag.
"""

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
"""A message that has arrived, or an error in a flit.

- `node`: the node that received it.
- `whole`: the flit is the last one of a message, with every bit as it should be.
- `errors`: the errors of the flit. With an error the other fields say little.
- `source`, `vl`, `flits`, `tag`: sender, VL, length and tag of the message.
- `arrived`: the cycle in which the flit was on the node's link.
"""
