"""Mutants of what wrr-variants stands on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mutant import mutant

__all__: list[str] = []

STEP_CYCLES = 2_000


def _ever_later() -> None:
    """Each frame of a stream comes `STEP_CYCLES` later than the one before. Chance alone does not change how many
    frames miss: by the document's rule that is the number of records."""
    from lanikai.sim.experiments.qos.deadlines import Deadlines

    right = Deadlines.arrive
    frames: dict[int, int] = {}

    def arrive(self: Any, cycle: float) -> float:
        frames[id(self)] = frames.get(id(self), 0) + 1
        return right(self, cycle + STEP_CYCLES * frames[id(self)])

    Deadlines.arrive = arrive


@mutant
def deadlines_are_half_a_frame_early(spec: Mapping[str, Any]) -> None:
    """Every frame misses, by half of its time."""
    from lanikai.sim.experiments.qos.deadlines import Deadlines

    right = Deadlines.arrive

    def arrive(self: Any, cycle: float) -> float:
        late = right(self, cycle)
        self.deadline -= self.interval_cycles / 2
        return late

    Deadlines.arrive = arrive


@mutant
def frames_of_the_large_table_come_ever_later(spec: Mapping[str, Any]) -> None:
    """The large frame is the worse one."""
    if spec["admission_config"]["frame"] == "large":
        _ever_later()


@mutant
def frames_of_the_small_table_come_ever_later(spec: Mapping[str, Any]) -> None:
    """The small frame is the worse one."""
    if spec["admission_config"]["frame"] == "small":
        _ever_later()


@mutant
def frames_come_ever_later_at_high_load(spec: Mapping[str, Any]) -> None:
    """More of them miss at high load than at a low one."""
    if spec["load"] > 0.75:
        _ever_later()


@mutant
def frames_come_ever_later_at_low_load(spec: Mapping[str, Any]) -> None:
    """They miss by more at low load than at a high one."""
    if spec["load"] < 0.65:
        _ever_later()


@mutant
def every_tenth_message_of_a_stream_is_forgotten(spec: Mapping[str, Any]) -> None:
    """It is taken from its stream, and never posted."""
    from lanikai.sim.experiments.qos.mixed_host import MixedHost

    right = MixedHost._offer
    offers = [0]

    def offer(self: Any, *message: Any) -> bool:
        offers[0] += 1
        return offers[0] % 10 == 0 or right(self, *message)

    MixedHost._offer = offer
