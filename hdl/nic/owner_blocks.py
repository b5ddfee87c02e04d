"""The blocks of cards with owners, joined to registers, bus and engine: completion, protection, translation."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from ..config import NicConfig
from ..register_bank import RegisterBank
from .dma.axi_join import AxiJoin
from .dma.bus_fence import watch
from .dma.dma_gate import DmaGate
from .dma.host_dma import HostDma
from .doorbell import Doorbell
from .engine_queues import HostEngine
from .host_port import HostPort
from .owners.checked_dma import CheckedDma
from .owners.completion import Completion
from .owners.protection import Protection
from .owners.translation import Translation

__all__ = ["join_completion", "join_doorbell_owners", "join_managers", "join_protection"]


def join_doorbell_owners(
    m: Module, config: NicConfig, r: RegisterBank, doorbell: Doorbell, host: HostPort
) -> dict[str, Value]:
    """Whose channels are, the receive doorbells' queue, and shadow windows. Returns event sources."""
    if hasattr(doorbell, "assign"):
        row = r.DOORBELL_CHANNEL.w_data
        m.d.comb += [
            doorbell.assign.channel.eq(row.channel),
            doorbell.assign.owner.eq(row.owner),
            doorbell.assign.level.eq(row.rank),
            doorbell.assign.open.eq(row.open),
            doorbell.assigns.eq(r.DOORBELL_CHANNEL.w_stb),
        ]
    if config.shadow_windows:
        m.d.comb += [
            host.shadow.owner.eq(r.SHADOW_WINDOW.w_data.owner),
            host.shadow.bytes.eq(r.SHADOW_WINDOW.w_data.bytes),
            host.shadow.address.eq(r.SHADOW_ADDRESS.value.address),
            host.shadows.eq(r.SHADOW_WINDOW.w_stb),
        ]
    if not doorbell.separate:
        return {}
    shown, valid, head = r.DOORBELL_RECEIVE_QUEUE.r_data, doorbell.receive_head_valid, doorbell.receive_head
    m.d.comb += [
        shown.channel.eq(Mux(valid, head.channel, 0)),
        shown.value.eq(Mux(valid, head.word, 0)),
        shown.valid.eq(valid),
        doorbell.receive_pop.eq(r.DOORBELL_RECEIVE_QUEUE.r_stb),
    ]
    return {"receive_doorbell": doorbell.receive_pending}


def join_completion(
    m: Module,
    config: NicConfig,
    r: RegisterBank,
    host_r: RegisterBank,
    host: HostPort,
    dma: HostDma,
    *,
    skippable: bool,
) -> tuple[Completion, dict[str, Value]]:
    """Completion queues. Returns the block and event sources."""
    m.submodules.completion = block = Completion(config, skippable=skippable)
    watch(m, block.watched, dma.axi)
    connect(m, host.consume, block.consume)
    m.d.comb += host.consume_refused.eq(block.refused)

    setup = r.COMPLETION_SETUP.w_data
    fields = {name: setup[name] for name in ("queue", "entries_log2", "batch", "stall", "owner")}
    fields |= {"base": r.COMPLETION_RING.value.address, "lag_cycles": r.COMPLETION_LAG.value.cycles}
    m.d.comb += r.COMPLETION_SETUP.r_data.busy.eq(
        _held(m, "setup", r, r.COMPLETION_SETUP, block.setup, fields)
    )

    post = r.COMPLETION_POST.w_data
    fields = {name: post[name] for name in ("bytes", "status", "queue", "write_back", "entry")}
    fields |= {
        "status_address": r.COMPLETION_STATUS.value.address,
        "work_queue": r.COMPLETION_OF.value.work_queue,
        "descriptor": r.COMPLETION_OF.value.descriptor,
    }
    m.d.comb += [
        r.COMPLETION_POST.r_data.busy.eq(_held(m, "post", r, r.COMPLETION_POST, block.post, fields)),
        r.COMPLETION_FAILED.r_data.queue.eq(block.failed_queue),
        r.COMPLETION_BROKEN.r_data.queues.eq(block.broken),
        r.COMPLETION_BROKEN_HIGH.r_data.queues.eq(block.broken >> 32),
        r.COMPLETION_DROPPED.r_data.entries.eq(block.dropped),
        host_r.HOST_COMPLETION.r_data.queue.eq(Mux(block.event, block.event_queue, 0)),
        host_r.HOST_COMPLETION.r_data.valid.eq(block.event),
        block.acknowledge.eq(host_r.HOST_COMPLETION.r_stb),
    ]
    return block, {"completion": block.failed}


def join_protection(
    m: Module, config: NicConfig, r: RegisterBank, dma: HostDma
) -> tuple[HostEngine, Translation, dict[str, Value]]:
    """Regions, translation and checked transfers. Returns the engine as the firmware sees it, the translation,
    and event sources. What starts a checked transfer is joined by `engine_queues.host_dma_front`."""
    m.submodules.protection = protection = Protection(config)
    m.submodules.translation = translation = Translation(config)
    m.submodules.checked_dma = checked = CheckedDma()
    m.submodules.dma_gate = gate = DmaGate()
    connect(m, protection.lookup, translation.lookup)
    connect(m, translation.answer, protection.answer)
    connect(m, checked.access, protection.access)
    connect(m, checked.command, gate.checked)
    connect(m, gate.engine, dma.start)
    # What is checked while the firmware's own transfer is under way (from a queue) ends after that, also if it is
    # forbidden. Between its own pieces the engine is idle.
    segment, free = protection.segment, ~dma.busy
    m.d.comb += [
        checked.segment.payload.eq(segment.payload),
        checked.segment.valid.eq(segment.valid & free),
        segment.ready.eq(checked.segment.ready & free),
        gate.checked_busy.eq(checked.busy),
        gate.engine_busy.eq(dma.busy),
        gate.engine_done.eq(dma.done),
        gate.engine_error.eq(dma.error),
        checked.dma_done.eq(gate.checked_done),
        checked.dma_error.eq(dma.error),
    ]
    channel, region = r.DOORBELL_CHANNEL.w_data, r.REGION.w_data
    m.d.comb += [
        protection.assign.channel.eq(channel.channel),
        protection.assign.owner.eq(channel.owner),
        protection.assign.open.eq(channel.open),
        protection.assigns.eq(r.DOORBELL_CHANNEL.w_stb),
        protection.regions.eq(r.REGION.w_stb),
        protection.region.start.eq(r.REGION_START.value.address),
        protection.region.bytes.eq(r.REGION_BYTES.value.bytes),
        protection.region.table.eq(r.REGION_TABLE.value.address),
    ]
    m.d.comb += [
        protection.region[name].eq(region[name]) for name in ("region", "key", "owner", "writable", "valid")
    ]
    forget = r.TRANSLATION_INVALIDATE.w_data
    fields: dict[str, Value] = {name: forget[name] for name in ("page", "region", "scope")}
    m.d.comb += [
        r.TRANSLATION_INVALIDATE.r_data.busy.eq(
            _held(m, "invalidate", r, r.TRANSLATION_INVALIDATE, translation.invalidate, fields)
        ),
        r.TRANSLATION_HITS.r_data.pages.eq(translation.hits),
        r.TRANSLATION_MISSES.r_data.pages.eq(translation.misses),
        r.VIOLATIONS.r_data.accesses.eq(protection.violations),
        r.ACCESS_STATUS.r_data.status.eq(checked.status),
    ]
    return HostEngine(gate, checked), translation, {"access": checked.done, "violation": protection.violation}


def join_managers(m: Module, port: Any, managers: list[Any]) -> None:
    """Put several managers onto the card's port `port` (an `Axi4Signature` interface). Each has one ID on it, its
    place in the list: none needs its answers out of order."""
    m.submodules.bus = join = AxiJoin(managers=len(managers), data_bits=len(port.wdata), id_bits=0)
    for i, manager in enumerate(managers):
        inside = getattr(join, f"port_{i}")
        for name, member in inside.signature.members.items():
            # Seen from the join, what the manager says comes in.
            said = member.flow is wiring.In
            target, source = (inside, manager) if said else (manager, inside)
            m.d.comb += getattr(target, name).eq(getattr(source, name))
    for name, member in join.axi.signature.members.items():
        target, source = (port, join.axi) if member.flow is wiring.Out else (join.axi, port)
        m.d.comb += getattr(target, name).eq(getattr(source, name))


def _held(
    m: Module, name: str, r: RegisterBank, register: Any, stream: Any, fields: dict[str, Value]
) -> Value:
    """A write of `register` is given to `stream`, with `fields` as they are then, and held until it is taken: as long
    as the value returned is up. A write before that does nothing. Two processors hold one each, and take turns."""
    if not hasattr(r, "who"):
        held = Signal(name=f"{name}_held")
        kept = Signal(stream.payload.shape(), name=f"{name}_kept")
        m.d.comb += [stream.valid.eq(held), stream.payload.eq(kept)]
        with m.If(stream.ready):
            m.d.sync += held.eq(0)
        with m.If(register.w_stb & ~held):
            m.d.sync += held.eq(1)
            m.d.sync += [kept[field].eq(value) for field, value in fields.items()]
        return held
    both = [Signal(name=f"{name}_held_{i}") for i in range(2)]
    kepts = [Signal(stream.payload.shape(), name=f"{name}_kept_{i}") for i in range(2)]
    turn = Signal(name=f"{name}_turn")
    m.d.comb += [
        stream.valid.eq(Mux(turn, both[1], both[0])),
        stream.payload.eq(Mux(turn, kepts[1].as_value(), kepts[0].as_value())),
    ]
    # The turn stays with one that is on offer.
    with m.If(~stream.valid | stream.ready):
        m.d.sync += turn.eq(~turn)
    for i in range(2):
        with m.If(stream.ready & (turn == i)):
            m.d.sync += both[i].eq(0)
        with m.If(register.w_stb & (r.who == i) & ~both[i]):
            m.d.sync += both[i].eq(1)
            m.d.sync += [kepts[i][field].eq(value) for field, value in fields.items()]
    return Mux(r.who, both[1], both[0])
