"""Broken claims of VIA: for each claim of its experiments a mutant that makes it false."""

from __future__ import annotations

from lanikai.sim.experiments.framework.base import Point

from .broken import Broken, place

__all__ = ["VIA_BROKEN"]


def _long(point: Point) -> bool:
    """Every design of the ladder, with messages whose data do not stand in the descriptor."""
    return not point.parameters["immediate"] and bool(point.parameters["completion_queue"])


def _declared(point: Point) -> bool:
    """Few and many declared VIs: polled, and with a doorbell queue."""
    its = point.parameters
    return its["immediate"] or its["design"] in ("Base+O+DMAQ", "Door+O+DMAQ")


def _type_i(point: Point) -> bool:
    """One active VI a process, with a completion queue and without."""
    return "I" in point.parameters["type"]


VIA_BROKEN = (
    Broken(
        experiment="via-anatomy",
        mutant="descriptors are always fetched by the card",
        claims=("of bursts of two nearly half", "with shadow queues stages 3 and 4 are absent"),
        keep=place("design", "Door+O+DMAQ tailgating", "Door+O+DMAQ+2CPU shadow queues"),
    ),
    Broken(
        experiment="via-anatomy",
        mutant="messages of base overlap",
        claims=("in Base the stages of messages follow one another",),
        keep=place("design", "Base"),
    ),
    Broken(
        experiment="via-anatomy",
        mutant="one message at a time",
        claims=("from Base+O on stages of different messages overlap",),
        keep=place("design", "Base+O"),
    ),
    Broken(
        experiment="via-anatomy",
        mutant="descriptors leave no trace",
        claims=("every descriptor that is sent has stages 3 and 4",),
        keep=place("design", "Base+O"),
    ),
    Broken(
        experiment="via-bulk",
        mutant="parallel designs take ten times as long",
        claims=("from 4 KB on PVIA and QoSVIA outperform SVIA",),
        settings=("message_bytes=[4096]", "windows=[4]"),
        outside=True,
    ),
    Broken(
        experiment="via-bulk",
        mutant="svia takes ten times as long",
        claims=("with 1 KB or less their overheads",),
        settings=("message_bytes=[4]", "windows=[4]"),
        outside=True,
    ),
    Broken(
        experiment="via-bulk",
        mutant="pvia pays for stamps",
        claims=("QoSVIA's stamps and insertions cost a message something",),
        settings=("message_bytes=[4]", "windows=[4]"),
    ),
    Broken(
        experiment="via-latency",
        mutant="svia takes ten times as long",
        claims=("every stage ends within 10% or 2 us", "a message takes longer by PVIA than by SVIA"),
        settings=("message_bytes=[4, 1024]",),
        outside=True,
    ),
    Broken(
        experiment="via-cbr",
        mutant="firmware of via is slow",
        claims=("every class has its rate under every design",),
        keep=place("load_mb_per_s", 30.0),
    ),
    Broken(
        experiment="via-cbr",
        mutant="svia takes no cycles",
        claims=("SVIA's jitter fraction is above",),
    ),
    Broken(
        experiment="via-cbr",
        mutant="qosvia is slow",
        claims=("QoSVIA has no more packets with jitter than PVIA",),
        keep=place("load_mb_per_s", 30.0),
    ),
    Broken(
        experiment="via-qos-load",
        mutant="firmware of via is slow",
        claims=("jitter starts under SVIA first", "jitter starts at"),
        keep=place("load_mb_per_s", 43.0, 53.0),
    ),
    Broken(
        experiment="via-qos-load",
        mutant="firmware of via is slow",
        claims=("under SVIA the latency of best effort is several times higher",),
        keep=place("load_mb_per_s", 43.0, 67.0),
    ),
    Broken(
        experiment="via-qos-load",
        mutant="qosvia has no stamps",
        claims=("below PVIA's onset best effort is slower under QoSVIA",),
        keep=place("load_mb_per_s", 43.0, 53.0),
    ),
    Broken(
        experiment="via-vbr",
        mutant="firmware of via is slow",
        claims=("QoSVIA sustains the highest load before jitter",),
        keep=place("load_mb_per_s", 56.6, 63.25),
    ),
    Broken(
        experiment="via-hns",
        mutant="a send queue in hardware is slow",
        claims=("lowers the latency at every load", "it lowers the jitter fraction"),
    ),
    Broken(
        experiment="via-scalability",
        mutant="vis are not declared",
        claims=(
            "Base: latency grows almost linearly",
            "does not depend on declared VIs; without it, it is flat",
        ),
        keep=_declared,
    ),
    Broken(
        experiment="via-scalability",
        mutant="a doorbell costs a look at every declared vi",
        claims=("latency with 508 declared VIs is within 2% of that with 4",),
        keep=place("design", "Door+O+DMAQ"),
    ),
    Broken(
        experiment="via-scalability",
        mutant="immediate messages are all long",
        claims=("an immediate message of 32 or 64 bytes is faster than one of 8",),
        keep=place("immediate", True),
    ),
    Broken(
        experiment="via-scalability",
        mutant="completion queues are searched",
        claims=("with a completion queue the host's cost to receive is flat",),
        keep=_type_i,
    ),
    Broken(
        experiment="via-scalability",
        mutant="parallel designs take no cycles",
        claims=(
            "Base+O beats Base at 4 KB",
            "hardware DMA queues add little",
            "two processors are a large gain",
        ),
        keep=_long,
    ),
    Broken(
        experiment="via-scalability",
        mutant="descriptors of via are always fetched",
        claims=("tailgating is a reasonable gain", "shadow queues lower latency further"),
        keep=_long,
    ),
    Broken(
        experiment="via-scalability",
        mutant="parallel designs are slow",
        claims=("the full design beats Base at 12 and at 60 active VIs",),
        keep=_long,
    ),
    Broken(
        experiment="via-schedulers",
        mutant="virtualclock forgets",
        claims=(
            "VirtualClock punishes a channel for idle bandwidth",
            "waits for longer than that of a channel",
        ),
        keep=place("setup", "idle bandwidth"),
    ),
    Broken(
        experiment="via-schedulers",
        mutant="best effort has the first stamps",
        claims=("VirtualClock starves best effort",),
        keep=place("setup", "greedy"),
    ),
    Broken(
        experiment="via-schedulers",
        mutant="best effort has the last stamps",
        claims=("WF2Q+ and deficit round robin do not", "no message of a channel that keeps to its rate"),
        keep=place("setup", "greedy"),
    ),
    Broken(
        experiment="via-admission",
        mutant="firmware of via is slow",
        claims=("no message takes a card longer than admission reckons with",),
        keep=place("setup", "send"),
    ),
    Broken(
        experiment="via-admission",
        mutant="cards of via promise everything",
        claims=("some are refused, and those that are granted have their rate",),
        keep=place("setup", "admission"),
    ),
    Broken(
        experiment="via-admission",
        mutant="every channel of via asks",
        claims=("without admission they have not",),
        keep=place("setup", "control"),
    ),
)
