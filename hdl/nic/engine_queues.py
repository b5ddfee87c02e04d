"""The queues of the three DMA engines, joined to their registers: where a card's configuration asks for them."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Value
from amaranth.lib import data, wiring

from ..config import NicConfig
from .dma_gate import DmaGate
from .dma_queue import DmaQueue
from .host_dma import HOST_DMA_COMMAND, HostDma
from .receive_engine import RECEIVE_COMMAND, ReceiveEngine
from .register_bank import RegisterBank
from .send_engine import SEND_COMMAND, SendEngine

__all__ = ["EngineFront", "host_dma_front", "receive_front", "send_front"]


@dataclass(frozen=True, kw_only=True)
class EngineFront:
    """What the registers see of an engine, with or without a queue: `valid` and `command` start a transfer; `busy`:
    one is under way or waits; `ended`: a transfer, or a list of them, ends in this cycle."""

    valid: Value
    command: data.View
    busy: Value
    ended: Value


def host_dma_front(m: Module, config: NicConfig, r: RegisterBank, engine: HostDma | DmaGate) -> EngineFront:
    """The host DMA engine's. A transfer's result is its error flag."""
    if not config.host_dma_queue_entries:
        return EngineFront(
            valid=engine.start.valid, command=engine.start.payload, busy=engine.busy, ended=engine.done
        )
    m.submodules.host_dma_queue = queue = DmaQueue(
        HOST_DMA_COMMAND,
        1,
        entries=config.host_dma_queue_entries,
        order=config.host_dma_queue_order,
        stamp_bits=config.rtc_bits,
    )
    m.d.comb += [
        queue.result.eq(engine.error),
        queue.submit.payload.more.eq(r.HOST_DMA_TAG.value.more),
        r.HOST_DMA_FINISHED.r_data.error.eq(queue.finished_valid & queue.finished.result),
    ]
    if config.host_dma_queue_order == "timestamp":
        m.d.comb += [
            queue.submit.payload.stamp.eq(r.HOST_DMA_STAMP.value.ticks),
            queue.protect.eq(_at_most(r.HOST_DMA_PROTECT.value.entries, queue.entries)),
        ]
    return _join(m, r, "HOST_DMA", queue, engine, engine.done)


def send_front(m: Module, config: NicConfig, r: RegisterBank, engine: SendEngine) -> EngineFront:
    """The send engine's. A packet has no result."""
    if not config.send_queue_entries:
        return EngineFront(
            valid=engine.start.valid, command=engine.start.payload, busy=engine.busy, ended=engine.done
        )
    m.submodules.send_queue = queue = DmaQueue(
        SEND_COMMAND,
        0,
        entries=config.send_queue_entries,
        order=config.send_queue_order,
        stamp_bits=config.rtc_bits,
    )
    if config.send_queue_order == "timestamp":
        m.d.comb += [
            queue.submit.payload.stamp.eq(r.SEND_STAMP.value.ticks),
            queue.protect.eq(_at_most(r.SEND_PROTECT.value.entries, queue.entries)),
        ]
    return _join(m, r, "SEND", queue, engine, engine.done)


def receive_front(m: Module, config: NicConfig, r: RegisterBank, engine: ReceiveEngine) -> EngineFront:
    """The receive engine's. A buffer's result is the packet in it: payload bytes and virtual lane."""
    if not config.receive_queue_entries:
        return EngineFront(
            valid=engine.start.valid, command=engine.start.payload, busy=engine.armed, ended=engine.done
        )
    result = data.StructLayout({"bytes": 16, "vl": 4})
    m.submodules.receive_queue = queue = DmaQueue(
        RECEIVE_COMMAND, result, entries=config.receive_queue_entries
    )
    finished = r.RECEIVE_FINISHED.r_data
    m.d.comb += [
        queue.result.bytes.eq(engine.bytes),
        queue.result.vl.eq(engine.vl),
        finished.bytes.eq(Mux(queue.finished_valid, queue.finished.result.bytes, 0)),
        finished.vl.eq(Mux(queue.finished_valid, queue.finished.result.vl, 0)),
    ]
    return _join(m, r, "RECEIVE", queue, engine, engine.done)


def _at_most(value: Value, most: int) -> Value:
    return Mux(value > most, most, value)


def _join(
    m: Module, r: RegisterBank, name: str, queue: DmaQueue, engine: wiring.Component, done: Value
) -> EngineFront:
    """A queue between its registers, whose names begin with `name`, and its engine."""
    tag, status = getattr(r, f"{name}_TAG"), getattr(r, f"{name}_QUEUE").r_data
    finished = getattr(r, f"{name}_FINISHED")
    wiring.connect(m, queue.start, engine.start)
    m.d.comb += [
        queue.done.eq(done),
        queue.submit.payload.tag.eq(tag.value.tag),
        queue.submit.payload.notify.eq(tag.value.notify),
        status.entries.eq(queue.level),
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
