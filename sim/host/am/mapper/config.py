"""Choices of the mapper: one validated model."""

from __future__ import annotations

from typing import Self

from lanikai.hdl.config import Config, RouterConfig
from pydantic import Field, model_validator

__all__ = ["MAP_PACKET_FLITS", "MapperConfig"]

MAP_PACKET_FLITS = 8
"""Most flits of a packet of the mapper, of 64 bits: a header of 2, 40 bytes, and the CRC."""


class MapperConfig(Config):
    """The mappers of a network. All nodes have the same configuration."""

    candidates: tuple[int, ...] = Field(
        (0,), min_length=1, description="nodes that may map; of those that live the lowest one does"
    )
    in_flight: int = Field(1, ge=1, le=8, description="probes of a mapper under way at once")
    timeout_us: int = Field(
        300, ge=1, description="wait for an answer, from the time the probe has left its card"
    )
    attempts: int = Field(2, ge=1, le=20, description="times that a probe goes out before its silence counts")
    command_attempts: int = Field(
        5, ge=1, le=100, description="times that a packet of routes goes out before its host counts as dead"
    )
    watch_us: int = Field(
        20_000, ge=1, description="rest between two looks whether the network is as the map says"
    )
    lease_us: int = Field(
        200_000,
        ge=1,
        description="silence of a mapper after which the next candidate maps; longer than a look and a rest",
    )
    drain_us: int = Field(
        5_000,
        ge=0,
        description="wait until packets on withdrawn routes are gone: 11 switches, at each the longest packets of 7 "
        "inputs, of 52 us at 160 MB/s, are 4 ms",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if list(self.candidates) != sorted(set(self.candidates)):
            raise ValueError(f"candidates = {self.candidates}: ascending, each once")
        return self

    def check_network(self, router: RouterConfig) -> None:
        """Raises ValueError if packets of the mappers could deadlock, in such routers, with messages or each other.

        Their ways turn everywhere. So they have a virtual lane of their own, the last. Packets wait for each other in
        a circle only if each is kept from an output by one whose flits cannot leave it. These find room in the output's
        buffer and in the input's buffer behind it, unless other packets fill both. Two mappers at once, while one gives
        way to the other, must not fill them.
        """
        room = router.output_buffer_flits + router.input_buffer_flits
        flits = min(2, len(self.candidates)) * self.in_flight * MAP_PACKET_FLITS
        if router.link.vls < 2:
            raise ValueError(
                f"link.vls = {router.link.vls}: mappers need a virtual lane of their own; at least 2"
            )
        if flits > room:
            raise ValueError(
                f"in_flight = {self.in_flight}: {flits} flits of mappers' packets, and the buffers of a port hold "
                f"{room}: at most {room // MAP_PACKET_FLITS // min(2, len(self.candidates))}"
            )
