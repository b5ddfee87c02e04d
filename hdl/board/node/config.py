"""Configuration of the design `node`."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from ...config import LinkConfig, NicConfig, RouterConfig
from ..config import LineConfig

__all__ = ["PROGRAM", "NodeConfig", "node_nic", "node_router"]

PROGRAM = Path(__file__).with_name("program.asm")
"""The program of the soft core."""
_LINK = LinkConfig(flit_bits=32, vls=1, restart=False, hop_bits=3)


def node_nic() -> NicConfig:
    """The smallest card that does the work: everything is reset together, and its clock ticks every cycle."""
    return NicConfig(
        link=_LINK,
        burst_beats=16,
        sram_bytes=4096,
        channels=1,
        doorbell="queue",
        doorbell_queue_entries=2,
        flows=1,
        rtc_cycles_num=1,
        rtc_cycles_den=1,
        mtu_bytes=1024,
        input_buffer_flits=8,
    )


def node_router() -> RouterConfig:
    """A router of two ports: the card's, and one whose output is its own input."""
    return RouterConfig(link=_LINK, ports=2, input_buffer_flits=8, output_buffer_flits=8)


class NodeConfig(LineConfig):
    """A card with its host memory and soft core, and a router that sends its messages back to it."""

    nic: NicConfig = Field(default_factory=node_nic, description="the card")
    router: RouterConfig = Field(default_factory=node_router, description="the router")
    program: str = Field(
        "", description="hash of the program's text, so that the identity has it; empty: made"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.nic.link != self.router.link:
            raise ValueError("nic.link and router.link are not the same")
        if self.nic.link.restart:
            raise ValueError("nic.link.restart = True: False, as everything is reset together")
        for name, wanted in {"doorbell": "queue", "processors": 1, "rtc_bits": 32, "bus_bits": 32}.items():
            if getattr(self.nic, name) != wanted:
                raise ValueError(f"nic.{name} = {getattr(self.nic, name)}: the program needs {wanted}")
        if self.nic.tick_cycles != 1:
            raise ValueError("nic.rtc_cycles_num/rtc_cycles_den: 1, as times are in cycles")
        if self.program not in ("", self.program_hash):
            raise ValueError(f"program = {self.program}: of another version")
        return self

    @cached_property
    def program_hash(self) -> str:
        """The first 32 bits of a hash of the program's text."""
        return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()[:8]
