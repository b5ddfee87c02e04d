"""The design `node` in the size of each board."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from lanikai.hdl.board.node.config import NodeConfig
from pydantic import Field

from ..errors import MissingTool
from ..extras import install_command
from .size import DesignSize

__all__ = ["NODE_SIZES", "NodeSize", "node_sources"]

CORE = "pythondata_cpu_picorv32"
"""The package that has the soft core's Verilog."""


def node_sources() -> dict[str, str]:
    """The soft core's Verilog, by the name of its file. Raises MissingTool without it, or without the assembler."""
    for package in (CORE, "bronzebeard"):
        if find_spec(package) is None:
            raise MissingTool(package.replace("_", "-"), install_command())
    import pythondata_cpu_picorv32

    file = Path(pythondata_cpu_picorv32.data_location) / "picorv32.v"
    return {file.name: file.read_text()}


class NodeSize(DesignSize):
    """Sizes of the design."""

    title = "node"

    buffer_flits: int = Field(8, ge=2, le=1024, description="buffers of card and router, flits")

    def design(self, label: str = "") -> NodeConfig:
        """The design's configuration. Raises ConfigError."""
        usual = NodeConfig()
        return NodeConfig(
            clock_hz=self.clock_hz,
            baud=self.baud,
            gap_cycles=self.gap_cycles,
            label=label,
            nic=usual.nic.replace(input_buffer_flits=self.buffer_flits, clock_hz=self.clock_hz),
            router=usual.router.replace(
                input_buffer_flits=self.buffer_flits, output_buffer_flits=self.buffer_flits
            ),
            program=usual.program_hash,
        )


NODE_SIZES: Mapping[str, NodeSize] = {
    "ulx3s-85f": NodeSize(),
    "versa-5g": NodeSize(),
    "ecpix5-85f": NodeSize(),
    "orangecrab-25f": NodeSize(clock_hz=24_000_000),
}
"""Board -> the size of the design there."""
