"""An adapter network's top module: time, the wake-up of Python, and the watchdog. All else is outside of it."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth import Module
from amaranth.lib.wiring import In, Member, Out
from lanikai.hdl.network import Network
from lanikai.hdl.router.router import DROPPED_BITS

from ...build.power_wires import add_power_wires, power_wire_members
from ...inside.watchdog import WATCHDOG_BITS
from ...models.system_bus import NOW_BITS
from ..top import Top
from .side_bands import SideBand

__all__ = ["PORTS", "AdapterTop"]

PORTS: Mapping[str, Member] = {
    "wake": Out(1),
    "now": Out(NOW_BITS),
    "settled": Out(1),
    "dropped": Out(DROPPED_BITS),
    "watchdog_limit": In(WATCHDOG_BITS),
    "watchdog_fired": Out(1),
}
"""The members that Python touches.

- `wake`: changes when a ring of `native/messages.cpp` has something for Python.
- `now`: cycles since the start.
- `settled`: nothing is under way in any node.
- `dropped`: packets that routers threw away.
- `watchdog_limit`, `watchdog_fired`: nothing has moved for so long, though not all nodes are settled.
"""


class AdapterTop(Top):
    """The top where routers and nodes are outside (`build/composition.py`): their outputs come in as they are after the
    edge.

    Members: `clk`, `PORTS`, and for what is outside:

    - `told` (in): a ring has something for Python.
    - `unsettled` (in, a bit a node): nodes that are not settled.
    - `moving` (in): a flit or a beat moves anywhere.
    - `dropped_sum` (in, 32): packets that all routers threw away.
    - `attention` (out): a router asks for energy credits, or lends some; else nobody is spoken to.
    - `addressed` (out, 12): 0 likewise.
    - Those of the `band` of the adapters' injection control, if there is one.
    - With routers of `network` that lend each other energy credits, their wires (`power_wires.py`).

    Instances: `watchdog`. There is no reset.
    """

    def __init__(self, network: Network, *, band: SideBand | None = None) -> None:
        self._band, self._network = band, network
        super().__init__(
            {
                **PORTS,
                **(band.top_members() if band else {}),
                "told": In(1),
                **power_wire_members(network),
                "unsettled": In(len(network.nodes)),
                "moving": In(1),
                "dropped_sum": In(DROPPED_BITS),
                "attention": Out(1),
                "addressed": Out(12),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        m.d.sync += [self.now.eq(self.now + 1), self.wake.eq(self.wake ^ self.told)]
        m.d.comb += [
            self.settled.eq(~self.unsettled.any()),
            self.dropped.eq(self.dropped_sum),
            self.attention.eq(add_power_wires(m, self._network, self)),
        ]
        self._watch(m, self.settled | self.moving)
        if self._band:
            self._band.add(m, self)
        return m
