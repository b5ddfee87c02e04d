"""The place where a program of the API runs: a terminal, a notebook, or neither."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["HereConsole", "bars", "in_notebook", "show_image"]


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    active = shell.get_ipython() if shell else None
    return active is not None and hasattr(active, "kernel")


def show_image(path: Path) -> None:
    """Show a picture, in a notebook."""
    if in_notebook() and path.is_file():
        from IPython.display import Image, display

        display(Image(filename=str(path)))


class HereConsole:
    """The console of this process, on which the coroutines of a simulation print and the debugger asks."""

    def show(self, text: str) -> None:
        """Print a piece of text."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def ask(self) -> str:
        """A line of input; empty at its end."""
        try:
            return f"{input()}\n"
        except EOFError:
            return ""


@contextmanager
def bars(labels: list[str], *, quiet: bool) -> Iterator[Callable[[int, float, str], None]]:
    """Progress bars for a build and points with these labels, on the terminal; none if `quiet`. Without a
    terminal the steps of the build are lines of standard error."""
    from lanikai.sim.experiments.framework.base import Point
    from lanikai.sim.experiments.framework.display import RunProgress
    from lanikai.sim.experiments.framework.runner import BUILD
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda index, fraction, text: None
        return
    with RunProgress(console, [Point(label=label, parameters={}, spec={}) for label in labels]) as shown:
        if console.is_terminal:
            yield shown.report
            return
        # In a pipe a build of minutes would look like a script that hangs. Points are the script's own to tell of.
        yield lambda index, fraction, text: shown.report(index, fraction, text) if index == BUILD else None
