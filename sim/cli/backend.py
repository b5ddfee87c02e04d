"""The backend that builds and runs for the commands."""

from __future__ import annotations

from typing import Any

__all__ = ["make"]


def make() -> Any:
    """The simulator; the tests of the command line put another in its place."""
    from ..experiments.framework.backend import Simulator

    return Simulator()
