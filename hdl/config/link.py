"""Configuration of the wire: flit width, virtual lanes, speed."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from .base import Config

__all__ = ["HEADER_BITS", "ROUTE_BITS", "WORD_ROUTE_BITS", "LinkConfig"]

HEADER_BITS = 128
"""Width of the packet header on every link (`packet.HEADER_LAYOUT` has the fields)."""
WORD_ROUTE_BITS = 24
"""Route bits that fit the first 32 bits of the header."""
ROUTE_BITS = 48
"""Route bits in the whole header; a 32-bit link can use only the first 24, as a router sees one flit."""


class LinkConfig(Config):
    """The wire: flit width, virtual lanes, speed. Router ports and NIC share one."""

    flit_bits: Literal[32, 64, 128] = Field(64, description="payload bits of a flit")
    vls: int = Field(1, ge=1, le=16, description="virtual lanes")
    rate_num: int = Field(1, ge=1, le=4096, description="link rate, flits a cycle: numerator")
    rate_den: int = Field(1, ge=1, le=4096, description="link rate, flits a cycle: denominator")
    delay_cycles: int = Field(
        0, ge=0, le=64, description="extra registers on the wire, each way; a hop is 5 + delay_cycles long"
    )
    restart: bool | None = Field(
        None,
        description="an end may be reset under traffic: two wires, and the handshake of link_restart.py, in both ends; "
        "False: both ends of a link are reset together; None: True at a card, and at the routers of its cluster, "
        "else False",
    )
    guard_cycles: int = Field(
        0,
        ge=0,
        le=1 << 20,
        description="both ends watch the link, and begin it anew (`restart`) after a breach of its rules, or when it "
        "has stood still for one to two times so many cycles; 0: they do not (docs/faults.md)",
    )
    guard_packet_flits: int = Field(
        1024, ge=4, le=65535, description="longest packet that a receiver with `guard_cycles` takes, flits"
    )
    hop_bits: int = Field(4, ge=1, le=8, description="bits of the source route that one hop consumes")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rate_num > self.rate_den:
            raise ValueError(
                f"rate_num/rate_den = {self.rate_num}/{self.rate_den}: "
                "a link carries at most one flit a cycle"
            )
        if self.guard_cycles and not self.restart:
            raise ValueError(
                f"guard_cycles = {self.guard_cycles}: needs restart = True, by which a link begins anew"
            )
        return self

    @cached_property
    def rate(self) -> Fraction:
        """Flits a cycle."""
        return Fraction(self.rate_num, self.rate_den)

    @cached_property
    def flit_bytes(self) -> int:
        """Payload bytes of a flit."""
        return self.flit_bits // 8

    @cached_property
    def vl_bits(self) -> int:
        """Width of a VL number, at least 1."""
        return max(1, (self.vls - 1).bit_length())

    @cached_property
    def header_flits(self) -> int:
        """Flits of the 128-bit header."""
        return HEADER_BITS // self.flit_bits

    @cached_property
    def max_hops(self) -> int:
        """Hops that a source route can hold: a router sees the first flit of the header alone."""
        return (WORD_ROUTE_BITS if self.flit_bits == 32 else ROUTE_BITS) // self.hop_bits
