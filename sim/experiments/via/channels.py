"""Experiments on channels with a rate beside best effort: what the five of nagar-thesis-2001 5.4 share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lanikai.hdl.config import Config

from ..framework.base import Experiment, Outcome, Point, Size
from .cards import SIMULATED_BUFFERS, SIMULATED_MTU_BYTES, via_cluster
from .metrics import Jitter, jitter, latency, mean_jitter
from .workloads import Channel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import ClusterConfig

__all__ = ["BEST_EFFORT", "Case", "ChannelsExperiment", "NoParameters", "class_value"]

BEST_EFFORT = "best effort"
NODES = 5
"""Nodes of every cluster: those that a configuration does not use rest, and all share a build."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run.

    - `design`, `send_queue`, `order`: the card and its program.
    - `setup`: the name of the configuration of nodes.
    - `load_mb_per_s`: the injected load of all channels; of one direction, where there are two. 0: as much as goes.
    - `channels`: the VIs.
    - `parameters`: more that the results are to record.
    - `admit`: the cards refuse channels for which they have no room. Else they promise whatever they are asked.
    """

    design: str
    setup: str
    load_mb_per_s: float
    channels: Sequence[Channel]
    send_queue: bool = False
    order: str | None = None
    parameters: Mapping[str, Any] | None = None
    admit: bool = False

    @property
    def kinds(self) -> list[str]:
        """The classes, in the order of their first channels."""
        return list(dict.fromkeys(one.kind for one in self.channels))

    def point(self, *, until_us: float, warm_up_us: float, film: str = "", simulated: bool = False) -> Point:
        """The point that runs it. Cases that differ in the design alone have the same messages."""
        label = f"{self.design}{', with HNS' if self.send_queue else ''}"
        label += f", {self.order}" if self.order else ""
        return Point(
            label=f"{label}, {self.setup}, {self.load_mb_per_s:g} MB/s",
            parameters={
                "design": self.design,
                "send_queue": self.send_queue,
                "order": self.order or "",
                "setup": self.setup,
                "load_mb_per_s": self.load_mb_per_s,
                "nodes": NODES,
                "class": self.kinds,
                "class_channels": [sum(one.kind == kind for one in self.channels) for kind in self.kinds],
                **(self.parameters or {}),
            },
            spec={
                "design": self.design,
                "order": self.order,
                "channels": [one.spec() for one in self.channels],
                "until_us": until_us,
                "warm_up_us": warm_up_us,
                "film": film,
                "admit": self.admit,
                "receive_buffers": SIMULATED_BUFFERS if simulated else None,
            },
            workload=f"{self.setup}, {self.load_mb_per_s:g} MB/s",
        )


class NoParameters(Config):
    """Parameters of an experiment whose set-up is fixed: none."""


class ChannelsExperiment(Experiment):
    """An experiment on channels. A subclass has `cases`, spans and claims; its runs and its results are here.

    The hosts: a process a node holds the ends of all its VIs. A message is due at its time and is posted then, if its
    VI's queue has a place. What is due beyond that waits at the host, in a list without end. So hosts pump messages
    without flow control, as those of the thesis' simulator. Receiving hosts post a buffer again as soon as they have
    seen it filled. A message that finds none is dropped, which ends
    the run with an error.
    """

    entry = "lanikai.sim.experiments.via.traffic:measure"
    Parameters: ClassVar[type[Config]] = NoParameters
    by_flow: ClassVar[Sequence[str]] = (
        "class",
        "class_channels",
        "theta",
        "sustained",
        "late_part",
        "judged",
        "latency_us",
        "longest_us",
        "bandwidth_mb_per_s",
    )
    element = "class"
    span_us: ClassVar[Mapping[str, float]]
    """Time of a run, by size."""
    warm_up_us: ClassVar[float] = 2000.0
    """Messages that are due before are not judged."""
    film: ClassVar[str] = ""
    """The file of a film's frames, where films are sent."""

    simulated: ClassVar[bool] = False
    """Whether the thesis has it from its simulator (5.4.2): cards have as many packet buffers as their SRAM holds."""

    @abstractmethod
    def cases(self, parameters: Any, size: Size) -> Sequence[Case]:
        """The runs, in order."""

    def points(self, parameters: Any, size: Size) -> list[Point]:
        """A point a case."""
        return [
            one.point(
                until_us=self.span_us[size],
                warm_up_us=self.warm_up_us,
                film=self.film,
                simulated=self.simulated,
            )
            for one in self.cases(parameters, size)
        ]

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """A cluster of `via5` cards with the point's design."""
        chosen = point.parameters
        return via_cluster(
            chosen["design"],
            nodes=chosen["nodes"],
            send_queue=chosen["send_queue"],
            mtu_bytes=SIMULATED_MTU_BYTES if self.simulated else None,
        )

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Jitter, latency and bandwidth of each class, of the messages that were due after the warm-up.

        `judged`: the number of messages that its jitter is taken from.
        """
        begin, end = point.spec["warm_up_us"], measured["end_us"]
        channels = [Channel(**one) for one in point.spec["channels"]]
        found: dict[str, Any] = {
            "theta": [],
            "sustained": [],
            "late_part": [],
            "judged": [],
            "latency_us": [],
            "longest_us": [],
            "bandwidth_mb_per_s": [],
        }
        for kind in point.parameters["class"]:
            jitters: list[Jitter] = []
            due: list[float] = []
            received: list[float] = []
            carried = 0.0
            for channel, run in zip(channels, measured["channels"], strict=True):
                if channel.kind != kind or run.get("refused"):
                    continue
                first = sum(at < begin for at in run["due_us"])
                mine, there = run["due_us"][first:], run["received_us"][first:]
                if channel.interval_us is not None:
                    jitters.append(_jitter(channel, mine, there, end))
                due += mine[: len(there)]
                received += there
                carried += sum(
                    size
                    for size, at in zip(run["bytes"], run["received_us"], strict=False)
                    if begin <= at < end
                )
            judged, waits = mean_jitter(jitters), latency(due, received)
            found["theta"].append(judged.theta if jitters else None)
            found["sustained"].append(judged.sustained if jitters else None)
            found["late_part"].append(judged.late_part if jitters else None)
            found["judged"].append(judged.messages if jitters else None)
            found["latency_us"].append(waits.mean_us if waits.messages else None)
            found["longest_us"].append(waits.longest_us if waits.messages else None)
            found["bandwidth_mb_per_s"].append(carried / (end - begin))
        injected = sum(
            size
            for run in measured["channels"]
            if not run.get("refused")
            for size, at in zip(run["bytes"], run["due_us"], strict=True)
            if begin <= at < end
        )
        return {**found, "injected_mb_per_s": injected / (end - begin), "backlog": measured["backlog"]}

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """The highest jitter fraction of a class, and best effort's latency, against the load; a line a design."""
        left, right = figure.subplots(1, 2)
        lines: dict[str, list[Outcome]] = {}
        for one in outcomes:
            lines.setdefault(one.point.label.rpartition(",")[0], []).append(one)
        for number, (name, mine) in enumerate(lines.items()):
            mine.sort(key=lambda one: float(one.point.parameters["load_mb_per_s"]))
            loads = [one.point.parameters["load_mb_per_s"] for one in mine]
            thetas = [max((x for x in one.results["theta"] if x is not None), default=0) for one in mine]
            style = ("o-", "s--", "^:", "v-.")[number % 4]
            left.plot(loads, thetas, style, label=name, markersize=4)
            waits = [class_value(one, BEST_EFFORT, "latency_us") for one in mine]
            if any(wait is not None for wait in waits):
                right.plot(loads, [wait or float("nan") for wait in waits], style, label=name, markersize=4)
        left.set_ylabel("largest jitter fraction θ of a class")
        right.set_ylabel("one-way latency of best effort (µs)")
        for axes in (left, right):
            axes.set_xlabel("injected load (MB/s)")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.suptitle(self.asks)


def class_value(outcome: Outcome, kind: str, name: str) -> Any:
    """A result of a class; None for one that the point has not."""
    kinds = list(outcome.point.parameters["class"])
    return outcome.results[name][kinds.index(kind)] if kind in kinds else None


def _jitter(channel: Channel, due: Sequence[float], received: Sequence[float], end_us: float) -> Jitter:
    """A channel's jitter. A channel that waits for a message as the run ends has had no less than that gap."""
    interval = channel.interval_us
    assert interval is not None
    receipts, sent = list(received), list(due[: len(received)])
    # A message that has been due for an interval, and has not come.
    if len(received) < len(due) and due[len(received)] + interval < end_us:
        waits = due[len(received)]
        if not receipts:
            receipts, sent = [waits], [waits]
        if end_us - receipts[-1] > interval:
            receipts.append(end_us)
            sent.append(waits)
    # A gap of the source that is longer than the interval is no jitter. One of constant rate has none.
    return jitter(receipts, interval, None if channel.traffic == "constant" else sent)
