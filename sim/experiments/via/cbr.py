"""via-cbr: channels of constant rate at small loads, under SVIA, PVIA and QoSVIA.

The thesis measured this on its cards, at 6 to 30 MB/s, where no firmware is short of anything. It found small
differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..framework.base import Claim, Outcome, Size
from .cards import NAMES
from .channels import Case, ChannelsExperiment
from .workloads import Channel

__all__ = ["ViaCbr", "late_part_error"]

RATES_MB_PER_S = (1.0, 2.0, 3.0)
CHANNELS = {"quick": (1, 3, 5), "full": (1, 2, 3, 4, 5)}
MESSAGE_BYTES = 4096


class ViaCbr(ChannelsExperiment):
    """Classes of 1, 2 and 3 MB/s to three nodes."""

    name = "via-cbr"
    asks = "How much jitter do channels of 1 to 3 MB/s have under the three designs of firmware?"
    source = "nagar-thesis-2001 5.4.1.2, figures 5.2 and 5.3"
    span_us = {"quick": 30_000.0, "full": 200_000.0}

    def cases(self, parameters: Any, size: Size) -> list[Case]:
        """A run for each number of channels and design."""
        return [
            Case(
                design=name,
                setup="1 to 3",
                load_mb_per_s=count * sum(RATES_MB_PER_S),
                channels=[
                    Channel(
                        source=0,
                        target=1 + number,
                        kind=f"{rate:g} MB/s",
                        mb_per_s=rate,
                        message_bytes=MESSAGE_BYTES,
                        traffic="constant",
                        sends_mb_per_s=rate,
                    )
                    for number, rate in enumerate(RATES_MB_PER_S)
                    for _ in range(count)
                ],
            )
            for count in CHANNELS[size]
            for name in NAMES
        ]

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: all have their rate; SVIA's jitter is the highest; QoSVIA has fewer late packets than PVIA.

        The last is judged only where the difference is above two standard errors (`late_part_error`).
        """
        by_load: dict[float, dict[str, Outcome]] = {}
        for one in outcomes:
            chosen = one.point.parameters
            by_load.setdefault(chosen["load_mb_per_s"], {})[chosen["design"]] = one
        loads = {load: found for load, found in sorted(by_load.items()) if found.keys() >= set(NAMES)}
        ratios = [
            _mean(found["svia"], "theta") / max(_mean(found[other], "theta"), 1e-9)
            for found in loads.values()
            for other in NAMES[1:]
        ]
        last = list(loads.values())[-1] if loads else {}
        fewer = _mean(last["pvia"], "late_part") - _mean(last["qosvia"], "late_part") if last else 0.0
        chance = 2 * math.hypot(*(late_part_error(last[name]) for name in NAMES[1:])) if last else 0.0
        highest = [value for name in NAMES for value in last[name].results["latency_us"]] if last else []
        by_chance = (
            f"chance alone may make {chance:.1%} between so few messages; --full or --seeds have more"
            if last and abs(fewer) < chance
            else ""
        )
        return [
            Claim.every(
                "every class has its rate under every design: its sustained jitter is below 5%",
                (
                    value is not None and value < 0.05
                    for found in loads.values()
                    for one in found.values()
                    for value in one.results["sustained"]
                ),
            ),
            Claim.every(
                "SVIA's jitter fraction is above PVIA's and QoSVIA's at most loads: "
                f"{min(ratios, default=0):.2f} to {max(ratios, default=0):.2f} times",
                [sum(one > 1 for one in ratios) * 2 > len(ratios)] if ratios else [],
            ),
            Claim.every(
                f"QoSVIA has no more packets with jitter than PVIA at the highest load: {fewer:.1%} fewer",
                [fewer >= 0 and None not in highest] if last else [],
            ).unless(by_chance),
        ]


def late_part_error(outcome: Outcome) -> float:
    """The standard error of the mean of `late_part` over the classes, if each message is late by chance, alone.

    A class counts with one more message that is late and one more that is not. So one where none or all are late has an
    error too (Agresti and Coull, 1998). Means of several seeds have less error than this.
    """
    variances = []
    for part, judged in zip(outcome.results["late_part"], outcome.results["judged"], strict=True):
        if part is not None and judged:
            wider = (part * judged + 1) / (judged + 2)
            variances.append(wider * (1 - wider) / (judged + 2))
    return math.sqrt(sum(variances)) / len(variances) if variances else 0.0


def _mean(outcome: Outcome, name: str) -> float:
    """The mean over the classes."""
    values = [value for value in outcome.results[name] if value is not None]
    return sum(values) / len(values) if values else 0.0
