"""The host DMA engine, which SDMA and RDMA share."""

from __future__ import annotations

from typing import Literal

from ..lock import Lock

__all__ = ["HostDma"]

Way = Literal["out", "in"]


class HostDma(Lock):
    """The one host DMA engine: SDMA and RDMA hold it in the order of asking, and know whose packet it moved last.

    SDMA holds it from before it chooses a packet, RDMA from before it programs it. So the preparation of a packet never
    runs beside the transfer of another one, whichever way that goes. A lone sender's interval of 96 ticks is made up of
    both, one after the other (`firmware/costs.py`). A packet that comes in between changes nothing in that.
    """

    _last: Way | None = None

    def turns(self, way: Way) -> int:
        """1 if the packet before went the other way, else 0; to be asked once a packet, by who holds the engine.

        Events and packets without bytes do not count: there is no packet's state to be loaded for them.
        """
        turned = self._last not in (None, way)
        self._last = way
        return int(turned)
