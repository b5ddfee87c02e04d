"""The design `router-loopback`: a router whose ports all lead to traffic nodes, measured over a serial line."""

from __future__ import annotations

from operator import or_
from typing import Any

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..balanced import balanced
from ..traffic.measurement import Measurement
from ..traffic.node import TrafficNode
from ..traffic.ports import REQUEST, RESPONSE, Phase
from .config import LoopbackConfig
from .line_design import LineDesign

__all__ = ["RouterLoopback", "TrafficSystem"]


class TrafficSystem(wiring.Component):
    """The router of `config.network`, its traffic nodes and their measurement, behind one request port.

    Members:

    - `request` (in, `REQUEST`), `response` (out, `RESPONSE`): the port of the traffic system.
    - `busy` (out): a measurement is under way.
    - `dropped` (out): the router has dropped a packet, which no host reads.

    Latency: at most `READ_CYCLES` from a request to its response. Throughput: a flit a cycle and port. Reset: as after
    power-on, but for memories, which keep their contents.
    """

    def __init__(self, config: LoopbackConfig) -> None:
        self._config = config
        super().__init__(
            {"request": In(REQUEST), "response": Out(RESPONSE), "busy": Out(1), "dropped": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, network = self._config, self._config.network
        (router,) = network.block_components().values()
        m.submodules.router = router
        m.submodules.measurement = measurement = Measurement(config.traffic)
        request: Any = self.request
        m.d.comb += [
            router.connected.eq(network.connected(0)),
            measurement.request.eq(request),
            self.busy.eq((measurement.phase != Phase.IDLE) & (measurement.phase != Phase.DONE)),
            self.dropped.eq(router.dropped.any()),
        ]
        told: dict[str, list[Any]] = {name: [] for name in ("born", "done", "behind")}
        responses = [measurement.response.as_value()]
        for number, (_, port) in enumerate(network.nodes):
            node = TrafficNode(config.traffic, ends=config.ends[number] if config.ends else "both")
            m.submodules[f"node{number}"] = node
            wiring.connect(m, node.tx, router.rx[port])
            wiring.connect(m, router.tx[port], node.rx)
            m.d.comb += [
                node.node.eq(number),
                node.request.eq(request),
                node.control.eq(measurement.control),
            ]
            responses.append(node.response.as_value())
            for name, wires in told.items():
                wires.append(getattr(node, name))
        m.d.comb += [getattr(measurement, name).eq(Cat(*wires)) for name, wires in told.items()]
        m.d.comb += self.response.as_value().eq(balanced(or_, responses))
        return m


class RouterLoopback(LineDesign):
    """The whole design but for clock and pins.

    Members:

    - `rx` (in), `tx` (out): the serial line.
    - `leds` (out, `LIGHTS`): a measurement is under way; a packet was dropped; the line is sending.

    Everything but the line is reset by a write to RESTART (`LineDesign`), so that one measurement does not bear on the
    next. A host waits until no packet is under way, since memories keep the packets' sequence numbers. Latency: that of
    the line. Throughput: that of the line. Reset: as after power-on, but for memories.
    """

    def __init__(self, config: LoopbackConfig) -> None:
        super().__init__(config)
        self._loopback = config

    def make_system(self) -> tuple[TrafficSystem, tuple[str, str]]:
        """The router and its traffic."""
        return TrafficSystem(self._loopback), ("busy", "dropped")
