"""Mutants of what experiments on mixed traffic under admission and congestion control stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mutant import mutant

__all__: list[str] = []

LATE_CYCLES = 20_000


def _scheme(spec: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether a point has admission, and congestion control."""
    return spec["admission"], spec["credits"] != "none"


def _late_arrivals(*kinds: str) -> None:
    """Arrivals of these classes are told late."""
    from lanikai.sim.experiments.qos.mixed_host import MixedHost

    right = MixedHost.received

    def received(self: Any, arrival: Any) -> None:
        late = LATE_CYCLES if self._under_way[arrival.born].kind in kinds else 0
        # The window and the deadlines see the same arrival: only its time is another.
        right(self, arrival._replace(arrived=min(arrival.arrived + late, self._window.end - 1)))

    MixedHost.received = received


def _late_frames() -> None:
    """Each third frame of a stream comes late."""
    from lanikai.sim.experiments.qos.deadlines import Deadlines

    right = Deadlines.arrive

    def arrive(self: Any, cycle: float) -> float:
        return right(self, cycle + (LATE_CYCLES if self.frames % 3 == 2 else 0))

    Deadlines.arrive = arrive


@mutant
def agents_refuse_nothing(spec: Mapping[str, Any]) -> None:
    """Links are promised to more than they carry."""
    from lanikai.sim.admission.ledger import Reason, RouterLedger

    RouterLedger.refusal = lambda self, **asked: Reason.NONE


@mutant
def half_of_the_streams_are_refused_by_nobody(spec: Mapping[str, Any]) -> None:
    """Without admission every second stream does not send all the same."""
    from lanikai.sim.experiments.qos import mixed

    right = mixed.plan_streams

    def plan(*arguments: Any, **others: Any) -> Any:
        streams = right(*arguments, **others)
        for node in streams:
            for stream in node[::2]:
                stream.admitted = spec["admission"]
        return streams

    mixed.plan_streams = plan


@mutant
def best_effort_has_credits_without_end(spec: Mapping[str, Any]) -> None:
    """No message waits for one."""
    from lanikai.sim.experiments.qos.mixed_host import WaitingGate

    right = WaitingGate.offer

    def offer(self: Any, destination: int, message: Any) -> bool:
        # Those that `initial` has are not all that there are.
        self.policy.left = [max(one, 1) for one in self.policy.left]
        self.policy.initial = tuple(1_000_000 for _ in self.policy.left)
        return right(self, destination, message)

    WaitingGate.offer = offer


@mutant
def links_are_half_as_wide_with_credits(spec: Mapping[str, Any]) -> None:
    """Congestion control takes a part in admission."""
    from lanikai.sim.admission.config import AdmissionConfig

    if _scheme(spec)[1]:
        AdmissionConfig.most_units = property(lambda self: self.link_units // 2)


@mutant
def arrivals_are_late_with_both_controls(spec: Mapping[str, Any]) -> None:
    """The two controls together slow all traffic down."""
    if _scheme(spec) == (True, True):
        _late_arrivals("control", "real_time", "best_effort")


@mutant
def arrivals_are_late_with_admission_alone(spec: Mapping[str, Any]) -> None:
    """Admission alone slows data down."""
    if _scheme(spec) == (True, False):
        _late_arrivals("real_time", "best_effort")


@mutant
def arrivals_are_late_with_congestion_control_alone(spec: Mapping[str, Any]) -> None:
    """Congestion control alone slows data down."""
    if _scheme(spec) == (False, True):
        _late_arrivals("real_time", "best_effort")


@mutant
def control_packets_are_late_without_controls(spec: Mapping[str, Any]) -> None:
    """Control packets have no priority where nothing is controlled."""
    if _scheme(spec) == (False, False):
        _late_arrivals("control")


@mutant
def frames_are_late_with_both_controls(spec: Mapping[str, Any]) -> None:
    """Frames miss deadlines where they should not."""
    if _scheme(spec) == (True, True):
        _late_frames()


@mutant
def frames_are_late_at_a_load_of_80_percent(spec: Mapping[str, Any]) -> None:
    """Misses grow with the load."""
    if spec["load"] >= 0.8:
        _late_frames()
