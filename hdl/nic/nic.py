"""The network interface card: every block of this folder, joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from ..config import ConfigError, NicConfig
from ..link import FlitLayout
from ..register_bank import RegisterBank
from .block import EngineFront, HostEngine, Joined, Kind, NicBlock
from .blocks import (
    HOST_REGISTERS,
    NIC_REGISTERS,
    common_registers,
    host_registers,
    nic_names,
    nic_registers,
    wanted_blocks,
)
from .dma.axi_join import join_managers
from .dma.host_dma import HostDma
from .dma.receive_engine import ReceiveEngine
from .dma.send_engine import SendEngine
from .doorbell import CHANNEL_BITS, Doorbell
from .host_port import HostPort
from .link_port.packet_interface import PacketInterface
from .link_port.registered_port import make_port
from .link_port.vl_port import VlPort
from .ports import REGISTER_BASE, NicSignature
from .processor.interrupt import InterruptStatus
from .processor.port import ProcessorPort
from .processor.processors import banked_registers, join_events, join_registers, make_ports, next_timer
from .rate.control import make_rate_control
from .rtc import Rtc
from .sram import Sram
from .stream_register import StreamRegister

__all__ = ["HOST_REGISTERS", "NIC_REGISTERS", "WATCHED", "Nic", "public_signals"]

ID_MAGIC = 0x4C4E
ID_VERSION = 1

WATCHED: Mapping[str, str] = {
    "watch_doorbells": "doorbells that wait: entries of the queue; polled, 1 if any",
    "watch_events": "ISR: host_dma, send, receive, doorbell, dispatch, timer, from bit 0; a second processor's above",
    "watch_enabled": "IMR, by the bits of ISR; a second processor's above",
    "watch_host_dma_busy": "a host DMA is under way",
    "watch_send_busy": "a packet is being sent",
    "watch_receive_armed": "the receive engine waits for a packet's end",
    "watch_send_held": "VL whose flit waits for a credit or the link's pace, one bit a VL",
    "watch_receive_held": "VL whose flit waits for the receive engine, one bit a VL",
    "watch_credits_out": "flits sent whose credit has not come back, all VLs",
    "watch_dispatch": "rate control: flow on offer, in the bits from 1; bit 0: there is one",
    "watch_rtc": "real-time clock, ticks",
    "watch_crc_errors": "packets dropped for a bad CRC",
    "watch_length_errors": "packets dropped for their length",
}
"""Internal registers that a watchdog should show, by the name of their variable.

They stay in the Verilog though nothing there reads them.
"""


def public_signals(config: NicConfig, *, name: str = "nic") -> list[tuple[str, str]]:
    """(Verilog module, variable) of each register of `WATCHED`, for a card converted as `name`."""
    return [(name, variable) for variable in WATCHED]


class Nic(wiring.Component):
    """The card (gulati-thesis-2001 4.1, nagar-thesis-2001 3.1, 4.2.4, 5.2). Members: `ports.NicSignature`.

    - `downstream_flits`: buffer of each VL at the other end of `tx`, where the credits start (a router's
      `input_buffer_flits`). By default it is that of a card like this one.
    - `skippable`: the card has the ports for a simulator that passes over cycles in which nothing happens.

    The life of a packet through it, with the block that does each step:

    1. A host process writes its channel's page. `HostPort` takes the write and `Doorbell` keeps it, or holds the bus
       while its queue is full. ISR.doorbell comes up (`InterruptStatus`), and with it `processor.response.event`.
    2. The processor reads the doorbell (`ProcessorPort`, `RegisterBank`) and finds descriptor or token.
    3. RATE_COMMAND.enqueue makes the flow valid in `RateControl`, at NDT = max(NDT, RTC). Once NDT <= RTC of `Rtc` and
       no other flow is before it, ISR.dispatch comes up. RATE_DISPATCH shows the flow.
    4. HOST_DMA_CONTROL starts `HostDma`: the payload comes over `dma` into the `Sram`. ISR.host_dma comes up.
    5. The processor writes the header before the payload. SEND_CONTROL starts `SendEngine`: it reads header and payload
       from the SRAM, appends the CRC and gives the flits to `PacketInterface`. That puts them on `tx` while it has
       credits, at the link's rate. Writing RATE_DISPATCH makes NDT += IDT. ISR.send says that the SRAM may be used
       again.
    6. At the other card `PacketInterface` keeps the flits of each VL in a buffer and gives credits back as they leave
       it.
    7. RECEIVE_CONTROL has armed `ReceiveEngine`. It writes the packet into the SRAM, and checks CRC and length. It
       drops a bad packet and raises ISR.receive for a good one.
    8. The processor reads the header in the SRAM and has `HostDma` take the payload to the receiver's memory. Then it
       writes status the same way, and HOST_INTERRUPT if the host sleeps. HOST_ISR raises `interrupt` if HOST_IMR lets
       it.

    The SRAM's ports have turns by round robin: host, processor, host DMA, send, receive, second processor. Starting an
    engine that is busy (or armed) does nothing. Before an engine with a queue (`DmaQueue`) a start is put into the
    queue; if that is full the start is only counted. Commands that name a thing which does not exist (`names.py`) are
    refused and counted in REFUSED. The registers of such a thing read as zero.

    Latency: that of each step is in its block's docstring. Throughput: that of its engines (`HostDma`, `SendEngine`,
    `ReceiveEngine`). Reset: everything idle, no buffer armed, nothing enabled.

    Where the configuration asks for it there are also blocks of `NIC_BLOCKS` (`blocks.py`): each is one file, and
    joins itself (`NicBlock`). `block(kind)` is the card's. With `vl_packets` the packet interface has packet buffers
    for each VL and the router's VL arbiter (`VlPort`). With two processors one does steps 2 and 3 to 5, and the other 7
    and 8 at the same time (`processors.py`).

    Public attributes: the parts that `Card` lists, which are there before the card is elaborated.

    Raises ConfigError if `downstream_flits` is less than 2.
    """

    def __init__(
        self, config: NicConfig, *, downstream_flits: int | None = None, skippable: bool = False
    ) -> None:
        self.config = config
        self.skippable = skippable
        self.downstream_flits = config.input_buffer_flits if downstream_flits is None else downstream_flits
        if self.downstream_flits < 2:
            raise ConfigError(f"Nic: downstream_flits = {downstream_flits}: at least 2")
        super().__init__(NicSignature(config, skippable=skippable))
        self.sram = Sram(config, ports=4 + config.processors)
        self.host_port = HostPort(config)
        self.processor_ports = make_ports(config)
        self.host_dma = HostDma(config)
        self.send = SendEngine(config)
        self.receive = ReceiveEngine(config)
        self.packets = make_port(config, downstream_flits=self.downstream_flits)
        self.doorbell = Doorbell(config)
        self.rtc = Rtc(config, settable=skippable)
        self.rate = make_rate_control(config, skippable=skippable)
        active = nic_registers(config)
        self.registers = RegisterBank(
            active,
            banked=banked_registers(active, config, common_registers()),
            ahead=config.pipelined,
            names=nic_names(config),
        )
        self.host_registers = RegisterBank(host_registers(config))
        self.credits_out = Signal(range(config.link.vls * self.downstream_flits + 1), name="out")
        self.blocks: dict[type[NicBlock], NicBlock] = {
            kind: kind(config, skippable=skippable) for kind in wanted_blocks(config)
        }
        engines = [block.host_engine for block in self.blocks.values() if block.host_engine]
        self.host_engine = engines[0] if engines else HostEngine(self.host_dma)

    def block(self, kind: type[Kind]) -> Kind:
        """The card's block of this class. Raises KeyError if it has none."""
        found = self.blocks[kind]
        assert isinstance(found, kind)
        return found

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        host, ports, packets = self.host_port, self.processor_ports, self.packets
        dma, send, receive, sram = self.host_dma, self.send, self.receive, self.sram
        doorbell, rtc = self.doorbell, self.rtc
        m.submodules.sram = sram
        m.submodules.host_port = host
        for i, port in enumerate(ports):
            m.submodules[f"processor_port_{i}" if i else "processor_port"] = port
        m.submodules.host_dma = dma
        m.submodules.send = send
        m.submodules.receive = receive
        m.submodules.packets = packets
        m.submodules.doorbell = doorbell
        m.submodules.rtc = rtc
        m.submodules.rate = self.rate
        m.submodules.registers = self.registers
        m.submodules.host_registers = self.host_registers

        connect(m, flipped(self.host), host.host)
        for i, port in enumerate(ports):
            outside = getattr(self, f"processor_{i}" if i else "processor")
            self._join_processor(m, outside, port, [other for other in ports if other is not port])
        joined = [self._connect(m, block) for block in self.blocks.values()]
        managers = [dma.axi, *(manager for one in joined for manager in one.managers)]
        if len(managers) > 1:
            join_managers(m, self.dma, managers)
        else:
            connect(m, flipped(self.dma), dma.axi)
        connect(m, flipped(self.tx), packets.tx)
        connect(m, flipped(self.rx), packets.rx)
        connect(m, host.sram, sram.port_0)
        connect(m, ports[0].sram, sram.port_1)
        connect(m, dma.sram, sram.port_2)
        connect(m, send.sram, sram.port_3)
        connect(m, receive.sram, sram.port_4)
        if len(ports) == 2:
            connect(m, ports[1].sram, sram.port_5)
        connect(m, send.flits, packets.send)
        if config.pipelined:
            m.submodules.received = received = StreamRegister(FlitLayout(config.link))
            connect(m, packets.receive, received.i)
            connect(m, received.o, receive.flits)
        else:
            connect(m, packets.receive, receive.flits)
        connect(m, host.ring, doorbell.ring)
        connect(m, host.registers, self.host_registers.bus)
        join_registers(m, config, ports, self.registers)
        m.d.comb += [
            host.refused.eq(doorbell.refused),
            self.activity.eq(
                Cat(
                    packets.moved,
                    dma.moved,
                    *(port.taken for port in ports),
                    host.moved,
                    *(moved for one in joined for moved in one.moved),
                ).any()
            ),
            self.rate.rtc.eq(rtc.ticks),
        ]
        fronts = self._join_engines(m)
        self._watch_link(m, packets, joined)
        self._join_doorbell(m)
        self._join_rate_control(m)
        self._join_events(m, ports, fronts, joined)
        self._join_host(m, joined)
        return m

    def _connect(self, m: Module, block: NicBlock) -> Joined:
        """Connect a block. Raises ValueError for events that are not those of its registers."""
        joined = block.connect(m, self)
        for status, declared, given in (
            ("ISR", block.registers, joined.events),
            ("HOST_ISR", block.host_registers, joined.host_events),
        ):
            bits = list(declared[status].fields) if status in declared else []
            if sorted(bits) != sorted(given):
                raise ValueError(
                    f"block {block.name}: events {sorted(given)}, where its registers declare {status} {sorted(bits)}"
                )
        return joined

    def _join_processor(
        self, m: Module, outside: Any, port: ProcessorPort, others: list[ProcessorPort]
    ) -> None:
        """Joins a processor's port, and makes accesses wait for a rate control unit that takes its time.

        The unit holds accesses to its registers until it has acted on those before. So the processor sees no difference
        but time.
        """
        inside = port.processor
        if not self.config.rate_tree:
            connect(m, flipped(outside), inside)
            return
        registers = [
            REGISTER_BASE + r.offset for name, r in NIC_REGISTERS.items() if name.startswith("RATE_")
        ]
        of_rate, held = Signal(), Signal()
        m.d.comb += [
            of_rate.eq(Cat(outside.request.address[2:] == address >> 2 for address in registers).any()),
            held.eq(of_rate & ~(self.rate.settled & self.rate.dispatched.ready)),
        ]
        if self.config.pipelined:
            # The unit shows another processor's access of this cycle in the next one.
            connect(m, flipped(outside), inside)
            m.d.comb += port.held.eq(held | (of_rate & Cat(other.acts for other in others).any()))
            return
        m.d.comb += [
            inside.request.eq(outside.request),
            inside.request.valid.eq(outside.request.valid & ~held),
            outside.response.eq(inside.response),
            outside.response.ready.eq(inside.response.ready & ~held),
        ]

    def _front(self, m: Module, engine: str, plain: Any, busy: Value) -> EngineFront:
        """The engine called `engine` as its registers see it: `plain`, busy as long as `busy`, or the block before."""
        for block in self.blocks.values():
            if block.before == engine:
                return block.front(m, self)
        return EngineFront(valid=plain.start.valid, command=plain.start.payload, busy=busy, ended=plain.done)

    def _join_engines(self, m: Module) -> dict[str, EngineFront]:
        """Joins the engines to their registers. Returns them as the registers see them, by name."""
        r, dma, send, receive = self.registers, self.host_dma, self.send, self.receive
        own = self.host_engine.own
        move = self._front(m, "host_dma", own, own.busy)
        out = self._front(m, "send", send, send.busy)
        room = self._front(m, "receive", receive, receive.armed)
        m.d.comb += [
            move.valid.eq(r.HOST_DMA_CONTROL.w_stb),
            move.command.host_address.eq(r.HOST_DMA_HOST.value.address),
            move.command.sram_address.eq(r.HOST_DMA_SRAM.value.address),
            move.command.bytes.eq(r.HOST_DMA_CONTROL.w_data.bytes),
            move.command.to_host.eq(r.HOST_DMA_CONTROL.w_data.to_host),
            r.HOST_DMA_CONTROL.r_data.busy.eq(move.busy),
            r.HOST_DMA_STATUS.r_data.error.eq(dma.error),
            out.valid.eq(r.SEND_CONTROL.w_stb),
            out.command.sram_address.eq(r.SEND_ADDRESS.value.address),
            out.command.bytes.eq(r.SEND_CONTROL.w_data.bytes),
            out.command.vl.eq(r.SEND_CONTROL.w_data.vl),
            r.SEND_CONTROL.r_data.busy.eq(out.busy),
            room.valid.eq(r.RECEIVE_CONTROL.w_stb),
            room.command.sram_address.eq(r.RECEIVE_ADDRESS.value.address),
            room.command.bytes.eq(r.RECEIVE_CONTROL.w_data.bytes),
            r.RECEIVE_CONTROL.r_data.armed.eq(room.busy),
            r.RECEIVE_STATUS.r_data.bytes.eq(receive.bytes),
            r.RECEIVE_STATUS.r_data.vl.eq(receive.vl),
            r.CRC_ERRORS.r_data.packets.eq(receive.crc_errors),
            r.LENGTH_ERRORS.r_data.packets.eq(receive.length_errors),
            r.REFUSED.r_data.commands.eq(r.refusals),
            r.REFUSED.r_data.offset.eq(r.refused_offset),
        ]
        self._watch(m, "watch_host_dma_busy", dma.busy)
        self._watch(m, "watch_send_busy", send.busy)
        self._watch(m, "watch_receive_armed", receive.armed)
        self._watch(m, "watch_crc_errors", receive.crc_errors)
        self._watch(m, "watch_length_errors", receive.length_errors)
        return {"host_dma": move, "send": out, "receive": room}

    def _watch_link(self, m: Module, packets: PacketInterface, joined: Sequence[Joined]) -> None:
        """Adds the watchdog's view of the link: the VLs that wait, and whether all credits are home."""
        for name, flits in (("send", packets.send), ("receive", packets.receive)):
            held = flits.valid & ~flits.ready
            vls = (held << flits.payload.vl)[: self.config.link.vls]
            if name == "send" and isinstance(packets, VlPort):
                vls = vls | packets.blocked
            self._watch(m, f"watch_{name}_held", vls)
        m.d.sync += self.credits_out.eq(self.credits_out + self.tx.valid - self.tx.credit_valid)
        for home in (home for one in joined for home in one.credits_home):
            with m.If(home):
                m.d.sync += self.credits_out.eq(0)
        self._watch(m, "watch_credits_out", self.credits_out)

    def _join_doorbell(self, m: Module) -> None:
        r, doorbell = self.registers, self.doorbell
        # Of polled words the block of merged doorbells chooses one of two by the bit above. In a queue there is nothing
        # to select.
        polled = self.config.doorbell == "polled"
        select = doorbell.select[:CHANNEL_BITS] if polled else doorbell.select
        m.d.comb += [
            r.DOORBELL_QUEUE.r_data.channel.eq(Mux(doorbell.head_valid, doorbell.head.channel, 0)),
            r.DOORBELL_QUEUE.r_data.value.eq(Mux(doorbell.head_valid, doorbell.head.word, 0)),
            r.DOORBELL_QUEUE.r_data.valid.eq(doorbell.head_valid),
            doorbell.pop.eq(r.DOORBELL_QUEUE.r_stb),
            select.eq(r.DOORBELL_SELECT.value.channel),
            r.DOORBELL_WORD.r_data.value.eq(doorbell.word),
            r.DOORBELL_WORD.r_data.valid.eq(doorbell.word_valid),
            doorbell.take.eq(r.DOORBELL_WORD.r_stb),
        ]
        self._watch(m, "watch_doorbells", doorbell.waiting)

    def _join_rate_control(self, m: Module) -> None:
        r, rate, flows = self.registers, self.rate, self.config.flows
        flow = r.RATE_SELECT.value.flow
        exists = Signal()
        m.d.comb += [
            exists.eq(flow < flows),
            rate.select.eq(flow),
            rate.write_idt.eq(r.RATE_IDT.w_stb),
            rate.write_ndt.eq(r.RATE_NDT.w_stb),
            # A time on a clock of fewer bits than the register is its low bits; an IDT beyond them is the
            # longest.
            rate.write_ticks.eq(r.RATE_IDT.w_data.ticks),
            r.RATE_IDT.r_data.ticks.eq(Mux(exists, rate.idt, 0)),
            r.RATE_NDT.r_data.ticks.eq(Mux(exists, rate.ndt, 0)),
            r.RATE_COMMAND.r_data.valid.eq(exists & rate.valid),
            rate.enqueue.valid.eq(r.RATE_COMMAND.w_stb & r.RATE_COMMAND.w_data.enqueue),
            rate.enqueue.payload.eq(flow),
            rate.clear.valid.eq(r.RATE_COMMAND.w_stb & r.RATE_COMMAND.w_data.clear),
            rate.clear.payload.eq(flow),
            r.RATE_DISPATCH.r_data.flow.eq(Mux(rate.dispatch.valid, rate.dispatch.flow, 0)),
            r.RATE_DISPATCH.r_data.valid.eq(rate.dispatch.valid),
            rate.dispatched.valid.eq(r.RATE_DISPATCH.w_stb),
            rate.dispatched.payload.flow.eq(r.RATE_DISPATCH.w_data.flow),
            rate.dispatched.payload.last.eq(r.RATE_DISPATCH.w_data.last),
        ]
        if self.config.rate_charge == "bytes":
            m.d.comb += rate.dispatched.payload.bytes.eq(r.RATE_DISPATCH.w_data.bytes)
        if self.config.rate_tree:
            # If a write says both, `clear` is taken first.
            again = Signal(name="enqueue_again")
            with m.If(rate.enqueue.valid):
                m.d.sync += again.eq(~rate.enqueue.ready)
            with m.If(again):
                m.d.comb += rate.enqueue.valid.eq(1)
        with m.If(r.RATE_IDT.w_stb & (r.RATE_IDT.w_data.ticks > self.config.max_idt_ticks)):
            m.d.comb += rate.write_ticks.eq(self.config.max_idt_ticks)
        self._watch(m, "watch_dispatch", Cat(rate.dispatch.valid, rate.dispatch.flow))

    def _join_events(
        self,
        m: Module,
        ports: list[ProcessorPort],
        fronts: Mapping[str, EngineFront],
        joined: Sequence[Joined],
    ) -> None:
        """Adds interrupt status, clock and timers."""
        rtc = self.rtc
        sources = {
            **{name: front.ended for name, front in fronts.items()},
            "doorbell": self.doorbell.pending,
            "dispatch": self.rate.dispatch.valid,
            "timer": rtc.fired,
            **{name: value for one in joined for name, value in one.events.items()},
        }
        timers, events = join_events(
            m, self.config, self.registers, ports, rtc, sources, lambda *what: self._watch(m, *what)
        )
        if self.skippable:
            armed, time = next_timer(m, timers)
            m.d.comb += [
                self.clock.eq(rtc.state),
                rtc.set.eq(self.set_clock),
                rtc.set_state.eq(self.clock_set),
                self.timer_due.valid.eq(armed),
                self.timer_due.ticks.eq(time),
                self.flow_due.valid.eq(self.rate.next_valid),
                self.flow_due.ticks.eq(self.rate.next_ndt),
            ]
            rests = [*(value for one in joined for value in one.rests), self.rate.rests]
            m.d.comb += [self.rate.passed.eq(self.passed), self.rests.eq(Cat(*rests).all())]
        m.d.comb += [port.event.eq(event) for port, event in zip(ports, events, strict=True)]

    def _join_host(self, m: Module, joined: Sequence[Joined]) -> None:
        """Joins the host's registers, and its interrupt line."""
        r = self.host_registers
        fields = r.registers["HOST_ISR"].fields
        m.submodules.host_status = status = InterruptStatus(
            width=1 + max(field.low for field in fields.values()),
            levels=sum(field.mask for field in fields.values() if not field.write_one_clears),
        )
        m.d.comb += [
            r.ID.r_data.magic.eq(ID_MAGIC),
            r.ID.r_data.version.eq(ID_VERSION),
            status.set[0].eq(self.registers.HOST_INTERRUPT.w_stb),
            status.clear.eq(r.HOST_ISR.w_stb & r.HOST_ISR.w_data.firmware),
            status.mask.eq(r.HOST_IMR.value.mask),
            r.HOST_ISR.r_data.firmware.eq(status.status[0]),
            r.HOST_VECTOR.r_data.vector.eq(self.registers.HOST_INTERRUPT.value.vector),
            r.DOORBELLS_REFUSED.r_data.writes.eq(self.doorbell.refusals),
            self.interrupt.eq(status.event),
        ]
        for name, value in ((name, value) for one in joined for name, value in one.host_events.items()):
            bit = fields[name].low
            m.d.comb += [status.set[bit].eq(value), r.HOST_ISR.r_data[name].eq(status.status[bit])]
            if fields[name].write_one_clears:
                m.d.comb += status.clear[bit].eq(r.HOST_ISR.w_stb & r.HOST_ISR.w_data[name])

    def _watch(self, m: Module, name: str, value: Value) -> None:
        assert name in WATCHED
        signal = Signal(len(value), name=name)
        m.d.comb += signal.eq(value)
