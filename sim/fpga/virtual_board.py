"""A design's serial line in a simulation, joined to a pseudo-terminal: a board without a board.

The wires are looked at and driven bit by bit, by a receiver and a transmitter in plain Python that share nothing with
those of the RTL.
"""

from __future__ import annotations

import os
import select
import time
import tty
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from ..systems.base import System, SystemConfig
from .designs import configuration, find_design

if TYPE_CHECKING:
    from lanikai.hdl.board.config import LineConfig

    from ..build.model import Design, Variant
    from ..inside.clock import Clock

__all__ = ["SERVE", "VirtualBoard", "VirtualBoardConfig", "WireReceiver", "serve"]

SERVE = "lanikai.sim.fpga.virtual_board:serve"
"""The `entry` that joins a virtual board to a pseudo-terminal."""
TOP = "virtual_board"
SAMPLES = 4
"""Looks at the line in a bit."""


class VirtualBoardConfig(SystemConfig):
    """A design on a board, without its pins and clock."""

    title = "virtual board"
    inside = "lanikai.sim.fpga.virtual_board:VirtualBoard"

    design_name: str = Field("router-loopback", description="a name in `DESIGNS`")
    board: str = Field("icebreaker", description="the board whose size it has")
    settings: tuple[str, ...] = Field((), description="settings that differ from it, `key=value` each")
    baud: int = Field(0, ge=0, description="rate of the line, bits a second; 0: the board's")

    @property
    def line(self) -> LineConfig:
        """The design's configuration (`LineConfig`). Raises UserError, ConfigError."""
        found = configuration(self.design_name, self.board, self.settings)
        return found.replace(baud=self.baud) if self.baud else found

    def design(self, variant: Variant = "fast") -> Design:
        """The design in Verilog, `rx`, `tx` and `leds` its ports."""
        from ..build.model import block_design

        found = find_design(self.design_name)
        verilog = found.verilog()
        design = block_design(found.make(self.line), name=TOP)
        return replace(design, sources={**design.sources, **verilog})

    def key(self) -> str:
        """The whole configuration of the design, as JSON."""
        return f"{self.design_name}/{self.line.model_dump_json()}"


class WireReceiver:
    """Bytes from a line that is looked at `SAMPLES` times a bit."""

    def __init__(self) -> None:
        self._bits: list[int] = []
        self._wait = 0

    def look(self, level: int) -> int | None:
        """Take the next look; the byte that is whole with it. Raises ValueError for a byte without a stop bit."""
        if self._wait:
            self._wait -= 1
            return None
        if not self._bits:
            if not level:
                self._bits = [0]
                self._wait = SAMPLES + SAMPLES // 2 - 1
            return None
        self._bits.append(level)
        if len(self._bits) < 10:
            self._wait = SAMPLES - 1
            return None
        if not level:
            raise ValueError("a byte without a stop bit")
        byte = sum(bit << i for i, bit in enumerate(self._bits[1:9]))
        self._bits = []
        return byte


class VirtualBoard(System[VirtualBoardConfig]):
    """The design inside its simulation."""


async def serve(board: VirtualBoard, spec: dict[str, object]) -> dict[str, int]:
    """Serve a pseudo-terminal.

    - `spec["link"]`: a symbolic link to it is made there.
    - `spec["stop"]`: ends when this file is there.

    Returns the bytes that went each way. Raises ValueError for a byte without a stop bit.
    """
    from ..inside import native_api

    line = board.config.line
    master, slave = os.openpty()
    tty.setraw(slave)
    link, stop = Path(str(spec["link"])), Path(str(spec["stop"]))
    link.symlink_to(os.ttyname(slave))
    rx, tx = native_api.signal("rx"), native_api.signal("tx")
    rx.set(1)
    clock: Clock = board.clock
    received = WireReceiver()
    # Cycles of each look: a bit may be no multiple of `SAMPLES`.
    steps = [(i + 1) * line.bit_cycles // SAMPLES - i * line.bit_cycles // SAMPLES for i in range(SAMPLES)]
    waiting = bytearray()
    bits: list[int] = []
    counts = {"to_board": 0, "from_board": 0}
    idle = 0
    try:
        while True:
            if not bits and not waiting and select.select([master], [], [], 0)[0]:
                waiting += os.read(master, 4096)
            if not bits and waiting:
                byte = waiting.pop(0)
                bits = [0, *(byte >> i & 1 for i in range(8)), 1]
                counts["to_board"] += 1
            if bits:
                rx.set(bits.pop(0))
            idle += 1
            for cycles in steps:
                await clock.sleep(cycles)
                if (whole := received.look(tx.get())) is not None:
                    os.write(master, bytes([whole]))
                    counts["from_board"] += 1
                    idle = 0
            if bits or waiting:
                idle = 0
            if idle > IDLE_BITS:
                # Nobody speaks, and time need not pass at the speed of the simulator.
                if stop.exists():
                    return counts
                select.select([master], [], [], IDLE_SECONDS)
                time.sleep(0)
    finally:
        link.unlink(missing_ok=True)
        os.close(master)
        os.close(slave)


IDLE_BITS = 2000
"""Bits of silence after which the simulation goes slowly."""
IDLE_SECONDS = 0.01
