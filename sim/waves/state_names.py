"""Names of the states of a component's state machines, so that waves show words in place of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Fragment
from amaranth.lib import wiring

__all__ = ["state_names"]


def state_names(component: wiring.Component) -> dict[str, dict[int, str]]:
    """The names of the states of each Amaranth FSM in `component` and its submodules.

    Key: its state register, submodule names and the register's own, joined by dots. Value: the name of each value.
    """
    found: dict[str, dict[int, str]] = {}
    for path, signal in _switched(Fragment.get(component, None), ()):
        if signal.decoder is not None and signal.name.endswith("_state"):
            values = {}
            for value in range(1 << len(signal)):
                try:
                    # Amaranth's decoder of a state register gives "NAME/number".
                    values[value] = signal.decoder(value).rpartition("/")[0]
                except KeyError:
                    break
            found[".".join((*path, signal.name))] = values
    return found


def _switched(fragment: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every signal that a switch of `fragment`, or of a fragment below it, tests, with its place."""
    for statements in fragment.statements.values():
        for statement in statements:
            test = getattr(statement, "test", None)
            if hasattr(test, "decoder"):
                yield path, test
    for number, (below, name, *_) in enumerate(fragment.subfragments):
        yield from _switched(below, (*path, name or f"U${number}"))
