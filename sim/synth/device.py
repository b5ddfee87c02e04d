"""Devices as nextpnr names them, and a board's pins as it reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import MissingTool, UserError
from ..extras import install_command
from ..names import unknown

if TYPE_CHECKING:
    from lanikai.constraints.board import Board, Pin

__all__ = ["LARGEST", "Device", "constraints", "device_of", "find_board", "known_board"]

DEVICES = {
    "LFE5U-12F": "--12k",
    "LFE5U-25F": "--25k",
    "LFE5U-45F": "--45k",
    "LFE5U-85F": "--85k",
    "LFE5UM-25F": "--um-25k",
    "LFE5UM-45F": "--um-45k",
    "LFE5UM-85F": "--um-85k",
    "LFE5UM5G-25F": "--um5g-25k",
    "LFE5UM5G-45F": "--um5g-45k",
    "LFE5UM5G-85F": "--um5g-85k",
}
"""The maker's name of an ECP5 -> nextpnr's option."""
PACKAGES = {
    "BG256": "CABGA256",
    "MG285": "CSFBGA285",
    "BG381": "CABGA381",
    "BG554": "CABGA554",
    "BG756": "CABGA756",
}
"""The maker's name of a package -> nextpnr's."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """An ECP5: `name` (maker's), `package` (maker's), `speed` grade, `grade` of temperature, if it is known."""

    name: str
    package: str
    speed: str
    grade: str = ""

    @property
    def part(self) -> str:
        """The maker's number of the whole part."""
        return f"{self.name}-{self.speed}{self.package}{self.grade}"

    @property
    def options(self) -> list[str]:
        """Arguments by which nextpnr knows it."""
        return [DEVICES[self.name], "--package", PACKAGES[self.package], "--speed", self.speed]


LARGEST = Device(name="LFE5U-85F", package="BG756", speed="6", grade="C")
"""The largest ECP5, in its slowest speed grade: any block fits."""


def known_board(name: str) -> Board:
    """The board `name`. Raises UserError with the valid names."""
    from lanikai.constraints.boards import BOARDS

    if name not in BOARDS:
        raise unknown("board", name, BOARDS)
    return BOARDS[name]


def find_board(name: str) -> Board:
    """The board `name`, whose pins can be read. Raises UserError: no such board, or no ECP5; MissingTool without the
    package that has its pins."""
    board = known_board(name)
    try:
        known = board.device in DEVICES and board.package in PACKAGES
    except ModuleNotFoundError as error:
        raise MissingTool((error.name or "").replace("_", "-"), install_command()) from None
    if not known:
        raise UserError(
            f"board {name!r} has a {board.device} in {board.package}; only ECP5s can be placed: {', '.join(DEVICES)}"
        )
    return board


def device_of(board: Board) -> Device:
    """The board's device."""
    return Device(name=board.device, package=board.package, speed=board.speed)


def constraints(board: Board, ports: Mapping[str, Pin], *, clock: str) -> str:
    """The LPF file that puts each of `ports` at a pin; the port `clock` runs at the board's frequency."""
    lines = []
    for port, pin in ports.items():
        lines.append(f'LOCATE COMP "{port}" SITE "{pin.site}";')
        if pin.attributes:
            settings = " ".join(f"{key}={value}" for key, value in pin.attributes.items())
            lines.append(f'IOBUF PORT "{port}" {settings};')
    lines.append(f'FREQUENCY PORT "{clock}" {board.clock_hz} HZ;')
    return "\n".join(lines) + "\n"
