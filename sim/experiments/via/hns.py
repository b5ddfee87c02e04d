"""via-hns: QoSVIA with and without a queue in hardware at the net send engine.

In software the engine rests from a packet's end until the firmware has seen it and starts the next one. And each packet
costs the firmware the keeping of the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework.base import Claim, Outcome, Size
from .channels import Case, ChannelsExperiment
from .qos_load import BEST_EFFORT_MB_PER_S, load_of, qos_channels

__all__ = ["ViaHns"]

STEPS = {
    "quick": [(1, 1, 1), (4, 4, 1), (2, 2, 2), (4, 4, 2), (3, 3, 3)],
    "full": [
        (1, 1, 1),
        (2, 2, 1),
        (4, 3, 1),
        (4, 4, 1),
        (2, 2, 2),
        (4, 2, 2),
        (4, 3, 2),
        (4, 4, 2),
        (2, 2, 3),
        (3, 3, 3),
    ],
}


class ViaHns(ChannelsExperiment):
    """The classes of via-qos-load without best effort."""

    name = "via-hns"
    asks = "What does a hardware queue at the net send engine bring QoSVIA?"
    source = "nagar-thesis-2001 5.4.2.3, figure 5.8"
    span_us = {"quick": 14_000.0, "full": 42_000.0}
    simulated = True

    def cases(self, parameters: Any, size: Size) -> list[Case]:
        """A run for each load, without the queue and with it."""
        return [
            Case(
                design="qosvia",
                setup="1 to 4",
                load_mb_per_s=load_of(counts) - BEST_EFFORT_MB_PER_S,
                channels=qos_channels("1 to 4", counts, best_effort_mb_per_s=None),
                send_queue=send_queue,
            )
            for counts in STEPS[size]
            for send_queue in (False, True)
        ]

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claim: it lowers both latency and jitter."""
        by_load: dict[float, dict[bool, Outcome]] = {}
        for one in outcomes:
            chosen = one.point.parameters
            by_load.setdefault(chosen["load_mb_per_s"], {})[chosen["send_queue"]] = one
        pairs = [found for _, found in sorted(by_load.items()) if len(found) == 2]
        latencies = [(_of(found[False], "latency_us"), _of(found[True], "latency_us")) for found in pairs]
        thetas = [(_of(found[False], "theta"), _of(found[True], "theta")) for found in pairs]
        return [
            Claim.every(
                "a hardware queue at the net send engine lowers the latency at every load"
                + _shown(latencies, "us"),
                (after < before for before, after in latencies),
            ),
            Claim.every(
                "it lowers the jitter fraction, over all loads together" + _shown(thetas, ""),
                [sum(after for _, after in thetas) < sum(before for before, _ in thetas)] if thetas else [],
            ),
        ]


def _of(outcome: Outcome, name: str) -> float:
    """The mean over the classes. A class of which nothing came is as bad as can be."""
    values = [float("inf") if value is None else value for value in outcome.results[name]]
    return sum(values) / len(values)


def _shown(pairs: Sequence[tuple[float, float]], unit: str) -> str:
    if not pairs:
        return ""
    (first, with_first), (last, with_last) = pairs[0], pairs[-1]
    return f": {first:.3g} -> {with_first:.3g} {unit} at the lowest load, {last:.3g} -> {with_last:.3g} at the highest"
