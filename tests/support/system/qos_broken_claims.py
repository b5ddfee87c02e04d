"""The broken claims of experiments on adapters' congestion control."""

from __future__ import annotations

from .broken import Broken

__all__ = ["QOS_BROKEN"]

CQ = "loads=[0.9]"
QOS_BROKEN = (
    Broken(
        experiment="congestion",
        mutant="sources send half as much again",
        settings=('schemes=["none"]', "loads=[0.4]"),
        claims=("queueing delays below",),
        outside=True,
    ),
    Broken(
        experiment="congestion",
        mutant="sources send half as much again",
        settings=('schemes=["none"]', "loads=[0.7]"),
        claims=("queueing delays at",),
        outside=True,
    ),
    Broken(
        experiment="congestion",
        mutant="credits never run out",
        settings=('schemes=["credit_200"]', "loads=[0.9]"),
        claims=("packets wait for credits",),
    ),
    Broken(
        experiment="congestion",
        mutant="a host has one credit",
        settings=('schemes=["credit_200", "self_tuned"]', "loads=[0.6]"),
        claims=("credits have no higher latency than", "credits have no less throughput than"),
    ),
    Broken(
        experiment="congestion",
        mutant="sources are tired at a load of 90 percent",
        settings=('schemes=["none"]', "loads=[0.4, 0.9]"),
        claims=("there is no drop of throughput",),
    ),
    Broken(
        experiment="congestion",
        mutant="ends of 20 credits are told late",
        settings=('schemes=["credit_200", "none"]', "loads=[0.9]"),
        claims=("at the highest load fewer credits",),
    ),
    Broken(
        experiment="congestion",
        mutant="hosts send with a wrong key",
        settings=('schemes=["none"]', "loads=[0.4]"),
        claims=("every message that ended did so without an error",),
    ),
    Broken(
        experiment="cq-config",
        mutant="credits never run out",
        settings=(CQ,),
        claims=("packets wait for a credit with every kind",),
    ),
    Broken(
        experiment="cq-config",
        mutant="all queues of credits are one",
        settings=(CQ,),
        claims=("separate queues cut latency",),
    ),
    Broken(
        experiment="cq-config",
        mutant="quadrants have a credit each",
        settings=(CQ,),
        claims=("four queues are no slower", "power does not differ"),
    ),
    Broken(
        experiment="cq-config",
        mutant="hosts send with a wrong key",
        settings=(CQ,),
        claims=("every message that ended did so without an error",),
    ),
)
