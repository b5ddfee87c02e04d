"""When results were written, and what made the page."""

from __future__ import annotations

import time

from ..experiments.framework.results import versions

__all__ = ["made_by", "when"]


def when(seconds: float) -> str:
    """A time since the epoch as date and time of this machine's zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def made_by(folder: object) -> str:
    """The last line of a page: the program, its version, and where the results are."""
    return f"Made by lanikai {versions()['lanikai']} from {folder}. This file asks no network for anything."
