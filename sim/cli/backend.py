"""The backend that builds and runs for the commands."""

from __future__ import annotations

from typing import Any

from ..machine import Threads

__all__ = ["make"]


def make(threads: Threads) -> Any:
    """The simulator, with the threads of each simulation; the tests of the command line put another in its place."""
    from ..experiments.framework.backend import Simulator

    return Simulator(threads=threads)
