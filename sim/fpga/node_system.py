"""The design `node` in a simulation, without its serial line: its request port for Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lanikai.hdl.board.node.config import NodeConfig
from lanikai.hdl.board.node.host_window import WINDOW_CYCLES
from lanikai.hdl.traffic.ports import REQUEST, RESPONSE
from pydantic import Field

from ..errors import SimulationError
from ..inside import native_api
from ..systems.base import System, SystemConfig

if TYPE_CHECKING:
    from ..build.model import Design, Variant
    from ..inside.session import Session

__all__ = ["NodeSystem", "NodeSystemConfig"]

TOP = "node_system"
MOST_CYCLES = 20_000_000
"""Longest wait for a card's work: above that of the most and longest messages."""
POLL_CYCLES = 1000


class NodeSystemConfig(SystemConfig):
    """The design `node` without its line."""

    title = "node"
    inside = "lanikai.sim.fpga.node_system:NodeSystem"

    node: NodeConfig = Field(default_factory=NodeConfig, description="its configuration")

    def design(self, variant: Variant = "fast") -> Design:
        """`hdl/board/node/node.py`, the request port its only port. Raises MissingTool."""
        from dataclasses import replace

        from lanikai.hdl.board.node.node import NodeSystem as Component

        from ..build.model import block_design
        from .node import node_sources

        sources = node_sources()
        found = block_design(Component(self.node), name=TOP)
        return replace(found, sources={**found.sources, **sources})

    def key(self) -> str:
        """Everything behind the line: card, router, and the program's hash."""
        node = self.node
        return f"{node.program_hash}/{node.nic.model_dump_json()}/{node.router.model_dump_json()}"


class NodeSystem(System[NodeSystemConfig]):
    """The design inside its simulation, as `node_load.measure` wants it."""

    def __init__(self, config: NodeSystemConfig, session: Session) -> None:
        super().__init__(config, session)
        self._request, self._response = native_api.signal("request"), native_api.signal("response")

    async def begin(self) -> None:
        """Nothing: a simulation begins anew."""

    async def write(self, node: int, address: int, *words: int) -> None:
        """Write words from `address` on."""
        for i, word in enumerate(words):
            await self._access(node=node, address=address + 4 * i, data=word, write=1)
            await self.clock.sleep(WINDOW_CYCLES)

    async def read(self, node: int, address: int, words: int = 1) -> list[int]:
        """Words from `address` on. Raises SimulationError where nothing answers."""
        found = []
        for i in range(words):
            await self._access(node=node, address=address + 4 * i)
            for _ in range(WINDOW_CYCLES):
                value: Mapping[str, int] = _unpack(self._response.get())
                if value["valid"]:
                    break
                await self.clock.sleep(1)
            else:
                raise SimulationError(f"nothing answers at node {node}, address {address + 4 * i:#x}")
            found.append(value["data"])
            await self.clock.sleep(WINDOW_CYCLES)
        return found

    def took(self, cycles: int) -> None:
        """Nothing: a simulation counts by itself."""

    async def pause(self) -> None:
        """Wait until it is worth while to look again. Raises SimulationError when it has been long enough."""
        if self.clock.cycle > MOST_CYCLES:
            raise SimulationError(f"the card is not done after {MOST_CYCLES} cycles")
        await self.clock.sleep(POLL_CYCLES)

    async def _access(self, **fields: int) -> None:
        bits = 1 << REQUEST["valid"].offset
        for name, value in fields.items():
            bits |= value << REQUEST[name].offset
        self._request.set(bits)
        await self.clock.sleep(1)
        self._request.set(0)


def _unpack(bits: int) -> dict[str, int]:
    return {name: bits >> field.offset & (1 << field.width) - 1 for name, field in RESPONSE}
