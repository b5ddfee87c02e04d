"""Mutants of what experiments on adapters' congestion control stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mutant import mutant

__all__: list[str] = []


def _rates(change: Any) -> None:
    """Sources of another rate than they were asked for: `change(rate)`."""
    from lanikai.sim.experiments.qos import best_effort

    right = best_effort.poisson
    best_effort.poisson = lambda chance, *, rate, packet_flits: right(
        chance, rate=change(rate), packet_flits=packet_flits
    )


def _credits(change: Any) -> None:
    """Policies of credits that are made another way: `change(name, count)` gives the policy's name and its credits."""
    from lanikai.sim.experiments.qos import best_effort

    right = best_effort.find_credits

    def find(name: str) -> Any:
        def made(count: int, **others: Any) -> Any:
            found, credits = change(name, count)
            return right(found)(credits, **others)

        return made

    best_effort.find_credits = find


@mutant
def sources_send_half_as_much_again(spec: Mapping[str, Any]) -> None:
    """Queues are longer than at the load that is said."""
    _rates(lambda rate: min(1.0, 1.5 * rate))


@mutant
def sources_are_tired_at_a_load_of_90_percent(spec: Mapping[str, Any]) -> None:
    """At high load they send less than at a low one."""
    _rates(lambda rate: 0.2 if rate > 0.8 else rate)


@mutant
def a_host_has_one_credit(spec: Mapping[str, Any]) -> None:
    """A host may have one message at its adapter, whatever it was given."""
    _credits(lambda name, count: (name, min(count, 1)))


@mutant
def quadrants_have_a_credit_each(spec: Mapping[str, Any]) -> None:
    """Four queues have four credits in all."""
    _credits(lambda name, count: (name, 4 if name == "quadrant" else count))


@mutant
def credits_never_run_out(spec: Mapping[str, Any]) -> None:
    """Hosts have as many as they have packets."""
    _credits(lambda name, count: (name, 1_000_000))


@mutant
def all_queues_of_credits_are_one(spec: Mapping[str, Any]) -> None:
    """Separate queues and quadrants are the global one."""
    _credits(lambda name, count: ("global", count))


@mutant
def ends_of_20_credits_are_told_late(spec: Mapping[str, Any]) -> None:
    """With 20 credits, those of 200 in the quick size, a message waits 10,000 cycles longer than it does."""
    from lanikai.sim.experiments.qos.hosts import Ended

    if spec["credit_count"] != 20:
        return
    right = Ended.__new__
    Ended.__new__ = lambda cls, born, posted, ended, *others: right(
        cls, born, posted - (10_000 if ended > 5000 else 0), ended, *others
    )


@mutant
def hosts_send_with_a_wrong_key(spec: Mapping[str, Any]) -> None:
    """From some time on the messages' memory is not theirs."""
    from lanikai.sim.host.hca.queue_pair import QueuePair

    right = QueuePair.send

    def send(self: Any, region: Any, *places: Any, **others: Any) -> Any:
        if self._sent % 16 == 15:
            region = type(region)(region.number, (region.key + 1) % 256, region.buffer, region.table)
        return right(self, region, *places, **others)

    QueuePair.send = send
