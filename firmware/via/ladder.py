"""The ladder of nagar-thesis-2001 4.3: designs of card and firmware, each a step from the one before.

They are choices of one card's `NicConfig` and of one program's `ViaConfig`, and none is a program of its own. Their
costs are those of chapter 4 (`ladder_costs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanikai.hdl.config import ConfigError, NicConfig

from .config import ViaConfig

__all__ = ["LADDER", "Rung", "rung"]


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A design of the ladder: what it changes of a card, and of a program's defaults."""

    about: str
    nic_changes: Mapping[str, Any]
    via_changes: Mapping[str, Any]

    def nic(self, card: NicConfig) -> NicConfig:
        """That card with what the design has, and without what it has not."""
        return card.replace(**self.nic_changes)

    def config(self, **changes: Any) -> ViaConfig:
        """The program's configuration, with further `changes`."""
        return ViaConfig(**{**self.via_changes, **changes})


_NO_QUEUES = {"host_dma_queue_entries": 0, "send_queue_entries": 0, "receive_queue_entries": 0}
# "A large number" of entries (4.3.7) is 32, as in `lanai7`; the receive engine has 2.
_QUEUES = {"host_dma_queue_entries": 32, "send_queue_entries": 32, "receive_queue_entries": 2}
_ONE = {"processors": 1, "receive_doorbells": "merged"}
_POLLED = {"doorbell": "polled", **_ONE}
_DOOR = {"doorbell": "queue", **_ONE}
_TWO = {"doorbell": "queue", "processors": 2, "receive_doorbells": "separate"}
_PARALLEL = {"design": "parallel", "cost_table": "ladder", "send_buffers": 8, "receive_buffers": 4}

LADDER: Mapping[str, Rung] = {
    "Base": Rung(
        about="4.3.3: doorbell words polled in turn, a message's stages one after the other, with busy waits",
        nic_changes={**_POLLED, **_NO_QUEUES},
        via_changes={"design": "sequential", "cost_table": "ladder"},
    ),
    "Base+O": Rung(
        about="4.3.6: an event loop, with a task queue in software before each DMA engine",
        nic_changes={**_POLLED, **_NO_QUEUES},
        via_changes=_PARALLEL,
    ),
    "Base+O+DMAQ": Rung(
        about="4.3.7: the task queues in hardware",
        nic_changes={**_POLLED, **_QUEUES},
        via_changes=_PARALLEL,
    ),
    "Door+O+DMAQ": Rung(
        about="4.3.8: doorbells in a hardware queue",
        nic_changes={**_DOOR, **_QUEUES},
        via_changes=_PARALLEL,
    ),
    "Door+O+DMAQ tailgating": Rung(
        about="4.3.9: a descriptor comes with the data of the message before it",
        nic_changes={**_DOOR, **_QUEUES},
        via_changes={**_PARALLEL, "descriptors": "tailgated"},
    ),
    "Door+O+DMAQ+2CPU": Rung(
        about="4.3.10: a processor and a doorbell queue to send, and one to receive",
        nic_changes={**_TWO, **_QUEUES},
        via_changes=_PARALLEL,
    ),
    "Door+O+DMAQ+2CPU shadow queues": Rung(
        about="4.3.11: processes write descriptors into the card's SRAM too",
        nic_changes={**_TWO, **_QUEUES, "shadow_windows": True},
        via_changes={**_PARALLEL, "descriptors": "shadow"},
    ),
}
"""Name, as [via-scalability] of published.toml has it -> design, each a step from the one before.

Two of them are steps from Door+O+DMAQ: tailgating, and two processors.
"""


def rung(name: str) -> Rung:
    """The design `name`. Raises ConfigError with the names that there are."""
    if name not in LADDER:
        raise ConfigError(f"unknown design {name!r}; valid designs: {', '.join(LADDER)}")
    return LADDER[name]
