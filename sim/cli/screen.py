"""Where commands print."""

from __future__ import annotations

from rich.console import Console

__all__ = ["screen"]


def screen(*, stderr: bool = False) -> Console:
    """The console to print on. A terminal has its own width; a pipe or a file is given room for a row on a line."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=160)
