"""Weights of traffic classes, as rows of the tables of a network's VL arbiters."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.config import ConfigError
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from lanikai.hdl.weights import MAX_WEIGHT

__all__ = ["WEIGHTED", "check_weights", "weight_rows"]

Row = tuple[int, int]
WEIGHTED = tuple(sorted(name for name, kind in VL_ARBITERS.items() if kind.has_tables))
"""The VL arbiters that take weights."""


def check_weights(weights: Sequence[int], *, classes: int, vl_arbiter: str, packet_flits: int) -> None:
    """Raise ConfigError for weights, one a class, that an arbiter does not take. None at all are always right."""
    if not weights:
        return
    if vl_arbiter not in WEIGHTED:
        raise ConfigError(
            f"weights = {list(weights)}: vl_arbiter = {vl_arbiter!r} has no tables of weights; those that have: "
            f"{', '.join(WEIGHTED)}"
        )
    if len(weights) != classes:
        raise ConfigError(
            f"weights = {list(weights)}: {len(weights)} weights: one for each of {classes} classes"
        )
    unit = packet_flits if VL_ARBITERS[vl_arbiter].sparse_tables else 1
    for number, weight in enumerate(weights):
        if not 1 <= weight * unit <= MAX_WEIGHT:
            quanta = f", as it gives quanta of so many packets of {packet_flits} flits" if unit > 1 else ""
            raise ConfigError(
                f"weights[{number}] = {weight}: {vl_arbiter!r} takes 1 to {MAX_WEIGHT // unit}{quanta}"
            )


def weight_rows(weights: Sequence[int], *, lanes: int, vl_arbiter: str, packet_flits: int) -> list[Row]:
    """The rows (VL, weight) by which each VL of a class has the class's weight.

    Class c has the VLs from c `lanes` on. `sparse_tables` take quanta in flits: a weight is so many packets.
    """
    unit = packet_flits if VL_ARBITERS[vl_arbiter].sparse_tables else 1
    return [
        (number * lanes + lane, weight * unit)
        for number, weight in enumerate(weights)
        for lane in range(lanes)
    ]
