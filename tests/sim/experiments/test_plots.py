"""Plots of as many points as the full size has, with made-up results.

Labels beside each other do not overlap, none is cut off, no legend lies over bars or points, and every plot has a
title.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from lanikai.sim.experiments.framework.base import Outcome, Point
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

GAP, UPRIGHT_GAP = 6, 3
"""Pixels between labels, at least: a space between words, and between lines of upright ones."""


def shares(point: Point) -> dict[str, Any]:
    frame = point.parameters["frame_flits"]
    found = [flits / sum(frame) for flits in frame]
    return {"share": found, "weight_share": found}


def latencies(point: Point) -> dict[str, Any]:
    """Latencies that rise from point to point, so that the highest is under a legend at the right."""
    if point.parameters["setting"] == "same VLs":
        return {"class_latency_mean_cycles": [None], "class_latency_p99_cycles": [None]}
    mean = 50 + 10 * len(point.parameters["vl_arbiter"])
    return {"class_latency_mean_cycles": [mean], "class_latency_p99_cycles": [4 * mean]}


def costs(point: Point) -> dict[str, Any]:
    """Costs of a card that takes 1500 cycles a packet; the rate-controlled program cuts at the MTU."""
    length, program = point.parameters["message_bytes"], point.parameters["program"]
    packets = -(-length // 4096)
    cycles = 1000 + 0.39 * length + 300 * packets
    if program == "rate-controlled" and length % 4096:
        cycles *= 1 + 0.25 / packets * (length > 4096)
    return {
        "round_trip_us": 4 * cycles / 33,
        "bandwidth_mb_per_s": 33 * length / cycles,
        "round_trips_cycles": round(16 * cycles),
        "transfer_cycles": round(10 * cycles),
    }


def loads(point: Point) -> dict[str, Any]:
    load = point.parameters["load"]
    full = load > 0.85
    return {
        "offered_flits_per_node_per_cycle": load,
        "accepted_flits_per_node_per_cycle": min(load, 0.84),
        "latency_mean_cycles": None if full else 50 / (0.9 - load),
        "saturated": full,
    }


def bandwidths(point: Point) -> dict[str, Any]:
    idts = point.parameters["idt_ticks"]
    return {"bandwidth_mb_per_s": [8192 / max(idt, 96) for idt in idts]}


def both_ways(point: Point) -> dict[str, Any]:
    idts = [point.parameters["in_idt_ticks"], *point.parameters["out_idt_ticks"]]
    return {"bandwidth_mb_per_s": [8192 / max(idt, 96) for idt in idts]}


def bandwidth(point: Point) -> dict[str, Any]:
    return {"bandwidth_mb_per_s": 8192 / max(point.parameters["idt_ticks"], 96)}


def adapters(point: Point) -> dict[str, Any]:
    """Results of any experiment on networks of adapters, which rise with the load. Nothing arrives at the highest."""
    load = point.parameters["load"]
    if load > 0.85:
        return defaultdict(lambda: None)
    place = len(point.parameters.get("scheme", ""))
    return defaultdict(
        lambda: (10 + place) / (0.9 - load), {"throughput": load, "dmp": 0.1 * load, "dmt_ms": 0.1}
    )


@pytest.mark.parametrize(
    ("name", "settings", "results"),
    [
        ("congestion", [], adapters),
        ("cq-config", [], adapters),
        ("wrr-variants", [], adapters),
        ("admission-cluster", [], adapters),
        ("admission-mesh", [], adapters),
        ("peak-power", [], adapters),
        ("wrr-shares", [], shares),
        ("wrr-shares", ["variants=small_fast,large_slow,deficit"], shares),
        ("vl-isolation", [], latencies),
        ("vl-isolation", ["vl_arbiter=round_robin,fixed_priority,deficit,fcfs,table_fast"], latencies),
        ("rate-overhead", [], costs),
        ("rate-overhead", ["message_bytes=[17, 4100, 20000]"], costs),
        ("network-load", [], loads),
        ("share-senders", [], bandwidths),
        ("share-receiver", [], bandwidths),
        ("mpi-share", [], bandwidths),
        ("share-bidir", [], both_ways),
        ("idt-sweep", [], bandwidth),
    ],
)
def test_a_plot_of_the_full_size_can_be_read(
    name: str, settings: list[str], results: Callable[[Point], dict[str, Any]]
) -> None:
    experiment = find(name)
    parameters = parse(experiment, settings)
    outcomes = [
        Outcome(point=point, results=results(point), seed=1, cycles=1, wall_seconds=1.0)
        for point in experiment.points(parameters, "full")
    ]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    experiment.plot(parameters, outcomes, figure)
    canvas.draw()
    assert faults(figure) == []


def faults(figure: Figure) -> list[str]:
    """The unreadable parts of a figure that has been drawn."""
    found = []
    page = figure.bbox
    if not figure.get_suptitle() and not any(axes.get_title() for axes in figure.axes):
        found.append("no title")
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        for what in (axes.xaxis, axes.yaxis):
            low, high = sorted(what.get_view_interval())
            ticks = [tick for tick in what.get_major_ticks() if low <= tick.get_loc() <= high]
            labels = [one.label1 for one in ticks if one.label1.get_text() and one.label1.get_visible()]
            boxes = [one.get_window_extent() for one in labels]
            for one, box in zip([*labels, what.label], [*boxes, what.label.get_window_extent()], strict=True):
                if one.get_text() and box.width and not _within(box, page):
                    found.append(f"{one.get_text()!r} is cut off")
            for number, box in enumerate(boxes[1:]):
                if boxes[number].padded(UPRIGHT_GAP if labels[number].get_rotation() else GAP).overlaps(box):
                    found.append(f"labels {number} and {number + 1} of an axis overlap")
        legend = axes.get_legend()
        if legend is None:
            continue
        box = legend.get_window_extent()
        for bar in axes.patches:
            if bar.get_window_extent().overlaps(box) and bar.get_height():
                found.append("a legend over a bar")
        for line in axes.lines:
            points = line.get_transform().transform(line.get_xydata()) if len(line.get_xdata()) > 2 else []
            if any(box.contains(x, y) for x, y in points):
                found.append(f"a legend over points of {line.get_label()}")
    return found


def _within(box: Bbox, page: Bbox) -> bool:
    return box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1
