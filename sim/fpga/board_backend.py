"""The backend by which experiments run on a board."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..experiments.framework.backend import Built, Job, Measured, Progress, Variant
from .line import BoardLine, LineError, open_port

__all__ = ["BoardBackend"]


@dataclass(frozen=True, kw_only=True)
class _Bitstream:
    """The model of a design that is on a board already."""

    cached: bool = True
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BoardBackend:
    """Runs points on the board at the serial port `port` instead of a simulator, one at a time.

    - `baud`: rate of the line.
    - `identity`: that of the design that must be there.
    - `on_board`: makes of a line and a job what the job's coroutine wants, with the `cycles` that it took.

    Raises LineError.
    """

    port: str
    baud: int
    identity: int
    on_board: Callable[[BoardLine, Job], Any]

    def build(self, system: Any, variant: Variant, progress: Progress) -> Built:
        """Nothing is built: the design is on the board."""
        built: Built = _Bitstream()
        return built

    def run(self, model: Any, job: Job, progress: Progress) -> Measured:
        """Run the point on the board."""
        began = time.monotonic()
        with BoardLine(open_port(self.port, self.baud), self.port) as line:
            if (found := line.identity()) != self.identity:
                raise LineError(f"{self.port}: the design there is {found:#010x}, not {self.identity:#010x}")
            board = self.on_board(line, job)
            module, _, name = job.entry.partition(":")
            progress(0.1, "on the board")
            values = asyncio.run(getattr(import_module(module), name)(board, job.spec))
        return Measured(values=values, cycles=board.cycles, wall_seconds=time.monotonic() - began)
