"""via-admission: the capacity of a card under each design of firmware, and admission that promises no more.

A card is made to send, or to receive, as many messages of a size as it can. That gives the time that a message takes
it. `sim/host/via/capacity.toml` is made of these times (`capacity.py` beside it).

Then channels of 8 MB/s ask for admission, until a card refuses. Those that were granted have their rate, beside best
effort. In a control all are let in without being asked, and do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...host.via.admission import MessageTime, via_capacity
from ..framework.base import Claim, Outcome, Point, Size
from .cards import NAMES
from .channels import BEST_EFFORT, Case, ChannelsExperiment, class_value
from .workloads import Channel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ViaAdmission", "message_ns"]

SEND, RECEIVE, ADMITTED, CONTROL = "send", "receive", "admission", "control"
SIZES = {"quick": (4, 4096, 16384), "full": (4, 256, 1024, 4096, 8192, 16384)}
RATE_MB_PER_S = 8.0
ASKED = 16
"""Channels that ask: 128 MB/s, more than a card of QoSVIA carries."""
MESSAGE_BYTES = 4096
BEST_EFFORT_MB_PER_S = 4.0
CAPACITY_US = 4000.0
"""Time of a run that measures capacity. It ends with a message cut off at most, of dozens."""
TOLERANCE = 0.1
"""Relative: the most that a measured time may be above the one that admission reckons with."""
SUSTAINED = 0.05
"""A channel that lacks less of its rate than this part has it."""


class ViaAdmission(ChannelsExperiment):
    """Capacity, then admission."""

    name = "via-admission"
    asks = "What does a card carry under each design of firmware, and do channels that were admitted have their rates?"
    source = "beyond nagar-thesis-2001 5.3.3, which leaves admission control to future work"
    by_flow = ChannelsExperiment.by_flow
    span_us = {"quick": 14_000.0, "full": 42_000.0}

    def cases(self, parameters: Any, size: Size) -> list[Case]:
        """A run for each design, size and direction; then admission, and its control."""
        found = [
            Case(
                design=name,
                setup=way,
                load_mb_per_s=0.0,
                channels=_greedy(way, length),
                parameters={"message_bytes": length},
            )
            for name in NAMES
            for way in (SEND, RECEIVE)
            for length in SIZES[size]
        ]
        asking = [
            Channel(
                source=0,
                target=1 + number % 4,
                kind=f"{RATE_MB_PER_S:g} MB/s",
                mb_per_s=RATE_MB_PER_S,
                message_bytes=MESSAGE_BYTES,
                traffic="constant",
                sends_mb_per_s=RATE_MB_PER_S,
            )
            for number in range(ASKED)
        ]
        asking.append(
            Channel(
                source=0,
                target=4,
                kind=BEST_EFFORT,
                mb_per_s=None,
                message_bytes=MESSAGE_BYTES,
                traffic="poisson",
                sends_mb_per_s=BEST_EFFORT_MB_PER_S,
            )
        )
        return found + [
            Case(
                design="qosvia",
                setup=setup,
                load_mb_per_s=ASKED * RATE_MB_PER_S + BEST_EFFORT_MB_PER_S,
                channels=asking,
                order="wf2q",
                parameters={"message_bytes": MESSAGE_BYTES},
                admit=setup == ADMITTED,
            )
            for setup in (ADMITTED, CONTROL)
        ]

    def points(self, parameters: Any, size: Size) -> list[Point]:
        """A point a case; those that measure capacity are short."""
        found = []
        for one in self.cases(parameters, size):
            if one.setup in (SEND, RECEIVE):
                assert one.parameters is not None
                length = one.parameters["message_bytes"]
                point = one.point(until_us=CAPACITY_US, warm_up_us=CAPACITY_US / 4)
                found.append(
                    replace(
                        point,
                        label=f"{one.design}, {one.setup}, {length} bytes",
                        workload=f"{one.setup}, {length} bytes",
                    )
                )
            else:
                found.append(one.point(until_us=self.span_us[size], warm_up_us=self.warm_up_us))
        return found

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """As of all experiments on channels; the time of a message; how many channels were refused."""
        found = super().results(parameters, point, measured)
        refused = sum(bool(run.get("refused")) for run in measured["channels"])
        return {**found, "message_us": _message_us(point, measured), "refused": refused}

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: the curve that admission has is that of the cards; what is granted is kept; without it, it is
        not."""
        by_setup: dict[str, list[Outcome]] = {}
        for one in outcomes:
            by_setup.setdefault(one.point.parameters["setup"], []).append(one)
        measured = [one for way in (SEND, RECEIVE) for one in by_setup.get(way, [])]
        over = [one.results["message_us"] * 1000 / message_ns(one.point) - 1 for one in measured]
        admitted, control = by_setup.get(ADMITTED, []), by_setup.get(CONTROL, [])
        kind = f"{RATE_MB_PER_S:g} MB/s"
        refused = [one.results["refused"] for one in admitted]
        return [
            Claim.every(
                "no message takes a card longer than admission reckons with: "
                f"{min(over, default=0):+.1%} to {max(over, default=0):+.1%}",
                (one <= TOLERANCE for one in over),
            ),
            Claim.every(
                f"of {ASKED} channels that ask for {kind} some are refused, and those that are granted have their rate"
                + (f": {ASKED - refused[0]} are" if refused else ""),
                (
                    0 < one.results["refused"] < ASKED
                    and class_value(one, kind, "sustained") is not None
                    and class_value(one, kind, "sustained") < SUSTAINED
                    for one in admitted
                ),
            ),
            Claim.every(
                "control: without admission they have not",
                (class_value(one, kind, "sustained") >= SUSTAINED for one in control),
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Time of a message against its bytes, for each design, as measured and as admission reckons."""
        panels = figure.subplots(1, 2)
        for axes, way in zip(panels, (SEND, RECEIVE), strict=True):
            for number, name in enumerate(NAMES):
                mine = [
                    one
                    for one in outcomes
                    if (one.point.parameters["setup"], one.point.parameters["design"]) == (way, name)
                ]
                lengths = [one.point.parameters["message_bytes"] for one in mine]
                times = [one.results["message_us"] for one in mine]
                axes.plot(lengths, times, "o", color=f"C{number}", label=name)
                reckoned = [message_ns(one.point) / 1000 for one in mine]
                axes.plot(lengths, reckoned, "-", color=f"C{number}")
            axes.set_xlabel("bytes of a message")
            axes.set_title(way)
        panels[0].set_ylabel("time of a message (µs)")
        panels[0].plot([], [], "k-", label="admission")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.suptitle("Time that a message takes a card")


def message_ns(point: Point) -> int:
    """The time of a message with which admission reckons, of a point that measures it."""
    capacity = via_capacity(point.parameters["design"])
    time: MessageTime = capacity.send if point.parameters["setup"] == SEND else capacity.receive
    return time.message_ns(point.parameters["message_bytes"])


def _greedy(way: str, length: int) -> list[Channel]:
    """Channels that always have messages: from one node to three, or from four to one.

    A few VIs do not fill a card: a VI's messages are fetched one after the other. But the queues of many that are
    filled at once flood the firmware with doorbells. So a measured time is rather too long than too short.
    """
    ends = [(0, 1), (0, 2), (0, 3)] if way == SEND else [(1, 0), (2, 0), (3, 0), (4, 0)]
    return [
        Channel(
            source=source,
            target=target,
            kind=BEST_EFFORT,
            mb_per_s=None,
            message_bytes=length,
            traffic="greedy",
            sends_mb_per_s=1.0,
        )
        for source, target in ends
    ]


def _message_us(point: Point, measured: Mapping[str, Any]) -> float:
    """The mean time between two messages that the card has carried, of all channels together."""
    begin, end = point.spec["warm_up_us"], measured["end_us"]
    times = sorted(at for run in measured["channels"] for at in run["received_us"] if begin <= at < end)
    return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else end - begin
