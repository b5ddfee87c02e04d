"""The receive DMA engine: puts packets with a good CRC into the buffer that it was armed with."""

from __future__ import annotations

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import NicConfig
from ..link import FlitLayout
from .sram import SramPortSignature

__all__ = ["RECEIVE_COMMAND", "ReceiveEngine"]

RECEIVE_COMMAND = data.StructLayout({"sram_address": 20, "bytes": 16})


class ReceiveEngine(wiring.Component):
    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(stream.Signature(RECEIVE_COMMAND)),
                "armed": Out(1),
                "done": Out(1),
                "bytes": Out(16),
                "vl": Out(4),
                "crc_errors": Out(32),
                "length_errors": Out(32),
                "sram": Out(SramPortSignature(config)),
                "flits": In(stream.Signature(FlitLayout(config.link))),
            }
        )
