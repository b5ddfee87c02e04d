"""A design on a virtual board, served by a simulation in a thread of its own, beside the same in a simulation."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lanikai.sim.experiments.framework.backend import Job, Simulator
from lanikai.sim.fpga.board_backend import BoardBackend
from lanikai.sim.fpga.designs import known_design
from lanikai.sim.fpga.virtual_board import SERVE, VirtualBoardConfig
from lanikai.sim.run import run

__all__ = ["on_both", "served"]


@contextmanager
def served(config: VirtualBoardConfig, folder: Path) -> Iterator[str]:
    """The serial port of a virtual board. At the end its wires must have carried something."""
    model = config.build()
    port, stop = folder / "tty", folder / "stop"
    entry, spec = config.job(SERVE, {"link": str(port), "stop": str(stop)})
    done: list[Any] = []
    server = threading.Thread(target=lambda: done.append(run(model, entry, spec, out_dir=folder)))
    server.start()
    try:
        while not port.exists():
            assert server.is_alive(), "the virtual board has not started"
            server.join(0.05)
        yield str(port)
    finally:
        stop.touch()
        server.join()
    assert min(done[0].value.values()) > 1000, "the wires carried little"


def on_both(
    config: VirtualBoardConfig, settings: list[str], folder: Path, *, seed: int, **spec: Any
) -> list[tuple[Any, Any]]:
    """The values of each point of the design's experiment on a virtual board, through its serial line's wires, and in
    simulation. `spec`: changes of the points'."""
    known = known_design(config.line.label, config.line.identity)
    experiment = known.experiment()
    parameters = experiment.parameters(settings)
    found = []
    with served(config, folder) as port:
        backend = BoardBackend(
            port=port, baud=config.line.baud, identity=config.line.identity, on_board=known.on_board
        )
        simulator = Simulator()
        for point in experiment.points(parameters, "quick"):
            system = experiment.system(parameters, point)
            job = Job(
                system=system, entry=experiment.entry, spec=dict(point.spec) | spec, seed=seed, folder=folder
            )
            simulated = simulator.run(simulator.build(system, "fast", lambda *_: None), job, lambda *_: None)
            real = backend.run(None, job, lambda *_: None)
            found.append((real.values, json.loads(json.dumps(simulated.values))))
    return found
