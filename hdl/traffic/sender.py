"""A source's queues and its link: a queue of packets a VL, flits of different VLs interleaved."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import arbiter_class
from ..config import ROUTE_BITS
from ..link import FlitLayout, LinkPacer, LinkSignature
from ..packet import HEADER_LAYOUT
from ..router.credits import Credits
from ..router.vl_buffer import VlBuffer
from ..working import works_when
from .config import TrafficConfig
from .packet import IDENTITY, SEQUENCE_BITS, body, check_byte
from .ports import ACCESS, CONTROL, ROUTE_BASE, Birth
from .statistics import TallySignature

__all__ = ["Sender"]


class Sender(wiring.Component):
    """Sends the packets of a source: a queue a VL, so that no VL waits for another.

    Members:

    - `node` (in): this node's number.
    - `control` (in, `CONTROL`): from the measurement.
    - `access` (in, `ACCESS`): route rows are written here.
    - `birth`, `birth_vl`, `birth_valid` (in), `full` (out, `vls`): packets for the queues (`Generator`).
    - `tx` (out, `LinkSignature`): the link.
    - `sent_tail` (out): a packet's last flit is on the link, but for `delay_cycles`.
    - `idle` (out): no packet is in a queue, and no flit in the link's register.
    - `injected_flits`, `wait_packets`, `wait_sum`, `wait_max` (out, `TallySignature`): for the statistics.

    In each cycle in which the link's rate gives a slot, the arbiter picks a VL with a packet and a credit. The VL's
    next flit goes to the link's register. A packet's sequence number is its number among those of its destination and
    VL, which stay in order.

    Latency: a packet born in cycle t can have its head on the link in t + 2. Throughput: a flit a cycle,
    without a gap between packets. Reset: queues empty, credits home; route rows and sequence numbers stay as
    they are (a network is reset as a whole, when it starts).
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        link = config.link
        tally = {
            name: Out(TallySignature(row_bits=config.class_bits, amount_bits=bits))
            for name, bits in {"injected_flits": 1, "wait_packets": 1, "wait_sum": 27, "wait_max": 27}.items()
        }
        super().__init__(
            {
                "node": In(config.node_bits),
                "control": In(CONTROL),
                "access": In(ACCESS),
                "birth": In(Birth(config)),
                "birth_vl": In(link.vl_bits),
                "birth_valid": In(1),
                "full": Out(link.vls),
                "tx": Out(LinkSignature(link)),
                "sent_tail": Out(1),
                "idle": Out(1),
                **tally,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        m.submodules.queue = queue = VlBuffer(
            shape=Birth(config), vls=link.vls, depth=config.queue_packets, memory=config.queue_memory
        )
        m.submodules.credits = credits = Credits(vls=link.vls, depth=config.credit_flits)
        m.submodules.pacer = pacer = LinkPacer(link)
        m.submodules.arbiter = arbiter = arbiter_class(config.arbiter)(size=link.vls)
        front: data.View = queue.read_data
        send, vl = Signal(), Signal(link.vl_bits)
        head, tail = Signal(), Signal()
        m.d.comb += [
            queue.write_valid.eq(self.birth_valid),
            queue.write_vl.eq(self.birth_vl),
            queue.write_data.eq(self.birth),
            self.full.eq(queue.full),
            arbiter.requests.eq(queue.non_empty & credits.available),
            arbiter.advance.eq(send),
            send.eq(pacer.slot & arbiter.requests.any()),
            pacer.sent.eq(send),
            queue.read_select.eq(arbiter.grant),
            vl.eq(queue.read_vl),
            queue.pop.eq(send & tail),
            credits.spend.eq(send),
            credits.spend_vl.eq(vl),
        ]

        m.submodules.sending = sending = Module()
        works_when(sending, arbiter.requests, self.access.write)

        # The index of the flit of its packet that each VL sends next. The memory has no reset: `inside` says whose
        # row counts.
        inside, index = Signal(link.vls), Signal(config.length_bits)
        sending.submodules.positions = positions = memory.Memory(
            shape=config.length_bits, depth=link.vls, init=[]
        )
        here, there = positions.read_port(domain="comb"), positions.write_port()
        sending.d.comb += [
            head.eq(~(inside & arbiter.grant).any()),
            here.addr.eq(vl),
            index.eq(Mux(head, 0, here.data)),
            tail.eq(index + 1 == front.flits),
            there.addr.eq(vl),
            there.data.eq(index + 1),
            there.en.eq(send),
        ]
        with sending.If(send):
            sending.d.sync += inside.eq(Mux(tail, inside & ~arbiter.grant, inside | arbiter.grant))

        word = self._flit(sending, front, vl, index, tail, send)
        flit: data.View = Signal(FlitLayout(link))
        valid = Signal()
        m.d.sync += valid.eq(send)
        with m.If(send):
            m.d.sync += [flit.data.eq(word), flit.vl.eq(vl), flit.head.eq(head), flit.tail.eq(tail)]
        far = self._delayed(m, Cat(valid, flit), "flit")
        m.d.comb += [
            Cat(self.tx.valid, self.tx.payload).eq(far),
            Cat(credits.refund, credits.refund_vl).eq(
                self._delayed(m, Cat(self.tx.credit_valid, self.tx.credit_vl), "credit")
            ),
            self.sent_tail.eq(valid & flit.tail),
            self.idle.eq(~queue.non_empty.any() & ~valid),
        ]

        # The head that is picked now is on the link in the next cycle.
        wait = (self.control.now + 1 - front.born)[: len(front.born)]
        for give, amount, counts in [
            (self.injected_flits, 1, send & self.control.window),
            (self.wait_packets, 1, send & head & front.tagged),
            (self.wait_sum, wait, send & head & front.tagged),
            (self.wait_max, wait, send & head & front.tagged),
        ]:
            m.d.comb += [give.valid.eq(counts), give.row.eq(front.traffic_class), give.amount.eq(amount)]
        return m

    def _flit(self, m: Module, front: data.View, vl: Value, index: Value, tail: Value, send: Value) -> Value:
        """The data of flit `index` of the packet `front`."""
        config, link, access = self._config, self._config.link, self.access
        in_routes = access.address[17:] == ROUTE_BASE >> 17
        route = []
        for word, bits in enumerate([32, ROUTE_BITS - 32]):
            m.submodules[f"route_{word}"] = rows = memory.Memory(shape=bits, depth=config.nodes, init=[])
            write, read = rows.write_port(), rows.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(access.write & in_routes & (access.address[2] == word)),
                write.addr.eq(access.address[3:]),
                write.data.eq(access.data),
                read.addr.eq(front.destination),
            ]
            route.append(read.data)

        depth = link.vls << config.node_bits
        m.submodules.sequences = rows = memory.Memory(shape=SEQUENCE_BITS, depth=depth, init=[])
        write, read = rows.write_port(), rows.read_port(domain="comb")
        place = Cat(vl, front.destination) if link.vls > 1 else front.destination
        m.d.comb += [
            read.addr.eq(place),
            write.addr.eq(place),
            write.data.eq(read.data + 1),
            write.en.eq(send & tail),
        ]

        identity: data.View = Signal(IDENTITY)
        m.d.comb += [
            identity.destination.eq(front.destination),
            identity.source.eq(self.node),
            identity.vl.eq(vl),
            identity.traffic_class.eq(front.traffic_class),
            identity.tagged.eq(front.tagged),
            identity.frame_end.eq(front.frame_end),
            identity.only.eq(front.flits == link.header_flits),
            identity.born.eq(front.born),
            identity.sequence.eq(read.data),
        ]
        upper = identity.as_value()
        low = Cat(Value.cast(0)[:1].replicate(4), front.service_level)
        header = Cat(low, *route, check_byte(low, upper), upper)
        assert len(header) == HEADER_LAYOUT.size
        words = [header[i * link.flit_bits : (i + 1) * link.flit_bits] for i in range(link.header_flits)]
        chosen = body(upper[:32] ^ upper[32:], index, tail, link)
        for i in reversed(range(link.header_flits)):
            chosen = Mux(index == i, words[i], chosen)
        return chosen

    def _delayed(self, m: Module, value: Value, name: str) -> Signal:
        """`value` after `delay_cycles` registers."""
        last = Signal(len(value), name=f"{name}_wire")
        m.d.comb += last.eq(value)
        for stage in range(self._config.link.delay_cycles):
            register = Signal(len(value), name=f"{name}_wire_{stage + 1}")
            m.d.sync += register.eq(last)
            last = register
        return last
