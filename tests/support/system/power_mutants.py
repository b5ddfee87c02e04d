"""Mutants of what `power-load` stands on: meters that read wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .mutant import mutant

__all__: list[str] = []


def _changed(change: Any) -> None:
    """Meters whose readings have a changed activity of every router: `change(activity)`."""
    from lanikai.sim.energy.meter import ActivityMeter

    right = ActivityMeter.read

    def read(self: Any) -> Any:
        found = right(self)
        return replace(found, routers=tuple(change(one) for one in found.routers))

    ActivityMeter.read = read


@mutant
def routers_take_power_without_traffic(spec: Mapping[str, Any]) -> None:
    """Links carry 50 flits more in a reading than there are: power does not begin at zero."""
    _changed(lambda one: replace(one, link_flits=one.link_flits + 50 * (one.link_flits > 0)))


@mutant
def links_are_counted_twice(spec: Mapping[str, Any]) -> None:
    """A flit on a link counts for two."""
    _changed(lambda one: replace(one, link_flits=2 * one.link_flits))


@mutant
def a_read_in_a_hundred_is_forgotten(spec: Mapping[str, Any]) -> None:
    """One read of a buffer in a hundred is not counted."""
    _changed(lambda one: replace(one, buffer_reads=one.buffer_reads - one.buffer_reads // 100))
