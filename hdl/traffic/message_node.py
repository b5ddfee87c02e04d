"""A network node that sends a host's messages one by one, and tells the host of every message that arrives."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..link import FlitLayout, LinkSignature
from .checker import Checker
from .config import TrafficConfig
from .credit_return import CreditReturn
from .message import COMMAND, EVENT, NOW_BITS
from .ports import ACCESS, ALL_NODES, REQUEST
from .sender import Sender

__all__ = ["MessageNode"]


class MessageNode(wiring.Component):
    """Stands at a network's port in the place of a host's card, without a processor: commands in, events out.

    Members:

    - `node` (in, `node_bits`): its number, a constant of the network's top.
    - `now` (in, 32): the time that all nodes share, one more in every cycle.
    - `tx` (out, `LinkSignature`), `rx` (in, `LinkSignature`): the network link.
    - `request` (in, `REQUEST`): writes to `route_address` set the route to a destination; nothing can be read.
    - `command` (in, stream of `COMMAND`): messages to send, a queue of `queue_packets` a VL. A message whose queue is
      full, or whose time has not come, holds up those behind it.
    - `event_valid` (out), `event` (out, `EVENT`): a message has arrived, or an error; it must be taken at once.
    - `settled` (out): no message waits or is on its way out, and all credits of both links are home.
    - `activity` (out): it sends a flit, for a watchdog.
    - `quiet` (out): it is settled, no event is under way, and no command can be taken in this cycle.

    After `settle_cycles` (of `node.py`) cycles of `quiet` in a row no register changes any more until one of these
    events. A simulator may stop the clock of this node until then.

    - A flit, a request or a command comes.
    - The time of the command that waits has come.

    With `ordered` it reports messages of a source, destination and VL that come out of order. `config.classes`,
    `trace_frames` and the histogram's settings are not used.

    Latency: the head of a command taken in cycle t is on an idle link in t + 2, plus `delay_cycles`. The event of a
    tail on `rx` in cycle t is there in t + 2. Throughput: a command and an event a cycle, a flit a cycle each way.
    Reset: queues empty, credits home; routes stay as they are.
    """

    def __init__(self, config: TrafficConfig, *, ordered: bool = True) -> None:
        self._config, self._ordered = config, ordered
        super().__init__(
            {
                "node": In(config.node_bits),
                "now": In(NOW_BITS),
                "tx": Out(LinkSignature(config.link)),
                "rx": In(LinkSignature(config.link)),
                "request": In(REQUEST),
                "command": In(stream.Signature(COMMAND)),
                "event_valid": Out(1),
                "event": Out(EVENT),
                "settled": Out(1),
                "activity": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spoken_to = self._send(m)
        arrived = self._receive(m)
        takes = self.command.valid & self.command.ready
        m.d.comb += [
            self.activity.eq(self.tx.valid),
            self.quiet.eq(self.settled & ~(spoken_to | arrived | self.event_valid | takes)),
        ]
        return m

    def _send(self, m: Module) -> Value:
        """Returns whether a request is carried out."""
        config, command = self._config, self.command.payload
        m.submodules.sender = sender = Sender(config)
        wiring.connect(m, sender.tx, wiring.flipped(self.tx))
        access: data.View = Signal(ACCESS)
        node = self.request.node
        mine = self.request.valid & ((node == self.node) | (node == ALL_NODES))
        m.d.sync += access.write.eq(mine & self.request.write)
        with m.If(mine):
            m.d.sync += [access.address.eq(self.request.address), access.data.eq(self.request.data)]
        due = ~(self.now - command.not_before)[NOW_BITS - 1]
        vl = command.vl[: config.link.vl_bits]
        m.d.comb += [
            sender.node.eq(self.node),
            sender.control.now.eq(self.now),
            sender.access.eq(access),
            self.command.ready.eq(due & ~sender.full.bit_select(vl, 1)),
            sender.birth_valid.eq(self.command.valid & self.command.ready),
            sender.birth_vl.eq(vl),
            sender.birth.born.eq(command.tag),
            sender.birth.destination.eq(command.destination),
            sender.birth.flits.eq(command.flits),
            sender.birth.service_level.eq(command.service_level),
        ]
        link, credits = config.link, config.link.vls * config.credit_flits
        sent = self.tx.valid & self.tx.payload.tail
        # In the queues, in the link's register, and on the wire to where its far end is seen.
        most = link.vls * config.queue_packets + 1 + link.delay_cycles
        waiting = self._count(m, sender.birth_valid, sent, most, "waiting")
        spent = self._count(m, self.tx.valid, self.tx.credit_valid, credits, "spent")
        owed = self._count(m, self.rx.valid, self.rx.credit_valid, link.vls * config.sink_flits, "owed")
        m.d.comb += self.settled.eq((waiting == 0) & (spent == 0) & (owed == 0))
        return access.write

    @staticmethod
    def _count(m: Module, more: Value, less: Value, most: int, name: str) -> Signal:
        """A register: the number of times that `more` came, less those of `less`; at most `most`, so it never wraps."""
        count = Signal(range(most + 1), name=name)
        with m.If(more & ~less):
            m.d.sync += count.eq(count + 1)
        with m.Elif(less & ~more):
            m.d.sync += count.eq(count - 1)
        return count

    def _receive(self, m: Module) -> Signal:
        """Returns whether a flit is looked at."""
        config = self._config
        m.submodules.credits = credits = CreditReturn(config)
        m.submodules.checker = checker = Checker(config)
        wiring.connect(m, wiring.flipped(self.rx), credits.rx)
        # Held in registers, as in a Sink, so that the check stands still unless a flit comes.
        flit: data.View = Signal(FlitLayout(config.link))
        arrived = Signal()
        m.d.sync += arrived.eq(self.rx.valid)
        with m.If(self.rx.valid):
            m.d.sync += flit.eq(self.rx.payload)
        m.submodules.lengths = lengths = memory.Memory(
            shape=config.length_bits, depth=config.link.vls, init=[]
        )
        here, there = lengths.read_port(domain="comb"), lengths.write_port()
        before, length = Signal(config.length_bits), Signal(config.length_bits)
        told = Signal()
        m.d.comb += [
            checker.node.eq(self.node),
            checker.ordered.eq(self._ordered),
            checker.flit.eq(flit),
            checker.valid.eq(arrived),
            here.addr.eq(flit.vl),
            before.eq(Mux(flit.head, 0, here.data)),
            # The count stands still at its end: a message that is too long is told as such, and not as a short one.
            length.eq(Mux(before.all(), before, before + 1)),
            there.addr.eq(flit.vl),
            there.data.eq(length),
            there.en.eq(arrived),
            told.eq(checker.done | checker.errors.as_value().any()),
        ]
        m.d.sync += self.event_valid.eq(told)
        with m.If(told):
            m.d.sync += [
                self.event.node.eq(self.node),
                self.event.source.eq(checker.identity.source),
                self.event.vl.eq(checker.identity.vl),
                self.event.flits.eq(length),
                self.event.tag.eq(checker.identity.born),
                self.event.errors.eq(checker.errors),
                self.event.whole.eq(checker.done),
                # The flit was on the link a cycle before.
                self.event.arrived.eq(self.now - 1),
            ]
        return arrived
