"""The load that the RTL accepts at full load, a point a pattern, by the points of `network-load`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..experiments.framework.backend import Backend, Job
from ..experiments.framework.parameters import parse
from ..experiments.framework.pool import run_jobs
from ..experiments.framework.runner import BUILD, point_seed
from ..experiments.measure.traffic_results import ACCEPTED, traffic_results
from ..experiments.network_load import NetworkLoad, NetworkLoadParameters
from .loads import senders

__all__ = ["SLACK", "TAKEN", "measure", "parameters_of"]

Progress = Callable[[int, float, str], None]

TAKEN = (
    "vls",
    "routing",
    "vl_selection",
    "buffer_flits",
    "flit_bits",
    "packet_flits",
    "allocator",
    "vl_arbiter",
    "pipelined",
)
"""Parameters of `network-load` that make a difference to one network at full load."""
DEFAULTS = ("vls=4", "allocator=separable")
"""Four VLs are two pairs, for routing functions that change VLs; sixteen would have one for control."""
SLACK = 0.02
"""Relative: flits that came in the window and crossed the full channel before it. Buffers on the way hold at most as
many as a few packets, and a window of 20,000 cycles has hundreds."""


def parameters_of(name: str, settings: Sequence[str], pattern: str = "uniform") -> NetworkLoadParameters:
    """The parameters of `network-load` for the network `name` at full load. Raises UserError."""
    given = {setting.partition("=")[0].strip() for setting in settings}
    defaults = [one for one in DEFAULTS if one.partition("=")[0] not in given]
    found = parse(
        NetworkLoad(), [f"network={name}", f"pattern={pattern}", "loads=[1.0]", *defaults, *settings]
    )
    assert isinstance(found, NetworkLoadParameters)
    return found


def measure(
    name: str,
    settings: Sequence[str],
    patterns: Sequence[str],
    *,
    seed: int,
    workers: int,
    backend: Backend,
    progress: Progress = lambda index, fraction, text: None,
) -> list[dict[str, float]]:
    """For each pattern the flits that a sending node gets through a cycle at full load: the mean, and the least.

    `progress` is told `BUILD` or a pattern's index, a fraction and a line of text. Raises LanikaiError.
    """
    experiment, jobs = NetworkLoad(), []
    with tempfile.TemporaryDirectory(prefix="lanikai-topology-") as scratch:
        for index, pattern in enumerate(patterns):
            parameters = parameters_of(name, settings, pattern)
            (point,) = experiment.points(parameters, "quick")
            folder = Path(scratch) / f"{index:02d}"
            folder.mkdir()
            jobs.append(
                Job(
                    window=None,
                    system=experiment.system(parameters, point),
                    entry=experiment.entry,
                    spec=point.spec,
                    seed=point_seed(seed, experiment.name, 0, point.workload),
                    folder=folder,
                )
            )
        # Patterns are settings of the sources: there is one system.
        model = backend.build(jobs[0].system, "fast", lambda fraction, text: progress(BUILD, fraction, text))
        done = run_jobs(backend, [model] * len(jobs), jobs, workers=workers, progress=progress)
    return [
        {
            "accepted_flits_per_sender_per_cycle": traffic_results(one.values)[ACCEPTED],
            "least_flits_per_sender_per_cycle": _least(one.values, pattern),
        }
        for one, pattern in zip(done, patterns, strict=True)
    ]


def _least(measured: Any, pattern: str) -> float:
    """Flits a cycle that came to the node which got least, of those that somebody sends to.

    In a permutation it is the rate of the slowest sender.
    """
    counts, window = measured["counts"], measured["window_cycles"]
    pairs = senders(pattern, len(counts))
    nodes = range(len(counts)) if pairs is None else [to for _, to in pairs]
    return min(sum(one["accepted_flits"] for one in counts[node]) for node in nodes) / window
