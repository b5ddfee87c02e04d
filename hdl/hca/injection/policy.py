"""The base of the policies of injection control, and the words that set them up."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

from amaranth import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from ...config.hca import HcaConfig
from .base import InjectionSignature

__all__ = ["SETUP_LAYOUT", "InjectionPolicy", "SetupKind"]


class SetupKind(IntEnum):
    """The meanings of a word of set-up."""

    OUTPUT_PORT = 0  # `at_least_one`: the port by which the adapter's router sends to node `index`
    FLIT_ENERGY = 1  # power: energy of a flit on its way to node `index`, any unit; 0 after reset
    PATH_CYCLES = 2  # power: cycles of the way to node `index` without the packet's flits; 0 after reset
    POWER_BUDGET = 3  # power: the budget, in the unit of FLIT_ENERGY; 0 after reset
    POWER_CLASSES = 4  # power: a bit a traffic class that is held to the budget; none after reset


SETUP_LAYOUT = data.StructLayout({"kind": unsigned(3), "index": unsigned(10), "value": unsigned(32)})
"""A word of set-up: a `SetupKind`, a node, and the value."""


class InjectionPolicy(wiring.Component):
    """A policy of injection control: it sees each message that could begin, and allows it or not.

    A subclass makes `control.allow` (and `control.never`, which stays low in most). It may go by registers, and by
    `side` and `control` in the same cycle. A policy that is no more than this is one file and a line in `INJECTION`.

    - `side_name`: the name of the vector that the network brings to the adapter; None for none.
    - `output_ports`: whether the host writes `SetupKind.OUTPUT_PORT` for each node.

    Members:

    - `control` (in, `InjectionSignature`): the scheduler.
    - `setup_valid` (in), `setup` (in, `SETUP_LAYOUT`): a word of set-up, always taken. A policy takes no notice of
      kinds that are not its own.
    - `side` (in, `side_bits`), only with a `side_name`: that vector.
    """

    side_name: ClassVar[str | None] = None
    output_ports: ClassVar[bool] = False

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        members: dict[str, Any] = {
            "control": In(InjectionSignature(vls=config.link.vls)),
            "setup_valid": In(1),
            "setup": In(SETUP_LAYOUT),
        }
        if self.side_bits(config):
            members["side"] = In(self.side_bits(config))
        super().__init__(members | self.more_members(config))

    @classmethod
    def side_bits(cls, config: HcaConfig) -> int:
        """Width of `side`; 0 without one."""
        return 0

    @classmethod
    def more_members(cls, config: HcaConfig) -> dict[str, Any]:
        """Members that the policy has besides."""
        return {}
