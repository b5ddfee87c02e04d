"""Sources of packets: ON/OFF real-time traffic, Poisson best effort, control packets (yum-2006 6.2)."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from random import Random

from .messages import CONTROL_FLITS, PACKET_FLITS, Message, check_positive, check_rate

__all__ = ["control", "on_off", "on_off_rate", "poisson"]

CONTROL_PACKETS = 10
"""Control packets of a source in a period."""


def on_off(
    random: Random,
    *,
    peak_rate: float,
    on_cycles: float,
    off_cycles: float,
    packet_flits: int = PACKET_FLITS,
) -> Iterator[Message]:
    """Packets of an ON/OFF source: ON and OFF times are exponential, with these means.

    In an ON time packets come evenly, at `peak_rate` flits a cycle; the first one comes at its start. `frame` is the
    number of the ON time. No packet is `last`, as no source knows when its ON time ends. The source begins somewhere in
    a period: ON with the chance that it is ON in the long run.

    Raises ConfigError for a rate above 1 or times that are not above 0.
    """
    check_rate("on_off: peak_rate", peak_rate)
    check_positive("on_off: on_cycles", on_cycles)
    check_positive("on_off: off_cycles", off_cycles)
    gap = packet_flits / peak_rate
    time = 0.0
    if random.random() >= on_cycles / (on_cycles + off_cycles):
        time = random.expovariate(1 / off_cycles)
    number = 0
    while True:
        end = time + random.expovariate(1 / on_cycles)
        while time < end:
            yield Message(round(time), packet_flits, number, last=False)
            time += gap
        time = end + random.expovariate(1 / off_cycles)
        number += 1


def on_off_rate(
    *, peak_rate: float, on_cycles: float, off_cycles: float, packet_flits: int = PACKET_FLITS
) -> float:
    """The mean rate of `on_off`, flits a cycle.

    A mean ON time has 1 / (1 - exp(-gap / ON)) packets: one at its start, and one more for each gap that it lasts.
    """
    packets = 1 / (1 - exp(-packet_flits / peak_rate / on_cycles))
    return packets * packet_flits / (on_cycles + off_cycles)


def poisson(random: Random, *, rate: float, packet_flits: int = PACKET_FLITS) -> Iterator[Message]:
    """Packets whose gaps are exponential, at a mean `rate` of flits a cycle.

    `frame` counts them. Raises ConfigError for a rate that is not above 0 and at most 1.
    """
    check_rate("poisson: rate", rate)
    time, number = 0.0, 0
    while True:
        time += random.expovariate(rate / packet_flits)
        yield Message(round(time), packet_flits, number)
        number += 1


def control(random: Random, *, period_cycles: float) -> Iterator[Message]:
    """Control packets: `CONTROL_PACKETS` of them in a period, at exponential gaps.

    Raises ConfigError for a period that is not above 0.
    """
    check_positive("control: period_cycles", period_cycles)
    rate = CONTROL_PACKETS * CONTROL_FLITS / period_cycles
    return poisson(random, rate=min(rate, 1.0), packet_flits=CONTROL_FLITS)
