"""A server of messages under a scheduler of VIA, and the fluid servers that it is held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lanikai.firmware.via.schedulers.base import Rate, Scheduler

__all__ = ["Arrival", "Service", "own_link_finish", "serve"]


@dataclass(frozen=True)
class Arrival:
    """A message of `bytes` that comes at `at`, ticks."""

    at: int
    vi: int
    bytes: int


@dataclass(frozen=True)
class Service:
    """Message `number` of the arrivals, served from `begin` to `end`, ticks."""

    number: int
    arrival: Arrival
    begin: Fraction
    end: Fraction


def serve(
    scheduler: Scheduler, arrivals: Sequence[Arrival], *, bytes_per_tick: Fraction, offset: int = 0
) -> list[Service]:
    """Serve the arrivals, one message at a time, in the scheduler's order. Its clock begins at `offset`.

    The card sees whole ticks: what comes during a message is stamped when it comes.
    """
    wrap = 1 << scheduler.bits
    order = sorted(range(len(arrivals)), key=lambda number: arrivals[number].at)
    waiting: dict[int, list[int]] = {}
    done: list[Service] = []
    time = Fraction(0)

    def come(until: Fraction) -> None:
        while order and arrivals[order[0]].at <= until:
            number = order.pop(0)
            one = arrivals[number]
            scheduler.stamp(one.vi, (one.at + offset) % wrap, one.bytes)
            waiting.setdefault(one.vi, []).append(number)

    while order or any(waiting.values()):
        come(time)
        vi = scheduler.choose((int(time) + offset) % wrap)
        if vi is None:
            assert not any(waiting.values()), "the server rests while a message waits"
            time = Fraction(arrivals[order[0]].at)
            continue
        scheduler.served(vi, (int(time) + offset) % wrap)
        number = waiting[vi].pop(0)
        end = time + Fraction(arrivals[number].bytes) / bytes_per_tick
        done.append(Service(number, arrivals[number], time, end))
        come(end)
        time = end
    return done


def own_link_finish(arrivals: Sequence[Arrival], rates: dict[int, Rate]) -> list[Fraction]:
    """The times at which each message would end if its VI had a link of its rate alone: GPS with no idle bandwidth."""
    free: dict[int, Fraction] = {}
    ends: list[Fraction] = [Fraction(0)] * len(arrivals)
    for number in sorted(range(len(arrivals)), key=lambda one: arrivals[one].at):
        one = arrivals[number]
        rate = rates[one.vi]
        start = max(Fraction(one.at), free.get(one.vi, Fraction(0)))
        ends[number] = free[one.vi] = start + Fraction(one.bytes * rate.interval_ticks, rate.message_bytes)
    return ends
