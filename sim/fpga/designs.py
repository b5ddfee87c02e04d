"""The designs that boards can run, by name, and the size of each on a board. A new one is a line in `DESIGNS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lanikai.hdl.board.config import LineConfig, LoopbackConfig

from ..errors import UserError
from .loopback import LOOPBACK_SIZES

__all__ = ["DESIGNS", "FpgaDesign", "configuration", "find_design"]


@dataclass(frozen=True, kw_only=True)
class FpgaDesign:
    """A design.

    - `about`: the design in a line.
    - `boards`: board -> its configuration there, made when it is wanted.
    - `make`: the component, with members `rx`, `tx` and `leds`, from a configuration.
    """

    about: str
    boards: Mapping[str, Callable[[], LineConfig]]
    make: Callable[[Any], Any]


def _loopback(config: LoopbackConfig) -> Any:
    from lanikai.hdl.board.loopback import RouterLoopback

    return RouterLoopback(config)


DESIGNS: Mapping[str, FpgaDesign] = {
    "router-loopback": FpgaDesign(
        about="a router between traffic nodes, measured over the serial line",
        boards={board: size.design for board, size in LOOPBACK_SIZES.items()},
        make=_loopback,
    ),
}
"""Name -> design."""


def find_design(name: str) -> FpgaDesign:
    """The design `name`. Raises UserError with the valid names."""
    if name not in DESIGNS:
        raise UserError(f"unknown design {name!r}; valid designs: {', '.join(DESIGNS)}")
    return DESIGNS[name]


def configuration(name: str, board: str) -> LineConfig:
    """The configuration of a design on a board. Raises UserError for a design that has no size there."""
    design = find_design(name)
    if board not in design.boards:
        raise UserError(f"{name} has no size for {board}; boards that have one: {', '.join(design.boards)}")
    return design.boards[board]()
