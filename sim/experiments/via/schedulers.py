"""via-schedulers: VirtualClock, WF2Q+ and deficit round robin give the stamps of QoSVIA, side by side.

Two cases, each under all three:

- `idle bandwidth`: a channel sends at twice its rate while nobody else sends anything. Then it keeps to its rate, and
  four others begin that always have messages. VirtualClock lets the first one wait for what it had before.
- `greedy`: all five channels with a rate always have messages, beside best effort that asks for half of what is kept
  free for it. VirtualClock starves it.

The latency of every message is held against the scheduler's bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.firmware.via.parallel.loop import messages_begun
from lanikai.firmware.via.schedulers.base import BEST_EFFORT_RATE, Rate
from lanikai.firmware.via.schedulers.registry import SCHEDULERS, find_scheduler

from ...host.via.admission import via_capacity, vtick
from ..framework.base import Claim, Outcome, Point, Size
from .cards import via_card, via_program
from .channels import BEST_EFFORT, Case, ChannelsExperiment, class_value
from .workloads import Channel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ViaSchedulers", "bound_us", "catching_up_us"]

MESSAGE_BYTES = 4096
IDLE, GREEDY = "idle bandwidth", "greedy"
KEEPS, OTHER = "A", "B"
RATES_MB_PER_S = {KEEPS: 24.0, OTHER: 8.0}
OTHERS = 4
"""Channels of class B. A VI's messages are fetched one after the other, so one alone does not fill a card.

With A's 24 MB/s and best effort's 8 they have 64 MB/s: less than the card carries, so every bound is one.
"""
BEST_EFFORT_MB_PER_S = 4.0
HURRY_US = 6000.0
"""Time for which A sends at twice its rate."""
GREED = 3
"""A greedy channel sends at so many times its rate: more than the card carries, and so it always has messages.

It is paced all the same. A source that fills its work queue at once floods the doorbell queue, which no scheduler sees.
"""
FAIR = ("wf2q", "deficit")
TITLES = {"virtual_clock": "VirtualClock", "wf2q": "WF2Q+", "deficit": "deficit round robin"}
"""The schedulers' names for readers."""


class ViaSchedulers(ChannelsExperiment):
    """Two channels and best effort under each scheduler."""

    name = "via-schedulers"
    asks = "Which scheduler punishes idle bandwidth, which starves best effort, and does each keep its bound?"
    source = (
        "beyond nagar-thesis-2001 5.3.3, which has VirtualClock alone and says that it may starve best effort"
    )
    by_flow = (*ChannelsExperiment.by_flow, "bound_us", "over_bound_us", "first_us")
    span_us = {"quick": 18_000.0, "full": 60_000.0}

    def cases(self, parameters: Any, size: Size) -> list[Case]:
        """A run for each case and scheduler."""
        span = self.span_us[size]
        hurry = HURRY_US * span / self.span_us["quick"]
        channels = {
            IDLE: [
                _channel(KEEPS, hurries_until_us=hurry),
                *[_channel(OTHER, begins_us=hurry, greedy=True)] * OTHERS,
            ],
            GREEDY: [
                _channel(KEEPS, greedy=True),
                *[_channel(OTHER, greedy=True)] * OTHERS,
                Channel(
                    source=0,
                    target=3,
                    kind=BEST_EFFORT,
                    mb_per_s=None,
                    message_bytes=MESSAGE_BYTES,
                    traffic="poisson",
                    sends_mb_per_s=BEST_EFFORT_MB_PER_S,
                ),
            ],
        }
        return [
            Case(
                design="qosvia",
                setup=setup,
                load_mb_per_s=RATES_MB_PER_S[KEEPS]
                + OTHERS * RATES_MB_PER_S[OTHER]
                + BEST_EFFORT_MB_PER_S * (setup == GREEDY),
                channels=mine,
                order=order,
            )
            for setup, mine in channels.items()
            for order in SCHEDULERS
        ]

    def points(self, parameters: Any, size: Size) -> list[Point]:
        """A point a case. Under `idle bandwidth` the messages are judged from the time on that B begins."""
        found = []
        for one in self.cases(parameters, size):
            begins = max(channel.begins_us for channel in one.channels)
            found.append(
                one.point(
                    until_us=self.span_us[size], warm_up_us=max(self.warm_up_us, begins), film=self.film
                )
            )
        return found

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """As of all experiments on channels, and of each class:

        - `bound_us`: of the message that came nearest to its own, or was the furthest above it (`over_bound_us` > 0).
        - `first_us`: the longest wait of those that are due before stamps have caught up with A's.
        """
        found = super().results(parameters, point, measured)
        worst: dict[str, tuple[float, float]] = {}
        for channel, run in zip(
            (Channel(**one) for one in point.spec["channels"]), measured["channels"], strict=True
        ):
            # A greedy channel does not keep to its rate: no bound is promised.
            if channel.mb_per_s is not None and channel.sends_mb_per_s > channel.mb_per_s:
                continue
            for due, there in zip(run["due_us"], run["received_us"], strict=False):
                if due < point.spec["warm_up_us"]:
                    continue
                ahead = sum(
                    size
                    for size, came, left in zip(run["bytes"], run["due_us"], run["received_us"], strict=False)
                    if came <= due and left >= due
                )
                bound = bound_us(point.parameters["order"], channel, ahead_bytes=ahead)
                if bound is not None:
                    worst[channel.kind] = max(
                        worst.get(channel.kind, (-bound, bound)), (there - due - bound, bound)
                    )
        bounds, over = [], []
        for kind in point.parameters["class"]:
            over.append(worst[kind][0] if kind in worst else None)
            bounds.append(worst[kind][1] if kind in worst else None)
        first = [_first_us(point, measured, kind) for kind in point.parameters["class"]]
        return {**found, "bound_us": bounds, "over_bound_us": over, "first_us": first}

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: VirtualClock's two faults, which the others have not, and their bounds."""
        found = {(one.point.parameters["setup"], one.point.parameters["order"]): one for one in outcomes}
        idle = {order: found[IDLE, order] for order in SCHEDULERS if (IDLE, order) in found}
        greedy = {order: found[GREEDY, order] for order in SCHEDULERS if (GREEDY, order) in found}
        waits = {order: class_value(one, KEEPS, "first_us") for order, one in idle.items()}
        shares = {order: _carried(one) for order, one in greedy.items()}
        catching_up = max((_catching_up_us(one) for one in idle.values()), default=0.0)
        return [
            Claim.every(
                "VirtualClock punishes a channel for idle bandwidth that it has used: a message waits for the "
                f"{catching_up:.0f} us that the others' stamps take to catch up with it; under WF2Q+ and deficit round "
                "robin none does" + _shown(waits, " us"),
                (
                    waits[order] < catching_up <= waits["virtual_clock"]
                    for order in FAIR
                    if {order, "virtual_clock"} <= waits.keys()
                ),
            ),
            Claim.every(
                "under VirtualClock a message of it waits for longer than that of a channel that never sent too fast",
                [class_value(idle["virtual_clock"], KEEPS, "over_bound_us") > 0]
                if "virtual_clock" in idle
                and class_value(idle["virtual_clock"], KEEPS, "over_bound_us") is not None
                else [],
            ),
            Claim.every(
                "VirtualClock starves best effort: less than a tenth of what it sends arrives",
                # The others' messages arrive meanwhile.
                [
                    shares["virtual_clock"] < 0.1
                    and class_value(greedy["virtual_clock"], KEEPS, "bandwidth_mb_per_s")
                    > RATES_MB_PER_S[KEEPS] / 2
                ]
                if "virtual_clock" in shares
                else [],
            ),
            Claim.every(
                "WF2Q+ and deficit round robin do not: at least nine tenths arrive"
                + _shown(shares, " of it"),
                (shares[order] > 0.9 for order in FAIR if order in shares),
            ),
            Claim.every(
                "no message of a channel that keeps to its rate, and none of best effort, is above its bound under "
                "WF2Q+ and deficit round robin",
                (
                    value <= 0
                    for outcomes_of in (idle, greedy)
                    for order, one in outcomes_of.items()
                    if order in FAIR
                    for value in one.results["over_bound_us"]
                    if value is not None
                ),
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Latencies of A and of best effort under each scheduler, and their bounds."""
        panels = figure.subplots(1, 2)
        for axes, (setup, kind) in zip(panels, ((IDLE, KEEPS), (GREEDY, BEST_EFFORT)), strict=True):
            mine = [one for one in outcomes if one.point.parameters["setup"] == setup]
            for place, one in enumerate(mine):
                for offset, name, color in ((-0.2, "latency_us", "C0"), (0.2, "longest_us", "C1")):
                    axes.bar(place + offset, class_value(one, kind, name) or 0, width=0.38, color=color)
                bound = class_value(one, kind, "bound_us")
                if bound is not None:
                    axes.hlines(bound, place - 0.45, place + 0.45, colors="black")
            axes.set_xticks(
                range(len(mine)), [one.point.parameters["order"].replace("_", "\n") for one in mine]
            )
            axes.set_title(f"{setup}: {kind}")
            axes.set_yscale("symlog", linthresh=100)
        panels[0].set_ylabel("one-way latency (µs)")
        for name, color in (("mean", "C0"), ("longest", "C1")):
            panels[0].plot([], [], "s", color=color, label=name)
        panels[0].plot([], [], color="black", label="bound of the worst message")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.suptitle("Latency under three schedulers")


def _channel(
    kind: str, *, greedy: bool = False, begins_us: float = 0.0, hurries_until_us: float = 0.0
) -> Channel:
    return Channel(
        source=0,
        target=1 + (kind == OTHER),
        kind=kind,
        mb_per_s=RATES_MB_PER_S[kind],
        message_bytes=MESSAGE_BYTES,
        traffic="constant",
        sends_mb_per_s=RATES_MB_PER_S[kind] * (GREED if greedy else 1),
        begins_us=begins_us,
        hurries_until_us=hurries_until_us,
    )


def catching_up_us(hurry_us: float) -> float:
    """The time that a message of A waits at least under VirtualClock, if A has sent for `hurry_us` at twice its rate.

    A's next stamp is then `hurry_us` ahead of the clock. The others begin with the clock, and their stamps go `GREED`
    times as fast. Until they have passed A's their messages go first, and the card always has some of them. A's message
    may be due an interval late. The others' last stamp before A's may be an interval early, and was given one before.
    """
    own, other = (MESSAGE_BYTES / RATES_MB_PER_S[kind] for kind in (KEEPS, OTHER))
    return hurry_us / GREED - 2 * other / GREED - own


def _first_us(point: Point, measured: Mapping[str, Any], kind: str) -> float:
    """The longest wait of a class' messages that are due while stamps catch up: `HURRY_US` over `GREED`, from the
    others' begin on. Later the card lacks more and more of what is asked, and all wait for that. 0 if there are none.
    """
    channels = [Channel(**one) for one in point.spec["channels"]]
    begin, end = point.spec["warm_up_us"], measured["end_us"]
    until = begin + max(one.hurries_until_us for one in channels) / GREED
    longest = 0.0
    for channel, run in zip(channels, measured["channels"], strict=True):
        for number, due in enumerate(run["due_us"]):
            if channel.kind == kind and begin <= due < until:
                there = run["received_us"][number] if number < len(run["received_us"]) else end
                longest = max(longest, there - due)
    return longest


def _catching_up_us(outcome: Outcome) -> float:
    return catching_up_us(max(one["hurries_until_us"] for one in outcome.point.spec["channels"]))


def bound_us(order: str, channel: Channel, *, ahead_bytes: int) -> float | None:
    """The bound on a message's one-way latency under a scheduler; None where there is none.

    The scheduler's own bound is that of one server that takes one message at a time. The card is a chain: a message
    that the scheduler has chosen may stand behind all others that it has chosen (`messages_begun`). Some of them wait
    for a packet buffer. Then it is received. So these times come on top: of the longest message to send, once for each
    message under way, and to receive.
    """
    card, program, capacity = via_card("qosvia"), via_program("qosvia"), via_capacity("qosvia")
    tick_ns = card.tick_cycles / card.clock_hz * 1e9
    send_ns = capacity.send.message_ns(MESSAGE_BYTES)
    rate = None
    if channel.mb_per_s is not None:
        ticks = vtick(int(channel.mb_per_s * 1e6), channel.message_bytes, tick_ns=float(tick_ns))
        rate = Rate(message_bytes=channel.message_bytes, interval_ticks=ticks)
    scheduler = find_scheduler(order)(vis=card.channels, bits=card.rtc_bits, best_effort=BEST_EFFORT_RATE)
    ticks_bound = scheduler.wait_bound_ticks(
        rate, ahead_bytes=ahead_bytes, longest_ticks=int(-(-send_ns // tick_ns)), flows=1 + OTHERS
    )
    if ticks_bound is None:
        return None
    chain_ns = messages_begun(program) * send_ns + capacity.receive.message_ns(MESSAGE_BYTES)
    return float(ticks_bound * tick_ns + chain_ns) / 1000


def _carried(outcome: Outcome) -> float:
    """The part of best effort's load that arrived."""
    return float(class_value(outcome, BEST_EFFORT, "bandwidth_mb_per_s")) / BEST_EFFORT_MB_PER_S


def _shown(values: Mapping[str, float | None], unit: str) -> str:
    shown = ", ".join(
        f"{TITLES[order]} {'none' if value is None else f'{value:.4g}{unit}'}"
        for order, value in values.items()
    )
    return f": {shown}" if shown else ""
