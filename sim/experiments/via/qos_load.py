"""via-qos-load: jitter of three classes and latency of best effort at rising load, under SVIA, PVIA and QoSVIA.

The thesis' figures 5.4 to 5.6 are simulations with times measured on its cards. It gives the loads at which jitter
starts, in its text: 62, 100 and 130 MB/s. Here nothing is fitted to them. Classes are added channel by channel, so
below 75 MB/s there is no channel of 32 MB/s. The thesis' figure has no line of that class for SVIA either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import table
from ..framework.base import Claim, Outcome, Size, within
from .cards import NAMES, TITLES
from .channels import BEST_EFFORT, Case, ChannelsExperiment, class_value
from .metrics import onset
from .workloads import Channel

__all__ = [
    "ViaQosLoad",
    "ViaQosLoadParameters",
    "in_order",
    "jitter_start",
    "load_of",
    "qos_channels",
    "shown",
]

Setup = Literal["1 to 4", "4 to 1", "both ways"]
RATES_MB_PER_S = (2.0, 8.0, 32.0)
BEST_EFFORT_MB_PER_S = 33.0
MESSAGE_BYTES = 4096
STEPS: Mapping[Size, Sequence[tuple[int, int, int]]] = {
    "quick": [
        (1, 1, 0),
        (2, 2, 0),
        (2, 3, 0),
        (1, 4, 0),
        (1, 1, 1),
        (2, 2, 1),
        (4, 3, 1),
        (4, 4, 1),
        (2, 2, 2),
        (4, 3, 2),
        (4, 4, 2),
        (2, 2, 3),
    ],
    "full": [
        (1, 1, 0),
        (3, 1, 0),
        (2, 2, 0),
        (4, 2, 0),
        (2, 3, 0),
        (4, 3, 0),
        (1, 4, 0),
        (2, 4, 0),
        (1, 1, 1),
        (3, 1, 1),
        (2, 2, 1),
        (4, 2, 1),
        (2, 3, 1),
        (4, 3, 1),
        (2, 4, 1),
        (4, 4, 1),
        (2, 5, 1),
        (4, 5, 1),
        (2, 2, 2),
        (4, 2, 2),
        (2, 3, 2),
        (4, 3, 2),
        (2, 4, 2),
        (4, 4, 2),
        (2, 5, 2),
        (2, 2, 3),
        (3, 3, 3),
    ],
}
"""Channels of each class: 43, 53, 61 ... 149 MB/s with best effort. The full size has a load every 4 MB/s or so."""
BOTH_WAYS_STEPS: Mapping[Size, Sequence[tuple[int, int, int]]] = {
    "quick": [(1, 0, 0), (1, 1, 0), (2, 2, 0), (2, 3, 0), (1, 1, 1), (2, 2, 1), (4, 3, 1), (2, 2, 2)],
    "full": [(1, 0, 0), (4, 0, 0), *[step for step in STEPS["full"] if step[2] < 2], (2, 2, 2)],
}
"""The same where both nodes send all of it. A card then sends and receives the load, and so carries about half of it
each way: loads begin at 35 MB/s."""
SETUPS: tuple[Setup, ...] = ("1 to 4", "4 to 1", "both ways")
TOLERANCE = 0.1
"""Relative error allowed for the load at which jitter starts."""


class ViaQosLoadParameters(Config):
    """Parameters of via-qos-load."""

    setups: list[Setup] = Field(
        [],
        max_length=3,
        description="configurations; empty: the first one (quick), or all three (full)",
        json_schema_extra={"range": "list of '1 to 4', '4 to 1', 'both ways'"},
    )


def qos_channels(
    setup: Setup,
    counts: Sequence[int],
    *,
    rates_mb_per_s: Sequence[float] = RATES_MB_PER_S,
    best_effort_mb_per_s: float | None = BEST_EFFORT_MB_PER_S,
    message_bytes: int = MESSAGE_BYTES,
) -> list[Channel]:
    """`counts` channels of each rate, and one of best effort.

    A class has a node of its own at the other end, best effort the fourth one. Both ways: each node sends all of them.
    """
    ends = {"1 to 4": [(0, 1 + i) for i in range(4)], "4 to 1": [(1 + i, 0) for i in range(4)]}
    both = [[(0, 1)] * 4, [(1, 0)] * 4]
    found = []
    for places in [ends[setup]] if setup in ends else both:
        for number, (rate, count) in enumerate(zip(rates_mb_per_s, counts, strict=True)):
            source, target = places[number]
            found += [
                Channel(
                    source=source,
                    target=target,
                    kind=f"{rate:g} MB/s",
                    mb_per_s=rate,
                    message_bytes=message_bytes,
                    traffic="constant",
                    sends_mb_per_s=rate,
                )
            ] * count
        if best_effort_mb_per_s is not None:
            found.append(
                Channel(
                    source=places[3][0],
                    target=places[3][1],
                    kind=BEST_EFFORT,
                    mb_per_s=None,
                    message_bytes=message_bytes,
                    traffic="poisson",
                    sends_mb_per_s=best_effort_mb_per_s,
                )
            )
    return found


def load_of(counts: Sequence[int]) -> float:
    """The injected load of a step, MB/s."""
    return BEST_EFFORT_MB_PER_S + sum(rate * n for rate, n in zip(RATES_MB_PER_S, counts, strict=True))


class ViaQosLoad(ChannelsExperiment):
    """Classes of 2, 8 and 32 MB/s beside best effort."""

    name = "via-qos-load"
    asks = "At which load does jitter start, under a sequential, a parallel and a QoS-aware firmware?"
    source = "nagar-thesis-2001 5.4.2.1, figures 5.4-5.6"
    Parameters = ViaQosLoadParameters
    span_us = {"quick": 14_000.0, "full": 42_000.0}
    simulated = True

    def cases(self, parameters: ViaQosLoadParameters, size: Size) -> list[Case]:
        """A run for each configuration, step and design."""
        setups = parameters.setups or (SETUPS if size == "full" else SETUPS[:1])
        return [
            Case(
                design=name,
                setup=setup,
                load_mb_per_s=load_of(counts),
                channels=qos_channels(setup, counts),
            )
            for setup in setups
            for counts in (BOTH_WAYS_STEPS if setup == "both ways" else STEPS)[size]
            for name in NAMES
        ]

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: where jitter starts, in which order, and what best effort pays for it."""
        published: Mapping[str, float] = table(self.name)["jitter_starts_mb_per_s"]
        ran = dict.fromkeys(one.point.parameters["setup"] for one in outcomes)
        found = {
            setup: {name: jitter_start(outcomes, setup, name) for name in NAMES}
            for setup in ran
            if all(_loads(outcomes, setup, name) for name in NAMES)
        }
        first = found.get(SETUPS[0])
        claims = [
            Claim.every(
                f"jitter starts under SVIA first, then under PVIA, then under QoSVIA ({setup})"
                + (f": {shown(found[setup])}" if setup in found else ""),
                [in_order(list(found[setup].values()))] if setup in found else [],
                nothing="the configuration was not run under all three",
            )
            for setup in ran or SETUPS
        ]
        for name in NAMES:
            start = first[name] if first else None
            text = (
                f"{TITLES[name]}: jitter starts at {published[name]:g} MB/s, within {TOLERANCE:.0%} (1 to 4)"
            )
            claims.append(
                Claim(
                    text=f"{text}; here {'at none' if start is None else f'at {start:g}'}",
                    holds=_near(start, published[name]),
                )
                if first
                else Claim.unjudged(text, "the configuration was not run under all three")
            )
        claims.append(_saturates(outcomes))
        claims.append(_best_effort_pays(outcomes))
        return claims


def _near(start: float | None, published: float) -> bool:
    return start is not None and within(start, published, TOLERANCE)


def shown(starts: Mapping[str, float | None]) -> str:
    """Where jitter starts under each design, in words."""
    return ", ".join(
        f"{TITLES[name]} {'at no load' if start is None else f'at {start:g} MB/s'}"
        for name, start in starts.items()
    )


def in_order(starts: Sequence[float | None]) -> bool:
    """Whether each is below the next; a design whose jitter never starts is above all."""
    values = [float("inf") if one is None else one for one in starts]
    return all(a < b for a, b in pairwise(values))


def _loads(outcomes: Sequence[Outcome], setup: str, name: str) -> dict[float, Outcome]:
    return {
        one.point.parameters["load_mb_per_s"]: one
        for one in outcomes
        if (one.point.parameters["setup"], one.point.parameters["design"]) == (setup, name)
    }


def jitter_start(outcomes: Sequence[Outcome], setup: str, name: str) -> float | None:
    """The load at which jitter starts in a configuration under a design; None if it does not."""
    return onset(
        {
            load: [value for value in one.results["sustained"] if value is not None]
            for load, one in _loads(outcomes, setup, name).items()
        }
    )


def _saturates(outcomes: Sequence[Outcome]) -> Claim:
    """Best effort under SVIA has what it sends at the lowest load, and not any more above 60 MB/s."""
    limit: float = table("via-qos-load")["best_effort_saturates_mb_per_s"]["svia"]
    text = f"under SVIA the latency of best effort is several times higher above {limit:g} MB/s than below"
    waits = {
        load: class_value(one, BEST_EFFORT, "latency_us")
        for load, one in _loads(outcomes, SETUPS[0], "svia").items()
    }
    below = [wait for load, wait in waits.items() if load < limit * (1 - TOLERANCE) and wait is not None]
    above = [wait for load, wait in waits.items() if load > limit * (1 + TOLERANCE)]
    if not below or not above:
        return Claim.unjudged(text, "there is no load on both sides of it")
    return Claim(text=text, holds=all(wait is None or wait > 3 * max(below) for wait in above))


def _best_effort_pays(outcomes: Sequence[Outcome]) -> Claim:
    """Best effort is slower under QoSVIA than under PVIA, where neither is overloaded."""
    text = "below PVIA's onset best effort is slower under QoSVIA than under PVIA"
    start = jitter_start(outcomes, SETUPS[0], "pvia")
    pvia, qosvia = (_loads(outcomes, SETUPS[0], name) for name in ("pvia", "qosvia"))
    pairs = [
        (
            class_value(pvia[load], BEST_EFFORT, "latency_us"),
            class_value(qosvia[load], BEST_EFFORT, "latency_us"),
        )
        for load in sorted(pvia.keys() & qosvia.keys())
        if start is None or load < start
    ]
    return Claim.every(text, (a is not None and (b is None or a < b) for a, b in pairs))
