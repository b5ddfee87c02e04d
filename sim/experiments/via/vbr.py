"""via-vbr: channels of MPEG-1 films beside best effort, under SVIA, PVIA and QoSVIA.

A channel carries 20, 40 or 80 copies of a film, each at a place of its own, at about the pace at which it was made. So
its classes have 0.95, 1.9 and 3.8 MB/s. The thesis took traces of several films; here all are the one that ships with
the package. The load rises by channels.

A channel's frames stand one behind the other, and fill messages of 4 KB, which is the size of all messages of the
thesis' simulations. It does not say how frames become messages. Each by itself they would be messages of 1.7 KB. By
table 5.1 the parallel designs carry fewer of these than SVIA does, which is not what figure 5.7 shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework.base import Claim, Outcome, Size
from .cards import NAMES
from .channels import BEST_EFFORT, Case, ChannelsExperiment
from .qos_load import in_order, jitter_start, shown
from .workloads import Channel

__all__ = ["ViaVbr"]

CLASSES = ((0.95, 20), (1.9, 40), (3.8, 80))
"""Rate, MB/s, and films of each class."""
BEST_EFFORT_MB_PER_S = 16.7
COUNTS = {
    "quick": (6, 7, 8, 10, 12, 13, 14, 15, 16, 17),
    "full": (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20),
}
"""Channels of each class: 6.65 MB/s for one of each."""
MESSAGE_BYTES = 4096
SETUP = "1 to 4"


class ViaVbr(ChannelsExperiment):
    """Films on channels of 0.95, 1.9 and 3.8 MB/s."""

    name = "via-vbr"
    asks = "Up to which load do films play without jitter under the three designs of firmware?"
    source = "nagar-thesis-2001 5.4.2.2, figure 5.7"
    film = "starwars-mpeg1.bits"
    span_us = {"quick": 30_000.0, "full": 100_000.0}
    simulated = True

    def cases(self, parameters: Any, size: Size) -> list[Case]:
        """A run for each number of channels and design."""
        return [
            Case(
                design=name,
                setup=SETUP,
                load_mb_per_s=round(BEST_EFFORT_MB_PER_S + count * sum(rate for rate, _ in CLASSES), 2),
                channels=[
                    *(
                        Channel(
                            source=0,
                            target=1 + number,
                            kind=f"{rate:g} MB/s",
                            mb_per_s=rate,
                            message_bytes=MESSAGE_BYTES,
                            traffic="films",
                            sends_mb_per_s=rate,
                            streams=films,
                        )
                        for number, (rate, films) in enumerate(CLASSES)
                        for _ in range(count)
                    ),
                    Channel(
                        source=0,
                        target=4,
                        kind=BEST_EFFORT,
                        mb_per_s=None,
                        message_bytes=MESSAGE_BYTES,
                        traffic="poisson",
                        sends_mb_per_s=BEST_EFFORT_MB_PER_S,
                    ),
                ],
            )
            for count in COUNTS[size]
            for name in NAMES
        ]

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claim: QoSVIA sustains the highest load before jitter, then PVIA, then SVIA."""
        starts = {name: jitter_start(outcomes, SETUP, name) for name in NAMES}
        ran = {one.point.parameters["design"] for one in outcomes}
        return [
            Claim.every(
                f"QoSVIA sustains the highest load before jitter, then PVIA, then SVIA: {shown(starts)}",
                [in_order(list(starts.values()))] if ran >= set(NAMES) else [],
                nothing="it was not run under all three",
            )
        ]
