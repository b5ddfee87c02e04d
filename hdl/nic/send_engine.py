"""The send DMA engine: reads a packet from the SRAM, closes it with its CRC and hands its flits to the link."""

from __future__ import annotations

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import NicConfig
from ..link import FlitLayout
from .sram import SramPortSignature

__all__ = ["SEND_COMMAND", "SendEngine"]

SEND_COMMAND = data.StructLayout({"sram_address": 20, "bytes": 16, "vl": 4})


class SendEngine(wiring.Component):
    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(stream.Signature(SEND_COMMAND)),
                "busy": Out(1),
                "done": Out(1),
                "sram": Out(SramPortSignature(config)),
                "flits": Out(stream.Signature(FlitLayout(config.link))),
            }
        )
