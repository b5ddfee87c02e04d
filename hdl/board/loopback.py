"""The design `router-loopback`: a router whose ports all lead to traffic nodes, measured over a serial line."""

from __future__ import annotations

from operator import or_
from typing import Any

from amaranth import Cat, Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..balanced import balanced
from ..traffic.measurement import Measurement
from ..traffic.node import TrafficNode
from ..traffic.ports import REQUEST, RESPONSE, Phase
from .bridge import RegisterBridge
from .config import LoopbackConfig

__all__ = ["LOOPBACK_LEDS", "RouterLoopback", "TrafficSystem"]

LOOPBACK_LEDS = 3
"""Lights: a measurement is under way; a packet was dropped; the serial line is sending."""


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


class RouterLoopback(wiring.Component):
    """The whole design but for clock and pins.

    Members:

    - `rx` (in), `tx` (out): the serial line, frames as in `frames.py`.
    - `leds` (out, `LOOPBACK_LEDS`).

    Everything but the line is reset by a write to RESTART, so that one measurement does not bear on the next. A host
    waits until no packet is under way, since memories keep the packets' sequence numbers. Latency: that of
    the line. Throughput: that of the line. Reset: as after power-on, but for memories.
    """

    def __init__(self, config: LoopbackConfig) -> None:
        self._config = config
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "leds": Out(LOOPBACK_LEDS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.bridge = bridge = RegisterBridge(
            bit_cycles=config.bit_cycles,
            identity=config.identity,
            clock_hz=config.clock_hz,
            gap_cycles=config.silent_cycles,
            label=config.label,
        )
        traffic = TrafficSystem(config)
        m.submodules.traffic = ResetInserter(bridge.restart)(traffic)
        m.d.comb += [
            bridge.rx.eq(self.rx),
            self.tx.eq(bridge.tx),
            traffic.request.eq(bridge.request),
            bridge.response.eq(traffic.response),
            self.leds.eq(Cat(traffic.busy, traffic.dropped, ~bridge.tx)),
        ]
        return m
