"""Configurations of the designs on boards."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from ..config import Config
from ..network import Network
from ..traffic.config import TrafficConfig
from .uart import bit_cycles

__all__ = ["LEAST_BAUD", "MOST_BAUD", "MOST_LABEL_BYTES", "LineConfig", "LoopbackConfig"]

GAP_SECONDS = 0.05
"""Silence in a request after which it is dropped. It is several times the delay of an adapter between serial line and
USB, 16 ms at most with the usual one. A user does not notice it."""
LEAST_BAUD = 1200
"""Slowest line: several of its bytes fit into `GAP_SECONDS`, or a request would be dropped in between."""
MOST_BAUD = 12_000_000
"""Fastest line of the adapters that boards have (FT2232H, by its data sheet)."""
MOST_LABEL_BYTES = 256
"""Longest label: a request reads it at once, and it takes little memory."""


class LineConfig(Config):
    """The serial line of a design, and its clock."""

    clock_hz: int = Field(25_000_000, ge=1_000_000, le=400_000_000, description="clock of the design, Hz")
    baud: int = Field(
        1_000_000, ge=LEAST_BAUD, le=MOST_BAUD, description="rate of the serial line, bits a second"
    )
    label: str = Field(
        "",
        max_length=MOST_LABEL_BYTES,
        pattern=r"^[ -~]*$",
        description="what a host is told that the design is, ASCII: its name, the board, settings",
    )
    gap_cycles: int = Field(
        0, ge=0, description="silence that ends an unfinished request, clock cycles; 0: 50 ms"
    )

    @model_validator(mode="after")
    def _check_line(self) -> Self:
        bit_cycles(self.clock_hz, self.baud)
        return self

    @cached_property
    def bit_cycles(self) -> int:
        """Clock cycles of a bit of the line."""
        return bit_cycles(self.clock_hz, self.baud)

    @cached_property
    def silent_cycles(self) -> int:
        """`gap_cycles`, or those of `GAP_SECONDS`."""
        return self.gap_cycles or round(self.clock_hz * GAP_SECONDS)

    @cached_property
    def identity(self) -> int:
        """The first 32 bits of a hash of the whole configuration, by which a host knows the design."""
        text = f"{type(self).__name__}/{self.model_dump_json()}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


class LoopbackConfig(LineConfig):
    """A router, a traffic node at each of its ports, and the measurement."""

    network: Network = Field(default_factory=Network, description="one router, and the places of its nodes")
    traffic: TrafficConfig = Field(default_factory=TrafficConfig, description="the traffic nodes")
    ends: tuple[Literal["both", "source", "sink"], ...] = Field(
        (), description="what each node has (`TrafficNode`); empty: source and sink"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        nodes = len(self.network.nodes)
        if self.network.routers != 1:
            raise ValueError(f"network has {self.network.routers} routers: one")
        if self.traffic.nodes != nodes:
            raise ValueError(f"traffic.nodes = {self.traffic.nodes}: the network has {nodes}")
        if self.ends and len(self.ends) != nodes:
            raise ValueError(f"ends has {len(self.ends)} entries: one for each of {nodes} nodes")
        return self
