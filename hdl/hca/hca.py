"""The host channel adapter: queue pairs, completion queues and traffic classes behind one link and one bus port."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from ..link import LinkSignature
from ..nic.dma.axi_join import joined_id_bits
from ..register_port import ProcessorSignature
from .layout import CQ_BITS, OWNER_BITS, WINDOW_WRITE

__all__ = ["MANAGERS", "Hca"]

MANAGERS = 7
"""Managers of the bus.

- send: work queue elements, messages, page tables;
- receive: work queue elements, messages, page tables;
- completions.
"""


class Hca(wiring.Component):
    """The adapter (yum-2006 3.2).

    Members:

    - `tx` (out), `rx` (in) (`LinkSignature`): the link.
    - `node` (in, 10): the adapter's node number, which stands.
    - `bus` (out, `Axi4Signature` of 128 bits): the host's bus.
    - `driver` (in, `ProcessorSignature`): registers (`hca.rdl`).
    - `window` (in, stream of `WINDOW_WRITE`): writes of the host's processors.
    - `completed` (out), `completed_queue` (out, 6): an entry of that completion queue is in host memory.
    - `activity` (out): something moves.
    - `quiet` (out): nothing is under way, and no register changes but by an input.

    Parameter `downstream_flits`: depth of the receive buffer at the link's other end, flits a VL.
    """

    def __init__(self, config: HcaConfig, *, downstream_flits: int) -> None:
        self.config, self.downstream_flits = config, downstream_flits
        super().__init__(
            {
                "tx": Out(LinkSignature(config.link)),
                "rx": In(LinkSignature(config.link)),
                "node": In(OWNER_BITS),
                "bus": Out(Axi4Signature(data_bits=BUS_BITS, id_bits=joined_id_bits(MANAGERS, 0))),
                "driver": In(ProcessorSignature()),
                "window": In(stream.Signature(WINDOW_WRITE)),
                "completed": Out(1),
                "completed_queue": Out(CQ_BITS),
                "activity": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The members stand; the parts are yet to be put together.
        m.d.comb += [self.driver.response.ready.eq(1), self.window.ready.eq(1), self.quiet.eq(1)]
        return m
