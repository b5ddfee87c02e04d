"""Completion queues, joined: to registers, the host's window and interrupts, and the host's bus."""

from __future__ import annotations

from pathlib import Path

from amaranth import Module, Mux
from amaranth.lib.wiring import connect

from ...config import NicConfig
from ...register_bank import Name
from ...registers import load
from ..block import Card, Joined, NicBlock, hold
from ..dma.bus_fence import watch
from ..owners.completion import Completion
from .doorbell_blocks import OWNER

__all__ = ["CompletionBlock"]

RDL = Path(__file__).with_suffix(".rdl")


class CompletionBlock(NicBlock):
    """Completion queues in host memory. Its component is `completion`.

    A COMPLETION_POST to a queue that is not there is counted as an entry lost (COMPLETION_DROPPED), not refused.
    """

    name = "completion"
    registers = load(RDL, name)
    host_registers = load(RDL, "completion_host")
    names = {"COMPLETION_SETUP": (Name(field="queue", things="completion_queues"), OWNER)}

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `completion_queues`."""
        return config.completion_queues > 0

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        super().__init__(config, skippable=skippable)
        self.completion = Completion(config, skippable=skippable)

    def connect(self, m: Module, card: Card) -> Joined:
        """To the registers of both maps, the host port, and the DMA engine's bus, whose answers it waits for."""
        r, host_r, block = card.registers, card.host_registers, self.completion
        m.submodules.completion = block
        watch(m, block.watched, card.host_dma.axi)
        connect(m, card.host_port.consume, block.consume)
        m.d.comb += card.host_port.consume_refused.eq(block.refused)

        setup = r.COMPLETION_SETUP.w_data
        fields = {name: setup[name] for name in ("queue", "entries_log2", "batch", "stall", "owner")}
        fields |= {"base": r.COMPLETION_RING.value.address, "lag_cycles": r.COMPLETION_LAG.value.cycles}
        m.d.comb += r.COMPLETION_SETUP.r_data.busy.eq(
            hold(m, "setup", r, r.COMPLETION_SETUP, block.setup, fields)
        )

        post = r.COMPLETION_POST.w_data
        fields = {name: post[name] for name in ("bytes", "status", "queue", "write_back", "entry")}
        fields |= {
            "status_address": r.COMPLETION_STATUS.value.address,
            "work_queue": r.COMPLETION_OF.value.work_queue,
            "descriptor": r.COMPLETION_OF.value.descriptor,
        }
        m.d.comb += [
            r.COMPLETION_POST.r_data.busy.eq(hold(m, "post", r, r.COMPLETION_POST, block.post, fields)),
            r.COMPLETION_FAILED.r_data.queue.eq(block.failed_queue),
            r.COMPLETION_BROKEN.r_data.queues.eq(block.broken),
            r.COMPLETION_BROKEN_HIGH.r_data.queues.eq(block.broken >> 32),
            r.COMPLETION_DROPPED.r_data.entries.eq(block.dropped),
            host_r.HOST_COMPLETION.r_data.queue.eq(Mux(block.event, block.event_queue, 0)),
            host_r.HOST_COMPLETION.r_data.valid.eq(block.event),
            block.acknowledge.eq(host_r.HOST_COMPLETION.r_stb),
        ]
        if self.skippable:
            m.d.comb += block.passed.eq(card.passed)
        return Joined(
            events={"completion": block.failed},
            host_events={"completion": block.event},
            managers=[block.axi],
            rests=[block.rests] if self.skippable else [],
        )
