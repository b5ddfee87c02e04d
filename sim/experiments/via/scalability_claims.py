"""The ten claims of [via-scalability] of published.toml, and one more, as checks.

Their limits were set before anything was run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lanikai.firmware.via.ladder import LADDER

from ..framework.base import Claim, Outcome

__all__ = ["INDEPENDENT", "LINEAR", "LITTLE", "by_load", "claims"]

BASE, OVERLAP, QUEUES, DOOR, TAILGATING, TWO_CPUS, SHADOW = LADDER
LINEAR = 0.98
"""Square of the correlation from which on a curve is almost a line."""
PARALLEL = 0.2
"""Part by which the growth of the wait may differ from the growth of the latency, to be in step with it."""
LITTLE = 0.1
"""Relative: a gain that is little."""
LARGE = 0.15
"""Relative: a gain that is large."""
REASONABLE = 0.03
"""Relative: a gain that is worth while."""
INDEPENDENT = 0.02
"""Relative: latencies that do not depend on declared VIs differ by so much at most."""
RISE = 0.05
"""Relative: a rise from few to 508 declared VIs."""
FLAT = 1.1
"""Ratio of the cost at 508 declared VIs to that at 28, of what is flat."""


def by_load(outcomes: Sequence[Outcome]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Parameters and results of each load. A point has several, whose values are lists in their order."""
    found = []
    for one in outcomes:
        for place in range(len(one.results["latency_us"])):
            found.append((_at(one.point.parameters, place), _at(one.results, place)))
    return found


def _at(values: Mapping[str, Any], place: int) -> dict[str, Any]:
    return {name: value[place] if isinstance(value, list) else value for name, value in values.items()}


class Found:
    """The outcomes, to be asked for by their parameters."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._rows = by_load(outcomes)

    def curve(self, x: str, y: str = "latency_us", /, **wanted: Any) -> dict[int, float]:
        """`y` by `x` of the outcomes that have the parameters `wanted`, and the defaults of the rest, by rising x."""
        plain = {"immediate": False, "messages_at_once": 1, "completion_queue": True}
        asked = {**plain, **wanted}
        found = {
            its[x]: results[y]
            for its, results in self._rows
            if all(its[name] == value for name, value in asked.items())
            and (its["type"] == "I") == (wanted.get("type") == "I")
        }
        return dict(sorted(found.items()))


def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """All ten, in their order, and that on declared VIs from 4 on."""
    found = Found(outcomes)
    return [
        _base(found),
        _payload(found),
        _completion_queue(found),
        _overlap(found),
        _queues(found),
        _door(found),
        _tailgating(found),
        _two_processors(found),
        _shadow(found),
        _total(found),
        _independent(found),
    ]


def _base(found: Found) -> Claim:
    wanted: dict[str, Any] = {"design": BASE, "active_vis": 8, "message_bytes": 128, "immediate": True}
    latency = found.curve("declared_vis", **wanted)
    wait = found.curve("declared_vis", "wait_us", **wanted)
    text = "Base: latency grows almost linearly with declared VIs, in step with the wait in the send queue"
    if len(latency) < 3:
        return Claim.unjudged(text, "there are less than three numbers of declared VIs")
    grown = max(latency.values()) - min(latency.values())
    waited = max(wait.values()) - min(wait.values())
    holds = (
        _correlation(latency) >= LINEAR
        and list(latency.values()) == sorted(latency.values())
        and grown > 0
        and abs(waited - grown) <= PARALLEL * grown
    )
    return Claim(
        text=f"{text}: r^2 = {_correlation(latency):.3f}, {grown:.0f} us and {waited:.0f} us more",
        holds=holds,
    )


def _payload(found: Found) -> Claim:
    curve = found.curve("message_bytes", design=BASE, declared_vis=508, active_vis=508, immediate=True)
    text = "type II, 508 VIs: an immediate message of 32 or 64 bytes is faster than one of 8"
    longer = [curve[length] for length in (32, 64) if length in curve]
    if 8 not in curve or not longer:
        return Claim.unjudged(text, "the sizes were not run")
    # Less than that is luck: one round's mean has differed by so much from one firmware to the next.
    faster = min(longer) < (1 - LITTLE) * curve[8]
    return Claim(text=f"{text}: {min(longer):.1f} us against {curve[8]:.1f}", holds=faster)


def _completion_queue(found: Found) -> Claim:
    costs = [
        found.curve(
            "declared_vis",
            "host_receive_us",
            design=BASE,
            type="I",
            message_bytes=128,
            completion_queue=queue,
        )
        for queue in (True, False)
    ]
    text = (
        "with a completion queue the host's cost to receive is flat in declared VIs, without one it is linear"
    )
    if min(len(one) for one in costs) < 3:
        return Claim.unjudged(text, "there are less than three numbers of declared VIs")
    ratios = [max(one.values()) / min(one.values()) for one in costs]
    return Claim(
        text=f"{text}: {ratios[0]:.2f} and {ratios[1]:.2f} times from the fewest to the most",
        holds=ratios[0] <= FLAT and ratios[1] > 4 * FLAT and _correlation(costs[1]) >= LINEAR,
    )


def _overlap(found: Found) -> Claim:
    text = "Base+O beats Base at 4 KB, more with load, and is slower at 128 bytes, more with load"
    gains = {length: _differences(found, BASE, OVERLAP, length) for length in (4096, 128)}
    if min(len(one) for one in gains.values()) < 2:
        return Claim.unjudged(text, "there are less than two numbers of active VIs at both sizes")
    long, short = list(gains[4096].values()), list(gains[128].values())
    return Claim(
        text=f"{text}: {_list(long)} us less, and {_list([-one for one in short])} us more",
        holds=min(long) > 0 and _rises(long) and max(short) < 0 and _rises([-one for one in short]),
    )


def _queues(found: Found) -> Claim:
    text = (
        "hardware DMA queues add little to Base+O at 4 KB, and help at 128 bytes, where Base is still better"
    )
    long = _pairs(found, OVERLAP, QUEUES, 4096)
    short, base = _pairs(found, OVERLAP, QUEUES, 128), _pairs(found, BASE, QUEUES, 128)
    if not long or not short or not base:
        return Claim.unjudged(text, "the designs were not run with both sizes")
    little = [1 - after / before for before, after in long.values()]
    return Claim(
        text=f"{text}: {_list([100 * one for one in little])}% at 4 KB",
        holds=max(abs(one) for one in little) <= LITTLE
        and all(after < before for before, after in short.values())
        and all(after > before for before, after in base.values()),
    )


def _door(found: Found) -> Claim:
    text = (
        "128 bytes: with the doorbell queue latency does not depend on declared VIs; without it, it is flat at first, "
        "then rises"
    )
    spreads, rises, bends = [], [], []
    for active in (4, 12, 28, 60):
        door = found.curve("declared_vis", design=DOOR, active_vis=active, message_bytes=128)
        if len(door) > 1:
            spreads.append(max(door.values()) / min(door.values()) - 1)
        polled = list(
            found.curve("declared_vis", design=QUEUES, active_vis=active, message_bytes=128).items()
        )
        if len(polled) > 2:
            slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(polled)]
            rises.append(polled[-1][1] > (1 + RISE) * polled[0][1])
            bends.append(slopes[-1] > slopes[0])
    if not spreads or not rises:
        return Claim.unjudged(text, "one of the designs was not run with several numbers of declared VIs")
    return Claim(
        text=f"{text}: {max(spreads):.1%} at most with the queue",
        # The more VIs are active, the longer the polls are hidden behind DMAs: with few, the flat part may be over.
        holds=max(spreads) <= INDEPENDENT and all(rises) and bends[-1],
    )


def _tailgating(found: Found) -> Claim:
    text = "type IV, two sends a VI, 128 bytes: tailgating is a reasonable gain; about half the messages skip the DMA"
    pairs = _pairs(found, DOOR, TAILGATING, 128, messages_at_once=2)
    dmas = found.curve(
        "active_vis", "descriptor_dmas", design=TAILGATING, message_bytes=128, messages_at_once=2
    )
    if not pairs:
        return Claim.unjudged(text, "tailgating was not run with two sends a VI")
    gains = [1 - after / before for before, after in pairs.values()]
    return Claim(
        text=f"{text}: {_list([100 * one for one in gains])}%; {_list(list(dmas.values()))} DMAs a message",
        holds=min(gains) >= REASONABLE and all(0.4 <= one <= 0.6 for one in dmas.values()),
    )


def _two_processors(found: Found) -> Claim:
    text = "128 bytes: two processors are a large gain that grows with load"
    pairs = _pairs(found, DOOR, TWO_CPUS, 128)
    if len(pairs) < 2:
        return Claim.unjudged(text, "there are less than two numbers of active VIs")
    gains = [1 - after / before for before, after in pairs.values()]
    return Claim(
        text=f"{text}: {_list([100 * one for one in gains])}%",
        holds=min(gains) >= LARGE and _rises([before - after for before, after in pairs.values()]),
    )


def _shadow(found: Found) -> Claim:
    text = "type III, 128 bytes: shadow queues lower latency further; no descriptor comes by DMA"
    pairs = _pairs(found, TWO_CPUS, SHADOW, 128)
    dmas = found.curve("active_vis", "descriptor_dmas", design=SHADOW, message_bytes=128, declared_vis=60)
    if not pairs:
        return Claim.unjudged(text, "the designs were not run")
    return Claim.every(
        f"{text}: {_list([100 * (1 - after / before) for before, after in pairs.values()])}%",
        [*(after < before for before, after in pairs.values()), *(one == 0 for one in dmas.values())],
    )


def _total(found: Found) -> Claim:
    verdicts: list[bool] = []
    ratios: list[float] = []
    for length in (128, 1024, 4096):
        for active in (12, 60):
            curves = [
                found.curve("declared_vis", design=design, active_vis=active, message_bytes=length)
                for design in (BASE, SHADOW)
            ]
            for declared in curves[0].keys() & curves[1].keys():
                verdicts.append(curves[1][declared] < curves[0][declared])
                ratios.append(curves[0][declared] / curves[1][declared])
    return Claim.every(
        "128 bytes, 1 KB, 4 KB: the full design beats Base at 12 and at 60 active VIs, few and many of them declared: "
        f"{min(ratios, default=0):.2f} to {max(ratios, default=0):.2f} times",
        verdicts,
        nothing="both designs were not run alike",
    )


def _independent(found: Found) -> Claim:
    text = "with the doorbell queue latency with 508 declared VIs is within 2% of that with 4"
    curve = found.curve("declared_vis", design=DOOR, active_vis=4, message_bytes=128)
    if not {4, 508} <= curve.keys():
        return Claim.unjudged(text, "4 and 508 declared VIs were not run")
    spread = max(curve.values()) / min(curve.values()) - 1
    return Claim(text=f"{text}: {curve[4]:.2f} us and {curve[508]:.2f} us", holds=spread <= INDEPENDENT)


def _pairs(found: Found, before: str, after: str, length: int, **more: Any) -> dict[int, tuple[float, float]]:
    """Latencies of two designs with 60 declared VIs, by active VIs."""
    a, b = (
        found.curve("active_vis", design=design, declared_vis=60, message_bytes=length, **more)
        for design in (before, after)
    )
    return {active: (a[active], b[active]) for active in sorted(a.keys() & b.keys())}


def _differences(found: Found, before: str, after: str, length: int) -> dict[int, float]:
    return {active: a - b for active, (a, b) in _pairs(found, before, after, length).items()}


def _rises(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{one:.3g}" for one in values)


def _correlation(curve: Mapping[int, float]) -> float:
    """The square of the correlation of a curve with a line."""
    xs, ys = list(curve), list(curve.values())
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    xx, yy = sum((x - mean_x) ** 2 for x in xs), sum((y - mean_y) ** 2 for y in ys)
    return xy * xy / (xx * yy) if xx and yy else 0.0
