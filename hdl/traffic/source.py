"""A node's source: generator, sender and their statistics."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..link import LinkSignature
from .config import TrafficConfig
from .generator import Generator
from .ports import ACCESS, CONTROL
from .sender import Sender
from .statistics import Kind, TallyBank

__all__ = ["Source"]


class Source(wiring.Component):
    """Makes packets (`Generator`) and sends them (`Sender`).

    Members:

    - `node` (in): its number.
    - `control` (in, `CONTROL`): from the measurement.
    - `access` (in, `ACCESS`) and `answer` (out, 32): registers.
    - `load` (in, 4), `word` (in, 32), `load_class` (in): state of a class's random numbers.
    - `tx` (out, `LinkSignature`): the link.
    - `born` (out): a tagged packet is born in this cycle.
    - `behind` (out): tagged packets are yet to be born.
    - `sent_tail` (out): a packet's last flit leaves.
    - `idle` (out): nothing is to be done until one of the `waiting` classes is `due` (`Generator`).
    - `waiting`, `due` (out): as in `Generator`.

    Latency: a packet born (due) in cycle t has its head on an idle link in t + 2, plus `delay_cycles`. Throughput:
    a flit a cycle.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        super().__init__(
            {
                "node": In(config.node_bits),
                "control": In(CONTROL),
                "access": In(ACCESS),
                "answer": Out(32),
                "load": In(4),
                "word": In(32),
                "load_class": In(config.class_bits),
                "tx": Out(LinkSignature(config.link)),
                "born": Out(1),
                "behind": Out(1),
                "sent_tail": Out(1),
                "idle": Out(1),
                "waiting": Out(config.classes),
                "due": Out(32).array(config.classes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.generator = generator = Generator(config)
        m.submodules.sender = sender = Sender(config)
        kept: dict[str, tuple[int, int, Kind]] = {
            "offered_packets": (32, 1, "sum"),
            "offered_flits": (32, config.length_bits, "sum"),
            "injected_flits": (32, 1, "sum"),
        }
        if not config.compact:
            kept |= {
                "wait_packets": (32, 1, "sum"),
                "wait_sum": (64, 27, "sum"),
                "wait_max": (32, 27, "max"),
            }
        m.submodules.statistics = statistics = TallyBank(config, kept)
        for part in (generator, sender, statistics):
            m.d.comb += [part.control.eq(self.control), part.access.eq(self.access)]
        for part in (generator, sender):
            m.d.comb += part.node.eq(self.node)
        wiring.connect(m, sender.tx, wiring.flipped(self.tx))
        m.d.comb += [
            generator.load.eq(self.load),
            generator.word.eq(self.word),
            generator.load_class.eq(self.load_class),
            generator.full.eq(sender.full),
            sender.birth.eq(generator.birth),
            sender.birth_vl.eq(generator.birth_vl),
            sender.birth_valid.eq(generator.birth_valid),
            self.behind.eq(generator.behind),
            self.sent_tail.eq(sender.sent_tail),
            self.idle.eq(generator.idle & sender.idle),
            self.waiting.eq(generator.waiting),
            *(mine.eq(due) for mine, due in zip(self.due, generator.due, strict=True)),
            self.born.eq(generator.birth_valid & generator.birth.tagged),
            self.answer.eq(generator.answer | statistics.answer),
        ]
        for name in sorted(kept.keys() - {"offered_packets", "offered_flits"}):
            wiring.connect(m, getattr(sender, name), getattr(statistics, name))
        for give, amount in [
            (statistics.offered_packets, 1),
            (statistics.offered_flits, generator.birth.flits),
        ]:
            m.d.comb += [
                give.valid.eq(self.born),
                give.row.eq(generator.birth.traffic_class),
                give.amount.eq(amount),
            ]
        return m
