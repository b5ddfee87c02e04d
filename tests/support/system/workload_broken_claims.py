"""The broken claims of experiments whose work is given."""

from __future__ import annotations

from .broken import Broken, place

__all__ = ["WORKLOAD_BROKEN"]

WORKLOAD_BROKEN = (
    Broken(
        experiment="network-trace",
        mutant="an arrival is not noted",
        claims=("every packet of the trace has arrived",),
    ),
    Broken(
        experiment="network-trace",
        mutant="departures are noted late",
        claims=("no packet comes sooner than its flits",),
    ),
    Broken(
        experiment="flow-times",
        mutant="arrivals are noted early",
        claims=("no flow completes sooner than alone",),
    ),
    Broken(
        experiment="flow-times",
        mutant="loads are turned around",
        claims=("the more load, the larger the mean slowdown",),
    ),
    Broken(
        experiment="collectives",
        mutant="a number changes on the wire",
        claims=("every number at every node is right",),
        keep=place("operation", "all_reduce_ring"),
    ),
    Broken(
        experiment="collectives",
        mutant="flits are counted twice",
        claims=("no operation takes less time than the link",),
    ),
    Broken(
        experiment="collectives",
        mutant="a number changes in mpi",
        claims=("every number at every node is right",),
        settings=("over=mpi", "elements=64"),
        keep=place("operation", "incast"),
    ),
    # The bound is loose: a seventh of the time, for 256 numbers.
    Broken(
        experiment="collectives",
        mutant="bytes in mpi are counted hundredfold",
        claims=("no operation takes less time than the link",),
        settings=("over=mpi", "elements=256"),
        keep=place("operation", "incast"),
    ),
    Broken(
        experiment="goal-replay",
        mutant="the last messages are left out",
        claims=("every message has arrived as it was sent",),
    ),
    Broken(
        experiment="goal-replay",
        mutant="computing takes no time",
        claims=("the schedule takes no less than the computing",),
        settings=("calc_scale=100",),
    ),
)
