"""The broken claims of `power-load`."""

from __future__ import annotations

from .broken import Broken

__all__ = ["POWER_BROKEN"]

LOADS = "loads=[0.1, 0.3]"
POWER_BROKEN = (
    Broken(
        experiment="power-load",
        mutant="routers take power without traffic",
        settings=(LOADS,),
        claims=("power is proportional to the load",),
    ),
    Broken(
        experiment="power-load",
        mutant="links are counted twice",
        settings=(LOADS,),
        claims=("a flit takes what E_packet says for its way",),
    ),
    Broken(
        experiment="power-load",
        mutant="a read in a hundred is forgotten",
        settings=(LOADS,),
        claims=("every flit that routers have written they have read",),
    ),
)
