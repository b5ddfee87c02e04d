"""The experiments that can be run: a new one is a module beside this one and a line here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UserError
from ..published import CONSTANTS, source, tables
from .base import Experiment
from .fair_queueing import FairQueueing
from .idt_sweep import IdtSweep
from .incoming_rate import IncomingRate
from .network_load import NetworkLoad
from .rate_overhead import RateOverhead
from .rate_table import RateTable
from .share_bidir import ShareBidir
from .share_receiver import ShareReceiver
from .share_senders import ShareSenders
from .transfer import Transfer
from .vl_isolation import VlIsolation
from .wrr_shares import WrrShares

__all__ = ["EXPERIMENTS", "Listed", "find", "listing"]

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        FairQueueing(),
        IdtSweep(),
        IncomingRate(),
        NetworkLoad(),
        RateOverhead(),
        RateTable(),
        ShareBidir(),
        ShareReceiver(),
        ShareSenders(),
        Transfer(),
        VlIsolation(),
        WrrShares(),
    )
}
"""Every experiment that is built, by name."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A line of `lanikai list`: `name`, `state` (`built`, `not built yet` or `set-up constants`), `source`,
    and what it `asks` where it is built."""

    name: str
    state: str
    source: str
    asks: str = ""


def listing() -> list[Listed]:
    """Every built experiment, then every other table of the published numbers in its order."""
    rows = [Listed(name=e.name, state="built", source=e.source, asks=e.asks) for e in EXPERIMENTS.values()]
    rows += [
        Listed(
            name=name,
            state="set-up constants" if name in CONSTANTS else "not built yet",
            source=source(name),
        )
        for name in tables()
        if name not in EXPERIMENTS
    ]
    return rows


def find(name: str) -> Experiment:
    """The experiment `name`. Raises UserError, with what was probably meant, if it cannot be run."""
    if experiment := EXPERIMENTS.get(name):
        return experiment
    valid = ", ".join(EXPERIMENTS)
    if name in CONSTANTS:
        raise UserError(f"{name!r} holds the constants of a set-up and is no experiment; built are: {valid}")
    if name in tables():
        raise UserError(f"experiment {name!r} is not built yet; built are: {valid}")
    close = difflib.get_close_matches(name, [*EXPERIMENTS, *tables()], n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise UserError(f"unknown experiment {name!r}{hint}; built are: {valid}")
