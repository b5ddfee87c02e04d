"""The registry of peers: other simulators that `lanikai bench --beside` runs."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import UserError
from .booksim2 import BookSim2
from .peer import Peer

__all__ = ["PEERS", "find_peer"]

PEERS: Mapping[str, type[Peer]] = {peer.name: peer for peer in (BookSim2,)}


def find_peer(text: str) -> tuple[Peer, str | None]:
    """The peer that `--beside` names, `NAME` or `NAME=PROGRAM`, and the program. Raises UserError."""
    name, equals, program = text.partition("=")
    if name not in PEERS:
        raise UserError(f"--beside {text!r}: one of {', '.join(PEERS)}, or NAME=PROGRAM")
    if equals and not program:
        raise UserError(f"--beside {text!r}: no program after '='")
    return PEERS[name](), program if equals else None
