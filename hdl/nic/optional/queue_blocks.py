"""The descriptor queues of the three DMA engines, joined: between an engine and its registers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ...config import NicConfig
from ...register_bank import Name, RegisterBank
from ...registers import load
from ..block import Card, EngineFront, Joined, NicBlock
from ..dma.host_dma import HOST_DMA_COMMAND
from ..dma.receive_engine import RECEIVE_COMMAND
from ..dma.send_engine import SEND_COMMAND
from ..owners.transfer_split import QUEUED_COMMAND, QUEUED_RESULT, TransferSplit
from ..processor.pair import PairedDmaQueue
from ..queues.dma_queue import DmaQueue
from ..queues.lane_queue import LaneDmaQueue
from ..queues.stamped_queue import StampedDmaQueue

__all__ = [
    "HostDmaOrder",
    "HostDmaQueue",
    "HostDmaStamper",
    "ReceiveQueue",
    "SendOrder",
    "SendQueue",
    "SendStamper",
]

RDL = Path(__file__).with_suffix(".rdl")
_RECEIVED = data.StructLayout({"bytes": 16, "vl": 4})


class HostDmaQueue(NicBlock):
    """The queue before the host DMA engine, `queue`; each of two processors has one.

    A transfer's result is its error flag, in a card with regions its status too. There ACCESS_CONTROL puts its
    transfers into the same queue, and `split` tells them apart.
    """

    name = "host_dma_queue"
    registers = load(RDL, name)
    before = "host_dma"
    queue: DmaQueue | PairedDmaQueue | StampedDmaQueue

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `host_dma_queue_entries`."""
        return config.host_dma_queue_entries > 0

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        super().__init__(config, skippable=skippable)
        layouts = (QUEUED_COMMAND, QUEUED_RESULT) if config.regions else (HOST_DMA_COMMAND, 1)
        size = {"entries": config.host_dma_queue_entries, "stamp_bits": config.rtc_bits}
        if config.stamps_host_dma:
            self.queue = StampedDmaQueue(*layouts, flows=config.stamp_flows, **size)
        else:
            kind = DmaQueue if config.processors == 1 else PairedDmaQueue
            self.queue = kind(
                *layouts, order=config.host_dma_queue_order, registered=config.pipelined, **size
            )
        self.split = TransferSplit() if config.regions else None

    def front(self, m: Module, card: Card) -> EngineFront:
        """The host DMA engine's."""
        r, queue = card.registers, self.queue
        engine, checked = card.host_engine.own, card.host_engine.checked
        m.submodules.host_dma_queue = queue
        m.d.comb += queue.submit.payload.more.eq(r.HOST_DMA_TAG.value.more)
        if isinstance(queue, PairedDmaQueue):
            m.d.comb += queue.who.eq(r.who)
        finished = r.HOST_DMA_FINISHED.r_data
        split = self.split
        if checked is None or split is None:
            m.d.comb += [
                queue.result.eq(engine.error),
                finished.error.eq(queue.finished_valid & queue.finished.result),
            ]
            return _join(m, r, "HOST_DMA", queue, engine.start, _told(m, self.config, engine.done))
        m.submodules.transfer_split = split
        wiring.connect(m, split.plain, engine.start)
        wiring.connect(m, split.checked, checked.start)
        m.d.comb += [
            split.plain_done.eq(engine.done),
            split.plain_error.eq(engine.error),
            split.checked_done.eq(checked.done),
            split.checked_status.eq(checked.status),
            queue.result.eq(split.result),
            finished.error.eq(queue.finished_valid & queue.finished.result.error),
        ]
        front = _join(m, r, "HOST_DMA", queue, split.start, split.done)
        # Two registers start a transfer: `own` is the command that the firmware's own one writes.
        own, starts = Signal(HOST_DMA_COMMAND), Signal(name="host_dma_starts")
        command = queue.submit.payload.command
        m.d.comb += [
            *(command[name].eq(own[name]) for name, _ in HOST_DMA_COMMAND),
            queue.submit.valid.eq(starts | r.ACCESS_CONTROL.w_stb),
            command.checked.eq(r.ACCESS_CONTROL.w_stb),
            r.ACCESS_CONTROL.r_data.busy.eq(queue.busy),
        ]
        with m.If(r.ACCESS_CONTROL.w_stb):
            m.d.comb += [
                command.host_address.eq(r.ACCESS_ADDRESS.value.address),
                command.sram_address.eq(r.ACCESS_SRAM.value.address),
                command.bytes.eq(r.ACCESS_CONTROL.w_data.bytes),
                command.to_host.eq(r.ACCESS_CONTROL.w_data.to_host),
            ]
        m.d.comb += [command[name].eq(r.ACCESS_TAG.value[name]) for name in ("channel", "region", "key")]
        return replace(front, valid=starts, command=own)


class SendQueue(NicBlock):
    """The queue before the send engine, `queue`. A packet has no result.

    With packet buffers of VLs it is one a VL, whose packets start when there is room in the buffer.
    """

    name = "send_queue"
    registers = load(RDL, name)
    before = "send"
    queue: DmaQueue | LaneDmaQueue | StampedDmaQueue

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `send_queue_entries`."""
        return config.send_queue_entries > 0

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        super().__init__(config, skippable=skippable)
        size = {"entries": config.send_queue_entries, "stamp_bits": config.rtc_bits}
        if config.vl_packets:
            self.queue = LaneDmaQueue(
                vls=config.link.vls, entries=config.send_queue_entries, registered=config.pipelined
            )
        elif config.stamps_send:
            self.queue = StampedDmaQueue(SEND_COMMAND, 0, flows=config.stamp_flows, **size)
        else:
            self.queue = DmaQueue(
                SEND_COMMAND, 0, order=config.send_queue_order, registered=config.pipelined, **size
            )

    def front(self, m: Module, card: Card) -> EngineFront:
        """The send engine's."""
        m.submodules.send_queue = queue = self.queue
        engine = card.send
        done = engine.done if self.config.vl_packets else _told(m, self.config, engine.done)
        return _join(m, card.registers, "SEND", queue, engine.start, done)


class ReceiveQueue(NicBlock):
    """The queue of buffers before the receive engine, `queue`.

    A buffer's result is the packet in it: payload bytes and virtual lane.
    """

    name = "receive_queue"
    registers = load(RDL, name)
    before = "receive"

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `receive_queue_entries`."""
        return config.receive_queue_entries > 0

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        super().__init__(config, skippable=skippable)
        self.queue = DmaQueue(
            RECEIVE_COMMAND, _RECEIVED, entries=config.receive_queue_entries, registered=config.pipelined
        )

    def front(self, m: Module, card: Card) -> EngineFront:
        """The receive engine's."""
        m.submodules.receive_queue = queue = self.queue
        engine, finished = card.receive, card.registers.RECEIVE_FINISHED.r_data
        m.d.comb += [
            queue.result.bytes.eq(engine.bytes),
            queue.result.vl.eq(engine.vl),
            finished.bytes.eq(Mux(queue.finished_valid, queue.finished.result.bytes, 0)),
            finished.vl.eq(Mux(queue.finished_valid, queue.finished.result.vl, 0)),
        ]
        return _join(m, card.registers, "RECEIVE", queue, engine.start, _told(m, self.config, engine.done))


class _Order(NicBlock):
    """A queue in order of time stamps: the stamp of the next descriptor, and the protected entries."""

    engine: ClassVar[str]
    queue: ClassVar[type[HostDmaQueue] | type[SendQueue]]

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With the queue, and its order "timestamp"."""
        order = getattr(config, f"{cls.engine.lower()}_queue_order")
        return cls.queue.wanted(config) and order == "timestamp"

    def connect(self, m: Module, card: Card) -> Joined:
        """To the queue."""
        r, queue = card.registers, card.block(self.queue).queue
        stamp, protect = (getattr(r, f"{self.engine}_{name}").value for name in ("STAMP", "PROTECT"))
        protects = [(queue.protect, protect)]
        if isinstance(queue, PairedDmaQueue):
            protects = list(zip(queue.protect, r.each[f"{self.engine}_PROTECT"], strict=True))
        m.d.comb += [
            queue.submit.payload.stamp.eq(stamp.ticks),
            *(port.eq(_at_most(value.entries, queue.entries)) for port, value in protects),
        ]
        return Joined()


class HostDmaOrder(_Order):
    """Time stamps of the host DMA engine's queue."""

    name, engine, queue = "host_dma_order", "HOST_DMA", HostDmaQueue
    registers = load(RDL, name)


class SendOrder(_Order):
    """Time stamps of the send engine's queue."""

    name, engine, queue = "send_order", "SEND", SendQueue
    registers = load(RDL, name)
    common = frozenset({"SEND_PROTECT"})


class _Stamper(NicBlock):
    """The card's own stamps (VirtualClock): the flow of the next descriptor, and Vticks."""

    engine: ClassVar[str]
    queue: ClassVar[type[HostDmaQueue] | type[SendQueue]]

    def connect(self, m: Module, card: Card) -> Joined:
        """To the queue. Commands of a flow that is not there do not come here (`names.py`)."""
        r, queue = card.registers, card.block(self.queue).queue
        flow, vtick = getattr(r, f"{self.engine}_FLOW").value, getattr(r, f"{self.engine}_VTICK")
        m.d.comb += [
            queue.rtc.eq(card.rtc.ticks),
            queue.stamped.eq(flow.stamped),
            queue.flow.eq(flow.flow),
            queue.vtick_flow.eq(flow.flow),
            queue.vtick.eq(vtick.w_data.ticks),
            queue.writes_vtick.eq(vtick.w_stb),
        ]
        # A longer Vtick than the clock holds is the longest.
        with m.If(vtick.w_data.ticks >> queue.stamp_bits != 0):
            m.d.comb += queue.vtick.eq(-1)
        return Joined(rests=[queue.rests])


def _stamped(register: str) -> Name:
    return Name(field=f"{register}.flow", things="stamp_flows", only=(f"{register}.stamped", (1,)))


class HostDmaStamper(_Stamper):
    """Stamps of host DMAs, and of checked ones."""

    name, engine, queue = "host_dma_stamper", "HOST_DMA", HostDmaQueue
    registers = load(RDL, name)
    names = {
        "HOST_DMA_CONTROL": (_stamped("HOST_DMA_FLOW"),),
        "ACCESS_CONTROL": (_stamped("HOST_DMA_FLOW"),),
        "HOST_DMA_VTICK": (Name(field="HOST_DMA_FLOW.flow", things="stamp_flows"),),
    }

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `stamp_flows`, and a queue in order of time stamps."""
        return config.stamps_host_dma


class SendStamper(_Stamper):
    """Stamps of packets."""

    name, engine, queue = "send_stamper", "SEND", SendQueue
    registers = load(RDL, name)
    names = {
        "SEND_CONTROL": (_stamped("SEND_FLOW"),),
        "SEND_VTICK": (Name(field="SEND_FLOW.flow", things="stamp_flows"),),
    }

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `stamp_flows`, and a queue in order of time stamps."""
        return config.stamps_send


def _told(m: Module, config: NicConfig, done: Signal) -> Value:
    """`done` of an engine as its queue sees it.

    In a card that is `pipelined` it is a cycle later. The result still stands then, as no two transfers of an engine
    end in cycles that follow each other.
    """
    if not config.pipelined:
        return done
    told = Signal(name="done_told")
    m.d.sync += told.eq(done)
    return told


def _at_most(value: Value, most: int) -> Value:
    return Mux(value > most, most, value)


def _join(
    m: Module, r: RegisterBank, name: str, queue: Any, start: wiring.PureInterface, done: Value
) -> EngineFront:
    """Joins a queue to its registers, whose names begin with `name`, and to its engine's `start` and `done`."""
    tag, status = getattr(r, f"{name}_TAG"), getattr(r, f"{name}_QUEUE").r_data
    finished = getattr(r, f"{name}_FINISHED")
    wiring.connect(m, queue.start, start)
    m.d.comb += [
        queue.done.eq(done),
        queue.submit.payload.tag.eq(tag.value.tag),
        queue.submit.payload.notify.eq(tag.value.notify),
        status.entries.eq(_at_most(queue.level, 255) if len(queue.level) > 8 else queue.level),
        status.room.eq(queue.room),
        status.ended.eq(queue.ended_count),
        status.refused.eq(queue.refused),
        finished.r_data.tag.eq(Mux(queue.finished_valid, queue.finished.tag, 0)),
        finished.r_data.valid.eq(queue.finished_valid),
        queue.take.eq(finished.r_stb),
    ]
    return EngineFront(
        valid=queue.submit.valid, command=queue.submit.payload.command, busy=queue.busy, ended=queue.ended
    )
