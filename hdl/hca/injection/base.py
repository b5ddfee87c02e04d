"""The interface between an adapter's scheduler and what controls its injection, and the base of the policies."""

from __future__ import annotations

from amaranth import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..layout import CLASS_BITS

__all__ = ["ASK_LAYOUT", "ENTERED_LAYOUT", "InjectionSignature"]

ASK_LAYOUT = data.StructLayout(
    {
        "traffic_class": unsigned(CLASS_BITS),
        "destination": unsigned(10),
        "vl": unsigned(4),
        "flits": unsigned(13),
        "packets": unsigned(13),
    }
)
"""A message that is first of its class: its destination node, its VL, and its flits and packets, headers and trailers
included."""

ENTERED_LAYOUT = data.StructLayout(
    {"traffic_class": unsigned(CLASS_BITS), "destination": unsigned(10), "flits": unsigned(8), "last": 1}
)
"""A packet of `flits` whose tail is on the link in this cycle; `last`: it was the last one of its message."""


class InjectionSignature(wiring.Signature):
    """Injection control of an adapter with `vls` VLs, seen by the scheduler.

    Members:

    - `ask_valid` (out), `ask` (out, `ASK_LAYOUT`): a message that could begin in this cycle. It may be another one in
      the next cycle.
    - `allow` (in): it may. It follows from `ask` and from registers in the same cycle, and means nothing without
      `ask_valid`.
    - `never` (in): it may never begin, as it takes more than the whole energy budget. It is to end with THROTTLED,
      whatever its class. As `allow` it follows from `ask` at once; then `allow` is low.
    - `start` (out): it does begin in this cycle; only with `ask_valid` and `allow`.
    - `refuse` (out): it ends without having begun in this cycle, as of `never` or as its class does not wait; only
      with `ask_valid` and without `allow`.
    - `entered_valid` (out), `entered` (out, `ENTERED_LAYOUT`): a packet has entered the network.
    - `vl_busy` (out, `vls`): VLs whose buffer towards the link has a flit, or is waiting for one of a packet begun.
    - `vl_full` (out, `vls`): VLs all of whose packet buffers towards the link are taken.
    """

    def __init__(self, *, vls: int) -> None:
        super().__init__(
            {
                "ask_valid": Out(1),
                "ask": Out(ASK_LAYOUT),
                "allow": In(1),
                "never": In(1),
                "start": Out(1),
                "refuse": Out(1),
                "entered_valid": Out(1),
                "entered": Out(ENTERED_LAYOUT),
                "vl_busy": Out(vls),
                "vl_full": Out(vls),
            }
        )
