"""The broken claims of `power-load` and `peak-power`."""

from __future__ import annotations

from .broken import Broken

__all__ = ["POWER_BROKEN"]

LOADS = "loads=[0.1, 0.3]"
HALF, TOP = "loads=[0.5]", "loads=[0.7]"
ALL_BEST_EFFORT, ALL_REAL_TIME = "real_time_shares=[0.0]", "real_time_shares=[1.0]"
BOTH = 'schemes=["power", "power_herd"]'
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
    Broken(
        experiment="peak-power",
        mutant="links are counted twice",
        settings=('schemes=["none", "power_herd"]', HALF),
        claims=("the budget is the mean power at", "cycles take more than the budget"),
    ),
    Broken(
        experiment="peak-power",
        mutant="budgets of adapters and routers are forgotten",
        settings=('schemes=["power"]', TOP),
        claims=("cycles take more than the budget",),
    ),
    Broken(
        experiment="peak-power",
        mutant="sources are tired under congestion control",
        settings=('schemes=["congestion"]', TOP),
        claims=("at the highest load congestion control alone takes more",),
    ),
    Broken(
        experiment="peak-power",
        mutant="sources are tired under PowerHerd",
        settings=('schemes=["none", "power_herd"]', TOP),
        claims=("at the highest load PowerHerd costs",),
    ),
    Broken(
        experiment="peak-power",
        mutant="sources are tired under PowerHerd",
        settings=(BOTH, TOP, ALL_BEST_EFFORT),
        claims=("best effort alone takes less power",),
    ),
    Broken(
        experiment="peak-power",
        mutant="sources are tired under peak power control",
        settings=(BOTH, TOP, ALL_REAL_TIME),
        claims=("real time alone takes more power",),
    ),
    *(
        Broken(
            experiment="peak-power",
            mutant=f"{kind} is late under peak power control",
            settings=('schemes=["none", "power"]', TOP),
            claims=("peak power control has the lowest latency of",),
        )
        for kind in ("real time", "best effort")
    ),
    Broken(
        experiment="peak-power",
        mutant="hosts send with a wrong key",
        settings=('schemes=["none"]', HALF),
        claims=("and every request was answered",),
    ),
)
