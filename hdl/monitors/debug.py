"""The monitors of debug builds: at every link, AXI port and register port of routers and cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..nic.nic import Nic
from ..router.router import Router
from .watched import watched

__all__ = ["MOST_WAIT_CYCLES", "OTHER_BURSTS", "watched_card", "watched_router"]

MOST_WAIT_CYCLES = 1 << 16
"""Cycles that an access of a register port may stand. The longest wait that is right is that for VL tables with 64
entries and 16 VLs to take up their last commit, 16,545 cycles (`TableSignature.wait_bound`)."""
OTHER_BURSTS = 2
"""Bursts on a card's bus, a direction, beside the `host_dma_bursts` of the DMA engine: the completion block and the
translation have one each."""


def watched_router(router: Router) -> Router:
    """The router, with a monitor at each link and at its agent's port. It is changed itself (`watched`)."""
    config = router.config

    def parameters(name: str) -> Mapping[str, Any] | None:
        end, _, port = name.partition("__")
        if end == "agent":
            return {"most_cycles": MOST_WAIT_CYCLES}
        if config.management and port == "0":
            return None  # the agent's own port has no link
        return {"depth": config.input_buffer_flits if end == "rx" else router.credit_flits[int(port)]}

    return watched(router, parameters, counts=False)


def watched_card(card: Nic) -> Nic:
    """The card, with a monitor at its link, bus, host window and processors' ports. It is changed itself
    (`watched`)."""

    def parameters(name: str) -> Mapping[str, Any]:
        if name in ("rx", "tx"):
            return {"depth": card.config.input_buffer_flits if name == "rx" else card.downstream_flits}
        if name == "dma":
            return {"outstanding": card.config.host_dma_bursts + OTHER_BURSTS}
        if name == "host":
            return {}
        return {"most_cycles": MOST_WAIT_CYCLES}

    return watched(card, parameters, counts=False)
