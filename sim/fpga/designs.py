"""The designs that boards can run, by name, and the size of each on a board. A new one is a line in `DESIGNS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanikai.hdl.board.config import LineConfig, LoopbackConfig
from lanikai.hdl.board.node.config import NodeConfig

from ..errors import LanikaiError, UserError
from ..names import unknown
from ..synth.device import known_board
from .loopback import LOOPBACK_SIZES, LoopbackSize
from .node import NODE_SIZES, NodeSize, node_sources
from .size import BoardExperiment, DesignSize

if TYPE_CHECKING:
    from ..experiments.framework.backend import Job
    from .line import BoardLine

__all__ = ["DESIGNS", "FpgaDesign", "KnownDesign", "configuration", "find_design", "known_design", "size_of"]


@dataclass(frozen=True, kw_only=True)
class FpgaDesign:
    """A design.

    - `about`: the design in a line.
    - `sizes`: board -> its size there.
    - `make`: the component, with members `rx`, `tx` and `leds`, from a configuration.
    - `experiment`: what runs on a design of this size, on a board and in simulation.
    - `on_board`: the design of this size at the end of a line, as the job's coroutine wants it. Its `cycles` are those
      that it took.
    - `verilog`: texts of Verilog that it instantiates, by file name. Raises MissingTool without a package that has one.
    """

    about: str
    sizes: Mapping[str, DesignSize]
    make: Callable[[Any], Any]
    experiment: Callable[[Any], BoardExperiment]
    on_board: Callable[[Any, BoardLine, Job], Any]
    verilog: Callable[[], Mapping[str, str]] = dict


def _loopback(config: LoopbackConfig) -> Any:
    from lanikai.hdl.board.loopback import RouterLoopback

    return RouterLoopback(config)


def _load(size: LoopbackSize) -> BoardExperiment:
    from .board_load import BoardLoad

    return BoardLoad(size)


def _traffic(size: LoopbackSize, line: BoardLine, job: Job) -> Any:
    from .board_traffic import BoardTraffic

    return BoardTraffic(job.system, line, seed=job.seed, clock_hz=size.clock_hz)


def _node(config: NodeConfig) -> Any:
    from lanikai.hdl.board.node.node import BoardNode

    return BoardNode(config)


def _messages(size: NodeSize) -> BoardExperiment:
    from .node_load import NodeLoad

    return NodeLoad(size)


def _node_at(size: NodeSize, line: BoardLine, job: Job) -> Any:
    from .node_board import NodeOnBoard

    return NodeOnBoard(line, seed=job.seed)


DESIGNS: Mapping[str, FpgaDesign] = {
    "router-loopback": FpgaDesign(
        about="a router between traffic nodes, measured over the serial line",
        sizes=LOOPBACK_SIZES,
        make=_loopback,
        experiment=_load,
        on_board=_traffic,
    ),
    "node": FpgaDesign(
        about="a card with a soft core and host memory, whose messages a router sends back to it",
        sizes=NODE_SIZES,
        make=_node,
        experiment=_messages,
        on_board=_node_at,
        verilog=node_sources,
    ),
}
"""Name -> design."""


@dataclass(frozen=True, kw_only=True)
class KnownDesign:
    """A design that is on a board: its name, the board, its size, and its configuration."""

    name: str
    board: str
    size: DesignSize
    config: LineConfig

    def experiment(self) -> BoardExperiment:
        """The experiment that runs on it."""
        return DESIGNS[self.name].experiment(self.size)

    def on_board(self, line: BoardLine, job: Job) -> Any:
        """The design at the end of `line`, as the job's coroutine wants it."""
        return DESIGNS[self.name].on_board(self.size, line, job)


def find_design(name: str) -> FpgaDesign:
    """The design `name`. Raises UserError with the valid names."""
    if name not in DESIGNS:
        raise unknown("design", name, DESIGNS)
    return DESIGNS[name]


def size_of(name: str, board: str, settings: Sequence[str] = ()) -> DesignSize:
    """The size of a design on a board, with `settings` (`key=value` each). Raises UserError for an unknown
    name, for a design that has no size there, and for what cannot be set."""
    design = find_design(name)
    known_board(board)
    if board not in design.sizes:
        raise UserError(f"{name} has no size for {board}; boards that have one: {', '.join(design.sizes)}")
    usual = design.sizes[board]
    return usual.with_settings(settings) if settings else usual


def configuration(name: str, board: str, settings: Sequence[str] = ()) -> LineConfig:
    """The configuration of a design on a board, which has its name, the board and the settings in its label. Raises
    UserError as `size_of` does."""
    size = size_of(name, board, settings)
    different = size.settings(find_design(name).sizes[board])
    return size.design(" ".join([name, board, *different]))


def known_design(label: str, identity: int) -> KnownDesign:
    """The design with this label and identity. Raises LanikaiError where this version makes another one, or none."""
    name, _, rest = label.partition(" ")
    board, *settings = rest.split(" ")
    try:
        size, config = size_of(name, board, settings), configuration(name, board, settings)
    except UserError as error:
        raise LanikaiError(
            f"the design on the board says it is {label!r}, which this version does not make: {error}"
        ) from None
    if config.identity != identity:
        raise LanikaiError(
            f"the design on the board is {label!r} of another version ({identity:#010x}, not {config.identity:#010x}): "
            "build it and load it anew"
        )
    return KnownDesign(name=name, board=board, size=size, config=config)
