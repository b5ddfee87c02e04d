"""The host channel adapter: queue pairs, completion queues and traffic classes behind one link and one bus port."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from ..link import LinkSignature
from ..nic.dma.axi_join import join_managers, joined_id_bits
from ..nic.link_port.vl_port import VlPort
from ..register_port import ProcessorSignature
from .activity import ADAPTER_COUNTED, AdapterCounters
from .completion_writer import CompletionWriter
from .driver_port import COUNTERS, DriverPort
from .injection.control import InjectionControl, injection_class
from .layout import CONTROL_VL, CQ_BITS, INDEX_BITS, QP_BITS, TIME_BITS, WINDOW_WRITE, WindowWord
from .posted_work import ELEMENT_WORDS
from .receive_engine import RECEIVE_COUNTERS, ReceiveSide
from .send_side import SEND_COUNTERS, SendSide

__all__ = ["Hca", "managers"]


def managers(config: HcaConfig) -> int:
    """Managers of the bus.

    - send: work queue elements if they are fetched, messages, page tables;
    - receive: work queue elements, messages, page tables;
    - completions.
    """
    return 7 if config.wqe == "fetched" else 6


class Hca(wiring.Component):
    """The adapter (yum-2006 3.2): work queue elements are fetched, carried out and completed without a program.

    Members:

    - `tx` (out), `rx` (in) (`LinkSignature`): the link.
    - `node` (in, 10): the adapter's node number, which stands.
    - `now` (in, 32): the time that it shares with its host, cycles modulo 2^32. It stamps the completions of sends.
    - `bus` (out, `Axi4Signature` of 128 bits): the host's bus.
    - `driver` (in, `ProcessorSignature`): registers (`hca.rdl`).
    - `window` (in, stream of `WINDOW_WRITE`): writes of the host's processors.
    - `completed` (out), `completed_queue` (out, 6): an entry of that completion queue is in host memory.
    - `side` (in), only if injection control has a side band: what the network tells it.
    - `full_buffers` (out): data VLs all of whose packet buffers towards the link are taken. `delivered` (out): a flit
      has come in the cycle before. Both are for the side band of injection control.
    - `activity` (out): something moves.
    - `quiet` (out): nothing is under way, and no register changes but by an input.

    With `HcaConfig.activity_counters` it counts what it does that costs energy (`activity.py`).

    Parameter `downstream_flits`: depth of the receive buffer at the link's other end, flits a VL.

    Raises ConfigError for an injection control or a VL arbiter that does not exist.

    Latency: on an idle adapter 25 cycles and twice the bus's from a doorbell to its header on the link, if its page is
    cached. Throughput: a flit a cycle each way, for packets of 40 flits on a bus of a beat a cycle. Reset: no queue
    pair is open, no completion queue is set up, nothing is under way. Regions and routes stay as they are. After
    power-up there are none.
    """

    def __init__(self, config: HcaConfig, *, downstream_flits: int) -> None:
        self.config, self.downstream_flits = config, downstream_flits
        self._side_bits = injection_class(config).side_bits(config)
        super().__init__(
            {
                "tx": Out(LinkSignature(config.link)),
                "rx": In(LinkSignature(config.link)),
                "node": In(10),
                "now": In(TIME_BITS),
                "bus": Out(Axi4Signature(data_bits=BUS_BITS, id_bits=joined_id_bits(managers(config), 0))),
                "driver": In(ProcessorSignature()),
                "window": In(stream.Signature(WINDOW_WRITE)),
                "completed": Out(1),
                "completed_queue": Out(CQ_BITS),
                "full_buffers": Out(range(config.link.vls + 1)),
                "delivered": Out(1),
                "activity": Out(1),
                "quiet": Out(1),
            }
            | ({"side": In(self._side_bits)} if self._side_bits else {})
        )
        self.window_refused = Signal(32, name="window_refused")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.registers = self.registers = registers = DriverPort(config)
        m.submodules.port = port = VlPort(config.port, downstream_flits=self.downstream_flits)
        m.submodules.send = self.send = send = SendSide(config)
        m.submodules.receive = self.receive = receive = ReceiveSide(config)
        m.submodules.completions = completions = CompletionWriter(config, sources=2)
        m.submodules.injection = injection = InjectionControl(config)
        connect(m, flipped(self.driver), registers.driver)
        connect(m, port.tx, flipped(self.tx))
        connect(m, flipped(self.rx), port.rx)
        connect(m, send.send, port.send)
        connect(m, send.control, injection.control)
        connect(m, port.receive, receive.flits)
        connect(m, send.post, completions.post_0)
        connect(m, receive.post, completions.post_1)
        connect(m, registers.completion, completions.setup)
        self._set_up(m, registers, send, receive)
        data_vls = config.link.vls - (config.link.vls == 16)
        m.d.comb += self.full_buffers.eq(sum((~port.room[vl] for vl in range(data_vls)), start=Const(0)))
        m.d.sync += self.delivered.eq(self.rx.valid)
        if hasattr(port, "table"):
            connect(m, registers.table, port.table)
        if self._side_bits:
            m.d.comb += injection.side.eq(self.side)
        m.d.comb += [
            send.node.eq(self.node),
            send.look.eq(registers.look),
            registers.posted.eq(send.posted),
            registers.ends.eq(send.ends),
            registers.busy.eq(send.busy),
            send.route_valid.eq(registers.route_valid),
            send.route.eq(registers.route),
            send.drop_classes.eq(registers.drop_classes),
            injection.setup_valid.eq(registers.injection_valid),
            injection.setup.eq(registers.injection),
            send.room.eq(port.room),
            port.begin.eq(send.begin),
            port.begin_vl.eq(send.begin_vl),
            send.now.eq(self.now),
            send.flit.eq(self.tx.valid),
            send.flit_vl.eq(self.tx.payload.vl),
            send.tail.eq(self.tx.payload.tail),
            self.completed.eq(completions.completed),
            self.completed_queue.eq(completions.completed_queue),
        ]
        self._window(m, send, receive, completions)
        self._counters(m, registers, send, receive, completions, injection)
        ports = [send.work_axi] if config.wqe == "fetched" else []
        ports += [send.data_axi, send.page_axi]
        ports += [receive.ring_axi, receive.data_axi, receive.page_axi, completions.axi]
        assert len(ports) == managers(config)
        join_managers(m, self.bus, ports)
        self._quiet(m, port, [send, receive, completions, injection])
        if config.activity_counters:
            self._count(m, port, send)
        return m

    def _count(self, m: Module, port: VlPort, send: SendSide) -> None:
        """Adds the activity counters, and shows them under names of their own."""
        m.submodules.counters = counters = AdapterCounters()
        bus, sent = self.bus, self.tx.valid
        m.d.comb += [
            counters.buffer_writes.eq(Cat(port.send.valid & port.send.ready, self.rx.valid)),
            counters.buffer_reads.eq(Cat(sent, port.receive.valid & port.receive.ready)),
            counters.arbitrations.eq(sent),
            counters.link_flits.eq(Cat(sent, self.rx.valid)),
            counters.bus_beats.eq(Cat(bus.rvalid & bus.rready, bus.wvalid & bus.wready)),
            counters.queue_writes.eq(send.queued),
            counters.queue_reads.eq(send.dequeued),
        ]
        for name in ADAPTER_COUNTED:
            shown = Signal(32, name=f"counted_{name}")
            m.d.comb += shown.eq(getattr(counters, f"{name}_count"))

    def _quiet(
        self,
        m: Module,
        port: VlPort,
        parts: list[SendSide | ReceiveSide | CompletionWriter | InjectionControl],
    ) -> None:
        """Whether anything moves, and whether anything may change by itself."""
        bus, vls = self.bus, self.config.link.vls
        # Flits on the links, by their credits: those sent that the other end has, and those come that are here.
        spent = _count(m, self.tx.valid, self.tx.credit_valid, vls * self.downstream_flits, "spent")
        owed = _count(
            m, self.rx.valid, self.rx.credit_valid, vls * self.config.port.input_buffer_flits, "owed"
        )
        quiet = (spent == 0) & (owed == 0) & ~(self.window.valid | self.driver.request.valid)
        if hasattr(port, "table"):
            # A commit waits for the end of a frame, and counts the cycles.
            quiet = quiet & port.table.ready
        for part in parts:
            quiet = quiet & part.quiet
        m.d.comb += [
            self.quiet.eq(quiet & ~(self.rx.valid | self.completed | self.delivered)),
            self.activity.eq(
                port.moved | (bus.rvalid & bus.rready) | (bus.wvalid & bus.wready) | (bus.bvalid & bus.bready)
            ),
        ]

    def _set_up(self, m: Module, registers: DriverPort, send: SendSide, receive: ReceiveSide) -> None:
        """The driver's set-ups go to the receive side, and when that has taken them to the send side."""
        setup, there = registers.queue_pair.payload, receive.setup.payload
        m.d.comb += [
            there.qp.eq(setup.qp),
            there.open.eq(setup.open),
            there.connected.eq(setup.connected),
            there.peer.eq(setup.destination),
            there.peer_qp.eq(setup.destination_qp),
            there.control.eq(setup.vls[CONTROL_VL] if self.config.link.vls > CONTROL_VL else 0),
            there.life.eq(setup.life),
            there.peer_life.eq(setup.destination_life),
            there.owner.eq(setup.owner),
            there.queue.eq(setup.receive_queue),
            there.base.eq(setup.receive_base << 4),
            there.entries_log2.eq(setup.receive_log2),
            send.queue_pair.payload.eq(setup),
            receive.region.payload.eq(registers.region.payload),
            send.region.payload.eq(registers.region.payload),
            receive.invalidate.payload.eq(registers.invalidate.payload),
            send.invalidate.payload.eq(registers.invalidate.payload),
        ]
        for source, first, second in (
            (registers.queue_pair, receive.setup, send.queue_pair),
            (registers.region, receive.region, send.region),
            (registers.invalidate, receive.invalidate, send.invalidate),
        ):
            half = Signal(name="half_set")
            m.d.comb += [
                first.valid.eq(source.valid & ~half),
                second.valid.eq(source.valid & half),
                source.ready.eq(half & second.ready),
            ]
            with m.If(source.valid):
                m.d.sync += half.eq(Mux(half, ~second.ready, first.ready))

    def _window(self, m: Module, send: SendSide, receive: ReceiveSide, completions: CompletionWriter) -> None:
        """Writes into the window go to the part that their word names."""
        write, window = self.window.payload, self.window
        word = write.data
        doorbell, buffers, consume = send.doorbell, receive.doorbell, completions.consume
        m.d.comb += [
            doorbell.payload.page.eq(write.page),
            doorbell.payload.qp.eq(word[:QP_BITS]),
            doorbell.payload.index.eq(word[-INDEX_BITS:]),
            buffers.payload.owner.eq(write.page),
            buffers.payload.qp.eq(word[:QP_BITS]),
            buffers.payload.index.eq(word[-INDEX_BITS:]),
            consume.payload.owner.eq(write.page),
            consume.payload.queue.eq(word[:CQ_BITS]),
            consume.payload.index.eq(word[-INDEX_BITS:]),
        ]
        if self.config.wqe == "posted":
            m.d.comb += [
                send.write.page.eq(write.page),
                send.write.word.eq(write.word - WindowWord.WQE),
                send.write.data.eq(word),
            ]
        with m.Switch(write.word):
            with m.Case(WindowWord.SEND_DOORBELL):
                m.d.comb += [doorbell.valid.eq(window.valid), window.ready.eq(doorbell.ready)]
            with m.Case(WindowWord.RECEIVE_DOORBELL):
                m.d.comb += [buffers.valid.eq(window.valid), window.ready.eq(buffers.ready)]
            with m.Case(WindowWord.CONSUME):
                m.d.comb += [consume.valid.eq(window.valid), window.ready.eq(consume.ready)]
            if self.config.wqe == "posted":
                with m.Case(*range(WindowWord.WQE, WindowWord.WQE + ELEMENT_WORDS)):
                    there = write.page < self.config.owners
                    m.d.comb += [window.ready.eq(1), send.writes.eq(window.valid)]
                    with m.If(window.valid & ~there):
                        m.d.sync += self.window_refused.eq(self.window_refused + 1)
            with m.Default():
                m.d.comb += window.ready.eq(1)
                with m.If(window.valid):
                    m.d.sync += self.window_refused.eq(self.window_refused + 1)

    def _counters(
        self,
        m: Module,
        registers: DriverPort,
        send: SendSide,
        receive: ReceiveSide,
        completions: CompletionWriter,
        injection: InjectionControl,
    ) -> None:
        shown: dict[str, Value] = {name: getattr(send, member) for name, member in SEND_COUNTERS.items()}
        shown |= {f"RECEIVE_{name.upper()}": getattr(receive, name) for name in RECEIVE_COUNTERS}
        shown |= {
            "WINDOW_REFUSED": self.window_refused,
            "CONSUME_REFUSED": completions.refusals,
            "COMPLETION_OVERRUNS": completions.overruns,
            "COMPLETIONS_DROPPED": completions.dropped,
            "COMPLETION_BUS_ERRORS": completions.bus_errors,
            "HELD_CYCLES": injection.held_cycles,
            "NEVER_FITS": injection.never_fits,
        }
        if self.config.power_control:
            shown["ENERGY_USED"] = injection.energy_used
        for counter, name in zip(registers.counters, COUNTERS, strict=True):
            if name in shown:
                m.d.comb += counter.eq(shown[name])


def _count(m: Module, more: Value, less: Value, most: int, name: str) -> Signal:
    """A register: the times that `more` came, less those of `less`; 0 to `most`, so it never wraps."""
    count = Signal(range(most + 1), name=name)
    with m.If(more & ~less):
        m.d.sync += count.eq(count + 1)
    with m.Elif(less & ~more):
        m.d.sync += count.eq(count - 1)
    return count
