"""The broken claims of `faults`."""

from __future__ import annotations

from .broken import Broken

__all__ = ["FAULT_BROKEN"]

NETWORK = "systems=network"
CLUSTER = "systems=cluster"
FAULT_BROKEN = (
    Broken(
        experiment="faults",
        mutant="a fault never ends",
        settings=(NETWORK, "kinds=dead"),
        claims=("when the link is sound again",),
    ),
    Broken(
        experiment="faults",
        mutant="a sound link errs",
        settings=(NETWORK, "kinds=none"),
        claims=("on a sound link nothing is lost",),
    ),
    Broken(
        experiment="faults",
        mutant="a sink elsewhere stands still",
        settings=(NETWORK, "kinds=drops"),
        claims=("flows that do not cross the link", "other flows of the network lose at most"),
    ),
    Broken(
        experiment="faults",
        mutant="packets with a wrong bit are good",
        settings=(NETWORK, "kinds=errors"),
        claims=("no packet of the network that was hit",),
    ),
    Broken(
        experiment="faults",
        mutant="errors are not counted",
        settings=(NETWORK, "kinds=errors"),
        claims=("every packet of the network that is lost is seen",),
    ),
    Broken(
        experiment="faults",
        mutant="a byte is changed in memory",
        settings=(CLUSTER, "kinds=errors"),
        claims=("no message of the cluster is delivered with a wrong byte",),
    ),
    Broken(
        experiment="faults",
        mutant="every fifth message is forgotten",
        settings=(CLUSTER, "kinds=errors"),
        claims=("every message of the cluster's other flow arrives", "arrives, or its sender is told"),
    ),
)
