"""The base of every arbiter: its ports, as the blocks that use one see them."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Arbiter"]


class Arbiter(wiring.Component):
    """Picks one of `size` requesters in every cycle.

    Members:

    - `requests` (in, `size`): who asks in this cycle. A request may come and go freely.
    - `grant` (out, `size`): one-hot, one of those who ask, in the same cycle; 0 if nobody asks.
    - `advance` (in): the grant of this cycle is used. Without it the arbiter's state stays, so that a grant that its
      user could not follow is not counted as a turn. `advance` must not depend on later cycles. It may depend on
      `grant` combinationally; `grant` never depends on it.

    A derived class gives `elaborate`. Its docstring gives the algorithm, its memory, and the longest wait of a
    requester that keeps asking.

    Latency: none from `requests` to `grant`; a used grant counts from the next cycle on. Throughput: a grant a
    cycle.
    """

    def __init__(self, *, size: int) -> None:
        self.size = size
        super().__init__({"requests": In(size), "grant": Out(size), "advance": In(1)})

    def elaborate(self, platform: object) -> Module:
        raise NotImplementedError(f"{type(self).__name__} has no elaborate()")
