"""The network interface card: every block of this folder, joined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from ..config import ConfigError, NicConfig
from ..link import FlitLayout
from ..register_bank import RegisterBank
from ..registers import Register, load
from .dma.host_dma import HostDma
from .dma.receive_engine import ReceiveEngine
from .dma.send_engine import SendEngine
from .doorbell import Doorbell
from .engine_queues import HostEngine, host_dma_front, receive_front, send_front
from .host_port import HostPort
from .link_port.packet_interface import PacketInterface
from .link_port.vl_port import VlPort
from .names import active_names
from .optional import active_registers
from .owner_blocks import join_completion, join_doorbell_owners, join_managers, join_protection
from .owners.completion import Completion
from .ports import REGISTER_BASE, NicSignature
from .processor.interrupt import InterruptStatus
from .processor.port import ProcessorPort
from .processor.processors import banked_registers, join_events, join_registers, make_ports, next_timer
from .queues.stream_register import StreamRegister
from .rate.control import make_rate_control
from .rtc import Rtc
from .sram import Sram

__all__ = ["HOST_REGISTERS", "NIC_REGISTERS", "WATCHED", "Nic", "public_signals"]

NIC_REGISTERS: Mapping[str, Register] = load(Path(__file__).parent / "nic.rdl")
"""Registers of the processor's map, by name; offsets from `REGISTER_BASE`."""
HOST_REGISTERS: Mapping[str, Register] = load(Path(__file__).parent / "host.rdl")
"""Registers of the host's map, by name; offsets from `REGISTER_BASE`."""
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
"""Internal registers that a watchdog should show, by the name of their variable. They stay in the Verilog
though nothing there reads them."""


def public_signals(config: NicConfig, *, name: str = "nic") -> list[tuple[str, str]]:
    """(Verilog module, variable) of each register of `WATCHED`, for a card converted as `name`."""
    return [(name, variable) for variable in WATCHED]


class Nic(wiring.Component):
    """The card (gulati-thesis-2001 4.1, nagar-thesis-2001 3.1, 4.2.4, 5.2). Members: `ports.NicSignature`.

    `downstream_flits`: buffer of each VL at the other end of `tx`, where the credits start (a router's
    `input_buffer_flits`); by default that of a card like this one. `skippable`: with the ports for a simulator
    that passes over cycles in which nothing happens.

    The life of a packet through it, with the block that does each step:

    1. A host process writes its channel's page: `HostPort` takes the write and `Doorbell` keeps it, or holds
       the bus while its queue is full. ISR.doorbell comes up (`InterruptStatus`), and with it
       `processor.response.event`.
    2. The processor reads the doorbell (`ProcessorPort`, `RegisterBank`) and finds descriptor or token.
    3. RATE_COMMAND.enqueue makes the flow valid in `RateControl`, at NDT = max(NDT, RTC); once NDT <= RTC of
       `Rtc` and no other flow is before it, ISR.dispatch comes up and RATE_DISPATCH shows the flow.
    4. HOST_DMA_CONTROL starts `HostDma`: the payload comes over `dma` into the `Sram`; then ISR.host_dma.
    5. The processor writes the header before the payload; SEND_CONTROL starts `SendEngine`: it reads header
       and payload from the SRAM, appends the CRC and gives the flits to `PacketInterface`, which puts them on
       `tx` while it has credits, at the link's rate. Writing RATE_DISPATCH says NDT += IDT. ISR.send: the
       SRAM may be used again.
    6. At the other card `PacketInterface` keeps the flits of each VL in a buffer and gives credits back as
       they leave it.
    7. RECEIVE_CONTROL has armed `ReceiveEngine`: it writes the packet into the SRAM, checks CRC and length,
       drops a bad one and says ISR.receive for a good one.
    8. The processor reads the header in the SRAM and has `HostDma` take the payload to the receiver's memory;
       then it writes status the same way, and HOST_INTERRUPT if the host sleeps: HOST_ISR raises `interrupt`
       if HOST_IMR lets it.

    SRAM ports, by round robin: host, processor, host DMA, send, receive, second processor. Starting an engine that
    is busy (or armed) does nothing; before an engine with a queue (`DmaQueue`) a start is put into the queue, and
    does nothing but be counted if that is full. Commands that name a thing which does not exist (`names.py`) are
    refused and counted in REFUSED, and its registers read as zero. Latency: that of each step is in its block's
    docstring. Throughput: that of its engines (`HostDma`, `SendEngine`, `ReceiveEngine`). Reset: everything idle,
    no buffer armed, nothing enabled.

    Where the configuration asks for it there are also, for owners of doorbell pages (`HostPort`): `Completion`,
    on the host's bus beside the DMA engine (`AxiJoin`); `Protection`, `Translation` and `CheckedDma`, before the
    engine (`DmaGate`). With `vl_packets` the packet interface has packet buffers for each VL and the router's VL
    arbiter (`VlPort`), and the send engine a queue for each VL (`LaneDmaQueue`). With two processors steps 2 and
    3 to 5 are one's, 7 and 8 the other's, at the same time (`processors.py`).

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

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.sram = sram = Sram(config, ports=4 + config.processors)
        m.submodules.host_port = host = HostPort(config)
        ports = make_ports(m, config)
        m.submodules.host_dma = self._dma = dma = HostDma(config)
        m.submodules.send = self._send = send = SendEngine(config)
        m.submodules.receive = self._receive = receive = ReceiveEngine(config)
        port = VlPort if config.vl_packets else PacketInterface
        m.submodules.packets = self._packets = packets = port(config, downstream_flits=self.downstream_flits)
        m.submodules.doorbell = self._doorbell = doorbell = Doorbell(config)
        m.submodules.rtc = self._rtc = rtc = Rtc(config, settable=self.skippable)
        m.submodules.rate = self._rate = make_rate_control(config, skippable=self.skippable)
        active = active_registers(NIC_REGISTERS, config)
        m.submodules.registers = self._registers = registers = RegisterBank(
            active,
            banked=banked_registers(active, config),
            ahead=config.pipelined,
            names=active_names(active, config),
        )
        m.submodules.host_registers = self._host_registers = host_registers = RegisterBank(
            active_registers(HOST_REGISTERS, config)
        )

        connect(m, flipped(self.host), host.host)
        for i, port in enumerate(ports):
            outside = getattr(self, f"processor_{i}" if i else "processor")
            self._join_processor(m, outside, port, [other for other in ports if other is not port])
        self._join_owners(m, host)
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
        connect(m, host.registers, host_registers.bus)
        join_registers(m, config, ports, registers)
        m.d.comb += [
            host.refused.eq(doorbell.refused),
            self.activity.eq(
                Cat(packets.moved, dma.moved, *(port.taken for port in ports), host.moved).any()
            ),
            self._rate.rtc.eq(rtc.ticks),
        ]
        self._join_engines(m)
        self._watch_link(m, packets)
        self._join_doorbell(m)
        self._join_rate_control(m)
        self._join_events(m, ports)
        self._join_host(m)
        return m

    def _join_processor(
        self, m: Module, outside: Any, port: ProcessorPort, others: list[ProcessorPort]
    ) -> None:
        """A rate control unit that takes its time holds accesses to its registers until it has acted on those before,
        so that the processor sees no difference but time."""
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
            held.eq(of_rate & ~(self._rate.settled & self._rate.dispatched.ready)),
        ]
        if self.config.pipelined:
            # What another processor does in this cycle the unit shows in the next one.
            connect(m, flipped(outside), inside)
            m.d.comb += port.held.eq(held | (of_rate & Cat(other.acts for other in others).any()))
            return
        m.d.comb += [
            inside.request.eq(outside.request),
            inside.request.valid.eq(outside.request.valid & ~held),
            outside.response.eq(inside.response),
            outside.response.ready.eq(inside.response.ready & ~held),
        ]

    def _join_owners(self, m: Module, host: HostPort) -> None:
        """What cards with owners have, where the configuration asks for it; and the host's bus, which is the DMA
        engine's alone in cards that have not."""
        r, config, dma = self._registers, self.config, self._dma
        self._more_events = join_doorbell_owners(m, config, r, self._doorbell, host)
        self._host_engine = HostEngine(dma)
        self._completion: Completion | None = None
        self._rests: list[Value] = []
        managers = [dma.axi]
        if config.completion_queues:
            self._completion, events = join_completion(
                m, config, r, self._host_registers, host, dma, skippable=self.skippable
            )
            self._more_events |= events
            managers.append(self._completion.axi)
            if self.skippable:
                self._rests.append(self._completion.rests)
                m.d.comb += self._completion.passed.eq(self.passed)
        if config.regions:
            self._host_engine, translation, events = join_protection(m, config, r, dma)
            self._more_events |= events
            managers.append(translation.axi)
            assert self._host_engine.checked is not None
            self._rests += [translation.rests, ~self._host_engine.checked.busy]
        if len(managers) > 1:
            join_managers(m, self.dma, managers)
        else:
            connect(m, flipped(self.dma), dma.axi)

    def _join_engines(self, m: Module) -> None:
        r, dma, send, receive = self._registers, self._dma, self._send, self._receive
        self._dma_front = move = host_dma_front(m, self.config, r, self._host_engine, self._rtc.ticks)
        self._send_front = out = send_front(m, self.config, r, send, self._packets, self._rtc.ticks)
        self._receive_front = room = receive_front(m, self.config, r, receive)
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
        if self.config.receive_wait_cycles:
            m.d.comb += r.DISCARDED.r_data.packets.eq(receive.discarded)
            self._rests.append(receive.rests)
        self._watch(m, "watch_host_dma_busy", dma.busy)
        self._watch(m, "watch_send_busy", send.busy)
        self._watch(m, "watch_receive_armed", receive.armed)
        self._watch(m, "watch_crc_errors", receive.crc_errors)
        self._watch(m, "watch_length_errors", receive.length_errors)

    def _watch_link(self, m: Module, packets: PacketInterface) -> None:
        """What waits where, and whether all credits are home."""
        for name, flits in (("send", packets.send), ("receive", packets.receive)):
            held = flits.valid & ~flits.ready
            vls = (held << flits.payload.vl)[: self.config.link.vls]
            if name == "send" and isinstance(packets, VlPort):
                vls = vls | packets.blocked
            self._watch(m, f"watch_{name}_held", vls)
        out = Signal(range(self.config.link.vls * self.downstream_flits + 1))
        m.d.sync += out.eq(out + self.tx.valid - self.tx.credit_valid)
        if self.config.link.restart:
            r = self._registers
            self._lost_out = lost = Signal(16, name="lost_out")
            with m.If(packets.restarting):
                m.d.sync += [out.eq(0), lost.eq(lost + out + self.tx.valid)]
            m.d.comb += [
                r.LINK.r_data.cut_out.eq(packets.cuts_out),
                r.LINK.r_data.cut_in.eq(packets.cuts_in),
                r.LINK.r_data.down.eq(packets.down),
                r.LINK_LOST.r_data.out_flits.eq(lost),
                r.LINK_LOST.r_data.in_flits.eq(packets.lost_in),
            ]
        self._watch(m, "watch_credits_out", out)

    def _join_doorbell(self, m: Module) -> None:
        r, doorbell = self._registers, self._doorbell
        m.d.comb += [
            r.DOORBELL_QUEUE.r_data.channel.eq(Mux(doorbell.head_valid, doorbell.head.channel, 0)),
            r.DOORBELL_QUEUE.r_data.value.eq(Mux(doorbell.head_valid, doorbell.head.word, 0)),
            r.DOORBELL_QUEUE.r_data.valid.eq(doorbell.head_valid),
            doorbell.pop.eq(r.DOORBELL_QUEUE.r_stb),
            doorbell.select.eq(r.DOORBELL_SELECT.value.channel),
            r.DOORBELL_WORD.r_data.value.eq(doorbell.word),
            r.DOORBELL_WORD.r_data.valid.eq(doorbell.word_valid),
            doorbell.take.eq(r.DOORBELL_WORD.r_stb),
        ]
        if doorbell.words == 2 and not doorbell.separate:
            m.d.comb += doorbell.select[-1].eq(r.DOORBELL_SELECT.value.receive)
        self._watch(m, "watch_doorbells", doorbell.waiting)

    def _join_rate_control(self, m: Module) -> None:
        r, rate, flows = self._registers, self._rate, self.config.flows
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
            # Of a write that says both, `clear` is taken first.
            again = Signal(name="enqueue_again")
            with m.If(rate.enqueue.valid):
                m.d.sync += again.eq(~rate.enqueue.ready)
            with m.If(again):
                m.d.comb += rate.enqueue.valid.eq(1)
        with m.If(r.RATE_IDT.w_stb & (r.RATE_IDT.w_data.ticks > self.config.max_idt_ticks)):
            m.d.comb += rate.write_ticks.eq(self.config.max_idt_ticks)
        self._watch(m, "watch_dispatch", Cat(rate.dispatch.valid, rate.dispatch.flow))

    def _join_events(self, m: Module, ports: list[ProcessorPort]) -> None:
        """Interrupt status, clock and timers."""
        rtc = self._rtc
        sources = {
            "host_dma": self._dma_front.ended,
            "send": self._send_front.ended,
            "receive": self._receive_front.ended,
            "doorbell": self._doorbell.pending,
            "dispatch": self._rate.dispatch.valid,
            "timer": rtc.fired,
        } | self._more_events
        timers, events = join_events(
            m, self.config, self._registers, ports, rtc, sources, lambda *what: self._watch(m, *what)
        )
        if self.skippable:
            armed, time = next_timer(m, timers)
            m.d.comb += [
                self.clock.eq(rtc.state),
                rtc.set.eq(self.set_clock),
                rtc.set_state.eq(self.clock_set),
                self.timer_due.valid.eq(armed),
                self.timer_due.ticks.eq(time),
                self.flow_due.valid.eq(self._rate.next_valid),
                self.flow_due.ticks.eq(self._rate.next_ndt),
            ]
            self._rests.append(self._rate.rests)
            m.d.comb += [self._rate.passed.eq(self.passed), self.rests.eq(Cat(*self._rests).all())]
        m.d.comb += [port.event.eq(event) for port, event in zip(ports, events, strict=True)]

    def _join_host(self, m: Module) -> None:
        r = self._host_registers
        completion = self._completion
        m.submodules.host_status = status = InterruptStatus(
            width=1 if completion is None else 2, levels=0 if completion is None else 0b10
        )
        m.d.comb += [
            r.ID.r_data.magic.eq(ID_MAGIC),
            r.ID.r_data.version.eq(ID_VERSION),
            status.set[0].eq(self._registers.HOST_INTERRUPT.w_stb),
            status.clear.eq(r.HOST_ISR.w_stb & r.HOST_ISR.w_data.firmware),
            status.mask.eq(r.HOST_IMR.value.mask),
            r.HOST_ISR.r_data.firmware.eq(status.status[0]),
            r.HOST_VECTOR.r_data.vector.eq(self._registers.HOST_INTERRUPT.value.vector),
            r.DOORBELLS_REFUSED.r_data.writes.eq(self._doorbell.refusals),
            self.interrupt.eq(status.event),
        ]
        if completion is not None:
            m.d.comb += [
                status.set[1].eq(completion.event),
                r.HOST_ISR.r_data.completion.eq(status.status[1]),
            ]

    def _watch(self, m: Module, name: str, value: Value) -> None:
        assert name in WATCHED
        signal = Signal(len(value), name=name)
        m.d.comb += signal.eq(value)
