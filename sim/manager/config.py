"""Choices of the bandwidth manager: one validated model."""

from __future__ import annotations

from typing import Literal

from lanikai.hdl.config import Config
from pydantic import Field

from .capacity import SHARED_MB_PER_S

__all__ = ["ManagerConfig"]


class ManagerConfig(Config):
    """The managers of a cluster (gulati-thesis-2001 4.3). All have the same configuration, except in tests of what
    happens otherwise."""

    master: int = Field(0, ge=0, le=0xFFFF, description="the node whose manager is the master")
    port: int = Field(7, ge=0, le=31, description="the GM port of every node that is the managers' own")
    best_effort: Literal["set_aside", "max_min"] = Field(
        "set_aside", description="how best-effort flows share: as in 4.3, or weighted max-min fair"
    )
    shared_mb_per_s: float = Field(
        SHARED_MB_PER_S, gt=0, description="the most that several flows of a node send together, MB/s"
    )
    receive_mb_per_s: float | None = Field(
        None,
        gt=0,
        description="the most that a node may be promised to receive, MB/s; None: what was measured",
    )
    answer_ticks: int = Field(
        10_000,
        ge=1,
        description="wait for an answer before a call goes out again; 5 ms of lanai4, some 100 full packets",
    )
    tries: int = Field(
        4, ge=1, le=100, description="times that a call goes out before its manager counts as silent"
    )
    retry_ticks: int = Field(
        100_000, ge=1, description="rest between attempts to tell the master what it still has to know; 50 ms"
    )
    lease_ticks: int = Field(
        400_000,
        ge=1000,
        description="a node that no master has confirmed for so long lets its flows rest, and its bandwidth may go "
        "to others; 200 ms of lanai4",
    )
    request_ns: int = Field(
        20_000, ge=0, description="a program's call to its node's manager and back: four process switches"
    )
    decide_ns: int = Field(
        20_000, ge=0, description="the master's decision: criteria and shares, about 6000 instructions"
    )
