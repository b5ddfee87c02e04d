"""The token of a message: what a handler is given to know it by, and to reply with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanikai.firmware.am.wire import MessageKind

from .ledger import EndpointName

__all__ = ["Token"]


@dataclass(eq=False)
class Token:
    """A message that has come, or has come back.

    - `endpoint`: the endpoint (`Endpoint`) that has it.
    - `source`, `tag`: the sender, and the tag for a reply to it.
    - `destination`: of a message that has come back, the endpoint for which it was.
    - `is_request`, `kind`, `handler`, `words`, `data`, `offset`: the message. `data`: of a request that has come back.
    - `reference`: the sender's.
    - `active`: its handler runs. `replied`: it has replied.
    - `reason`: of a message that has come back, the firmware's `Reason`.
    """

    endpoint: Any
    source: EndpointName
    tag: int
    destination: EndpointName
    is_request: bool
    kind: MessageKind
    handler: int
    words: tuple[int, ...] = ()
    data: bytes | None = None
    offset: int = 0
    reference: int = 0
    active: bool = False
    replied: bool = False
    reason: int = 0
