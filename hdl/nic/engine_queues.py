"""The queues of the three DMA engines, joined to their registers: where a card's configuration asks for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ..config import NicConfig
from ..register_bank import RegisterBank
from .dma.dma_gate import DmaGate
from .dma.host_dma import HOST_DMA_COMMAND, HostDma
from .dma.receive_engine import RECEIVE_COMMAND, ReceiveEngine
from .dma.send_engine import SEND_COMMAND, SendEngine
from .link_port.packet_interface import PacketInterface
from .link_port.vl_port import VlPort
from .link_port.vl_registers import join_vl_port
from .owners.checked_dma import CheckedDma
from .owners.transfer_split import QUEUED_COMMAND, QUEUED_RESULT, TransferSplit
from .processor.pair import PairedDmaQueue
from .queues.dma_queue import DmaQueue
from .queues.lane_queue import LaneDmaQueue
from .queues.stamped_queue import StampedDmaQueue

__all__ = ["EngineFront", "HostEngine", "host_dma_front", "receive_front", "send_front"]


@dataclass(frozen=True, kw_only=True)
class EngineFront:
    """What the registers see of an engine, with or without a queue: `valid` and `command` start a transfer; `busy`:
    one is under way or waits; `ended`: a transfer, or a list of them, ends in this cycle (a bit a processor, where
    each has a queue)."""

    valid: Value
    command: data.View
    busy: Value
    ended: Value


@dataclass(frozen=True)
class HostEngine:
    """The host DMA engine as the firmware has it: `own`, for its own transfers; `checked`, for those that are checked,
    if the card has regions."""

    own: HostDma | DmaGate
    checked: CheckedDma | None = None


def host_dma_front(
    m: Module, config: NicConfig, r: RegisterBank, host_engine: HostEngine, rtc_ticks: Value
) -> EngineFront:
    """The host DMA engine's; what ACCESS_CONTROL starts stands in the same queue. A transfer's result is its error
    flag, in a card with regions its status too."""
    engine, checked = host_engine.own, host_engine.checked
    if not config.host_dma_queue_entries:
        if checked is not None:
            _join_access(m, r, checked.start.payload.access, checked.start.payload.sram_address)
            m.d.comb += [
                checked.start.valid.eq(r.ACCESS_CONTROL.w_stb),
                r.ACCESS_CONTROL.r_data.busy.eq(checked.busy),
            ]
        return EngineFront(
            valid=engine.start.valid, command=engine.start.payload, busy=engine.busy, ended=engine.done
        )
    layouts = (HOST_DMA_COMMAND, 1) if checked is None else (QUEUED_COMMAND, QUEUED_RESULT)
    size = {"entries": config.host_dma_queue_entries, "stamp_bits": config.rtc_bits}
    queue: DmaQueue | PairedDmaQueue | StampedDmaQueue
    if config.stamps_host_dma:
        queue = StampedDmaQueue(*layouts, flows=config.stamp_flows, **size)
        _join_stamps(m, r, "HOST_DMA", queue, rtc_ticks)
    else:
        kind = DmaQueue if config.processors == 1 else PairedDmaQueue
        queue = kind(*layouts, order=config.host_dma_queue_order, registered=config.pipelined, **size)
    m.submodules.host_dma_queue = queue
    m.d.comb += queue.submit.payload.more.eq(r.HOST_DMA_TAG.value.more)
    if isinstance(queue, PairedDmaQueue):
        m.d.comb += queue.who.eq(r.who)
    if config.host_dma_queue_order == "timestamp":
        protects = [(queue.protect, r.HOST_DMA_PROTECT.value)]
        if isinstance(queue, PairedDmaQueue):
            protects = list(zip(queue.protect, r.each["HOST_DMA_PROTECT"], strict=True))
        m.d.comb += [
            queue.submit.payload.stamp.eq(r.HOST_DMA_STAMP.value.ticks),
            *(port.eq(_at_most(value.entries, queue.entries)) for port, value in protects),
        ]
    finished = r.HOST_DMA_FINISHED.r_data
    if checked is None:
        m.d.comb += [
            queue.result.eq(engine.error),
            finished.error.eq(queue.finished_valid & queue.finished.result),
        ]
        return _join(m, r, "HOST_DMA", queue, engine.start, _told(m, config, engine.done))
    m.submodules.transfer_split = split = TransferSplit()
    wiring.connect(m, split.plain, engine.start)
    wiring.connect(m, split.checked, checked.start)
    m.d.comb += [
        split.plain_done.eq(engine.done),
        split.plain_error.eq(engine.error),
        split.checked_done.eq(checked.done),
        split.checked_status.eq(checked.status),
        queue.result.eq(split.result),
        finished.error.eq(queue.finished_valid & queue.finished.result.error),
        finished.status.eq(Mux(queue.finished_valid, queue.finished.result.status, 0)),
    ]
    front = _join(m, r, "HOST_DMA", queue, split.start, split.done)
    # Two registers start a transfer: `own` is what the firmware's own one writes.
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


def send_front(
    m: Module,
    config: NicConfig,
    r: RegisterBank,
    engine: SendEngine,
    packets: PacketInterface,
    rtc_ticks: Value,
) -> EngineFront:
    """The send engine's. A packet has no result. With packet buffers each VL has a queue, whose packets start when
    there is room in `packets`."""
    if isinstance(packets, VlPort):
        m.submodules.send_queue = lanes = LaneDmaQueue(vls=config.link.vls, entries=config.send_queue_entries)
        join_vl_port(m, r, lanes, packets)
        return _join(m, r, "SEND", lanes, engine.start, engine.done)
    if not config.send_queue_entries:
        return EngineFront(
            valid=engine.start.valid, command=engine.start.payload, busy=engine.busy, ended=engine.done
        )
    size = {"entries": config.send_queue_entries, "stamp_bits": config.rtc_bits}
    queue: DmaQueue | StampedDmaQueue
    if config.stamps_send:
        queue = StampedDmaQueue(SEND_COMMAND, 0, flows=config.stamp_flows, **size)
        _join_stamps(m, r, "SEND", queue, rtc_ticks)
    else:
        queue = DmaQueue(SEND_COMMAND, 0, order=config.send_queue_order, registered=config.pipelined, **size)
    m.submodules.send_queue = queue
    if config.send_queue_order == "timestamp":
        m.d.comb += [
            queue.submit.payload.stamp.eq(r.SEND_STAMP.value.ticks),
            queue.protect.eq(_at_most(r.SEND_PROTECT.value.entries, queue.entries)),
        ]
    return _join(m, r, "SEND", queue, engine.start, _told(m, config, engine.done))


def receive_front(m: Module, config: NicConfig, r: RegisterBank, engine: ReceiveEngine) -> EngineFront:
    """The receive engine's. A buffer's result is the packet in it: payload bytes and virtual lane."""
    if not config.receive_queue_entries:
        return EngineFront(
            valid=engine.start.valid, command=engine.start.payload, busy=engine.armed, ended=engine.done
        )
    result = data.StructLayout({"bytes": 16, "vl": 4})
    m.submodules.receive_queue = queue = DmaQueue(
        RECEIVE_COMMAND, result, entries=config.receive_queue_entries, registered=config.pipelined
    )
    finished = r.RECEIVE_FINISHED.r_data
    m.d.comb += [
        queue.result.bytes.eq(engine.bytes),
        queue.result.vl.eq(engine.vl),
        finished.bytes.eq(Mux(queue.finished_valid, queue.finished.result.bytes, 0)),
        finished.vl.eq(Mux(queue.finished_valid, queue.finished.result.vl, 0)),
    ]
    return _join(m, r, "RECEIVE", queue, engine.start, _told(m, config, engine.done))


def _join_stamps(m: Module, r: RegisterBank, name: str, queue: StampedDmaQueue, rtc_ticks: Value) -> None:
    """What a queue stamps, and by which Vticks. Commands of a flow that is not there do not come here (`names.py`)."""
    flow, vtick = getattr(r, f"{name}_FLOW").value, getattr(r, f"{name}_VTICK")
    m.d.comb += [
        queue.rtc.eq(rtc_ticks),
        queue.stamped.eq(flow.stamped),
        queue.flow.eq(flow.flow),
        queue.vtick_flow.eq(flow.flow),
        queue.vtick.eq(vtick.w_data.ticks),
        queue.writes_vtick.eq(vtick.w_stb),
    ]
    # A longer Vtick than the clock holds is the longest.
    with m.If(vtick.w_data.ticks >> queue.stamp_bits != 0):
        m.d.comb += queue.vtick.eq(-1)


def _join_access(m: Module, r: RegisterBank, access: data.View, sram_address: Value) -> None:
    """What ACCESS_CONTROL asks for, as it is written."""
    m.d.comb += [
        *(access[name].eq(r.ACCESS_TAG.value[name]) for name in ("channel", "region", "key")),
        access.address.eq(r.ACCESS_ADDRESS.value.address),
        access.bytes.eq(r.ACCESS_CONTROL.w_data.bytes),
        access.write.eq(r.ACCESS_CONTROL.w_data.to_host),
        sram_address.eq(r.ACCESS_SRAM.value.address),
    ]


def _told(m: Module, config: NicConfig, done: Signal) -> Value:
    """`done` of an engine as its queue sees it: of a card that is `pipelined`, a cycle later. The result still stands
    then, as no two transfers of an engine end in cycles that follow each other."""
    if not config.pipelined:
        return done
    told = Signal(name="done_told")
    m.d.sync += told.eq(done)
    return told


def _at_most(value: Value, most: int) -> Value:
    return Mux(value > most, most, value)


def _join(
    m: Module,
    r: RegisterBank,
    name: str,
    queue: DmaQueue | PairedDmaQueue | StampedDmaQueue,
    start: wiring.PureInterface,
    done: Value,
) -> EngineFront:
    """A queue between its registers, whose names begin with `name`, and its engine's `start` and `done`."""
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
