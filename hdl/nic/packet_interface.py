"""The packet interface: credits and pacing towards the link, VL buffers from it."""

from __future__ import annotations

from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import NicConfig
from ..link import FlitLayout, LinkSignature

__all__ = ["PacketInterface"]


class PacketInterface(wiring.Component):
    def __init__(self, config: NicConfig, *, downstream_flits: int) -> None:
        self.config = config
        self.downstream_flits = downstream_flits
        super().__init__(
            {
                "tx": Out(LinkSignature(config.link)),
                "rx": In(LinkSignature(config.link)),
                "send": In(stream.Signature(FlitLayout(config.link))),
                "receive": Out(stream.Signature(FlitLayout(config.link))),
                "moved": Out(1),
            }
        )
