"""The report of `lanikai synth nic --report` beside the card's own: its blocks, each alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanikai.hdl.config import Config, NicConfig

__all__ = ["CardBlock", "card_blocks"]


@dataclass(frozen=True, kw_only=True)
class CardBlock:
    """A block of a card, to be synthesized alone.

    - `label`: its name in the report.
    - `what`: its name in `BLOCKS`.
    - `config`: its configuration.
    - `clock`: its clock is measured too, not area alone.
    """

    label: str
    what: str
    config: Config
    clock: bool = False


def card_blocks(what: str, config: Any) -> list[CardBlock]:
    """The blocks of a card of `config`, each to be reported alone; none if `what` is not the card."""
    if what != "nic":
        return []
    card: NicConfig = config

    def block(label: str, name: str, *, clock: bool = False, **changes: Any) -> CardBlock:
        return CardBlock(label=label, what=name, config=card.replace(**changes), clock=clock)

    # So many flows need a tree, and the tree a clock of 18 bits.
    tree, bits = "tree", max(card.rtc_bits, 18)
    return [
        block(f"rate control, {card.flows} flows", "rate-control", clock=True),
        block(
            "rate control, 1024 flows",
            "rate-control",
            clock=True,
            flows=1024,
            rate_structure=tree,
            rtc_bits=bits,
        ),
        block("host DMA, alignment 4", "host-dma", dma_alignment_bytes=4),
        block("host DMA, alignment 1", "host-dma", dma_alignment_bytes=1),
        block("descriptor queue of host DMA, arrival", "dma-queue", host_dma_queue_order="arrival"),
        block("doorbell queue, 1024 channels", "doorbell", channels=1024, doorbell="queue"),
        block("completion", "completion"),
        block("protection", "protection"),
        block("translation", "translation"),
    ]
