"""The design `node`: a card with its soft core and host memory, and a router that sends messages back to it."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...nic.nic import Nic
from ...router.router import Router
from ...traffic.ports import REQUEST, RESPONSE
from ..line_design import LineDesign
from .config import NodeConfig
from .core import Core
from .host_memory import HostMemory
from .host_window import HostWindow
from .layout import HOST_MEMORY_BYTES, Window
from .program import program_words

__all__ = ["LOOP_ROUTE", "BoardNode", "NodeSystem"]

LOOP_ROUTE = (1, 0)
"""Output ports of a message: by the port whose output is its own input, back to the card."""


class NodeSystem(wiring.Component):
    """Card, soft core, host memory and router behind one request port, whose nodes are `Window`s.

    Members:

    - `request` (in, `REQUEST`), `response` (out, `RESPONSE`): the port; an access every `WINDOW_CYCLES` at most.
    - `trap` (out): the core has stopped.
    - `dropped` (out): the router has dropped a packet.

    Port 0 of the router leads to the card, and the output of port 1 to its own input. So a message goes through the
    router twice. Latency: a read of host memory is answered in the next cycle, one of a register as `HostWindow` says.
    Throughput: an access every `WINDOW_CYCLES`. Reset: as after power-on, but for memories, which keep their contents.
    """

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        super().__init__(
            {"request": In(REQUEST), "response": Out(RESPONSE), "trap": Out(1), "dropped": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        depth = config.router.input_buffer_flits
        m.submodules.nic = nic = Nic(config.nic, downstream_flits=depth)
        m.submodules.router = router = Router(
            config.router, credit_flits=[config.nic.input_buffer_flits, depth]
        )
        m.submodules.core = core = Core(program_words())
        m.submodules.memory = memory = HostMemory(size_bytes=HOST_MEMORY_BYTES)
        m.submodules.window = window = HostWindow()
        wiring.connect(m, core.processor, nic.processor)
        wiring.connect(m, nic.dma, memory.axi)
        wiring.connect(m, window.host, nic.host)
        wiring.connect(m, nic.tx, router.rx[0])
        wiring.connect(m, router.tx[0], nic.rx)
        wiring.connect(m, router.tx[1], router.rx[1])
        request: Any = self.request
        response: Any = self.response
        in_memory = request.valid & (request.node == Window.HOST_MEMORY)
        m.d.comb += [
            router.connected.eq(0b11),
            window.request.eq(request),
            memory.address.eq(request.address),
            memory.write.eq(in_memory & request.write),
            memory.data.eq(request.data),
            self.trap.eq(core.trap),
            self.dropped.eq(router.dropped.any()),
        ]
        read = Signal()
        m.d.sync += read.eq(in_memory & ~request.write)
        m.d.comb += [
            response.valid.eq(read | window.response.valid),
            response.data.eq(memory.read & read.replicate(32) | window.response.data),
        ]
        return m


class BoardNode(LineDesign):
    """The whole design but for clock and pins.

    Members:

    - `rx` (in), `tx` (out): the serial line.
    - `leds` (out, `LIGHTS`): the core has stopped at what is no instruction; a packet was dropped; the line is sending.

    Everything but the line is reset by a write to RESTART (`LineDesign`). Latency: that of the line. Throughput: that
    of the line. Reset: as after power-on, but for memories.
    """

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self._node = config

    def make_system(self) -> tuple[NodeSystem, tuple[str, str]]:
        """The card, its host memory and the router."""
        return NodeSystem(self._node), ("trap", "dropped")
