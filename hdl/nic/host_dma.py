"""The host DMA engine: moves bytes between host memory (AXI4) and the SRAM."""

from __future__ import annotations

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4Signature
from ..config import NicConfig
from .sram import SramPortSignature

__all__ = ["HOST_DMA_COMMAND", "HostDma"]

HOST_DMA_COMMAND = data.StructLayout({"host_address": 32, "sram_address": 20, "bytes": 16, "to_host": 1})


class HostDma(wiring.Component):
    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(stream.Signature(HOST_DMA_COMMAND)),
                "busy": Out(1),
                "done": Out(1),
                "error": Out(1),
                "moved": Out(1),
                "axi": Out(Axi4Signature(data_bits=config.bus_bits)),
                "sram": Out(SramPortSignature(config)),
            }
        )
