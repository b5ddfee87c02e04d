"""Locks of two processors, and words from each to the other, joined."""

from __future__ import annotations

from pathlib import Path

from amaranth import Module

from ...config import NicConfig
from ...registers import load
from ..block import Card, Joined, NicBlock
from ..processor.pair import PairedLocks

__all__ = ["ProcessorPair"]


class ProcessorPair(NicBlock):
    """LOCKS and PEER. Its component is `locks`."""

    name = "processor_pair"
    registers = load(Path(__file__).with_suffix(".rdl"), name)

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With two processors."""
        return config.processors == 2

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        super().__init__(config, skippable=skippable)
        self.locks = PairedLocks()

    def connect(self, m: Module, card: Card) -> Joined:
        """To the registers."""
        m.submodules.locks = locks = self.locks
        r = card.registers
        m.d.comb += [
            locks.who.eq(r.who),
            locks.write.eq(r.LOCKS.w_stb),
            locks.take.eq(r.LOCKS.w_data.mine),
            locks.free.eq(r.LOCKS.w_data.free),
            r.LOCKS.r_data.mine.eq(locks.mine),
            r.LOCKS.r_data.taken.eq(locks.others),
            r.LOCKS.r_data.processor.eq(r.who),
            locks.tell.eq(r.PEER.w_stb),
            locks.word.eq(r.PEER.w_data.word),
            r.PEER.r_data.word.eq(locks.told),
        ]
        return Joined(events={"peer": locks.signal})
