"""A traffic node: one source, one sink, one set-up port."""

from __future__ import annotations

from typing import Literal

from amaranth import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..link import LinkSignature
from .arrivals import watched_signals
from .config import TrafficConfig
from .ports import ACCESS, ALL_NODES, CONTROL, NODE, REQUEST, RESPONSE
from .sink import Sink
from .source import Source

__all__ = ["TrafficNode", "settle_cycles"]


class TrafficNode(wiring.Component):
    """Stands at a network's port in the place of a host with its card.

    Members:

    - `node` (in, `node_bits`): its number, a constant of the network's top, so that one block serves all nodes.
    - `tx` (out, `LinkSignature`), `rx` (in, `LinkSignature`): the network link.
    - `request` (in, `REQUEST`): set-up and read-out.
    - `response` (out, `RESPONSE`): the answer `READ_CYCLES` later, zeros otherwise.
    - `control` (in, `CONTROL`): from the measurement.
    - `born` (out): a tagged packet was born, for the measurement.
    - `done` (out): a tagged packet has arrived, for the measurement.
    - `behind` (out): tagged packets are yet to be born, for the measurement.
    - `activity` (out): it sends a flit, for a watchdog.
    - `quiet` (out): nothing is sent, checked or counted.
    - `waiting` (out, a bit a class): classes that wait for the birth of their next packet.
    - `due` (out, 32 a class): the cycle of that birth.

    `ends` says what a node has: both, or `source` or `sink` alone on an FPGA that has no room for both. What it lacks
    sends nothing, takes nothing and reads 0.

    After `settle_cycles(config)` cycles of `quiet` in a row no register changes any more until one of these events. A
    simulator may stop the clock of this node until then (`sim/native/blocks.h`).

    - A flit or a request comes.
    - A field of `control` other than `now` changes.
    - `now` reaches the `due` of a class that is `waiting`.

    Latency: `READ_CYCLES` from `request` to `response`; for packets that of `Source` and `Sink`. Throughput: a flit a
    cycle each way. Reset: that of its parts.
    """

    def __init__(self, config: TrafficConfig, *, ends: Literal["both", "source", "sink"] = "both") -> None:
        self.config, self.ends = config, ends
        super().__init__(
            {
                "node": In(config.node_bits),
                "tx": Out(LinkSignature(config.link)),
                "rx": In(LinkSignature(config.link)),
                "request": In(REQUEST),
                "response": Out(RESPONSE),
                "control": In(CONTROL),
                "born": Out(1),
                "done": Out(1),
                "behind": Out(1),
                "activity": Out(1),
                "quiet": Out(1),
                "waiting": Out(config.classes),
                "due": Out(32).array(config.classes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        source, sink = Source(self.config), Sink(self.config)
        parts: list[Source | Sink] = []
        if self.ends != "sink":
            m.submodules.source = source
            parts.append(source)
            wiring.connect(m, source.tx, wiring.flipped(self.tx))
        if self.ends != "source":
            m.submodules.sink = sink
            if sink.arrivals is not None:
                for name in watched_signals(self.config):
                    value = Value.cast(getattr(sink.arrivals, name.removeprefix("watched_")))
                    shown = Signal(len(value), name=name)
                    m.d.comb += shown.eq(value)
            parts.append(sink)
            wiring.connect(m, wiring.flipped(self.rx), sink.rx)

        # Held in a register, so that the logic behind it stands still unless the node is spoken to.
        access: data.View = Signal(ACCESS)
        mine = Signal()
        node, write = self.request.node, self.request.write
        m.d.comb += mine.eq(self.request.valid & ((node == self.node) | (write & (node == ALL_NODES))))
        m.d.sync += [access.read.eq(mine & ~self.request.write), access.write.eq(mine & self.request.write)]
        with m.If(mine):
            m.d.sync += [access.address.eq(self.request.address), access.data.eq(self.request.data)]
        seeds = [NODE[f"SEED_{i}"].offset for i in range(4)]
        load = Signal(4)
        m.d.comb += [
            bit.eq(access.write & (access.address == seed)) for bit, seed in zip(load, seeds, strict=True)
        ]
        for part in parts:
            m.d.comb += [
                part.node.eq(self.node),
                part.control.eq(self.control),
                part.access.eq(access),
                part.word.eq(access.data),
            ]
        # The stalls of the sink have class 0's seed.
        chosen = Signal(source.load_class.shape())
        with m.If(access.write & (access.address == NODE["SEED_CLASS"].offset)):
            m.d.sync += chosen.eq(access.data)
        m.d.comb += [
            source.load.eq(load),
            source.load_class.eq(chosen),
            sink.load.eq(load[3] & (chosen == 0)),
        ]

        self._sent, self._received = Signal(32, name="sent"), Signal(32, name="received")
        sent, received, own = self._sent, self._received, Signal(32)
        with m.If(source.sent_tail):
            m.d.sync += sent.eq(sent + 1)
        with m.If(sink.received):
            m.d.sync += received.eq(received + 1)
        with m.If(access.read):
            m.d.sync += own.eq(0)
            with m.Switch(access.address):
                for name, value in {"SENT": sent, "RECEIVED": received}.items():
                    with m.Case(NODE[name].offset):
                        m.d.sync += own.eq(value)
        answering = Signal()
        m.d.sync += [answering.eq(access.read), self.response.valid.eq(answering)]
        with m.If(answering):
            m.d.sync += self.response.data.eq(source.answer | sink.answer | own)
        with m.Elif(self.response.valid):
            m.d.sync += self.response.data.eq(0)
        m.d.sync += [self.born.eq(source.born), self.done.eq(sink.done), self.behind.eq(source.behind)]
        m.d.comb += [
            self.activity.eq(self.tx.valid),
            self.quiet.eq(source.idle & sink.idle & ~self.control.clear),
            self.waiting.eq(source.waiting),
            *(mine.eq(due) for mine, due in zip(self.due, source.due, strict=True)),
        ]
        return m


def settle_cycles(config: TrafficConfig) -> int:
    """Quiet cycles after which nothing in a node changes by itself.

    - A flit or credit on a long wire takes `delay_cycles`.
    - A link has carried its last flit after den / num.
    - Within five cycles a request has its answer, a flit is counted, and its packet is reported.
    """
    link = config.link
    return 5 + link.delay_cycles - (-link.rate_den // link.rate_num)
