"""Memory regions, translation and checked transfers, joined: to registers, host DMA engine and bus."""

from __future__ import annotations

from pathlib import Path

from amaranth import Module, Mux, Value
from amaranth.lib import data
from amaranth.lib.wiring import connect

from ...config import NicConfig
from ...register_bank import Name, RegisterBank
from ...registers import load
from ..block import Card, HostEngine, Joined, NicBlock, hold
from ..dma.dma_gate import DmaGate
from ..owners.checked_dma import CheckedDma
from ..owners.protection import Protection
from ..owners.translation import Translation
from .doorbell_blocks import OWNER
from .queue_blocks import HostDmaQueue

__all__ = ["ProtectionBlock", "QueuedAccess"]

RDL = Path(__file__).with_suffix(".rdl")


class ProtectionBlock(NicBlock):
    """Regions whose tags and owners the card checks.

    Its components are `protection`, `translation`, `checked_dma`, and `gate` before the host DMA engine. With a queue
    before the engine the queue's block joins ACCESS_CONTROL. An access of a region that is not there (ACCESS_TAG) ends
    with a status of its own (`CompletionStatus.NO_REGION`), and is not refused.
    """

    name = "protection"
    registers = load(RDL, name)
    names = {
        "REGION": (Name(field="region", things="regions"), OWNER),
        "TRANSLATION_INVALIDATE": (Name(field="region", things="regions", only=("scope", (0, 1))),),
    }

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `regions`."""
        return config.regions > 0

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        super().__init__(config, skippable=skippable)
        self.protection = Protection(config)
        self.translation = Translation(config)
        self.checked_dma = CheckedDma()
        self.gate = DmaGate()
        self.host_engine = HostEngine(self.gate, self.checked_dma)

    def connect(self, m: Module, card: Card) -> Joined:
        """To the registers, and before the host DMA engine."""
        r, dma = card.registers, card.host_dma
        protection, translation = self.protection, self.translation
        checked, gate = self.checked_dma, self.gate
        m.submodules.protection = protection
        m.submodules.translation = translation
        m.submodules.checked_dma = checked
        m.submodules.dma_gate = gate
        connect(m, protection.lookup, translation.lookup)
        connect(m, translation.answer, protection.answer)
        connect(m, checked.access, protection.access)
        connect(m, checked.command, gate.checked)
        connect(m, gate.engine, dma.start)
        # An access that is checked while the firmware's own transfer is under way (from a queue) ends after that, also
        # if it is forbidden. Between its own pieces the engine is idle.
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
            protection.region[name].eq(region[name])
            for name in ("region", "key", "owner", "writable", "valid")
        ]
        forget = r.TRANSLATION_INVALIDATE.w_data
        fields: dict[str, Value] = {name: forget[name] for name in ("page", "region", "scope")}
        m.d.comb += [
            r.TRANSLATION_INVALIDATE.r_data.busy.eq(
                hold(m, "invalidate", r, r.TRANSLATION_INVALIDATE, translation.invalidate, fields)
            ),
            r.TRANSLATION_HITS.r_data.pages.eq(translation.hits),
            r.TRANSLATION_MISSES.r_data.pages.eq(translation.misses),
            r.VIOLATIONS.r_data.accesses.eq(protection.violations),
            r.ACCESS_STATUS.r_data.status.eq(checked.status),
        ]
        if not self.config.host_dma_queue_entries:
            _join_access(m, r, checked.start.payload.access, checked.start.payload.sram_address)
            m.d.comb += [
                checked.start.valid.eq(r.ACCESS_CONTROL.w_stb),
                r.ACCESS_CONTROL.r_data.busy.eq(checked.busy),
            ]
        return Joined(
            events={"access": checked.done, "violation": protection.violation},
            managers=[translation.axi],
            rests=[translation.rests, ~checked.busy],
        )


class QueuedAccess(NicBlock):
    """The status of a checked transfer in HOST_DMA_FINISHED, where such transfers stand in the engine's queue."""

    name = "queued_access"
    registers = load(RDL, name)

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `regions` and a queue before the host DMA engine."""
        return config.regions > 0 and config.host_dma_queue_entries > 0

    def connect(self, m: Module, card: Card) -> Joined:
        """To the host DMA engine's queue."""
        queue = card.block(HostDmaQueue).queue
        shown = card.registers.HOST_DMA_FINISHED.r_data.status
        m.d.comb += shown.eq(Mux(queue.finished_valid, queue.finished.result.status, 0))
        return Joined()


def _join_access(m: Module, r: RegisterBank, access: data.View, sram_address: Value) -> None:
    """The access that ACCESS_CONTROL asks for, as it is written."""
    m.d.comb += [
        *(access[name].eq(r.ACCESS_TAG.value[name]) for name in ("channel", "region", "key")),
        access.address.eq(r.ACCESS_ADDRESS.value.address),
        access.bytes.eq(r.ACCESS_CONTROL.w_data.bytes),
        access.write.eq(r.ACCESS_CONTROL.w_data.to_host),
        sram_address.eq(r.ACCESS_SRAM.value.address),
    ]
