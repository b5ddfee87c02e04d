"""The session of a run's coroutine: the design, the clock, its parameters, progress."""

from __future__ import annotations

import importlib
import json
import os
import random
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from ..carried import unpack
from .clock import Clock

__all__ = ["Session", "load_coroutine"]


def load_coroutine(entry: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The coroutine function that `entry` ("package.module:name") names. Raises ImportError,
    AttributeError."""
    module, _, name = entry.partition(":")
    found: Callable[..., Coroutine[Any, Any, Any]] = getattr(importlib.import_module(module), name)
    return found


class Session:
    """One run inside the simulator.

    - `dut`: the top module's cocotb handle; `clock`: `Clock`.
    - `spec`: the run's parameters (JSON values); `seed`, `random`: the run's seed and its generator.
    - `started`: when the simulation began, seconds of `time.perf_counter`: after all imports.
    - `out_dir`: folder for files; `channel`: descriptor of the socket to the program that started the run.
    - `carried`: file of the code that the run brings along (`lanikai.sim.carried`), or None.
    """

    def __init__(
        self,
        dut: Any,
        spec: Mapping[str, Any],
        *,
        seed: int,
        out_dir: Path,
        channel: int,
        clock: Clock,
        carried: str | None = None,
    ) -> None:
        self.dut = dut
        self.spec = spec
        self.seed = seed
        self.random = random.Random(seed)
        self.out_dir = out_dir
        self.clock = clock
        self.started = time.perf_counter()
        self._channel = channel
        self.carried: Any = None if carried is None else unpack(Path(carried).read_bytes())

    def progress(self, fraction: float, text: str) -> None:
        """Tell how far the run is: `fraction` from 0 to 1 and a text of one line."""
        self.send({"progress": fraction, "text": text})

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message to the program that started the run: one line of JSON."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._channel, data) :]
